//! Interface that ranks need of whatever connects them.

use array::Result;

/// One of several ranks, and how it reaches the others.
///
/// Messages from one rank to another arrive in the order in which they were sent; those of different ranks in any. All ranks
/// make the same calls in the same order, so messages need no names.
pub trait Communicator: Send + Sync {
    /// Number of this rank, from 0.
    fn rank(&self) -> usize;

    /// How many there are, at least 1.
    fn size(&self) -> usize;

    /// Sends a message to another rank and goes on, as long as few are under way to it; else waits.
    ///
    /// # Errors
    /// `Unreachable` when that rank is gone; `Invalid` for a rank that does not exist, or this one.
    fn send(&self, to: usize, message: Vec<u8>) -> Result<()>;

    /// Waits for the next message of another rank.
    ///
    /// # Errors
    /// As [`Communicator::send`].
    fn receive(&self, from: usize) -> Result<Vec<u8>>;
}
