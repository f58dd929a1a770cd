//! Foreign bytes as a `x.hdr` file with an image beside it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| corridor_fuzz::pair::open_and_read(bytes));
