//! Foreign bytes as a `x.h5` file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::files::open_and_read("x.h5", bytes));
