//! Foreign bytes as what a server sends.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| corridor_fuzz::client::play(bytes));
