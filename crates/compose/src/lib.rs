//! Sort-last compositing: each rank draws its share of the volume, then the partial images are composited.
//!
//! This crate extends `render` to several ranks, for volumes that exceed the memory or the speed of one. A
//! *rank* is one of the casters, as in MPI. This crate fetches nothing and opens no connection: ranks are
//! threads ([`threads`]), or processes that `corridor-mpi` connects.
//!
//! Read [`KdTree`] first (the division of the volume and its order along rays), then [`Schedule`] (the
//! exchange of parts of the image), then [`draw`] (one picture at one of the ranks).
//!
//! ```text
//!   work of blocks --> Balance -> KdTree -+--> SubVolume --> cast_part --> PartialImage --+
//!          ^                              |                                    | part by part, while casting goes on
//!          |                              '--> order of ranks, front first     v
//!          '---------- measured work ---------------------- draw <-- Schedule: direct send, radix-k, binary swap
//!                                                             |
//!                                                             '--> each rank holds a part of the finished image
//! ```
//!
//! All ranks are equal: in each round of the schedule a rank receives pixels only of the part of the image
//! that it continues to composite, and in the end it holds a finished part. Rank 0 divides the volume.

mod balance;
mod collective;
mod communicator;
mod draw;
mod failure;
mod piece;
mod schedule;
mod threads;
mod tree;

pub use balance::{Balance, send_work};
pub use collective::{broadcast, collect, reduce};
pub use communicator::Communicator;
pub use draw::{Composed, Traffic, compose, draw, draw_by};
pub use failure::agreed;
pub use schedule::{ExchangeRound, Method, Schedule};
pub use threads::{MAX_THREADS, MAX_WAITING, ThreadRank, threads};
pub use tree::{KdTree, Viewpoint};
