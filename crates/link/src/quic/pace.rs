//! Pacing and limit of bytes in flight of one connection: reports events to the controller, and tells the
//! QUIC stack when it may send. A state machine: time is an argument, and nothing waits here.
//!
//! The stack asks before every packet whether its congestion window has room. The answer is an open or a
//! closed window, and this one bit implements both pacing and the limit:
//!
//! ```text
//! asked: may a packet go?  -- quantum begun, or its time has come --> yes (until the quantum is out)
//!                          -- too early                           --> no, and a timer for the time it may
//!                          -- too much in flight                  --> no; an acknowledgement will ask again
//! ```
//!
//! The stack does not ask before pure acknowledgements, so they are neither delayed nor counted. The send
//! times are in [`sent_packets`](super::sent_packets), the unsent bytes in [`send_backlog`].

use std::task::Waker;
use std::time::Duration;

use control::{
    Ack, Choice, Config, Controller, LostPackets, Pacer, PacketEvent, Refusal, RememberedPath, SendLimits,
    Signal,
};

use super::send_backlog::{self, SendBacklog};
use super::sent_packets::SentPackets;

/// Signals that this engine provides to controllers. Missing are spurious losses and measurements of the
/// receiver.
pub(super) const SIGNALS: &[Signal] =
    &[Signal::Sent, Signal::Ack, Signal::RoundTrip, Signal::Delivery, Signal::Loss, Signal::Timeout];

/// Most bytes in flight, whatever the controller allows, because the stack tracks each packet. 10 Gb/s over
/// 200 ms.
const MAX_IN_FLIGHT_BYTES: u64 = 256 << 20;
/// Most packets that the stack sends in one batch.
pub(super) const MOST_PACKETS_PER_BATCH: u64 = 10;
/// Calls of the stack per packet of a batch.
pub(super) const ASKS_PER_PACKET: u64 = 2;
/// Time after which an unfinished quantum is over.
const QUANTUM_WITHIN: Duration = Duration::from_millis(5);
/// Time within which an allowed batch is sent; otherwise the stack only asked.
const BATCH_WITHIN: Duration = Duration::from_micros(200);
/// Silence after the last acknowledgement, in round trips, after which a peer that still sends has received
/// nothing of the data in flight; at least `UNHEARD_AT_LEAST`.
const UNHEARD_RTTS: u32 = 3;
const UNHEARD_AT_LEAST: Duration = Duration::from_millis(100);
/// Time that a handshake may take longer than the remembered minimum round trip: its computation, a queue.
const HANDSHAKE_MARGIN: Duration = Duration::from_millis(10);

/// Permission to send a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendPermission {
    /// Send now.
    Yes,
    /// Send at this time; the caller is to be woken then.
    At(Duration),
    /// Send after the next acknowledgement.
    Full,
}

/// Controller, pacer and accounts of one connection.
pub(super) struct PacedController {
    choice: Choice,
    controller: Box<dyn Controller>,
    /// Full packet size that the controller uses; packets may be smaller until MTU discovery ends.
    full_bytes: u64,
    packet_bytes: u64,
    most_bytes_per_sec: Option<f64>,
    limits: SendLimits,
    pacer: Pacer,
    sent_packets: SentPackets,
    quantum: Quantum,
    in_flight_bytes: u64,
    /// Time of the last acknowledgement, or of the last packet allowed as a probe.
    told_at: Duration,
    /// One packet may be sent although the limit is reached.
    may_ask_again: bool,
    /// Bytes acknowledged since the last `on_acks_end`, and the send time of the newest.
    acked: Option<(u64, Duration)>,
    exchange: StackExchange,
    /// Waker of the sending task; nothing is delayed before it is set.
    pub(super) sender: Option<Waker>,
    pub(super) backlog: SendBacklog,
    counters: PaceCounters,
    srtt: Option<Duration>,
    least_rtt: Option<Duration>,
    remembered: Option<RememberedPath>,
}

/// Packets sent of the current quantum, which is reported to the controller as a whole.
#[derive(Debug, Default)]
struct Quantum {
    bytes: u64,
    batches: usize,
}

