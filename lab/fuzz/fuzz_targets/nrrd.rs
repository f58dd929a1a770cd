//! Foreign bytes as a `x.nrrd` file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::files::open_and_read("x.nrrd", bytes));
