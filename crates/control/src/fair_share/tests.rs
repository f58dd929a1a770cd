//! Flows that end at one receiver, in virtual time: senders that probe as TCP does, a last link with a
//! shallow buffer, and the credit that the receiver grants.

#![expect(clippy::cast_possible_truncation, reason = "times of a test are short")]

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::{FairShare, FlowId, FlowReport, LEAST_RATE, MAX_FLOWS, TICKS};

const PACKET: u64 = 1500;
/// Rate of the last link, bytes per millisecond: 100 Mb/s.
const LINK: u64 = 12_500;
/// Round trip without a queue, milliseconds.
const RTT: u64 = 100;
const PRODUCT: u64 = LINK * RTT;
/// Configured rate, bytes per millisecond: 95 % of the link.
const NAMED: u64 = LINK * 95 / 100;
/// Round trips after which senders with early losses have recovered.
const SETTLED: u64 = 150;

enum Told {
    Acked(u64),
    Lost(u64),
    Credit(u64),
}

/// A sender, and the receiver's state for it.
#[derive(Default)]
struct Peer {
    congestion_window: f64,
    has_lost: bool,
    recovers_until: u64,
    in_flight: u64,
    credit: u64,
    /// Bytes that it has to send per millisecond; without a limit if `None`.
    wants: Option<u64>,
    ready: u64,
    /// Credit that was granted and not used, as far as the receiver knows.
    granted: u64,
    window: u64,
    turn: Option<Duration>,
    arrived: u64,
}

struct World {
    now: u64,
    fair_share: FairShare,
    queue: VecDeque<FlowId>,
    tokens: u64,
    peers: BTreeMap<FlowId, Peer>,
    told: BTreeMap<u64, Vec<(FlowId, Told)>>,
    lost: u64,
}

impl World {
    fn new() -> Self {
        Self {
            now: 0,
            fair_share: FairShare::new((NAMED * 1000) as f64),
            queue: VecDeque::new(),
            tokens: 0,
            peers: BTreeMap::new(),
            told: BTreeMap::new(),
            lost: 0,
        }
    }

    /// Creates flows that always have more to send.
    fn of(flows: usize) -> Self {
        let mut world = Self::new();
        (0..flows).for_each(|_| _ = world.join(None));
        world
    }

    fn time(&self) -> Duration {
        Duration::from_millis(self.now)
    }

    fn join(&mut self, wants: Option<u64>) -> FlowId {
        let flow = self.fair_share.join(self.time()).expect("a place");
        let least = self.fair_share.least_window_bytes();
        let report = FlowReport { held_bytes: least, wants: true, ..FlowReport::default() };
        let window = self.fair_share.handle(self.time(), flow, report);
        let congestion_window = 10.0 * PACKET as f64;
        let peer =
            Peer { congestion_window, credit: window, wants, granted: window, window, ..Peer::default() };
        self.peers.insert(flow, peer);
        flow
    }

    fn leave(&mut self, flow: FlowId) {
        self.peers.remove(&flow);
        self.fair_share.leave(flow);
    }

    fn tell(&mut self, after: u64, flow: FlowId, told: Told) {
        self.told.entry(self.now + after).or_default().push((flow, told));
    }

    /// Applies grants half a round trip after they were sent; the data's delay is the other half.
    fn hear(&mut self) {
        for (flow, told) in self.told.remove(&self.now).unwrap_or_default() {
            let Some(peer) = self.peers.get_mut(&flow) else { continue };
            match told {
                Told::Credit(bytes) => peer.credit += bytes,
                Told::Acked(bytes) => {
                    peer.in_flight -= bytes;
                    // The window doubles in a round trip, or grows by a thirtieth, but only while the window
                    // is the limit.
                    let is_used = peer.in_flight as f64 >= peer.congestion_window * 0.7;
                    let growth = if peer.has_lost { 0.03 } else { 1.0 };
                    peer.congestion_window += if is_used { growth * bytes as f64 } else { 0.0 };
                }
                Told::Lost(bytes) => {
                    peer.in_flight -= bytes;
                    peer.credit += bytes;
                    if self.now >= peer.recovers_until {
                        peer.congestion_window = (peer.congestion_window * 0.7).max(2.0 * PACKET as f64);
                        (peer.has_lost, peer.recovers_until) = (true, self.now + RTT);
                    }
                }
            }
        }
    }

