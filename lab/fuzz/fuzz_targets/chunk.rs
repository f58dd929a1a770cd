//! Foreign bytes as a stored chunk, by the filters that packed it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::chunk::decode(bytes));
