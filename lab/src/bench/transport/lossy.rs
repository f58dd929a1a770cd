//! Live data on a link that loses packets: blocks at even times, at a share of the link's rate, by `lossy` with and without
//! parity and by ordered QUIC. Measures when each byte is delivered and how many blocks are complete without
//! retransmission; in the end all are complete and exact, or the case fails.
//!
//! Delays are by the clocks of both sides, less the shortest one: so clocks that differ do no harm, clocks that drift do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use array::{Error, Result};
use bytes::Bytes;
use link::{Choice, ReadSink};
use tokio::time::Duration;

use super::super::report::{Better, Case, median};
use super::flows::{TransportScene, rounded};
use super::messages::{MAX_MESSAGE_BYTES, MessageClient, MessageTransport, Sent, now_micros};

/// Bytes of a block.
const BLOCK_BYTES: u64 = 65_536;
/// Share of the link's rate at which blocks come, and the one that is asked of the controller: room for headers, for
/// parity, and for what is sent again.
const STREAM_SHARE: f64 = 0.6;
const RATE_SHARE: f64 = 0.85;
/// Rate on a link of unknown rate: 100 Mb/s.
const DEFAULT_RATE: f64 = 12.5e6;
/// Duration of a stream of blocks, seconds.
const SECS: f64 = 20.0;
const QUICK_SECS: f64 = 4.0;
/// Delay beyond the propagation time within which a byte is in time.
const USABLE_WITHIN: Duration = Duration::from_millis(10);
const USABLE_GOAL: f64 = 0.99;
const WHOLE_GOAL: f64 = 0.999;
const PARITY_GOAL: f64 = 0.15;
const RATE_GOAL: f64 = 0.02;
/// Duration of the measurement of the rate, after a start of the same duration.
const RATE_SECS: f64 = 3.0;

/// Result of one stream.
struct Streamed {
    /// Share of the bytes that were delivered in time.
    usable: f64,
    /// Lower bound of the share of blocks without retransmission; not for ordered QUIC.
    whole: f64,
    sent: Sent,
}

pub(super) async fn run(scene: &TransportScene<'_>) -> Result<Vec<Case>> {
    let rate = scene.options.link.rate.unwrap_or(DEFAULT_RATE);
    let choice: Choice = format!("rate={:.0}B/s", rate * RATE_SHARE)
        .parse()
        .map_err(|refusal: link::Refusal| Error::internal(refusal.to_string()))?;
    let (mut usable, mut whole, mut parity, mut off) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut ordered, mut repaired) = (Vec::new(), Vec::new());
    for _ in 0..scene.options.runs.unwrap_or(1) {
        let plain = stream(scene, MessageTransport::Lossy { choice, redundancy: false }, rate).await?;
        let redundant = stream(scene, MessageTransport::Lossy { choice, redundancy: true }, rate).await?;
        let by_quic = stream(scene, MessageTransport::Quic(choice), rate).await?;
        usable.push(plain.usable);
        repaired.push(plain.whole);
        whole.push(redundant.whole);
        parity.push(redundant.sent.parity as f64 / redundant.sent.datagrams.max(1) as f64);
        ordered.push(by_quic.usable);
        off.push((sent_rate(scene, choice).await? / (rate * RATE_SHARE) - 1.0).abs());
    }
    let mut cases = vec![
        Case::measured(
            "bytes at their place within the way and 10 ms, lossy",
            "share",
            Better::Higher,
            usable,
        )
        .aiming(USABLE_GOAL),
        Case::measured(
            "blocks of 64 KiB whole without a repair, at least, lossy+fec",
            "share",
            Better::Higher,
            whole,
        )
        .aiming(WHOLE_GOAL),
        Case::measured("parity beside data, lossy+fec", "share", Better::Lower, parity).aiming(PARITY_GOAL),
        Case::measured("off the rate that was asked for, lossy", "share", Better::Lower, off)
            .aiming(RATE_GOAL),
    ];
    cases[0].peers.insert("ordered QUIC".into(), median(&mut ordered));
    cases[1].peers.insert("lossy without parity".into(), median(&mut repaired));
    if let Some(loss) = scene.options.link.loss {
        cases[0].limit = Some(1.0 - loss);
        "what is not lost".clone_into(&mut cases[0].limit_why);
    }
    Ok(cases.into_iter().map(|case| case.with("stream_bytes_per_sec", rate * STREAM_SHARE)).collect())
}

