//! Connections that a server makes to clients that wait for it, and the port at which a client waits; see
//! [`client::reverse`].

mod awaiting;
mod waiting_client;

pub use awaiting::wait_at;
pub use waiting_client::WaitingClient;
