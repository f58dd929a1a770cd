//! Foreign bytes as the messages of a client.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::server::play(bytes));
