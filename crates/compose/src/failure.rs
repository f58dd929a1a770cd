//! Errors as messages: the code of their kind, and their text.

use array::{Error, ErrorKind, Result};

use crate::{Communicator, broadcast, reduce};

/// Serializes an error; empty for success.
pub(crate) fn to_bytes(failed: Option<&Error>) -> Vec<u8> {
    let told = |error: &Error| {
        let mut bytes = error.kind().code().to_le_bytes().to_vec();
        bytes.extend(error.to_string().as_bytes());
        bytes
    };
    failed.map(told).unwrap_or_default()
}

pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Error> {
    let (code, text) = bytes.split_first_chunk()?;
    let kind = ErrorKind::from_code(u16::from_le_bytes(*code));
    Some(Error::new(kind, String::from_utf8_lossy(text).into_owned()))
}

/// Agrees on the result of an operation that each rank did by itself; all make the same call. If one failed,
/// only rank 0 gets an error, that of the lowest failed rank, and the others get `None`, so that the error is
/// reported once.
///
/// # Errors
/// Rank 0's own error, or that of another rank with its number; those of the communicator.
pub fn agreed<T>(ranks: &dyn Communicator, own: Result<T>) -> Result<Option<T>> {
    let of_rank = |error: Error| match ranks.rank() {
        0 => error,
        rank => error.context(format!("rank {rank}")),
    };
    let own = own.map_err(of_rank);
    let first = reduce(ranks, to_bytes(own.as_ref().err()), |a, b| Ok(if a.is_empty() { b } else { a }))?;
    let first = broadcast(ranks, first)?;
    match (ranks.rank(), from_bytes(&first)) {
        (_, None) => own.map(Some),
        (0, Some(first)) => Err(own.err().unwrap_or(first)),
        (_, Some(_)) => Ok(None),
    }
}
