//! Sender with unlimited data: window, pacing, loss detection, timeout. Its controller decides everything else.

use std::collections::VecDeque;
use std::time::Duration;

use control::{Ack, DeliverySampler, LostPackets, Pacer, PacketEvent, ReceiverReport, SendStamp};

use super::{SimulatedFlow, SimulatedPath};

/// Number of later packets that must have arrived before a packet counts as lost (RFC 9002, section 6.1.1).
const PACKET_THRESHOLD: u64 = 3;
/// Shortest retransmission timeout, seconds.
const LEAST_TIMEOUT_SECS: f64 = 0.2;
/// Timeout before the first round trip, seconds (RFC 6298).
const FIRST_TIMEOUT_SECS: f64 = 1.0;
/// Interval of the receiver's reports (UDT's SYN).
const REPORT_EVERY: Duration = Duration::from_millis(10);

/// Number of a segment in its flow.
pub(super) type SegmentId = u64;

#[derive(Clone, Copy, Debug, PartialEq)]
enum SegmentState {
    InFlight,
    /// Declared lost; may still arrive.
    Missing,
    Gone,
}

#[derive(Debug)]
struct Segment {
    stamp: SendStamp,
    first_packet: u64,
    packets: u64,
    lost_packets: u64,
    state: SegmentState,
}

/// Sender and receiver of one flow.
#[derive(Debug)]
pub(super) struct SimulatedSender {
    flow: SimulatedFlow,
    pacer: Pacer,
    sampler: DeliverySampler,
    packet_bytes: u64,
    grain_packets: u64,
    capacity_bytes_per_sec: f64,
    line_bytes_per_sec: f64,
    line_free_at: f64,
    /// Segments from `first_id` on.
    segments: VecDeque<Segment>,
    first_id: SegmentId,
    next_packet: u64,
    in_flight_bytes: u64,
    last_ack_at: Duration,
    srtt_secs: f64,
    rttvar_secs: f64,
    progress_at: Duration,
    backoff: f64,
    is_timer_set: bool,
    wake_planned: Option<Duration>,
    report_at: Duration,
    reported_bytes: u64,
    pub(super) arrived: Vec<(f32, f64)>,
    pub(super) arrived_bytes: u64,
    pub(super) sent_bytes: u64,
    pub(super) lost_bytes: u64,
    pub(super) timeouts: u64,
    pub(super) finished_at: Option<Duration>,
}

impl SimulatedSender {
    pub(super) fn new(flow: SimulatedFlow, path: &SimulatedPath) -> Self {
        Self {
            pacer: Pacer::default(),
            sampler: DeliverySampler::default(),
            packet_bytes: path.packet_bytes,
            grain_packets: path.grain_packets(),
            capacity_bytes_per_sec: path.rate_bytes_per_sec,
            line_bytes_per_sec: path.line_bytes_per_sec,
            line_free_at: 0.0,
            segments: VecDeque::new(),
            first_id: 0,
            next_packet: 0,
            in_flight_bytes: 0,
            last_ack_at: Duration::ZERO,
            srtt_secs: 0.0,
            rttvar_secs: 0.0,
            progress_at: flow.start,
            backoff: 1.0,
            is_timer_set: false,
            wake_planned: Some(flow.start),
            report_at: flow.start + REPORT_EVERY,
            reported_bytes: 0,
            arrived: Vec::new(),
            arrived_bytes: 0,
            sent_bytes: 0,
            lost_bytes: 0,
            timeouts: 0,
            finished_at: None,
            flow,
        }
    }

    pub(super) fn start(&self) -> Duration {
        self.flow.start
    }

    pub(super) fn extra_rtt(&self) -> Duration {
        self.flow.extra_rtt
    }

    pub(super) fn packets_of(&self, id: SegmentId) -> u64 {
        self.segment(id).map_or(0, |s| s.packets)
    }

    pub(super) fn on_wake(&mut self, now: Duration) {
        self.wake_planned = self.wake_planned.filter(|at| *at > now);
    }

