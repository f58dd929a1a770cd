//! Foreign bytes as a stored chunk and its filters.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::chunk::decode(bytes));
