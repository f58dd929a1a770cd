//! Data on a host that accepts no connections, but can connect to others: the client waits (`await://`), and the server
//! connects to it (`corridor serve PATH --to URL`). From then on the connection works as if the client had opened it.

mod address;
mod awaiting;

use crate::url::Url;
pub use address::AwaitAddress;
pub(crate) use address::SCHEME;
pub use awaiting::AwaitedServers;

/// Returns a hint with the command to run on the host with the data, for a client that waits at `url`. The text
/// contains the token.
#[must_use]
pub fn hint(url: &Url) -> String {
    format!("waiting for a server; where the data are:\n  corridor serve PATH --to '{url}'")
}
