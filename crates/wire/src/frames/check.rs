//! Checks of the peer's frames and of the own configuration.

use array::{Error, Result};

use crate::Frame;
use crate::limits::{MAX_CAPABILITIES, MAX_NAME_BYTES};

pub(crate) fn check_capabilities(capabilities: &[String]) -> Result<()> {
    within(capabilities.len(), MAX_CAPABILITIES, "capabilities")?;
    capabilities.iter().try_for_each(|name| within(name.len(), MAX_NAME_BYTES, "a capability"))
}

pub(crate) fn within(found: usize, most: usize, what: &str) -> Result<()> {
    if found <= most {
        return Ok(());
    }
    Err(Error::too_large(format!("expected at most {most} for {what}, found {found}")))
}

pub(crate) fn unexpected(expected: &str, found: &Frame) -> Error {
    Error::corrupt(format!("expected {expected}, found {}", found.name()))
}
