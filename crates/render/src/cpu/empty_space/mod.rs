//! Skipping what the transfer function hides.

pub(crate) mod leap;
pub(crate) mod pace;
pub(crate) mod sieve;
pub(crate) mod skip;
