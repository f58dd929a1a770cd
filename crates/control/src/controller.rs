//! Interface of all controllers.

use std::fmt::Debug;
use std::time::Duration;

use crate::{PacketEvent, SendLimits};

/// Decides the sending rate and window of a connection.
///
/// `now` is the time since a start that the engine chooses, and never runs backwards. After any event the
/// engine queries [`limits`](Self::limits) again: a controller has no timer of its own and acts only at
/// events.
pub trait Controller: Debug + Send {
    /// Handles an event.
    fn on(&mut self, now: Duration, event: &PacketEvent);

    /// Limits of sending from now on.
    fn limits(&self) -> SendLimits;
}
