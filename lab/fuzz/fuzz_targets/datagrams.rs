//! Foreign bytes as datagrams and records of the link `lossy`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::datagrams::play(bytes));
