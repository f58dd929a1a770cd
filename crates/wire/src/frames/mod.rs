//! Frames: messages between two peers as bytes and back.

pub(crate) mod batch;
pub(crate) mod check;
pub(crate) mod codec;
pub(crate) mod deframer;
pub(crate) mod frame;
pub(crate) mod numbered;
pub(crate) mod part;
pub mod probe;
