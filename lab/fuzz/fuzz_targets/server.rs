//! Foreign bytes as what a client sends.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::server::play(bytes));
