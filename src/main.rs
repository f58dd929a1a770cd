//! The `corridor` command line.
fn main() {}
