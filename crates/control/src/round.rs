//! Round trips counted in data: a round ends when something sent after its beginning has arrived.

use crate::DeliverySample;

/// Knows when a round ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTracker {
    ends_at_bytes: u64,
    delivered_bytes: u64,
}

impl RoundTracker {
    /// Takes an acknowledgement; says whether it ended the round. The next one begins with it.
    pub(crate) fn on_ack(&mut self, delivery: &DeliverySample) -> bool {
        self.delivered_bytes = delivery.delivered_bytes;
        if delivery.delivered_at_send_bytes < self.ends_at_bytes {
            return false;
        }
        self.ends_at_bytes = delivery.delivered_bytes;
        true
    }

    /// Begins a round now: it ends when what is sent from now on arrives.
    pub(crate) fn restart(&mut self) {
        self.ends_at_bytes = self.delivered_bytes;
    }
}
