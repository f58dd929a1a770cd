//! Data on a host that one can log in to, without a port, an administrator or a second terminal: `ssh://`.
//!
//! The user's own `ssh` starts `corridor serve --stdio` there and carries the wire over its channel, with the user's
//! configuration, agent, jump hosts and shared connections; keys are never read here. What is to be opened travels over the
//! channel as well, so that nothing of it is a command line to anybody's shell. The first operations leave together
//! with it, and cost no round trip of their own. The other side ends when the channel does, however this one ends.
//!
//! Where the host can be reached, a direct encrypted link takes over: the other side listens on the address at which ssh
//! reached it, and says port, token and fingerprint over the channel.

mod address;
mod channel;
pub mod greeting;
mod login;

pub(crate) use address::SCHEME;
pub use address::SshAddress;

pub(crate) use login::SshLogin;
