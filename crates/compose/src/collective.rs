//! Collective operations of all ranks with small messages. They go along a binomial tree, so that no rank
//! sends more than one message for each doubling of the number of ranks.

use array::Result;

use crate::Communicator;

/// The rank above one in the tree (none above rank 0), and those below it, the nearest first.
fn neighbors(rank: usize, size: usize) -> (Option<usize>, Vec<usize>) {
    let reach = if rank == 0 { size.next_power_of_two() } else { rank & rank.wrapping_neg() };
    let below = (0..reach.trailing_zeros()).map(|bit| rank + (1 << bit)).filter(|&other| other < size);
    ((rank > 0).then(|| rank - reach), below.collect())
}

/// Gives every rank the message of rank 0; those of the others are not looked at.
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

/// Makes one message of all by joining two at a time, those of lower ranks first; only rank 0's result is of all.
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

/// All messages one behind the other, in the order of ranks; whole at rank 0 only.
///
/// # Errors
/// Those of the communicator.
pub fn collect(ranks: &dyn Communicator, message: Vec<u8>) -> Result<Vec<u8>> {
    reduce(ranks, message, |mut all, more| {
        all.extend(more);
        Ok(all)
    })
}
