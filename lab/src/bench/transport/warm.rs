//! Messages on a connection that has carried data before.

use std::sync::Arc;

use array::Result;

use super::super::report::{Better, Case};
use super::super::wall_clock;
use super::flows::TransportScene;
use super::limits::{goodput, limited};
use super::messages::{MessageClient, MessageTransport};

/// Messages back to back.
pub(super) const MESSAGE_BYTES: u64 = 20_000_000;
const MESSAGES: u64 = 20;
const MESSAGES_GOAL: f64 = 0.95;
/// A small message, how many of them, and what one may take beyond the round trip, seconds.
const SMALL_BYTES: u64 = 100_000;
const SMALL_MESSAGES: usize = 10;
const SMALL_BEYOND: f64 = 10e-3;

async fn warm(scene: &TransportScene<'_>) -> Result<MessageClient> {
    let client = MessageClient::connect(
        &scene.ready,
        MessageTransport::Quic(link::Choice::default()),
        scene.window_bytes(),
    )
    .await?;
    client.receive(1, MESSAGE_BYTES, Arc::default()).await?.await?;
    Ok(client)
}

/// Messages of 20 MB, one after another, on a connection that has carried data before.
pub(super) async fn back_to_back(scene: &TransportScene<'_>) -> Result<Case> {
    let client = warm(scene).await?;
    let secs =
        wall_clock::seconds(async { client.receive(MESSAGES, MESSAGE_BYTES, Arc::default()).await?.await })
            .await?;
    let bytes = (MESSAGES * MESSAGE_BYTES) as f64;
    let case =
        Case::measured("20 messages of 20 MB, auto by QUIC", "B/s", Better::Higher, vec![bytes / secs]);
    let case = limited(scene, case.with("bytes", MESSAGE_BYTES));
    Ok(match goodput(&scene.options.link) {
        Some(goodput) => case.aiming(MESSAGES_GOAL * goodput),
        None => case,
    })
}

/// A small message, asked for on a connection that has carried data before.
pub(super) async fn small(scene: &TransportScene<'_>) -> Result<Case> {
    let client = warm(scene).await?;
    let mut times = Vec::new();
    for _ in 0..scene.options.runs.unwrap_or(1) * SMALL_MESSAGES {
        times.push(
            wall_clock::seconds(async { client.receive(1, SMALL_BYTES, Arc::default()).await?.await })
                .await?,
        );
    }
    let name = "a message of 100 kB on a warm connection, asked for";
    let case = Case::measured(name, "s", Better::Lower, times).with("bytes", SMALL_BYTES);
    Ok(match (scene.options.link.rtt, scene.options.link.rate) {
        (Some(rtt), Some(rate)) => {
            let least = rtt + SMALL_BYTES as f64 / rate;
            case.limited(least, "a round trip, and the bytes at the link's rate").aiming(rtt + SMALL_BEYOND)
        }
        _ => case,
    })
}
