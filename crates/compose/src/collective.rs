//! Collective operations of all ranks with small messages. They use a binomial tree, in which a rank sends
//! at most one message for each doubling of the number of ranks.

use array::Result;

use crate::Communicator;

/// Returns the parent of a rank in the tree (none for rank 0) and its children, the nearest first.
fn neighbors(rank: usize, size: usize) -> (Option<usize>, Vec<usize>) {
    let reach = if rank == 0 { size.next_power_of_two() } else { rank & rank.wrapping_neg() };
    let below = (0..reach.trailing_zeros()).map(|bit| rank + (1 << bit)).filter(|&other| other < size);
    ((rank > 0).then(|| rank - reach), below.collect())
}

/// Sends the message of rank 0 to all ranks; those of the others are ignored.
///
/// # Errors
/// Those of the communicator.
pub fn broadcast(ranks: &dyn Communicator, message: Vec<u8>) -> Result<Vec<u8>> {
    let (above, below) = neighbors(ranks.rank(), ranks.size());
    let message = above.map_or(Ok(message), |above| ranks.receive(above))?;
    for &other in below.iter().rev() {
        ranks.send(other, message.clone())?;
    }
    Ok(message)
}

/// Combines the messages of all ranks with `join`, two at a time in rank order; only rank 0's result is
/// complete.
///
/// # Errors
/// Those of the communicator and of `join`.
pub fn reduce(
    ranks: &dyn Communicator,
    message: Vec<u8>,
    mut join: impl FnMut(Vec<u8>, Vec<u8>) -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let (above, below) = neighbors(ranks.rank(), ranks.size());
    let mut joined = message;
    for other in below {
        joined = join(joined, ranks.receive(other)?)?;
    }
    if let Some(above) = above {
        ranks.send(above, joined.clone())?;
    }
    Ok(joined)
}

/// Concatenates the messages of all ranks in rank order; complete at rank 0 only.
///
/// # Errors
/// Those of the communicator.
pub fn collect(ranks: &dyn Communicator, message: Vec<u8>) -> Result<Vec<u8>> {
    reduce(ranks, message, |mut all, more| {
        all.extend(more);
        Ok(all)
    })
}
