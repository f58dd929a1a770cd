//! Foreign bytes as what a client sends.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| corridor_fuzz::server::play(bytes));
