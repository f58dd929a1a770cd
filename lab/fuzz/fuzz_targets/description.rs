//! Foreign bytes as the description of a server's data.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::description::use_description(bytes));
