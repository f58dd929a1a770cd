//! Account of the bytes that were handed to the QUIC stack and have not left. Later data cannot overtake them, so there
//! should be few; but enough that the path never waits for the task that writes.

use std::task::Waker;

/// Bytes that may wait in the stack, at least: what waits there cannot be overtaken any more.
const LEAST_BYTES: f64 = 256e3;
/// Counterpart of [`LEAST_BYTES`] as a time at the current rate, seconds: a writer may be woken this late.
const SECS: f64 = 10e-3;
/// Bytes of datagrams that may wait in the stack, at least, and as a time at the current rate: what is more urgent waits
/// behind them, and whoever sends is woken this late without a gap on the path.
const LEAST_DATAGRAM_BYTES: f64 = 32e3;
const DATAGRAM_SECS: f64 = 5e-3;
/// Overhead of a packet besides the datagram in it, bytes. A low estimate: an error makes the backlog look smaller.
const DATAGRAM_OVERHEAD_BYTES: f64 = 28.0;
/// Headers and tag of a packet, bytes, rather too many: see [`SendBacklog::on_written`].
const PACKET_OVERHEAD_BYTES: f64 = 48.0;

/// Account of the bytes that wait in the stack. Rates are the controller's, bytes per second.
#[derive(Default)]
pub(super) struct SendBacklog {
    bytes: f64,
    /// Wakes the task that writes, when there is room again.
    pub(super) writer: Option<Waker>,
}

impl SendBacklog {
    /// Bytes of a stream were handed to the stack. What of them has left is known by the packet only, so headers are guessed: a
    /// little too large, so that an error shows as "nothing left to send", which sets the account right.
    pub(super) fn on_written(&mut self, bytes: u64, packet_bytes: u64) {
        let overhead = PACKET_OVERHEAD_BYTES / packet_bytes as f64;
        self.add(bytes as f64 * (1.0 + overhead));
    }

    /// A datagram was handed to the stack.
    pub(super) fn on_datagram(&mut self, bytes: usize) {
        self.add(bytes as f64 + DATAGRAM_OVERHEAD_BYTES);
    }

    /// So much waits more, as packets.
    pub(super) fn add(&mut self, bytes: f64) {
        self.bytes += bytes;
    }

    /// Packets left.
    pub(super) fn on_sent(&mut self, bytes: u64, rate: f64) {
        self.bytes = (self.bytes - bytes as f64).max(0.0);
        self.wake_writer(rate);
    }

    /// The stack has nothing left to send.
    pub(super) fn clear(&mut self, rate: f64) {
        self.bytes = 0.0;
        self.wake_writer(rate);
    }

    /// Whether more should be handed to the stack now.
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

/// Bytes of datagrams that should wait in the stack at most.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub(super) fn waiting_datagram_bytes(rate: f64) -> usize {
    LEAST_DATAGRAM_BYTES.max(DATAGRAM_SECS * rate) as usize
}
