//! Data on a host that accepts ssh logins, without a port, an administrator or a second terminal: `ssh://`.
//!
//! The user's own `ssh` starts `corridor serve --stdio` there and carries the wire protocol over its channel, with the
//! user's configuration, agent, jump hosts and shared connections; this program never reads keys. The path to open is
//! sent over the channel as well, so that no part of it reaches the command line of a shell. The first operations are
//! sent together with it, and cost no round trip of their own. The other side ends when the channel closes, however
//! this side ends.
//!
//! If the host can be reached directly, an encrypted link takes over: the other side listens on the address at which
//! ssh reached it, and sends port, token and fingerprint over the channel.

mod address;
mod channel;
pub mod greeting;
mod login;

pub(crate) use address::SCHEME;
pub use address::SshAddress;

pub(crate) use login::SshLogin;
