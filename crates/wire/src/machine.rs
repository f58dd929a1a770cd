//! The shape that client and server share: how a driver turns the crank.

use std::time::Instant;

use array::{Error, Result};
use bytes::Bytes;

use crate::Message;

/// One side of a connection, without its carrier.
///
/// The methods fall into four classes, and a driver goes round them in this order:
///
/// 1. **What happened**: [`handle_frame`](Self::handle_frame) for each frame received,
///    [`handle_timeout`](Self::handle_timeout) when the time given by `poll_timeout` has come,
///    [`handle_lost`](Self::handle_lost) when the carrier ended.
/// 2. **What the application wants**: the methods of [`Client`](crate::Client) and [`Server`](crate::Server)
///    themselves (`request`, `item`, ...) and [`close`](Self::close), at any time.
/// 3. **What to do**: [`poll_event`](Self::poll_event) until it gives none, then
///    [`poll_transmit`](Self::poll_transmit) as long as the carrier takes messages. What is not polled stays
///    queued here, sorted by urgency: so poll no further ahead than the carrier sends.
/// 4. **What to wait for**: [`poll_timeout`](Self::poll_timeout), and a frame if
///    [`wants_frames`](Self::wants_frames). Leaving frames in the carrier is the back-pressure on the peer.
///
/// Until [`is_finished`](Self::is_finished); then the carrier is to be closed.
pub trait Machine {
    /// Event that the machine reports to the application.
    type Event;

    /// Takes one frame, without its length.
    ///
    /// # Errors
    /// The peer broke the protocol. The connection is closed then: the close frame is queued, and the
    /// application learns of it by events; the error is for the driver's log.
    fn handle_frame(&mut self, now: Instant, frame: Bytes) -> Result<()>;

    /// Lets deadlines pass. Early calls do no harm.
    fn handle_timeout(&mut self, now: Instant);

    /// Frames are left in the carrier because the application lags: that nothing is heard is our own doing.
    fn handle_unread(&mut self, now: Instant);

    /// The carrier ended or failed; everything under way fails with `error`.
    fn handle_lost(&mut self, error: Error);

    /// Ends the connection, telling the peer why. Everything under way fails with `error`.
    fn close(&mut self, error: Error);

    /// The next thing the application should know.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// The next message for the carrier.
    fn poll_transmit(&mut self, now: Instant) -> Option<Message>;

    /// When `handle_timeout` wants to be called next.
    fn poll_timeout(&self) -> Option<Instant>;

    /// False while another frame would exceed what may be queued, or could not be judged yet.
    fn wants_frames(&self) -> bool;

    /// Largest frame that the peer may send now.
    fn frame_limit_bytes(&self) -> usize;

    /// True when the connection is over and the last message was polled.
    fn is_finished(&self) -> bool;
}