/// State of the exchange with the stack, which first asks for a packet and then sends it.
#[derive(Debug, Default)]
struct StackExchange {
    /// Calls left for packets of the current batch.
    asks_left: u64,
    /// Time at which the batch was allowed; `None` once it was sent.
    allowed_at: Option<Duration>,
    was_asked: bool,
    /// There has been data to send since the batch was first delayed.
    has_waited: bool,
    quantum_left_bytes: u64,
    last_sent_at: Duration,
}

/// Counters of the connection so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PaceCounters {
    pub(super) sent_bytes: u64,
    pub(super) lost_bytes: u64,
    pub(super) batches: u64,
    pub(super) delivery_bytes_per_sec: Option<f64>,
}

impl PacedController {
    pub(super) fn new(
        choice: Choice,
        packet_bytes: u64,
        most_bytes_per_sec: Option<f64>,
    ) -> Result<Self, Refusal> {
        let controller = choice.make(&config(choice, packet_bytes, most_bytes_per_sec), SIGNALS)?;
        let mut pace = Self {
            choice,
            limits: controller.limits(),
            controller,
            full_bytes: packet_bytes,
            packet_bytes,
            most_bytes_per_sec,
            pacer: Pacer::default(),
            sent_packets: SentPackets::default(),
            quantum: Quantum::default(),
            in_flight_bytes: 0,
            told_at: Duration::ZERO,
            may_ask_again: false,
            acked: None,
            exchange: StackExchange::default(),
            sender: None,
            backlog: SendBacklog::default(),
            counters: PaceCounters::default(),
            srtt: None,
            least_rtt: None,
            remembered: None,
        };
        pace.limits = pace.allowed();
        Ok(pace)
    }

    /// Ends the handshake: the controller restarts with its round trip, unless it has already started from a
    /// remembered path with the same round trip.
    pub(super) fn begin(&mut self, now: Duration, handshake_rtt: Duration) -> Result<(), Refusal> {
        (self.srtt, self.least_rtt) = (Some(handshake_rtt), Some(handshake_rtt));
        if self.remembered.is_some_and(|known| is_same_path(known.rtt, handshake_rtt)) {
            return Ok(());
        }
        self.remembered = None;
        self.choose(now, self.choice)
    }

    /// Changes the controller; the new one starts with the known round trip.
    pub(super) fn choose(&mut self, now: Duration, choice: Choice) -> Result<(), Refusal> {
        let (handshake_rtt, remembered) = (self.srtt, self.remembered);
        let most = self.most_bytes_per_sec;
        let config = Config { handshake_rtt, remembered, ..config(choice, self.full_bytes, most) };
        self.controller = choice.make(&config, SIGNALS)?;
        self.choice = choice;
        self.tell(now, None);
        self.pacer.reset(now);
        Ok(())
    }

    /// Restarts the controller from a remembered path. A path that does not match the measured round trip is
    /// ignored; before the end of the handshake there is no measurement, and the path is used until then.
    pub(super) fn remember(&mut self, now: Duration, known: RememberedPath) {
        if self.srtt.is_none_or(|measured| is_same_path(known.rtt, measured)) {
            self.remembered = Some(known);
            // The choice was accepted before, so it is valid.
            self.choose(now, self.choice).unwrap_or_default();
        }
    }

    pub(super) fn least_rtt(&self) -> Option<Duration> {
        self.least_rtt
    }

    pub(super) fn choice(&self) -> Choice {
        self.choice
    }

    pub(super) fn limits(&self) -> SendLimits {
        self.limits
    }

    pub(super) fn counters(&self) -> PaceCounters {
        self.counters
    }

