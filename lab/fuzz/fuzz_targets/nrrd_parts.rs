//! Foreign bytes as a `x.nhdr` file with files of data beside it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::pair::open_and_read_parts(bytes));
