//! Frames: encoding and decoding of the messages between two peers.

pub(crate) mod batch;
pub(crate) mod check;
pub(crate) mod codec;
pub(crate) mod deframer;
pub(crate) mod frame;
pub(crate) mod numbered;
pub(crate) mod part;
pub mod probe;