/// Blocks at even times, until the last one is whole.
async fn stream(scene: &TransportScene<'_>, way: MessageTransport, rate: f64) -> Result<Streamed> {
    let client = MessageClient::connect(&scene.ready, way, scene.window_bytes()).await?;
    let secs = if scene.options.is_quick { QUICK_SECS } else { SECS };
    let bytes_per_sec = rate * STREAM_SHARE;
    let count = rounded(secs * bytes_per_sec / BLOCK_BYTES as f64).max(1);
    let every = Duration::from_secs_f64(BLOCK_BYTES as f64 / bytes_per_sec);
    let received = Arc::<Mutex<ReceivedPieces>>::default();
    let timing = Timing { received: Arc::clone(&received), sent: BTreeMap::new() };
    client.stream(count, BLOCK_BYTES, every, Box::new(timing)).await?.await?;
    let sent = client.sent().await?;
    let received = received.lock().unwrap_or_else(PoisonError::into_inner);
    if received.blocks != count {
        return Err(Error::internal(format!("expected {count} whole blocks, found {}", received.blocks)));
    }
    let least = received.pieces.iter().map(|(delay, _)| *delay).min().unwrap_or_default();
    let usable_until = least + i64::try_from(USABLE_WITHIN.as_micros()).unwrap_or(i64::MAX);
    let in_time = received.pieces.iter().filter(|(delay, _)| *delay <= usable_until).map(|(_, bytes)| *bytes);
    Ok(Streamed {
        usable: in_time.sum::<u64>() as f64 / (count * BLOCK_BYTES) as f64,
        whole: 1.0 - (sent.again as f64 / count as f64).min(1.0),
        sent,
    })
}

/// Measures the rate of sending for a while, where `choice` asks for a rate, bytes per second.
async fn sent_rate(scene: &TransportScene<'_>, choice: Choice) -> Result<f64> {
    let way = MessageTransport::Lossy { choice, redundancy: false };
    let client = MessageClient::connect(&scene.ready, way, scene.window_bytes()).await?;
    let receiving = client.receive(u64::MAX, MAX_MESSAGE_BYTES, Arc::default()).await?;
    tokio::time::sleep(Duration::from_secs_f64(RATE_SECS)).await;
    let before = client.sent().await?;
    tokio::time::sleep(Duration::from_secs_f64(RATE_SECS)).await;
    let after = client.sent().await?;
    drop(receiving);
    Ok((after.bytes - before.bytes) as f64 / (after.at_secs - before.at_secs).max(1e-9))
}

/// Pieces and blocks that have arrived.
#[derive(Default)]
struct ReceivedPieces {
    /// Delay of each piece in microseconds, by both clocks, and its bytes.
    pieces: Vec<(i64, u64)>,
    /// Whole blocks.
    blocks: u64,
}

/// Receiver that notes arrival times.
struct Timing {
    received: Arc<Mutex<ReceivedPieces>>,
    /// Time at which each block could be sent, by its number.
    sent: BTreeMap<u32, u64>,
}

impl ReadSink for Timing {
    fn item(&mut self, item: u32, body: Bytes, _: u64) -> Result<()> {
        let sent = body.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        self.sent.insert(item, sent.ok_or_else(|| Error::corrupt("expected a time, found less"))?);
        Ok(())
    }

    fn piece(&mut self, item: u32, _: u64, bytes: &[u8], complete: bool) -> Result<()> {
        let Some(sent) = self.sent.get(&item) else { return Ok(()) };
        let delay = now_micros().cast_signed() - sent.cast_signed();
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        received.pieces.push((delay, bytes.len() as u64));
        received.blocks += u64::from(complete);
        Ok(())
    }

    fn takes_any_order(&self) -> bool {
        true
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
