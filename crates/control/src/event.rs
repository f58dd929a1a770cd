//! Events that an engine reports to a controller.

use std::time::Duration;

/// Something that happened to packets. Sizes count what the engine counts, usually the bytes on the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum PacketEvent {
    /// Packets left; those released together are one event.
    Sent {
        /// How much.
        bytes: u64,
        /// Sent and neither acknowledged nor lost, with these.
        in_flight_bytes: u64,
    },
    /// Packets arrived.
    Ack(Ack),
    /// Packets were declared lost.
    Loss(LostPackets),
    /// Nothing was acknowledged within the retransmission timeout: everything in flight counts as lost.
    Timeout,
    /// Packets that had been declared lost arrived after all: they were late, not lost.
    Spurious {
        /// How much.
        bytes: u64,
        /// When the newest of them left.
        sent_at: Duration,
    },
    /// The limits would have allowed more, but there was nothing to send.
    AppLimited,
    /// The receiver says what it saw.
    Report(ReceiverReport),
}

/// Packets arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct Ack {
    /// How much is newly acknowledged.
    pub bytes: u64,
    /// When the newest of them left.
    pub sent_at: Duration,
    /// From leaving to acknowledgement of the newest of them, the receiver's own waiting taken off.
    pub rtt: Option<Duration>,
    /// How fast packets arrived lately, from a [`DeliverySampler`](crate::DeliverySampler).
    pub delivery: Option<DeliverySample>,
    /// Sent and neither acknowledged nor lost, without these.
    pub in_flight_bytes: u64,
}

/// How fast packets arrived, over about one round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeliverySample {
    /// Bytes per second.
    pub rate_bytes_per_sec: f64,
    /// All that has arrived since the connection began.
    pub delivered_bytes: u64,
    /// Bytes that had arrived when the packet just acknowledged was sent.
    pub delivered_at_send_bytes: u64,
    /// Whether the rate was limited by what there was to send.
    pub is_app_limited: bool,
}

/// Packets were declared lost.
#[derive(Clone, Debug, PartialEq)]
pub struct LostPackets {
    /// How much.
    pub bytes: u64,
    /// When the newest of them left.
    pub sent_at: Duration,
    /// Sent and neither acknowledged nor lost, without these.
    pub in_flight_bytes: u64,
}

/// Measurements that only the receiver can make.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReceiverReport {
    /// Median speed of arrival, bytes per second.
    pub arrival_bytes_per_sec: Option<f64>,
    /// Capacity of the bottleneck, from packets that left together, bytes per second.
    pub capacity_bytes_per_sec: Option<f64>,
}

/// A kind of event, or of content, that an engine can give and a controller can need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// [`PacketEvent::Sent`].
    Sent,
    /// [`PacketEvent::Ack`].
    Ack,
    /// [`Ack::rtt`] for most acknowledgements, without the receiver's delay.
    RoundTrip,
    /// [`Ack::delivery`].
    Delivery,
    /// [`PacketEvent::LostPackets`] with times of leaving.
    Loss,
    /// [`PacketEvent::Timeout`].
    Timeout,
    /// [`PacketEvent::Spurious`].
    Spurious,
    /// [`PacketEvent::ReceiverReport`] with arrival speed and capacity.
    Arrivals,
}

impl Signal {
    /// All of them: what the laboratory's simulator gives.
    pub const ALL: &[Self] = &[
        Self::Sent,
        Self::Ack,
        Self::RoundTrip,
        Self::Delivery,
        Self::Loss,
        Self::Timeout,
        Self::Spurious,
        Self::Arrivals,
    ];
}

impl std::fmt::Display for Signal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sent => "when packets leave",
            Self::Ack => "acknowledgements",
            Self::RoundTrip => "round trip times without the receiver's delay",
            Self::Delivery => "delivery rates",
            Self::Loss => "losses with the times the packets left",
            Self::Timeout => "timeouts",
            Self::Spurious => "late packets that had been declared lost",
            Self::Arrivals => "arrival speed and capacity measured by the receiver",
        })
    }
}
