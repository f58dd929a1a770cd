//! Foreign bytes as what a server says it has.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| corridor_fuzz::description::use_description(bytes));
