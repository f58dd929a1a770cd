//! Foreign bytes as the messages of a server.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::client::play(bytes));
