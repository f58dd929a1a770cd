//! Half an hour of one flow on a path that changes: rates, round trips, single losses and bursts, outages, and the client's
//! address. Every byte is compared, the flow may not stall for long, and memory may not grow.
//!
//! Runs within the command of `corridor lab up`, whose link it changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use bytes::Bytes;
use link::ReadSink;
use tokio::process::Command;
use tokio::time::{interval, timeout};

use crate::emulate::{self, Change};

use super::super::process::resident_bytes;
use super::super::report::{Better, Case, median};
use super::super::wall_clock;
use super::flows::TransportScene;
use super::limits::DATA_SHARE;
use super::messages::{MessageClient, MessageTransport, message};

const MESSAGE_BYTES: u64 = 8 << 20;
/// Rounds of the program below, their duration, and both for a quick run.
const ROUNDS: u32 = 30;
const ROUND: Duration = Duration::from_secs(60);
const QUICK_ROUNDS: u32 = 2;
const QUICK_ROUND: Duration = Duration::from_secs(20);
/// One round: shares of it, what the link is then, as a share of its rate, and the share of packets that is not lost.
const STEPS: &[(f64, SoakStep)] = &[
    (0.20, SoakStep::Link { rate: 1.0, loss: "0%", passes: 1.0, rtts: 1 }),
    (0.15, SoakStep::Link { rate: 0.3, loss: "0%", passes: 1.0, rtts: 1 }),
    // Bursts of five packets on average.
    (0.15, SoakStep::Link { rate: 1.0, loss: "0.2%:20%", passes: 0.99, rtts: 1 }),
    (0.10, SoakStep::Link { rate: 1.0, loss: "3%", passes: 0.97, rtts: 1 }),
    (0.15, SoakStep::Link { rate: 0.6, loss: "0%", passes: 1.0, rtts: 2 }),
    (0.05, SoakStep::Link { rate: 1.0, loss: "0%", passes: 1.0, rtts: 1 }),
    (1.0 / 12.0, SoakStep::Outage),
    (0.10, SoakStep::Link { rate: 1.0, loss: "0%", passes: 1.0, rtts: 1 }),
    (0.0, SoakStep::Address),
    (1.0 / 60.0, SoakStep::Link { rate: 1.0, loss: "0%", passes: 1.0, rtts: 1 }),
];
/// Interval of the observations.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Observations between two measurements of the memory.
const MEMORY_EVERY: u32 = 20;
/// Time without any data after which a flow counts as hung.
const HANGS_AFTER: Duration = Duration::from_secs(30);
/// Share of the link's capacity that is to arrive, and the longest silence apart from outages, seconds.
const SPEED_GOAL: f64 = 0.9;
const SILENCE_GOAL: f64 = 1.0;
/// Memory at the end, beside that after the first third.
const GROWTH_GOAL: f64 = 1.05;
/// Addresses of this side, in turn: the last of the four numbers.
const ADDRESSES: std::ops::Range<u8> = 2..200;

#[derive(Clone, Copy, Debug)]
enum SoakStep {
    Link { rate: f64, loss: &'static str, passes: f64, rtts: u32 },
    Outage,
    Address,
}

/// Bytes that have arrived, and the number of wrong ones.
#[derive(Default)]
struct ComparedBytes {
    bytes: AtomicU64,
    wrong: AtomicU64,
}

struct Comparing {
    expected: Bytes,
    seen: Arc<ComparedBytes>,
}

impl ReadSink for Comparing {
    fn item(&mut self, _: u32, _: Bytes, _: u64) -> Result<()> {
        Ok(())
    }

    fn takes_any_order(&self) -> bool {
        true
    }

