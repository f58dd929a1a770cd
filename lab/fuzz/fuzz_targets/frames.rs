//! Foreign bytes as data received on a connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::frames::cut_and_decode(bytes));
