//! Foreign bytes as a `x.hdr` file with an image beside it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::pair::open_and_read(bytes));
