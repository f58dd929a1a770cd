//! Simulation of flows over one bottleneck in virtual time, from a seed: tests congestion controllers at any rate.
//!
//! A discrete-event model. The bottleneck is a first-in first-out queue with a rate, a finite buffer and drop-tail;
//! after it packets are lost at random, delayed by the propagation time, and some arrive late. Each sender has its own
//! access line, a [`control::Pacer`], a window, loss detection by packet threshold, a retransmission timeout. It always
//! has data. Cross traffic is a flow with the controller `rate`.
//!
//! Not modeled: headers, acknowledgements that are lost or queue, processor time, retransmission order (every byte
//! that arrives for the first time counts), several bottlenecks. So that 100 Gb/s x 150 ms costs seconds, packets that
//! leave together are one *segment* of up to [`SimulatedPath::grain_packets`]: its packets are dropped and lost one by one, but
//! arrive and are acknowledged together, and a sender releases at least that much at once.

mod link;
mod outcome;
mod sender;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use control::Controller;

use crate::rng::SeededRng;
use link::{SegmentFate, SimulatedLink};
pub use outcome::{FlowOutcome, SimulationOutcome};
use sender::{SegmentId, SimulatedSender};

/// Approximate number of segments per round trip.
const SEGMENTS_PER_RTT: f64 = 1_000.0;
/// Longest segment, seconds at the bottleneck's rate: shorter than the intervals that controllers measure.
const LONGEST_SEGMENT_SECS: f64 = 200e-6;
/// Smallest buffer, packets.
const LEAST_BUFFER_PACKETS: f64 = 64.0;

/// Path with one bottleneck.
#[derive(Clone, Debug)]
pub struct SimulatedPath {
    /// Rate of the bottleneck, bytes per second.
    pub rate_bytes_per_sec: f64,
    /// Round trip without queues.
    pub rtt: Duration,
    /// Size of the buffer before the bottleneck, bytes.
    pub buffer_bytes: f64,
    /// Share of packets lost at random, 0 to 1.
    pub loss: f64,
    /// Share of segments that arrive late, 0 to 1.
    pub late: f64,
    /// Additional delay of late segments.
    pub late_by: Duration,
    /// Largest additional delay of acknowledgements, uniformly distributed, as by timers and coalescing.
    pub noise: Duration,
    /// Period at which the sender's host is busy with other work.
    pub busy_every: Duration,
    /// Duration of that work; acknowledgements that arrive meanwhile are processed at its end.
    pub busy_for: Duration,
    /// Rate of each sender's access line, bytes per second.
    pub line_bytes_per_sec: f64,
    /// Size of a packet, bytes.
    pub packet_bytes: u64,
}

impl SimulatedPath {
    /// Creates a path without losses of `rate_bytes_per_sec` and `rtt` with a buffer of `buffer_bdp` bandwidth-delay products, senders'
    /// lines ten times as fast, acknowledgements up to 50 us late, packets of 1500 bytes.
    #[must_use]
    pub fn new(rate_bytes_per_sec: f64, rtt: Duration, buffer_bdp: f64) -> Self {
        let packet_bytes = 1500;
        let buffer_bytes = (buffer_bdp * rate_bytes_per_sec * rtt.as_secs_f64())
            .max(LEAST_BUFFER_PACKETS * packet_bytes as f64);
        Self {
            rate_bytes_per_sec,
            rtt,
            buffer_bytes,
            loss: 0.0,
            late: 0.0,
            late_by: Duration::ZERO,
            noise: Duration::from_micros(50),
            busy_every: Duration::ZERO,
            busy_for: Duration::ZERO,
            line_bytes_per_sec: 10.0 * rate_bytes_per_sec,
            packet_bytes,
        }
    }

    /// Returns the path with this share of packets lost at random.
    #[must_use]
    pub fn losing(mut self, share: f64) -> Self {
        self.loss = share;
        self
    }

    /// Returns the most packets of a segment.
    #[must_use]
    pub fn grain_packets(&self) -> u64 {
        let per_sec = self.rate_bytes_per_sec / self.packet_bytes as f64;
        let rounded = (per_sec * self.rtt.as_secs_f64() / SEGMENTS_PER_RTT).max(1.0);
        link::whole(rounded.min((per_sec * LONGEST_SEGMENT_SECS).max(1.0)))
    }
}

/// Sender and its flow.
#[derive(Debug)]
pub struct SimulatedFlow {
    /// Congestion controller.
    pub controller: Box<dyn Controller>,
    /// Start of the flow.
    pub start: Duration,
    /// End of the flow.
    pub stop: Duration,
    /// Number of arrived bytes after which the flow ends; `None` for no limit.
    pub bytes: Option<u64>,
    /// Additional round trip of the flow.
    pub extra_rtt: Duration,
}

