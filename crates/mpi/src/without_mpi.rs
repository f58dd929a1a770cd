//! Replacement for builds without MPI: there are no other processes, and starting several returns an error.

use std::sync::Arc;

use array::{Error, Result};
use compose::Communicator;

use crate::{ALONE, launched};

/// One of several processes; without MPI there is no value of this type.
#[derive(Debug)]
pub enum Process {}

/// Returns `None`: without MPI there are no other processes.
///
/// # Errors
/// `Unsupported` if several processes were started to work together: each would act as the only one.
pub fn join() -> Result<Option<Process>> {
    match launched() {
        Some(count) if count > 1 => Err(Error::unsupported(format!(
            "expected a program that was built with MPI to be one of {count} processes, found one without: build it \
             with `--release --features mpi`, or start it alone with `--ranks {count}`; \
             set {ALONE}=1 for independent processes"
        ))),
        _ => Ok(None),
    }
}

impl Process {
    /// Aborts all processes.
    pub fn abort(&self, _code: u8) {
        match *self {}
    }

    /// Returns another lane between the same ranks.
    #[must_use]
    pub fn lane(self: &Arc<Self>, _number: u8) -> Self {
        match **self {}
    }
}

impl Communicator for Process {
    fn rank(&self) -> usize {
        match *self {}
    }

    fn size(&self) -> usize {
        match *self {}
    }

    fn send(&self, _to: usize, _message: Vec<u8>) -> Result<()> {
        match *self {}
    }

    fn receive(&self, _from: usize) -> Result<Vec<u8>> {
        match *self {}
    }
}
