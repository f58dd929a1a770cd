//! Foreign bytes as a file of geometry.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::geometry::read(bytes));
