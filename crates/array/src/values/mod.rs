//! Elements and their values: types, decoding, distribution, statistics.

pub(crate) mod decode;
pub(crate) mod dtype;
pub(crate) mod element;
pub(crate) mod float;
pub(crate) mod sample;
pub mod stats;