    /// Returns the segments that may be sent now, with the times at which they reach the bottleneck; `None` if none may.
    pub(super) fn release(&mut self, now: Duration) -> Option<Vec<(Duration, SegmentId)>> {
        if !self.is_running(now) || self.pacer.next_at(now) > now {
            return None;
        }
        let limits = self.flow.controller.limits();
        let room = limits.window_bytes().saturating_sub(self.in_flight_bytes);
        let quantum = limits.quantum_bytes().max(self.grain_packets * self.packet_bytes);
        let packets = room.min(quantum) / self.packet_bytes;
        // A window smaller than a packet still allows one.
        let packets = if self.in_flight_bytes == 0 { packets.max(1) } else { packets };
        if packets == 0 {
            return None;
        }
        // Trains are split more finely, because their spread is measured.
        let is_train = packets > 2 * self.grain_packets;
        let piece = if is_train { (packets / 8).clamp(1, self.grain_packets) } else { self.grain_packets };
        let mut out = Vec::new();
        let mut left = packets;
        while left > 0 {
            let now_packets = left.min(piece);
            left -= now_packets;
            out.push(self.put_on_line(now, now_packets));
        }
        let bytes = packets * self.packet_bytes;
        self.pacer.on_sent(now, bytes, &limits);
        self.sent_bytes += bytes;
        let in_flight_bytes = self.in_flight_bytes;
        self.flow.controller.on(now, &PacketEvent::Sent { bytes, in_flight_bytes });
        Some(out)
    }

    fn put_on_line(&mut self, now: Duration, packets: u64) -> (Duration, SegmentId) {
        let stamp = self.sampler.on_sent(now, self.in_flight_bytes);
        if self.in_flight_bytes == 0 {
            self.progress_at = now;
        }
        let bytes = packets * self.packet_bytes;
        self.in_flight_bytes += bytes;
        self.line_free_at = self.line_free_at.max(now.as_secs_f64()) + bytes as f64 / self.line_bytes_per_sec;
        let id = self.first_id + self.segments.len() as u64;
        self.segments.push_back(Segment {
            stamp,
            first_packet: self.next_packet,
            packets,
            lost_packets: 0,
            state: SegmentState::InFlight,
        });
        self.next_packet += packets;
        (Duration::from_secs_f64(self.line_free_at), id)
    }

    /// Returns the next time to check for data to send, if no check is planned before.
    pub(super) fn wake_at(&mut self, now: Duration) -> Option<Duration> {
        if !self.is_running(now) || self.in_flight_bytes >= self.flow.controller.limits().window_bytes() {
            return None;
        }
        let at = self.pacer.next_at(now);
        if at <= now || self.wake_planned.is_some_and(|planned| planned <= at) {
            return None;
        }
        self.wake_planned = Some(at);
        Some(at)
    }

    /// Records the fate of a segment; returns the time of its acknowledgement, if there will be one.
    pub(super) fn on_fate(
        &mut self,
        id: SegmentId,
        lost_packets: u64,
        acked_at: Duration,
    ) -> Option<Duration> {
        let segment = self.segment_mut(id)?;
        segment.lost_packets = lost_packets;
        (lost_packets < segment.packets).then_some(acked_at)
    }

    pub(super) fn on_ack(&mut self, now: Duration, id: SegmentId) {
        let Some(segment) = self.segment_mut(id) else { return };
        let state = std::mem::replace(&mut segment.state, SegmentState::Gone);
        let (stamp, packets, lost) = (segment.stamp, segment.packets, segment.lost_packets);
        let last_packet = segment.first_packet + packets - 1;
        let arrived = (packets - lost) * self.packet_bytes;
        if state == SegmentState::Missing {
            self.flow.controller.on(now, &PacketEvent::Spurious { bytes: arrived, sent_at: stamp.sent_at });
            return self.forget();
        }
        self.in_flight_bytes -= packets * self.packet_bytes;
        self.progress_at = now;
        self.backoff = 1.0;
        self.arrive(now, arrived);
        self.measure(now.saturating_sub(stamp.sent_at).as_secs_f64());
        let ack = Ack {
            bytes: arrived,
            sent_at: stamp.sent_at,
            rtt: Some(now.saturating_sub(stamp.sent_at)),
            delivery: self.sampler.on_ack(now, &stamp, arrived),
            in_flight_bytes: self.in_flight_bytes,
        };
        self.flow.controller.on(now, &PacketEvent::Ack(ack));
        self.lose(now, lost, stamp.sent_at);
        self.find_losses(now, last_packet);
        self.report(now);
        self.forget();
    }

    fn arrive(&mut self, now: Duration, bytes: u64) {
        self.last_ack_at = now;
        self.arrived_bytes += bytes;
        self.arrived.push((now.as_secs_f32(), bytes as f64));
        if self.flow.bytes.is_some_and(|all| self.arrived_bytes >= all) {
            self.finished_at.get_or_insert(now);
        }
    }

