//! Random numbers of the operating system.

use array::{Error, ErrorKind, Result};
use tokio_rustls::rustls::crypto::aws_lc_rs;

/// Returns cryptographically secure random bytes from the operating system.
///
/// # Errors
/// `Io` if the system has no source of randomness.
pub fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = aws_lc_rs::default_provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| Error::new(ErrorKind::Io, "the system provided no random numbers"))?;
    Ok(bytes)
}
