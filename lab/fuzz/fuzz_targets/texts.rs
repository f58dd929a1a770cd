//! Foreign bytes as selections and locations that people type.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::texts::parse(bytes));
