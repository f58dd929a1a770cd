//! Interface that the state machines of client and server share: how a driver calls them.

use std::time::Instant;

use array::{Error, Result};
use bytes::Bytes;

use crate::Message;

/// State machine of one side of a connection, without its carrier.
///
/// The methods fall into four classes, which a driver calls in this order:
///
/// 1. **Input**: [`handle_frame`](Self::handle_frame) for each frame received,
///    [`handle_timeout`](Self::handle_timeout) at the time that `poll_timeout` returned,
///    [`handle_lost`](Self::handle_lost) when the carrier has ended.
/// 2. **Calls of the application**: the methods of [`Client`](crate::Client) and [`Server`](crate::Server)
///    (`request`, `item`, ...) and [`close`](Self::close), at any time.
/// 3. **Output**: [`poll_event`](Self::poll_event) until it returns `None`, then
///    [`poll_transmit`](Self::poll_transmit) as long as the carrier takes messages. Messages that are not polled
///    stay queued here, sorted by urgency, so a driver polls no further ahead than the carrier sends.
/// 4. **Waiting**: [`poll_timeout`](Self::poll_timeout), and a frame if [`wants_frames`](Self::wants_frames).
///    Leaving frames in the carrier is the back-pressure on the peer.
///
/// This repeats until [`is_finished`](Self::is_finished); then the carrier is to be closed.
pub trait Machine {
    /// Event that the state machine reports to the application.
    type Event;

    /// Handles one frame, without its length.
    ///
    /// # Errors
    /// Returned when the peer violated the protocol. The connection is then closed: the close frame is
    /// queued, and events inform the application; the error is for the driver's log.
    fn handle_frame(&mut self, now: Instant, frame: Bytes) -> Result<()>;

    /// Handles expired deadlines. Early calls have no effect.
    fn handle_timeout(&mut self, now: Instant);

    /// Notes that frames are left in the carrier because the application lags behind, so silence of the peer
    /// does not count.
    fn handle_unread(&mut self, now: Instant);

    /// Handles the end or failure of the carrier; all operations in flight fail with `error`.
    fn handle_lost(&mut self, error: Error);

    /// Ends the connection and sends the reason to the peer. All operations in flight fail with `error`.
    fn close(&mut self, error: Error);

    /// Returns the next event for the application.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// Returns the next message for the carrier.
    fn poll_transmit(&mut self, now: Instant) -> Option<Message>;

    /// Time of the next call of `handle_timeout`.
    fn poll_timeout(&self) -> Option<Instant>;

    /// False while another frame would exceed the limits of the queues, or cannot be handled yet.
    fn wants_frames(&self) -> bool;

    /// Largest frame that the peer may send now, bytes.
    fn frame_limit_bytes(&self) -> usize;

    /// True when the connection is over and the last message was polled.
    fn is_finished(&self) -> bool;
}
