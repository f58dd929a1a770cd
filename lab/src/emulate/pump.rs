//! One direction of a running link: a thread that reads packets from one side's devices, asks the [`LaneState`] for their
//! fate, and writes them to the other side's devices at their arrival times.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use array::{Error, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::delay_line::DelayLine;
use super::lane::{LaneState, PacketFate};
use super::packet::{DevicePacket, MAX_PACKET_BYTES};
use super::spec::{LaneSpec, MAX_LANE_BYTES};
use super::stats::{Live, add};
use super::tun::{Tun, raise_priority};

/// Packets read from a device before the next device is read.
const BATCH: usize = 64;
/// Period of rounds while packets arrive: fewer wake-ups, and segments that arrive together are written together.
const TICK: Duration = Duration::from_micros(100);
/// Most that packets are delivered early, so that they are in time on average.
const EARLY: Duration = Duration::from_micros(50);
/// Longest time between checks whether the thread has to end.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// Lateness from which a packet counts as delayed.
const MUCH_LATER: Duration = Duration::from_millis(1);

/// One direction of a running link.
pub(super) struct Pump {
    pub(super) lane: LaneState,
    /// New properties of the lane that were not applied yet.
    pub(super) change: Arc<Mutex<Option<LaneSpec>>>,
    /// Devices of the side that sends.
    pub(super) from: Vec<Arc<Tun>>,
    /// Devices of the side that receives, by host; the first has the address that ends in `first_host`.
    pub(super) to: Vec<Arc<Tun>>,
    pub(super) first_host: u8,
    pub(super) counters: Arc<Live>,
    pub(super) ends: Arc<AtomicBool>,
}

/// State of the thread of a pump.
struct PumpState {
    pump: Pump,
    line: DelayLine,
    /// Buffer that packets are read into; only as many bytes as a packet has are kept.
    buffer: Box<[u8; MAX_PACKET_BYTES]>,
    arrivals: Vec<(usize, Duration)>,
    start: Instant,
}

impl Pump {
    /// Runs until it is told to end.
    ///
    /// # Errors
    /// Those of a device that no longer exists.
    #[expect(clippy::disallowed_methods, reason = "the edge: real packets in real time")]
    pub(super) fn run(self) -> Result<()> {
        raise_priority();
        let mut work = PumpState {
            pump: self,
            line: DelayLine::default(),
            buffer: Box::new([0; MAX_PACKET_BYTES]),
            arrivals: Vec::new(),
            start: Instant::now(),
        };
        while !work.pump.ends.load(Ordering::Relaxed) {
            work.change();
            let has_taken = work.take()?;
            work.deliver();
            work.wait(has_taken)?;
        }
        Ok(())
    }
}

impl PumpState {
    fn change(&mut self) {
        if let Some(spec) = self.pump.change.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.pump.lane.change(self.start.elapsed(), spec);
        }
    }

    /// Reads packets of the sending side; returns true if there were any.
    fn take(&mut self) -> Result<bool> {
        let mut has_taken = false;
        for device in 0..self.pump.from.len() {
            for _ in 0..BATCH {
                let Some(size) = self.pump.from[device].read(&mut self.buffer)? else { break };
                has_taken = true;
                self.admit(self.buffer[..size].to_vec());
            }
        }
        Ok(has_taken)
    }

    fn admit(&mut self, bytes: Vec<u8>) {
        let counters = &self.pump.counters;
        let has_room = (self.line.bytes() as f64) < MAX_LANE_BYTES;
        let Some(packet) = DevicePacket::parse(bytes).filter(|_| has_room) else {
            return add(&counters.packets_failed, 1);
        };
        let now = self.start.elapsed();
        self.arrivals.clear();
        for segment in 0..packet.segments() {
            let bytes = packet.bytes_of(segment);
            add(&counters.packets_in, 1);
            add(&counters.bytes_in, bytes);
            match self.pump.lane.pass(now, bytes) {
                PacketFate::Dropped => add(&counters.packets_dropped, 1),
                PacketFate::Lost => add(&counters.packets_lost, 1),
                PacketFate::Arrives { at, late } => {
                    add(&counters.packets_late, usize::from(late));
                    self.arrivals.push((segment, at));
                }
            }
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes, never negative")]
        let queued = self.pump.lane.backlog_bytes(now) as u64;
        counters.most_queued_bytes.fetch_max(queued, Ordering::Relaxed);
        self.line.put(packet, &self.arrivals);
    }

    fn deliver(&mut self) {
        let now = self.start.elapsed();
        let pump = &self.pump;
        let out = |packet: &DevicePacket, segments: std::ops::Range<usize>, at: Duration| {
            let host = usize::from(packet.destination_host().saturating_sub(pump.first_host));
            // A single host may have other addresses too.
            let device = if let [only] = &pump.to[..] { Some(only) } else { pump.to.get(host) };
            let taken =
                device.is_some_and(|device| packet.emit(segments.clone(), |parts| device.write(parts)));
            if !taken {
                return add(&pump.counters.packets_failed, segments.len());
            }
            let delayed = now.saturating_sub(at) > MUCH_LATER;
            add(&pump.counters.packets_delayed, if delayed { segments.len() } else { 0 });
            add(&pump.counters.packets_out, segments.len());
            add(&pump.counters.bytes_out, segments.map(|segment| packet.bytes_of(segment)).sum());
        };
        self.line.deliver(now + EARLY, out);
    }

    /// Waits for the next arrival or, if no packet was read just now, for the next packet.
    fn wait(&self, has_taken: bool) -> Result<()> {
        let now = self.start.elapsed();
        let until_next = self.line.next_at().map_or(LONGEST_WAIT, |at| at.saturating_sub(now + EARLY));
        if has_taken {
            std::thread::sleep(until_next.min(TICK));
            return Ok(());
        }
        let timeout =
            until_next.min(LONGEST_WAIT).try_into().map_err(|e| Error::internal(format!("a wait: {e}")))?;
        let mut waits: Vec<PollFd<'_>> = self
            .pump
            .from
            .iter()
            .map(|device| PollFd::from_borrowed_fd(device.as_fd(), PollFlags::IN))
            .collect();
        match poll(&mut waits, Some(&timeout)) {
            Err(error) if error != Errno::INTR => {
                Err(Error::from(std::io::Error::from(error)).context("waiting for packets"))
            }
            _ => Ok(()),
        }
    }
}