    fn measure(&mut self, rtt: f64) {
        if self.srtt_secs == 0.0 {
            self.srtt_secs = rtt;
            self.rttvar_secs = rtt / 2.0;
        }
        self.rttvar_secs += ((rtt - self.srtt_secs).abs() - self.rttvar_secs) / 4.0;
        self.srtt_secs += (rtt - self.srtt_secs) / 8.0;
    }

    fn lose(&mut self, now: Duration, packets: u64, sent_at: Duration) {
        if packets == 0 {
            return;
        }
        let bytes = packets * self.packet_bytes;
        self.lost_bytes += bytes;
        let in_flight_bytes = self.in_flight_bytes;
        self.flow.controller.on(now, &PacketEvent::Loss(LostPackets { bytes, sent_at, in_flight_bytes }));
    }

    /// Declares segments lost that were sent well before `acked_packet` and have not arrived.
    fn find_losses(&mut self, now: Duration, acked_packet: u64) {
        let mut packets = 0;
        let mut sent_at = Duration::ZERO;
        for segment in &mut self.segments {
            if segment.first_packet + segment.packets + PACKET_THRESHOLD > acked_packet + 1 {
                break;
            }
            if segment.state == SegmentState::InFlight {
                segment.state = SegmentState::Missing;
                packets += segment.packets;
                sent_at = segment.stamp.sent_at;
            }
        }
        self.in_flight_bytes -= packets * self.packet_bytes;
        self.lose(now, packets, sent_at);
    }

    /// Drops settled segments from the front.
    fn forget(&mut self) {
        while let Some(front) = self.segments.front() {
            let is_over = front.state == SegmentState::Gone
                || (front.state == SegmentState::Missing && front.lost_packets == front.packets);
            if !is_over {
                return;
            }
            self.segments.pop_front();
            self.first_id += 1;
        }
    }

    fn report(&mut self, now: Duration) {
        let since = now.saturating_sub(self.report_at).as_secs_f64() + REPORT_EVERY.as_secs_f64();
        if now < self.report_at {
            return;
        }
        let arrived = (self.arrived_bytes - self.reported_bytes) as f64;
        self.report_at = now + REPORT_EVERY;
        self.reported_bytes = self.arrived_bytes;
        let report = ReceiverReport {
            arrival_bytes_per_sec: Some(arrived / since),
            capacity_bytes_per_sec: Some(self.capacity_bytes_per_sec),
        };
        self.flow.controller.on(now, &PacketEvent::Report(report));
    }

    /// Returns the time to check whether acknowledgements still arrive.
    pub(super) fn timer_at(&mut self) -> Option<Duration> {
        if self.is_timer_set || self.in_flight_bytes == 0 {
            return None;
        }
        self.is_timer_set = true;
        Some(self.progress_at + self.timeout())
    }

    fn timeout(&self) -> Duration {
        let secs = match self.srtt_secs {
            0.0 => FIRST_TIMEOUT_SECS,
            srtt => (srtt + 4.0 * self.rttvar_secs).max(LEAST_TIMEOUT_SECS),
        };
        Duration::from_secs_f64((secs * self.backoff).min(60.0))
    }

    pub(super) fn on_timer(&mut self, now: Duration) {
        self.is_timer_set = false;
        if self.in_flight_bytes == 0 || now < self.progress_at + self.timeout() {
            return;
        }
        for segment in &mut self.segments {
            if segment.state == SegmentState::InFlight {
                segment.state = SegmentState::Missing;
            }
        }
        self.lost_bytes += self.in_flight_bytes;
        self.in_flight_bytes = 0;
        self.timeouts += 1;
        self.backoff *= 2.0;
        self.progress_at = now;
        self.flow.controller.on(now, &PacketEvent::Timeout);
        self.forget();
    }

    fn is_running(&self, now: Duration) -> bool {
        now >= self.flow.start && now < self.flow.stop && self.finished_at.is_none()
    }

    fn segment(&self, id: SegmentId) -> Option<&Segment> {
        self.segments.get(usize::try_from(id.checked_sub(self.first_id)?).ok()?)
    }

    fn segment_mut(&mut self, id: SegmentId) -> Option<&mut Segment> {
        self.segments.get_mut(usize::try_from(id.checked_sub(self.first_id)?).ok()?)
    }
}