    /// Sends from each flow, starting with another one each millisecond.
    fn send(&mut self) {
        let mut flows: Vec<FlowId> = self.peers.keys().copied().collect();
        let first = self.now as usize % flows.len().max(1);
        flows.rotate_left(first);
        let mut lost = Vec::new();
        for flow in flows {
            let Some(peer) = self.peers.get_mut(&flow) else { continue };
            peer.ready = peer.wants.map_or(u64::MAX, |wants| peer.ready + wants);
            let fits = |peer: &Peer| peer.in_flight as f64 <= peer.congestion_window;
            while peer.credit >= PACKET && peer.ready >= PACKET && fits(peer) {
                peer.credit -= PACKET;
                peer.in_flight += PACKET;
                peer.ready -= PACKET;
                // The queue holds a tenth of the product of bandwidth and delay.
                if self.queue.len() as u64 * PACKET >= PRODUCT / 10 {
                    lost.push(flow);
                } else {
                    self.queue.push_back(flow);
                }
            }
        }
        self.lost += lost.len() as u64;
        lost.into_iter().for_each(|flow| self.tell(RTT, flow, Told::Lost(PACKET)));
    }

    fn receive(&mut self) {
        self.tokens = (self.tokens + LINK).min(LINK + PACKET);
        while self.tokens >= PACKET
            && let Some(flow) = self.queue.pop_front()
        {
            self.tokens -= PACKET;
            self.tell(RTT, flow, Told::Acked(PACKET));
            let (now, round_trip) = (self.time(), Some(Duration::from_millis(RTT)));
            let Some(peer) = self.peers.get_mut(&flow) else { continue };
            peer.arrived += PACKET;
            peer.granted -= PACKET;
            let held_bytes =
                peer.granted + if peer.turn.is_some() { self.fair_share.step_bytes() } else { 0 };
            let report = FlowReport { arrived_bytes: PACKET, round_trip, held_bytes, wants: true };
            peer.window = self.fair_share.handle(now, flow, report);
        }
    }

    fn grant(&mut self) {
        let (now, step) = (self.time(), self.fair_share.step_bytes());
        let mut granted = Vec::new();
        for (&flow, peer) in &mut self.peers {
            loop {
                if peer.turn.take_if(|at| *at <= now).is_some() {
                    peer.granted += step;
                    granted.push(flow);
                }
                if peer.turn.is_some() || peer.granted + step > peer.window {
                    break;
                }
                let at = self.fair_share.turn(now);
                peer.turn = Some(at);
            }
        }
        granted.into_iter().for_each(|flow| self.tell(RTT, flow, Told::Credit(step)));
        let busy = self.peers.values().filter(|peer| peer.wants != Some(0));
        let granted = busy.map(|peer| peer.granted).sum::<u64>();
        let most = self.fair_share.most_held_bytes();
        assert!(granted <= most, "at {} ms {granted} of {most} bytes", self.now);
    }

    /// Returns the bytes that arrived from each flow in this number of round trips, as shares of the
    /// configured rate.
    fn run(&mut self, rounds: u64) -> Vec<f64> {
        let before: BTreeMap<FlowId, u64> =
            self.peers.iter().map(|(flow, peer)| (*flow, peer.arrived)).collect();
        for _ in 0..rounds * RTT {
            self.now += 1;
            self.hear();
            self.receive();
            self.grant();
            self.send();
        }
        let brought = |(flow, peer): (&FlowId, &Peer)| peer.arrived - before.get(flow).copied().unwrap_or(0);
        self.peers.iter().map(|peer| brought(peer) as f64 / (NAMED * RTT * rounds) as f64).collect()
    }
}

/// Ratio of the smallest share to the largest.
fn alike(shares: &[f64]) -> f64 {
    let largest = shares.iter().copied().fold(0.0, f64::max);
    shares.iter().copied().fold(largest, f64::min) / largest
}

fn total(shares: &[f64]) -> f64 {
    shares.iter().sum()
}

