//! Foreign bytes as datagrams and records of the link `lossy`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| corridor_fuzz::datagrams::play(bytes));
