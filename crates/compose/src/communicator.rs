//! Communication between ranks.

use array::Result;

/// Rank that communicates with the others.
///
/// Messages from one rank to another arrive in the order in which they were sent; those of different ranks in
/// any order. All ranks make the same calls in the same order, so messages need no tags.
pub trait Communicator: Send + Sync {
    /// Returns the number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Returns the number of ranks, at least 1.
    fn size(&self) -> usize;

    /// Sends a message to another rank. Waits only if many messages to it have not been received yet.
    ///
    /// # Errors
    /// `Unreachable` if that rank is gone; `Invalid` for a rank that does not exist, or this one.
    fn send(&self, to: usize, message: Vec<u8>) -> Result<()>;

    /// Waits for the next message of another rank.
    ///
    /// # Errors
    /// Those of [`Communicator::send`].
    fn receive(&self, from: usize) -> Result<Vec<u8>>;
}