#[test]
fn flows_that_start_together_take_the_rate_and_have_alike() {
    for flows in 1..=8 {
        let mut world = World::of(flows);
        world.run(SETTLED);
        let lost = world.lost;
        let shares = world.run(40);
        assert!((0.95..=1.01).contains(&total(&shares)) && alike(&shares) >= 0.9, "{flows}: {shares:?}");
        assert_eq!(world.lost, lost, "{flows} flows lose nothing");
    }
}

#[test]
fn totals_never_fall_as_flows_join() {
    let mut world = World::new();
    for flows in 1..=8 {
        world.join(None);
        world.run(20);
        let shares = world.run(20);
        assert!((0.95..=1.01).contains(&total(&shares)) && alike(&shares) >= 0.9, "{flows}: {shares:?}");
    }
}

#[test]
fn unused_share_of_a_flow_goes_to_the_others_within_a_few_round_trips() {
    let mut world = World::of(4);
    let flows: Vec<FlowId> = world.peers.keys().copied().collect();
    world.run(SETTLED);
    world.leave(flows[0]);
    world.run(4);
    let shares = world.run(10);
    assert!(total(&shares) >= 0.95 && alike(&shares) >= 0.9, "{shares:?}");
    // The flow stays open and has nothing more to send.
    world.peers.get_mut(&flows[1]).expect("a peer").wants = Some(0);
    world.peers.get_mut(&flows[1]).expect("a peer").ready = 0;
    world.run(6);
    let shares = world.run(10);
    assert!(total(&shares) >= 0.95 && alike(&shares[1..]) >= 0.9 && shares[0] == 0.0, "{shares:?}");
}

#[test]
fn a_flow_with_little_to_send_gets_all_that_it_asks_for() {
    let mut world = World::of(3);
    world.join(Some(NAMED / 50));
    world.join(Some(NAMED / 10));
    world.run(SETTLED);
    let shares = world.run(40);
    assert!(shares[3] >= 0.0199 && shares[4] >= 0.0995, "{shares:?}");
    assert!(total(&shares) >= 0.95 && alike(&shares[..3]) >= 0.9, "{shares:?}");
}

#[test]
fn turns_are_apart_and_make_up_for_little_that_was_missed() {
    let mut fair_share = FairShare::new(f64::from(16 << 20));
    let (second, step) = (Duration::from_secs(1), fair_share.step_bytes());
    let turns: Vec<Duration> = (0..1024).map(|_| fair_share.turn(second)).collect();
    assert!(turns.windows(2).all(|pair| pair[1] > pair[0]), "one after another");
    let missed = turns.iter().filter(|at| **at <= second).count();
    assert_eq!(missed, 9, "those of eight milliseconds, and one");
    let secs = (turns[1023] - turns[0]).as_secs_f64();
    let rate = (1023 * step) as f64 / secs;
    assert!((rate / f64::from(16 << 20) - 1.0).abs() < 1e-3, "{rate}");
}

#[test]
fn there_is_room_for_so_many_and_whoever_wants_nothing_takes_nothing() {
    let mut fair_share = FairShare::new(f64::NAN);
    assert_eq!(fair_share.rate, LEAST_RATE);
    let flows: Vec<_> = (0..MAX_FLOWS).filter_map(|_| fair_share.join(Duration::ZERO)).collect();
    assert_eq!((flows.len(), fair_share.join(Duration::ZERO)), (MAX_FLOWS, None));
    let wants = FlowReport { wants: true, ..FlowReport::default() };
    fair_share.handle(Duration::ZERO, flows[0], wants);
    assert_eq!(fair_share.level, LEAST_RATE, "all others are idle");
    fair_share.handle(Duration::ZERO, flows[1], wants);
    assert_eq!(fair_share.level, LEAST_RATE / 2.0);
    fair_share.leave(flows[0]);
    assert!(fair_share.join(Duration::ZERO).is_some());
    let mut now = Duration::ZERO;
    for _ in 0..=TICKS {
        now += Duration::from_secs(1);
        fair_share.handle(now, flows[2], FlowReport { arrived_bytes: 1000, ..wants });
    }
    assert_eq!(fair_share.level, LEAST_RATE, "who brought nothing is forgotten");
    assert_eq!(fair_share.handle(now, flows[0], wants), fair_share.least_window_bytes(), "it has left");
}
