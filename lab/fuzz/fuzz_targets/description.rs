//! Foreign bytes as what a server says it has.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::description::use_description(bytes));
