//! Which losses mean congestion.
//!
//! Radio links and dirty fibres lose packets whatever the rate; a full queue loses them because of it. The first kind
//! is measured where the queue is known to be empty (the round after each drain) and taken for granted from then on,
//! up to [`MOST_TAKEN_FOR_GRANTED`]. What a round loses beyond that, and beyond chance, is congestion.

/// A random loss above this is treated as congestion: the promise is "a few percent".
const MOST_TAKEN_FOR_GRANTED: f64 = 0.05;
/// Excess that is ignored, share of a round.
const EXCESS_IGNORED: f64 = 0.02;
/// Standard deviations of chance.
const DEVIATIONS: f64 = 3.0;
/// Lost packets that never mean anything by themselves.
const FEW_PACKETS: f64 = 3.0;
/// A round of fewer packets goes on: so few say nothing.
const LEAST_PACKETS: f64 = 64.0;
/// Packets over which the random loss is averaged.
const MEMORY_PACKETS: f64 = 2_000.0;

/// Counts of the present round, and the loss taken for granted.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    packet_bytes: f64,
    arrived: f64,
    lost: f64,
    granted: f64,
    /// Packets that the random loss rests on.
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

    /// They were only late.
    pub(super) fn on_spurious(&mut self, bytes: u64) {
        self.lost = (self.lost - bytes as f64 / self.packet_bytes).max(0.0);
    }

    /// Whether this round loses more than chance and the random loss explain.
    pub(super) fn is_congested(&self) -> bool {
        self.exceeds(self.granted)
    }

    /// Whether this round loses more than any random loss that would be taken for granted; for use while the random
    /// loss is not known.
    pub(super) fn is_congested_surely(&self) -> bool {
        self.exceeds(MOST_TAKEN_FOR_GRANTED)
    }

    fn exceeds(&self, granted: f64) -> bool {
        let packets = self.arrived + self.lost;
        let expected = granted * packets;
        let chance = DEVIATIONS * (expected + 1.0).sqrt();
        self.lost > expected + chance + EXCESS_IGNORED * packets + FEW_PACKETS
    }

    /// A round ends. `is_calm`: the queue was empty and we did not press.
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

    /// Begins anew: what was counted has been answered.
    pub(super) fn forget_round(&mut self) {
        self.arrived = 0.0;
        self.lost = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `lost` of a thousand packets.
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
