//! Round trips counted in data: a round ends when something sent after its beginning is acknowledged.

use crate::DeliverySample;

/// Detects the end of a round.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTracker {
    ends_at_bytes: u64,
    delivered_bytes: u64,
}

impl RoundTracker {
    /// Handles an acknowledgement; true when it ended the round. The next round begins with it.
    pub(crate) fn on_ack(&mut self, delivery: &DeliverySample) -> bool {
        self.delivered_bytes = delivery.delivered_bytes;
        if delivery.delivered_at_send_bytes < self.ends_at_bytes {
            return false;
        }
        self.ends_at_bytes = delivery.delivered_bytes;
        true
    }

    /// Begins a round now: it ends when data sent from now on is acknowledged.
    pub(crate) fn restart(&mut self) {
        self.ends_at_bytes = self.delivered_bytes;
    }
}
