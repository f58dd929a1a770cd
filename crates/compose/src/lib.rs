//! How many casters make one picture: each draws its share of the volume, then what they drew is put together.
//!
//! The stage beside `render` where one machine is not enough, in memory or in time. A caster of its own is called a *rank*,
//! as MPI has it (not to be confused with the rank of a level in `render`). This crate fetches nothing and opens no
//! connection: ranks are threads here ([`threads`]), or processes that `corridor-mpi` connects.
//!
//! Read [`KdTree`] first (who draws what, and in which order it lies along rays), then [`Schedule`] (who sends which part of
//! the image to whom, and when), then [`draw`] (one picture by one of the ranks).
//!
//! ```text
//!   work of blocks --> Balance --> Tree --+--> SubVolume --> cast_part --> PartialImage --+
//!          ^                              |                                    | part by part, while casting goes on
//!          |                              '--> order of ranks, front first     v
//!          '---------- what it really took ---------------- draw <-- Schedule: direct send, radix-k, binary swap
//!                                                             |
//!                                                             '--> each rank holds a part of the finished image
//! ```
//!
//! No rank is ahead of the others: all have a part of the finished image, and no pixel passes through a rank that has
//! neither drawn it nor keeps it in the end. Rank 0 decides who draws what, from numbers.

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
