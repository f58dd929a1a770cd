//! The one interface of all controllers.

use std::fmt::Debug;
use std::time::Duration;

use crate::{PacketEvent, SendLimits};

/// Decides how fast a connection may send.
///
/// `now` is the time since a start that the engine chooses, and never runs backwards. After any event the engine asks
/// [`limits`](Self::limits) again: a controller has no timer of its own, whatever it does it does at an event.
pub trait Controller: Debug + Send {
    /// Takes notice of what happened.
    fn on(&mut self, now: Duration, event: &PacketEvent);

    /// Limits of sending from now on.
    fn limits(&self) -> SendLimits;
}
