//! Foreign bytes as what comes off a connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::frames::cut_and_decode(bytes));
