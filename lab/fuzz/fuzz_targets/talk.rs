//! Foreign bytes as what participants of a session say.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| corridor_fuzz::talk::take_part(bytes));
