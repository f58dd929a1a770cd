//! Detection of congestive losses.
//!
//! Radio links and dirty fibers lose packets whatever the rate; a full queue loses them because of it. The
//! first kind is measured where the queue is known to be empty (the round after each drain) and tolerated
//! from then on, up to [`MOST_TAKEN_FOR_GRANTED`]. Losses of a round beyond that, and beyond chance, are
//! congestion.

/// Largest random loss that is tolerated; a larger one is treated as congestion.
const MOST_TAKEN_FOR_GRANTED: f64 = 0.05;
/// Excess loss that is ignored, share of a round.
const EXCESS_IGNORED: f64 = 0.02;
/// Standard deviations that chance explains.
const DEVIATIONS: f64 = 3.0;
/// Number of lost packets that are never congestion by themselves.
const FEW_PACKETS: f64 = 3.0;
/// Fewest packets of a round; a shorter round continues.
const LEAST_PACKETS: f64 = 64.0;
/// Packets over which the random loss is averaged.
const MEMORY_PACKETS: f64 = 2_000.0;

/// Counts of the current round, and the tolerated loss.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    packet_bytes: f64,
    arrived: f64,
    lost: f64,
    granted: f64,
    /// Packets from which the random loss was measured.
    known_packets: f64,
}

impl Losses {
    pub(super) fn new(packet_bytes: f64) -> Self {
        Self { packet_bytes, arrived: 0.0, lost: 0.0, granted: 0.0, known_packets: 100.0 }
    }

    pub(super) fn on_arrived(&mut self, bytes: u64) {
        self.arrived += bytes as f64 / self.packet_bytes;
    }

    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.lost += bytes as f64 / self.packet_bytes;
    }

    /// Takes back losses of packets that were only late.
    pub(super) fn on_spurious(&mut self, bytes: u64) {
        self.lost = (self.lost - bytes as f64 / self.packet_bytes).max(0.0);
    }

    /// Returns whether this round loses more than chance and the random loss explain.
    pub(super) fn is_congested(&self) -> bool {
        self.exceeds(self.granted)
    }

    /// Returns whether this round loses more than any tolerated random loss; used while the random loss is
    /// unknown.
    pub(super) fn is_congested_surely(&self) -> bool {
        self.exceeds(MOST_TAKEN_FOR_GRANTED)
    }

    fn exceeds(&self, granted: f64) -> bool {
        let packets = self.arrived + self.lost;
        let expected = granted * packets;
        let chance = DEVIATIONS * (expected + 1.0).sqrt();
        self.lost > expected + chance + EXCESS_IGNORED * packets + FEW_PACKETS
    }

    /// Ends a round. `is_calm`: the queue was empty and the flow did not grow.
    pub(super) fn end_round(&mut self, is_calm: bool) {
        let packets = self.arrived + self.lost;
        if packets < LEAST_PACKETS {
            return;
        }
        if is_calm {
            let weight = packets / (packets + self.known_packets);
            self.known_packets = (self.known_packets + packets).min(MEMORY_PACKETS);
            self.granted += weight * (self.lost / packets - self.granted);
            self.granted = self.granted.min(MOST_TAKEN_FOR_GRANTED);
        }
        self.arrived = 0.0;
        self.lost = 0.0;
    }

    /// Discards the counts of the round, which were acted on.
    pub(super) fn forget_round(&mut self) {
        self.arrived = 0.0;
        self.lost = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a round of a thousand packets, of which `lost` are lost.
    fn round(losses: &mut Losses, lost: u64) {
        losses.on_arrived((1000 - lost) * 1500);
        losses.on_lost(lost * 1500);
    }

    #[test]
    fn random_loss_is_learnt_where_it_is_calm_and_then_ignored() {
        let mut losses = Losses::new(1500.0);
        for _ in 0..10 {
            round(&mut losses, 30);
            losses.end_round(true);
        }
        round(&mut losses, 50);
        assert!(!losses.is_congested(), "chance");
        round(&mut losses, 150);
        assert!(losses.is_congested());
    }

    #[test]
    fn heavy_loss_is_never_taken_for_granted() {
        let mut losses = Losses::new(1500.0);
        for _ in 0..100 {
            round(&mut losses, 150);
            losses.end_round(true);
        }
        round(&mut losses, 150);
        assert!(losses.is_congested_surely());
    }

    #[test]
    fn late_packets_are_not_lost() {
        let mut losses = Losses::new(1500.0);
        round(&mut losses, 100);
        assert!(losses.is_congested());
        losses.on_spurious(100 * 1500);
        assert!(!losses.is_congested());
    }
}