    pub(super) fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// Returns whether another packet may be sent.
    pub(super) fn ask(&mut self, now: Duration) -> SendPermission {
        self.exchange.was_asked = true;
        if self.sender.is_none() {
            return SendPermission::Yes;
        }
        if self.exchange.asks_left > 0 {
            self.exchange.asks_left -= 1;
            return SendPermission::Yes;
        }
        if let Some(at) = self.exchange.allowed_at.map(|at| at + BATCH_WITHIN).filter(|at| *at > now) {
            return SendPermission::At(at);
        }
        let room = self.limits.window_bytes().saturating_sub(self.in_flight_bytes);
        if room < self.packet_bytes && self.in_flight_bytes > 0 {
            if std::mem::take(&mut self.may_ask_again) {
                (self.exchange.asks_left, self.exchange.allowed_at) = (ASKS_PER_PACKET - 1, Some(now));
                return SendPermission::Yes;
            }
            self.exchange.has_waited = true;
            return SendPermission::Full;
        }
        let is_begun = self.exchange.quantum_left_bytes >= self.packet_bytes
            && now.saturating_sub(self.exchange.last_sent_at) < QUANTUM_WITHIN;
        if !is_begun {
            let at = self.pacer.next_at(now);
            if at > now {
                self.exchange.has_waited = true;
                return SendPermission::At(at);
            }
            self.end_quantum();
            self.exchange.quantum_left_bytes = self.limits.quantum_bytes();
        }
        let packets = (self.exchange.quantum_left_bytes.min(room) / self.packet_bytes.max(1)).max(1);
        self.exchange.asks_left = packets.min(MOST_PACKETS_PER_BATCH) * ASKS_PER_PACKET - 1;
        self.exchange.allowed_at = Some(now);
        SendPermission::Yes
    }

    /// Records packets that were sent together.
    pub(super) fn on_sent(&mut self, now: Duration, bytes: u64) {
        self.counters.sent_bytes += bytes;
        self.exchange.asks_left = 0;
        self.exchange.allowed_at = None;
        if !std::mem::take(&mut self.exchange.was_asked) {
            return;
        }
        self.sent_packets.on_sent(now, self.in_flight_bytes);
        self.quantum.bytes += bytes;
        self.quantum.batches += 1;
        self.counters.batches += 1;
        self.in_flight_bytes += bytes;
        if self.exchange.has_waited {
            self.pacer.on_sent_waiting(now, bytes, &self.limits);
        } else {
            self.pacer.on_sent(now, bytes, &self.limits);
        }
        self.exchange.quantum_left_bytes = self.exchange.quantum_left_bytes.saturating_sub(bytes);
        self.exchange.last_sent_at = now;
        self.backlog.on_sent(bytes, self.limits.rate_bytes_per_sec());
        if self.exchange.quantum_left_bytes < self.packet_bytes {
            self.end_quantum();
        }
    }

    /// Reports the packets of a quantum to the controller.
    fn end_quantum(&mut self) {
        let Quantum { bytes, batches } = std::mem::take(&mut self.quantum);
        if bytes > 0 {
            let (at, in_flight_bytes) = (self.exchange.last_sent_at, self.in_flight_bytes);
            self.sent_packets.tell(batches, at);
            self.tell(at, Some(PacketEvent::Sent { bytes, in_flight_bytes }));
        }
    }

    /// Records an acknowledged packet; more of the same moment may follow.
    pub(super) fn on_ack(&mut self, sent_at: Duration, bytes: u64) {
        let (sum, newest) = self.acked.unwrap_or_default();
        self.acked = Some((sum + bytes, newest.max(sent_at)));
    }

