//! TCP listener on the first free address of several.

use std::net::SocketAddr;

use array::{Error, ErrorKind, Result};
use tokio::net::TcpListener;

/// Listens on the first of the `wanted` addresses that is free.
///
/// # Errors
/// `Io`, naming the address that is not available.
///
/// # Cancel safety
/// Safe: nothing is kept.
pub async fn listen(wanted: &[SocketAddr]) -> Result<TcpListener> {
    let mut last = Error::invalid("expected an address to listen on, found none");
    for address in wanted {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(e) if e.kind() == std::io::ErrorKind::AddrInUse => {
                let what = format!("{address} is in use; choose another port, or port 0 for any free one");
                last = Error::new(ErrorKind::Io, what);
            }
            Err(e) => last = Error::new(ErrorKind::Io, format!("listening on {address}: {e}")),
        }
    }
    Err(last)
}
