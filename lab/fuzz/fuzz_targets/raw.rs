//! Foreign bytes as a `x.toml` file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::files::open_and_read("x.toml", bytes));
