//! Foreign bytes as what a server sends.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::client::play(bytes));
