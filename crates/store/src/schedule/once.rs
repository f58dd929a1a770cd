//! Value that is made at its first use, by one thread while the others wait.
//!
//! The value is remembered, and errors that would recur: those of the bytes themselves. After another error, such as one of a disk,
//! the next caller tries again.

use std::sync::OnceLock;

use array::{Error, ErrorKind, Result};
use parking_lot::Mutex;

use crate::CancelFlag;

/// Value that is made at its first use, by one thread while the others wait.
#[derive(Debug)]
pub(crate) struct Once<T> {
    made: OnceLock<Result<T>>,
    /// Lock held by the maker.
    making: Mutex<()>,
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self { made: OnceLock::new(), making: Mutex::new(()) }
    }
}

impl<T> Once<T> {
    /// Creates a value that is already made.
    pub(crate) fn made(value: T) -> Self {
        Self { made: OnceLock::from(Ok(value)), making: Mutex::new(()) }
    }

    /// Whether it is made, or known to be impossible.
    pub(crate) fn is_decided(&self) -> bool {
        self.made.get().is_some()
    }

    /// Returns the value; makes it if it was not made yet.
    ///
    /// # Errors
    /// Errors of `make`; `Cancelled` while another thread makes it.
    pub(crate) fn get_or_make(&self, cancel: &CancelFlag, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        let remembered = || self.made.get().map(|made| made.as_ref().map_err(Clone::clone));
        if let Some(made) = remembered() {
            return made;
        }
        let _one = cancel.lock(&self.making)?;
        if let Some(made) = remembered() {
            return made;
        }
        match make() {
            Err(error) if !is_lasting(&error) => Err(error),
            made => self.made.get_or_init(|| made).as_ref().map_err(Clone::clone),
        }
    }
}

fn is_lasting(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_what_would_not_change() {
        let once = Once::default();
        let cancel = CancelFlag::default();
        for kind in [ErrorKind::Io, ErrorKind::Stale, ErrorKind::Busy, ErrorKind::Cancelled] {
            let error = once.get_or_make(&cancel, || Err(Error::new(kind, "not now"))).unwrap_err();
            assert_eq!((error.kind(), once.is_decided()), (kind, false));
        }
        assert_eq!(once.get_or_make(&cancel, || Ok(7)), Ok(&7));
        assert_eq!(once.get_or_make(&cancel, || Ok(8)), Ok(&7));

        let once = Once::default();
        let broken = Error::corrupt("broken");
        assert_eq!(once.get_or_make(&cancel, || Err(broken.clone())), Err(broken.clone()));
        assert_eq!(once.get_or_make(&cancel, || Ok(8)), Err(broken));
    }

    #[test]
    fn whoever_waits_for_it_can_be_withdrawn() {
        let once = Once::<u8>::default();
        let cancel = CancelFlag::default();
        let _making = once.making.lock();
        let answer = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| once.get_or_make(&cancel, || Ok(1)).map(|_| ()));
            cancel.cancel();
            waiting.join().unwrap()
        });
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Cancelled);
    }
}
