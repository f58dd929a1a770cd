//! Foreign bytes as messages of participants in a session.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::talk::take_part(bytes));