    /// Ends the acknowledgements of one moment. `seen` is the time at which they were processed; `now` is the
    /// stack's time, when it began to read, which on a busy host is before the packet arrived.
    /// `in_flight_bytes` is the stack's count; `is_app_limited`: there was nothing to send at the last check.
    pub(super) fn on_acks_end(
        &mut self,
        now: Duration,
        seen: Duration,
        in_flight_bytes: u64,
        is_app_limited: bool,
    ) {
        self.end_quantum();
        self.in_flight_bytes = in_flight_bytes;
        if is_app_limited {
            self.sent_packets.on_app_limited(in_flight_bytes);
            self.exchange.has_waited = false;
            self.backlog.clear(self.limits.rate_bytes_per_sec());
            self.tell(now, Some(PacketEvent::AppLimited));
        }
        let Some((bytes, sent_at)) = self.acked.take() else { return };
        self.told_at = now;
        let (delivery, told_at) = self.sent_packets.on_ack(now, sent_at, bytes);
        self.counters.delivery_bytes_per_sec = delivery
            .filter(|d| !d.is_app_limited)
            .map(|d| d.rate_bytes_per_sec)
            .or(self.counters.delivery_bytes_per_sec);
        let rtt = seen.saturating_sub(sent_at);
        self.srtt = Some(self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        let ack = Ack { bytes, sent_at: told_at, rtt: Some(rtt), delivery, in_flight_bytes };
        self.tell(now, Some(PacketEvent::Ack(ack)));
    }

    /// Records lost packets, the newest of which was sent at `sent_at`. Without lost bytes, the path has
    /// marked packets (ECN), which counts like one lost packet (RFC 9002, section 7.1).
    pub(super) fn on_loss(&mut self, now: Duration, sent_at: Duration, lost_bytes: u64, is_persistent: bool) {
        self.end_quantum();
        let sent_at = self.sent_packets.told_at(sent_at);
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(lost_bytes);
        self.backlog.add(lost_bytes as f64);
        self.counters.lost_bytes += lost_bytes;
        let bytes = if lost_bytes == 0 { self.packet_bytes } else { lost_bytes };
        let in_flight_bytes = self.in_flight_bytes;
        self.tell(now, Some(PacketEvent::Loss(LostPackets { bytes, sent_at, in_flight_bytes })));
        if is_persistent {
            self.tell(now, Some(PacketEvent::Timeout));
        }
    }

    /// Handles a change of the peer's address. Packets in flight to the old address are not waited for: the
    /// stack restarts its own account, and nothing could be acknowledged before the first packet to the new
    /// address. The controller keeps its state and adapts if the path differs.
    pub(super) fn on_new_path(&mut self) {
        self.end_quantum();
        self.in_flight_bytes = 0;
        self.acked = None;
        self.exchange = StackExchange::default();
    }

    /// Handles received data of a peer that has not acknowledged anything for long: the path has dropped all
    /// packets for a while. One packet may be sent; its acknowledgement reveals the losses long before the
    /// stack's own timer, which backs off exponentially, expires.
    pub(super) fn on_heard(&mut self, now: Duration) {
        let unheard = self.srtt.map_or(UNHEARD_AT_LEAST, |srtt| UNHEARD_AT_LEAST.max(srtt * UNHEARD_RTTS));
        if self.in_flight_bytes > 0 && now.saturating_sub(self.told_at) > unheard {
            (self.may_ask_again, self.told_at) = (true, now);
            self.sender.iter().for_each(Waker::wake_by_ref);
        }
    }

    /// Updates the packet size.
    pub(super) fn on_packet_size(&mut self, bytes: u64) {
        self.packet_bytes = bytes;
    }

    /// Records stream bytes that were passed to the stack.
    pub(super) fn on_written(&mut self, bytes: u64) {
        self.backlog.on_written(bytes, self.packet_bytes);
    }

    /// Most bytes of datagrams that should wait in the stack.
    pub(super) fn waiting_datagram_bytes(&self) -> usize {
        send_backlog::waiting_datagram_bytes(self.limits.rate_bytes_per_sec())
    }

    /// Returns whether more data should be passed to the stack now.
    pub(super) fn has_room(&self) -> bool {
        self.backlog.has_room(self.limits.rate_bytes_per_sec())
    }

    /// Size of the stack's send buffer, bytes: twice the window, because a lost packet blocks the data after
    /// it.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.limits.window_bytes() * 2 + (1 << 20)
    }

    fn tell(&mut self, now: Duration, event: Option<PacketEvent>) {
        if let Some(event) = event {
            self.controller.on(now, &event);
        }
        let before = self.limits.rate_bytes_per_sec();
        self.limits = self.allowed();
        if self.limits.rate_bytes_per_sec() > 2.0 * before {
            self.pacer.reset(now);
        }
        self.exchange.quantum_left_bytes = self.exchange.quantum_left_bytes.min(self.limits.quantum_bytes());
    }