impl SimulatedFlow {
    /// Creates a flow that runs from `start` on.
    #[must_use]
    pub fn new(controller: Box<dyn Controller>, start: Duration) -> Self {
        Self { controller, start, stop: Duration::MAX, bytes: None, extra_rtt: Duration::ZERO }
    }
}

/// Change of the path while flows run. Segments already in the queue keep their times.
#[derive(Clone, Copy, Debug)]
pub struct PathChange {
    /// Time of the change.
    pub at: Duration,
    /// The bottleneck's rate from then on, bytes per second.
    pub rate_bytes_per_sec: f64,
    /// Round trip without queues from then on.
    pub rtt: Duration,
    /// Whether the link drops everything from then on.
    pub is_down: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SimulationEvent {
    PathChange(usize),
    Wake(usize),
    Reach(usize, SegmentId),
    Ack(usize, SegmentId),
    Timer(usize),
}

/// Runs `flows` over `path` for `until`; the same arguments give the same outcome.
#[must_use]
pub fn run(
    path: &SimulatedPath,
    flows: Vec<SimulatedFlow>,
    changes: &[PathChange],
    until: Duration,
    seed: u64,
) -> SimulationOutcome {
    let mut simulation = Simulation {
        agenda: Agenda::default(),
        link: SimulatedLink::new(path, SeededRng::new(seed)),
        senders: flows.into_iter().map(|flow| SimulatedSender::new(flow, path)).collect(),
        queue: Vec::new(),
    };
    for (i, sender) in simulation.senders.iter().enumerate() {
        simulation.agenda.add(sender.start(), SimulationEvent::Wake(i));
    }
    for (i, change) in changes.iter().enumerate() {
        simulation.agenda.add(change.at, SimulationEvent::PathChange(i));
    }
    while let Some((now, what)) = simulation.agenda.next()
        && now <= until
    {
        simulation.step(now, what, changes);
    }
    outcome::of(simulation.senders, simulation.queue, until)
}

/// Events in the order of their times; events at the same time keep the order of planning.
#[derive(Default)]
struct Agenda {
    heap: BinaryHeap<Reverse<(Duration, u64, SimulationEvent)>>,
    planned: u64,
}

impl Agenda {
    fn add(&mut self, at: Duration, what: SimulationEvent) {
        self.planned += 1;
        self.heap.push(Reverse((at, self.planned, what)));
    }

    fn next(&mut self) -> Option<(Duration, SimulationEvent)> {
        self.heap.pop().map(|Reverse((at, _, what))| (at, what))
    }
}

struct Simulation {
    agenda: Agenda,
    link: SimulatedLink,
    senders: Vec<SimulatedSender>,
    /// Time and delay in the queue of each segment, seconds.
    queue: Vec<(f32, f32)>,
}

impl Simulation {
    fn step(&mut self, now: Duration, what: SimulationEvent, changes: &[PathChange]) {
        match what {
            SimulationEvent::PathChange(i) => self.link.change(now, &changes[i]),
            SimulationEvent::Wake(flow) => {
                self.senders[flow].on_wake(now);
                self.send(now, flow);
            }
            SimulationEvent::Reach(flow, id) => self.reach(now, flow, id),
            SimulationEvent::Ack(flow, id) => {
                self.senders[flow].on_ack(now, id);
                self.send(now, flow);
            }
            SimulationEvent::Timer(flow) => {
                self.senders[flow].on_timer(now);
                self.send(now, flow);
            }
        }
    }

    /// Handles a segment that reaches the bottleneck.
    fn reach(&mut self, now: Duration, flow: usize, id: SegmentId) {
        let waits = Duration::from_secs_f64(self.link.queue_secs(now));
        self.queue.push((now.as_secs_f32(), waits.as_secs_f32()));
        let sender = &mut self.senders[flow];
        let SegmentFate { lost_packets, acked_at } =
            self.link.pass(now, sender.packets_of(id), sender.extra_rtt());
        if let Some(at) = sender.on_fate(id, lost_packets, acked_at) {
            self.agenda.add(at, SimulationEvent::Ack(flow, id));
        }
    }

    /// Lets a sender send as much as it may, and plans the next check.
    fn send(&mut self, now: Duration, flow: usize) {
        let sender = &mut self.senders[flow];
        while let Some(segments) = sender.release(now) {
            for (reach_at, id) in segments {
                self.agenda.add(reach_at, SimulationEvent::Reach(flow, id));
            }
        }
        if let Some(at) = sender.wake_at(now) {
            self.agenda.add(at, SimulationEvent::Wake(flow));
        }
        if let Some(at) = sender.timer_at() {
            self.agenda.add(at, SimulationEvent::Timer(flow));
        }
    }
}
