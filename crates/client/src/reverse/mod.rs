//! Data on a host that nobody can reach, but that can reach others: the client waits (`await://`), the server connects to it
//! (`corridor serve PATH --to URL`), and from then on all is as if the client had connected.

mod address;
mod awaiting;

use crate::url::Url;
pub use address::AwaitAddress;
pub(crate) use address::SCHEME;
pub use awaiting::AwaitedServers;

/// Returns a hint with the command that a person runs where the data are, for a client that waits at `url`. The text
/// contains the token.
#[must_use]
pub fn hint(url: &Url) -> String {
    format!("waiting for a server; where the data are:\n  corridor serve PATH --to '{url}'")
}