    fn piece(&mut self, _: u32, offset: u64, bytes: &[u8], _: bool) -> Result<()> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let expected = from.checked_add(bytes.len()).and_then(|to| self.expected.get(from..to));
        if expected != Some(bytes) {
            self.seen.wrong.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
        self.seen.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Observations during the run.
#[derive(Default)]
struct SoakWatch {
    /// Bytes at the last observation, and the time since more arrived.
    before: u64,
    silence: Duration,
    longest_silence: Duration,
    /// Memory of this side and of the sender's, bytes.
    memory: Vec<(f64, f64)>,
}

/// Runs the flow on the changing path; returns the cases.
pub(super) async fn run(scene: &TransportScene<'_>) -> Result<Vec<Case>> {
    let place = std::env::var("LAB_B").ok();
    let name = place.as_deref().and_then(|place| place.strip_suffix("-b")).ok_or_else(|| {
        Error::invalid(
            "expected a link of `corridor lab up`, within whose command this runs: it changes the link",
        )
    })?;
    let (rounds, round) = if scene.options.is_quick { (QUICK_ROUNDS, QUICK_ROUND) } else { (ROUNDS, ROUND) };
    let client = MessageClient::connect(
        &scene.ready,
        MessageTransport::Quic(link::Choice::default()),
        scene.window_bytes(),
    )
    .await?;
    let seen = Arc::<ComparedBytes>::default();
    let comparing = Comparing { expected: message(MESSAGE_BYTES), seen: Arc::clone(&seen) };
    let receiving = client.receive_by(u64::MAX, MESSAGE_BYTES, Box::new(comparing)).await?;
    let mut watch = SoakWatch::default();
    let mut carried = 0.0;
    // Of each step, what came of what the link carried then, in all rounds.
    let mut shares = vec![Vec::new(); STEPS.len()];
    let start = wall_clock::now();
    for number in 0..rounds {
        for ((share, step), shares) in STEPS.iter().zip(&mut shares) {
            let during = round.mul_f64(*share);
            let carries = take(scene, name, *step, number).await? * during.as_secs_f64();
            let before = seen.bytes.load(Ordering::Relaxed);
            watch.during(scene, &seen, during, matches!(step, SoakStep::Outage)).await?;
            if carries > 0.0 {
                let came = (seen.bytes.load(Ordering::Relaxed) - before) as f64;
                shares.push((came / carries * 1e3).round() / 1e3);
            }
            carried += carries;
        }
    }
    let secs = start.elapsed().as_secs_f64();
    drop(receiving);
    let bytes = seen.bytes.load(Ordering::Relaxed) as f64;
    let wrong = seen.wrong.load(Ordering::Relaxed) as f64;
    let speed = Case::measured("auto on a path that changes", "B/s", Better::Higher, vec![bytes / secs]);
    let carried = carried / secs;
    let mut cases = vec![
        speed
            .with("secs", secs)
            .with("shares_by_step", shares)
            .limited(carried, "what the link carries, outages and losses taken off")
            .aiming(SPEED_GOAL * carried),
        Case::measured("bytes that are wrong", "B", Better::Lower, vec![wrong]).aiming(0.0),
        Case::measured(
            "longest silence, outages aside",
            "s",
            Better::Lower,
            vec![watch.longest_silence.as_secs_f64()],
        )
        .aiming(SILENCE_GOAL),
    ];
    cases.extend(watch.growth());
    Ok(cases)
}

/// Takes a step; returns the capacity of the link after it, bytes per second.
async fn take(scene: &TransportScene<'_>, name: &str, step: SoakStep, round: u32) -> Result<f64> {
    let full = scene.options.link.rate.unwrap_or_default();
    let rtt = scene.options.link.rtt.unwrap_or_default();
    let (change, carries) = match step {
        SoakStep::Link { rate, loss, passes, rtts } => {
            let change = Change {
                rate: Some(format!("{:.0}bit", full * rate * 8.0)),
                rtt: Some(format!("{}ms", rtt * f64::from(rtts) * 1e3)),
                loss: Some(loss.to_owned()),
                ..Change::default()
            };
            (change, full * rate * passes * DATA_SHARE)
        }
        SoakStep::Outage => (Change { loss: Some("100%".to_owned()), ..Change::default() }, 0.0),
        SoakStep::Address => return move_from(round).await.map(|()| 0.0),
    };
    let name = name.to_owned();
    let changing = tokio::task::spawn_blocking(move || emulate::change(&name, &change));
    changing.await.map_err(|e| Error::internal(format!("changing the link: {e}")))??;
    Ok(carries)
}

/// Gives this side its next address instead of its last one, as a network does to who moves within it.
async fn move_from(round: u32) -> Result<()> {
    let nth = |round: u32| {
        ADDRESSES.start + u8::try_from(round % u32::from(ADDRESSES.end - ADDRESSES.start)).unwrap_or(0)
    };
    // The next address would go with the last one, which it is in one network with.
    let setting = format!("/proc/sys/net/ipv4/conf/{}/promote_secondaries", emulate::DEVICE);
    tokio::fs::write(setting, "1").await?;
    for (verb, host) in [("add", nth(round + 1)), ("del", nth(round))] {
        let address = format!("{}/24", emulate::address(host));
        let done = Command::new("ip").args(["addr", verb, &address, "dev", emulate::DEVICE]).status().await?;
        if !done.success() {
            return Err(Error::internal(format!("`ip addr {verb} {address}` ended with {done}")));
        }
    }
    Ok(())
}

impl SoakWatch {
    async fn during(
        &mut self,
        scene: &TransportScene<'_>,
        seen: &ComparedBytes,
        during: Duration,
        is_outage: bool,
    ) -> Result<()> {
        let mut looks = interval(LOOK_EVERY);
        let mut count = 0;
        let looking = async {
            loop {
                looks.tick().await;
                let now = seen.bytes.load(Ordering::Relaxed);
                self.silence =
                    if now > self.before || is_outage { Duration::ZERO } else { self.silence + LOOK_EVERY };
                self.before = now;
                self.longest_silence = self.longest_silence.max(self.silence);
                if self.silence > HANGS_AFTER {
                    return Error::new(
                        ErrorKind::TimedOut,
                        format!("nothing came for {HANGS_AFTER:?}: it hangs"),
                    );
                }
                if count % MEMORY_EVERY == 0 {
                    self.memory.extend(resident_bytes(std::process::id()).zip(scene.server_bytes()));
                }
                count += 1;
            }
        };
        match timeout(during, looking).await {
            Ok(hangs) => Err(hangs),
            Err(_) => Ok(()),
        }
    }

    /// Memory in the last sixth beside that in the sixth after the first third.
    fn growth(&self) -> Vec<Case> {
        let sixth = self.memory.len() / 6;
        let case = |side: &str, of: fn(&(f64, f64)) -> f64| {
            let middle = |from: usize| {
                median(&mut self.memory.iter().skip(from).take(sixth).map(of).collect::<Vec<_>>())
            };
            let (then, end) = (middle(2 * sixth), middle(5 * sixth));
            let growth = then.zip(end).map(|(then, end)| end / then);
            let name = format!("memory of the {side} at the end, beside that after a third");
            let case = Case::measured(&name, "1", Better::Lower, growth.into_iter().collect());
            case.with("bytes", end.unwrap_or_default()).aiming(GROWTH_GOAL)
        };
        vec![case("receiver", |memory| memory.0), case("sender", |memory| memory.1)]
    }
}