    /// Limits of the controller, bounded by the operator's limit and by what the stack can track.
    fn allowed(&self) -> SendLimits {
        let limits = self.controller.limits();
        let window = limits.window_bytes().min(MAX_IN_FLIGHT_BYTES) as f64;
        let (rate, quantum) = (limits.rate_bytes_per_sec(), limits.quantum_bytes() as f64);
        let Some(most) = self.most_bytes_per_sec.filter(|most| *most <= rate) else {
            return SendLimits::new(self.packet_bytes, rate, window, quantum);
        };
        let quantum = quantum.min((most * 1e-3).max(self.packet_bytes as f64));
        SendLimits::new(self.packet_bytes, most, window, quantum)
    }
}

/// Configuration of a new controller. A controller that searches for its rate gets the operator's limit:
/// otherwise it would search beyond the limit, and take it for a path of unlimited capacity. A fixed rate is
/// not set here; it has to be requested.
fn config(choice: Choice, packet_bytes: u64, most_bytes_per_sec: Option<f64>) -> Config {
    let rate_bytes_per_sec = most_bytes_per_sec.filter(|_| choice.name() != "rate");
    Config { rate_bytes_per_sec, ..Config::new(packet_bytes) }
}

/// Returns whether a path with the minimum round trip `least` can be the one with the round trip `measured`.
fn is_same_path(least: Duration, measured: Duration) -> bool {
    measured >= least - least / 4 && measured <= least * 3 / 2 + HANDSHAKE_MARGIN
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    use super::*;

    const PACKET: u64 = 1472;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Creates a controller that delays packets.
    fn pace(choice: &str, most_bytes_per_sec: Option<f64>) -> PacedController {
        let mut pace = PacedController::new(choice.parse().unwrap(), PACKET, most_bytes_per_sec).unwrap();
        pace.begin(Duration::ZERO, Duration::from_millis(150)).unwrap();
        pace.sender = Some(Waker::noop().clone());
        pace
    }

    /// Creates a controller at its limit; returns it with the current time.
    fn full() -> (PacedController, Duration) {
        let mut pace = pace("rate=100Mb/s", None);
        let mut now = Duration::ZERO;
        let until_full = (0..100_000).find(|_| {
            let answer = pace.ask(now);
            match answer {
                SendPermission::Yes => pace.on_sent(now, PACKET),
                SendPermission::At(at) => now = at,
                SendPermission::Full => {}
            }
            answer == SendPermission::Full
        });
        assert!(until_full.is_some(), "nothing was acknowledged, so the window is full at some time");
        (pace, now)
    }

    #[test]
    fn one_packet_is_permitted_after_a_silence_to_detect_losses() {
        let (mut pace, now) = full();
        pace.on_acks_end(now, now, pace.in_flight_bytes(), false);
        let later = now + Duration::from_secs(5);
        assert_eq!(pace.ask(later), SendPermission::Full);
        for (heard_at, answer) in [
            (later, SendPermission::Yes),
            (later + Duration::from_millis(100), SendPermission::Full),
            (later * 2, SendPermission::Yes),
        ] {
            pace.on_heard(heard_at);
            assert_eq!(pace.ask(heard_at), answer);
            if answer == SendPermission::Yes {
                pace.on_sent(heard_at, PACKET);
                assert_eq!(pace.ask(heard_at), SendPermission::Full, "one packet only");
            }
        }
    }

    #[test]
    fn packets_in_flight_on_an_old_path_do_not_block_sending() {
        let (mut pace, now) = full();
        pace.on_new_path();
        // Waits for its time, but not for an acknowledgement.
        assert_ne!(pace.ask(now), SendPermission::Full);
    }

    /// Sends until `secs` like the stack, on a path of 150 ms that acknowledges everything, waking up `late`.
    /// Returns the bytes of each release with its time.
    fn send(pace: &mut PacedController, secs: f64, late: Duration) -> Vec<(Duration, u64)> {
        send_from(pace, Duration::ZERO, secs, late)
    }

    fn send_from(
        pace: &mut PacedController,
        mut now: Duration,
        secs: f64,
        late: Duration,
    ) -> Vec<(Duration, u64)> {
        let mut out = Vec::new();
        let mut acked = 0;
        while now.as_secs_f64() < secs {
            while let Some(&(at, bytes)) = out.get(acked)
                && at + Duration::from_millis(150) <= now
            {
                pace.on_ack(at, bytes);
                pace.on_acks_end(now, now, pace.in_flight_bytes() - bytes, false);
                acked += 1;
            }
            let mut bytes = 0;
            let answer = loop {
                if bytes == MOST_PACKETS_PER_BATCH * PACKET {
                    break SendPermission::Yes;
                }
                // The stack asks for room, and once more for its own pacer.
                let answer = pace.ask(now);
                if answer != SendPermission::Yes {
                    break answer;
                }
                pace.ask(now);
                bytes += PACKET;
            };
            if bytes > 0 {
                pace.on_sent(now, bytes);
                out.push((now, bytes));
                continue;
            }
            now = match answer {
                SendPermission::At(at) => at + late,
                _ => now + Duration::from_millis(1),
            };
        }
        out
    }

    #[test]
    fn bytes_leave_at_the_rate_that_was_asked_for() {
        for (rate, choice) in [(2.5e6, "rate=20Mb/s"), (50e6, "rate=400Mb/s"), (250e6, "rate=2Gb/s")] {
            for late in [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(4)] {
                let sent: u64 = send(&mut pace(choice, None), 3.0, late).iter().map(|(_, bytes)| bytes).sum();
                let found = sent as f64 / 3.0;
                assert!((found / rate - 1.0).abs() < 0.01, "{choice}, {late:?} late: {found}");
            }
        }
    }

    #[test]
    fn a_release_is_a_millisecond_or_ten_packets() {
        for (choice, packets) in [("rate=2Mb/s", 1), ("rate=60Mb/s", 5), ("rate=1Gb/s", 10)] {
            let releases = send(&mut pace(choice, None), 1.0, Duration::ZERO);
            let largest = releases.iter().map(|(_, bytes)| bytes / PACKET).max().unwrap();
            assert_eq!(largest, packets, "{choice}");
        }
    }

    #[test]
    fn a_remembered_path_is_filled_from_the_first_round_trip_and_another_one_is_not() {
        let rtt = Duration::from_millis(150);
        let known = RememberedPath { rate_bytes_per_sec: 50e6, capacity_bytes_per_sec: 50e6, rtt };
        for (now_rtt, is_filled) in
            [(rtt, true), (rtt + HANDSHAKE_MARGIN, true), (rtt / 5, false), (rtt * 2, false)]
        {
            let mut pace = pace("auto", None);
            pace.begin(Duration::ZERO, now_rtt).unwrap();
            pace.remember(Duration::ZERO, known);
            let sent: u64 = send(&mut pace, 0.14, Duration::ZERO).iter().map(|(_, bytes)| bytes).sum();
            assert_eq!(sent as f64 > 0.8 * 50e6 * 0.14, is_filled, "{now_rtt:?}: {sent}");
        }
    }

    #[test]
    fn a_path_that_is_remembered_before_the_handshake_is_over_is_filled_at_once_and_then_proven() {
        let rtt = Duration::from_millis(150);
        let known = RememberedPath { rate_bytes_per_sec: 50e6, capacity_bytes_per_sec: 50e6, rtt };
        for (now_rtt, is_filled) in [(rtt, true), (rtt / 5, false), (rtt * 2, false)] {
            let mut pace = pace("auto", None);
            pace.remember(Duration::ZERO, known);
            let sent: u64 = send(&mut pace, 0.1, Duration::ZERO).iter().map(|(_, bytes)| bytes).sum();
            assert!(sent as f64 > 0.8 * 50e6 * 0.1, "{sent}");
            pace.begin(Duration::from_millis(100), now_rtt).unwrap();
            let rate = pace.limits().rate_bytes_per_sec();
            assert_eq!(rate > 0.8 * 50e6, is_filled, "{now_rtt:?}: {rate}");
        }
    }

    /// A train of packets is what `auto` reads the capacity from; the stack cuts it into batches of ten.
    #[test]
    fn a_train_is_told_as_one() {
        let mut pace = pace("auto", None);
        let first = pace.limits().quantum_bytes();
        assert!(first > MOST_PACKETS_PER_BATCH * PACKET, "{first}");
        let releases = send(&mut pace, 0.001, Duration::ZERO);
        assert!(releases.len() >= 3 && pace.limits().quantum_bytes() < first, "{releases:?}");
        let told: Vec<_> = pace.sent_packets.told().collect();
        assert!(told.windows(2).all(|pair| pair[0] == pair[1]), "{told:?}");
    }

    #[test]
    fn the_operators_limit_holds_for_every_controller() {
        for choice in ["auto", "rate=1Gb/s", "cubic", "bbr"] {
            let sent: u64 =
                send(&mut pace(choice, Some(5e6)), 4.0, Duration::ZERO).iter().map(|(_, b)| b).sum();
            assert!(sent as f64 <= 4.0 * 5e6 * 1.01 + 50e3, "{choice}: {sent}");
        }
    }

    #[test]
    fn bytes_in_flight_are_capped_and_one_packet_is_always_permitted() {
        let mut pace = pace("rate=100Mb/s", None);
        let cap = pace.limits().window_bytes();
        let mut now = Duration::ZERO;
        while pace.in_flight_bytes() + PACKET <= cap {
            assert_ne!(pace.ask(now), SendPermission::Full);
            pace.on_sent(now, PACKET);
            now += Duration::from_millis(5);
        }
        assert_eq!(pace.ask(now), SendPermission::Full);
        pace.on_loss(now, Duration::ZERO, cap, true);
        assert_eq!(pace.ask(now), SendPermission::Yes);
    }

    #[test]
    fn bytes_in_flight_are_capped_for_any_window() {
        for most in [None, Some(1e9)] {
            let pace = pace("rate=10000Gb/s", most);
            assert_eq!(pace.limits().window_bytes(), MAX_IN_FLIGHT_BYTES, "{most:?}");
        }
    }

    #[test]
    fn acknowledgements_are_neither_held_back_nor_counted() {
        let mut pace = pace("rate=1Mb/s", None);
        // The stack did not ask for these.
        (0..1_000).for_each(|n| pace.on_sent(Duration::from_micros(n), 60));
        assert_eq!(pace.in_flight_bytes(), 0);
        assert_eq!(pace.ask(Duration::from_millis(1)), SendPermission::Yes);
    }

    #[test]
    fn a_writer_is_told_when_little_is_left_to_send() {
        let (mut pace, count) = (pace("rate=100Mb/s", None), Arc::new(Count::default()));
        pace.on_written(1_000_000);
        assert!(!pace.has_room());
        pace.backlog.writer = Some(Arc::clone(&count).into());
        send(&mut pace, 0.05, Duration::ZERO);
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        send_from(&mut pace, Duration::from_millis(50), 0.1, Duration::ZERO);
        assert!(pace.has_room() && count.0.load(Ordering::Relaxed) == 1);
        // An idle stack corrects a wrong account.
        pace.on_written(1_000_000);
        pace.on_acks_end(Duration::from_secs(1), Duration::from_secs(1), 0, true);
        assert!(pace.has_room());
    }

    #[test]
    fn controllers_without_their_signals_are_refused() {
        for (name, missing) in [("udt", "measured by the receiver"), ("tfrc", "had been declared lost")] {
            let refusal =
                PacedController::new(name.parse().unwrap(), PACKET, None).err().unwrap().to_string();
            assert!(refusal.contains(missing), "{refusal}");
        }
        for entry in control::registry::ALL.iter().filter(|e| !["udt", "tfrc"].contains(&e.name)) {
            assert!(
                PacedController::new(entry.name.parse().unwrap(), PACKET, None).is_ok(),
                "{}",
                entry.name
            );
        }
    }
}
