//! Events that an engine reports to a controller.

use std::time::Duration;

/// Event about packets. Sizes count what the engine counts, usually the bytes on the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum PacketEvent {
    /// Packets were sent; those released together are one event.
    Sent {
        /// Bytes sent.
        bytes: u64,
        /// Bytes sent and neither acknowledged nor lost, including these.
        in_flight_bytes: u64,
    },
    /// Packets were acknowledged.
    Ack(Ack),
    /// Packets were declared lost.
    Loss(LostPackets),
    /// Nothing was acknowledged within the retransmission timeout: everything in flight counts as lost.
    Timeout,
    /// Packets that had been declared lost were acknowledged: they were late, not lost.
    Spurious {
        /// Bytes acknowledged late.
        bytes: u64,
        /// Send time of the newest of them.
        sent_at: Duration,
    },
    /// The limits allowed more, but there was nothing to send.
    AppLimited,
    /// The receiver reported its measurements.
    Report(ReceiverReport),
}

/// Acknowledged packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Ack {
    /// Newly acknowledged bytes.
    pub bytes: u64,
    /// Send time of the newest of them.
    pub sent_at: Duration,
    /// Round trip of the newest of them, without the receiver's delay.
    pub rtt: Option<Duration>,
    /// Recent delivery rate, from a [`DeliverySampler`](crate::DeliverySampler).
    pub delivery: Option<DeliverySample>,
    /// Bytes sent and neither acknowledged nor lost, without these.
    pub in_flight_bytes: u64,
}

/// Sample of the delivery rate, over about one round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeliverySample {
    /// Delivery rate, bytes per second.
    pub rate_bytes_per_sec: f64,
    /// Bytes delivered since the connection began.
    pub delivered_bytes: u64,
    /// Bytes delivered when the packet just acknowledged was sent.
    pub delivered_at_send_bytes: u64,
    /// True when the application limited the rate.
    pub is_app_limited: bool,
}

/// Packets that were declared lost.
#[derive(Clone, Debug, PartialEq)]
pub struct LostPackets {
    /// Bytes lost.
    pub bytes: u64,
    /// Send time of the newest of them.
    pub sent_at: Duration,
    /// Bytes sent and neither acknowledged nor lost, without these.
    pub in_flight_bytes: u64,
}

/// Measurements that only the receiver can make.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReceiverReport {
    /// Median arrival rate, bytes per second.
    pub arrival_bytes_per_sec: Option<f64>,
    /// Capacity of the bottleneck, from packets that left together, bytes per second.
    pub capacity_bytes_per_sec: Option<f64>,
}

/// Event, or content of an event, that an engine can provide and a controller can need.
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
    /// [`PacketEvent::Loss`] with send times.
    Loss,
    /// [`PacketEvent::Timeout`].
    Timeout,
    /// [`PacketEvent::Spurious`].
    Spurious,
    /// [`PacketEvent::Report`] with arrival rate and capacity.
    Arrivals,
}

impl Signal {
    /// All signals, which the laboratory's simulator provides.
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
            Self::Sent => "send times of packets",
            Self::Ack => "acknowledgements",
            Self::RoundTrip => "round trip times without the receiver's delay",
            Self::Delivery => "delivery rates",
            Self::Loss => "losses with the send times of the packets",
            Self::Timeout => "timeouts",
            Self::Spurious => "late packets that had been declared lost",
            Self::Arrivals => "arrival rate and capacity measured by the receiver",
        })
    }
}
