//! Account of the bytes that were passed to the QUIC stack and not sent. Urgent data cannot overtake them, so
//! there should be few, but enough that the path never waits for the writing task.

use std::task::Waker;

/// Smallest limit of bytes that wait in the stack, where urgent data cannot overtake them.
const LEAST_BYTES: f64 = 256e3;
/// Limit as a time at the current rate, seconds: the writing task may be woken this late.
const SECS: f64 = 10e-3;
/// Smallest limit of bytes of datagrams that wait in the stack; more urgent data waits behind them.
const LEAST_DATAGRAM_BYTES: f64 = 32e3;
const DATAGRAM_SECS: f64 = 5e-3;
/// Overhead of a packet besides its datagram, bytes. A low estimate: an error makes the backlog look smaller.
const DATAGRAM_OVERHEAD_BYTES: f64 = 28.0;
/// Headers and tag of a packet, bytes; a high estimate, see [`SendBacklog::on_written`].
const PACKET_OVERHEAD_BYTES: f64 = 48.0;

/// Account of the bytes that wait in the stack. Rates are those of the controller, bytes per second.
#[derive(Default)]
pub(super) struct SendBacklog {
    bytes: f64,
    /// Waker of the writing task, called when there is room again.
    pub(super) writer: Option<Waker>,
}

impl SendBacklog {
    /// Records stream bytes that were passed to the stack. The stack reports sent packets only, so their
    /// headers are estimated, a little too large: an error then ends in "nothing left to send", which
    /// corrects the account.
    pub(super) fn on_written(&mut self, bytes: u64, packet_bytes: u64) {
        let overhead = PACKET_OVERHEAD_BYTES / packet_bytes as f64;
        self.add(bytes as f64 * (1.0 + overhead));
    }

    /// Records a datagram that was passed to the stack.
    pub(super) fn on_datagram(&mut self, bytes: usize) {
        self.add(bytes as f64 + DATAGRAM_OVERHEAD_BYTES);
    }

    /// Adds bytes of packets that wait again.
    pub(super) fn add(&mut self, bytes: f64) {
        self.bytes += bytes;
    }

    /// Records sent packets.
    pub(super) fn on_sent(&mut self, bytes: u64, rate: f64) {
        self.bytes = (self.bytes - bytes as f64).max(0.0);
        self.wake_writer(rate);
    }

    /// Clears the account: the stack has nothing left to send.
    pub(super) fn clear(&mut self, rate: f64) {
        self.bytes = 0.0;
        self.wake_writer(rate);
    }

    /// Returns whether more data should be passed to the stack now.
    pub(super) fn has_room(&self, rate: f64) -> bool {
        self.bytes < LEAST_BYTES.max(SECS * rate)
    }

    fn wake_writer(&mut self, rate: f64) {
        if self.has_room(rate)
            && let Some(writer) = self.writer.take()
        {
            writer.wake();
        }
    }
}

/// Most bytes of datagrams that should wait in the stack.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub(super) fn waiting_datagram_bytes(rate: f64) -> usize {
    LEAST_DATAGRAM_BYTES.max(DATAGRAM_SECS * rate) as usize
}
