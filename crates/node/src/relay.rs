//! Clients whose messages this process moves, such as a page in a notebook: they need no port.

use array::{Error, ErrorKind, Result};
use link::Link;
use link::carrier::local::{MessageEnd, by_messages};
use tokio::sync::mpsc;

/// Connects clients to the server from which this value comes.
#[derive(Clone)]
pub struct Relays(mpsc::Sender<Link>);

impl Relays {
    pub(crate) fn new(links: mpsc::Sender<Link>) -> Self {
        Self(links)
    }

    /// Connects a client: each message that it sends or receives is one of the wire protocol, as over a WebSocket.
    ///
    /// # Errors
    /// `Unreachable` if the server has ended.
    ///
    /// # Cancel safety
    /// A client that is not connected yet leaves no trace.
    pub async fn connect(&self) -> Result<MessageEnd> {
        let (link, end) = by_messages("this process");
        let ended =
            |_| Error::new(ErrorKind::Unreachable, "the viewer was closed; call `corridor.view` again");
        self.0.send(link).await.map_err(ended)?;
        Ok(end)
    }
}
