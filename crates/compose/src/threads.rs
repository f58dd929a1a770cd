//! Ranks that are threads of one process.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use array::{Error, ErrorKind, Result};

use crate::Communicator;

/// Most ranks of one process: each pair has a channel.
pub const MAX_THREADS: usize = 64;
/// Most messages that wait between two ranks; further senders wait. A picture needs only a few per pair.
pub const MAX_WAITING: usize = 16;

/// Rank that is a thread; see [`threads`]. When it is dropped, the others notice that it is gone.
#[derive(Debug)]
pub struct ThreadRank {
    rank: usize,
    /// Channels by rank; none to itself.
    to: Vec<Option<SyncSender<Vec<u8>>>>,
    from: Vec<Option<Mutex<Receiver<Vec<u8>>>>>,
}

/// Creates ranks for this number of threads.
///
/// # Errors
/// `Invalid` for none, or more than [`MAX_THREADS`].
pub fn threads(count: usize) -> Result<Vec<ThreadRank>> {
    if count == 0 || count > MAX_THREADS {
        return Err(Error::invalid(format!("expected 1 to {MAX_THREADS} ranks, found {count}")));
    }
    let none = |rank| ThreadRank { rank, to: Vec::new(), from: Vec::new() };
    let mut ranks: Vec<ThreadRank> = (0..count).map(none).collect();
    for from in 0..count {
        for to in 0..count {
            let channel = (from != to).then(|| sync_channel(MAX_WAITING));
            let (sender, receiver) = channel.unzip();
            ranks[from].to.push(sender);
            ranks[to].from.push(receiver.map(Mutex::new));
        }
    }
    Ok(ranks)
}

impl ThreadRank {
    fn gone(other: usize) -> Error {
        Error::new(ErrorKind::Unreachable, format!("rank {other} ended before the picture was complete"))
    }

    fn none(&self, other: usize) -> Error {
        Error::invalid(format!(
            "expected another of {} ranks, found {other} at rank {}",
            self.to.len(),
            self.rank
        ))
    }
}

impl Communicator for ThreadRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn send(&self, to: usize, message: Vec<u8>) -> Result<()> {
        let sender = self.to.get(to).and_then(Option::as_ref).ok_or_else(|| self.none(to))?;
        sender.send(message).map_err(|_| Self::gone(to))
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>> {
        let receiver = self.from.get(from).and_then(Option::as_ref).ok_or_else(|| self.none(from))?;
        receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().map_err(|_| Self::gone(from))
    }
}
