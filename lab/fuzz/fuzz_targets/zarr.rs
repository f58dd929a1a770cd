//! Foreign bytes as the files of a Zarr store.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::zarr::open_and_read(bytes));
