//! Foreign bytes as parameters and answers of operations.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::operations::decode(bytes));
