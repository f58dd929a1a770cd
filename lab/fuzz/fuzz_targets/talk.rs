//! Foreign bytes as what participants of a session say.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::talk::take_part(bytes));
