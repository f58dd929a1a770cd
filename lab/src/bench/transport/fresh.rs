//! A message on a connection that is made for it, where the path is remembered from an earlier one: with the handshake first,
//! and asked for in the first packets. The clock runs from before the connection until the last byte is there.

use std::sync::Arc;

use array::{Error, Result};
use link::RememberedPath;
use link::quic::Start;
use tokio::time::Duration;

use super::super::report::{Better, Case};
use super::super::wall_clock;
use super::flows::TransportScene;
use super::limits::goodput;
use super::messages::{MAX_MESSAGE_BYTES, MessageClient, MessageTransport};
use super::warm::MESSAGE_BYTES;

/// Runs of each, where it was not said how many.
const RUNS: usize = 5;
/// Duration of the use of a connection, and of the measurement after it.
const SETTLE: Duration = Duration::from_secs(4);
const LOOK: Duration = Duration::from_secs(3);
/// Times the least that physics allows, with the handshake first and without waiting for it.
const GOALS: (f64, f64) = (1.15, 1.1);
/// Round trips until the first byte: the handshake's, where it is waited for, and that of the question.
const ROUND_TRIPS: (f64, f64) = (2.0, 1.0);

pub(super) async fn run(scene: &TransportScene<'_>) -> Result<Vec<Case>> {
    let known = remembered(scene).await?;
    let (mut proven, mut at_once) = (Vec::new(), Vec::new());
    for _ in 0..scene.options.runs.unwrap_or(RUNS) {
        proven.push(once(scene, Start::Proven, known).await?);
        at_once.push(once(scene, Start::AtOnce, known).await?);
    }
    let of = |what: &str, times, round_trips: f64, goal: f64| {
        let name = format!("20 MB on a fresh connection whose path is remembered, {what}");
        let case = Case::measured(&name, "s", Better::Lower, times).with("bytes", MESSAGE_BYTES);
        let case = case.with("remembered_bytes_per_sec", known.rate_bytes_per_sec);
        match (scene.options.link.rtt, goodput(&scene.options.link)) {
            (Some(rtt), Some(goodput)) => {
                let least = round_trips * rtt + MESSAGE_BYTES as f64 / goodput;
                let why = format!("{round_trips} round trips, and the bytes at the link's goodput");
                case.limited(least, &why).aiming(goal * least)
            }
            _ => case,
        }
    };
    Ok(vec![
        of("after the handshake", proven, ROUND_TRIPS.0, GOALS.0),
        of("asked for in the first packets", at_once, ROUND_TRIPS.1, GOALS.1),
    ])
}

/// Measures the path with a connection that is used for a while; the server is known to this client afterwards.
async fn remembered(scene: &TransportScene<'_>) -> Result<RememberedPath> {
    let client = MessageClient::connect(
        &scene.ready,
        MessageTransport::Quic(link::Choice::default()),
        scene.window_bytes(),
    )
    .await?;
    let receiving = client.receive(u64::MAX, MAX_MESSAGE_BYTES, Arc::default()).await?;
    tokio::time::sleep(SETTLE).await;
    let before = client.sent().await?;
    tokio::time::sleep(LOOK).await;
    let after = client.sent().await?;
    drop(receiving);
    let none = || Error::internal("expected a connection that knows its round trip, found none");
    let rtt = client.flow().and_then(|flow| flow.statistics().least_rtt).ok_or_else(none)?;
    let rate = (after.bytes - before.bytes) as f64 / (after.at_secs - before.at_secs).max(1e-9);
    Ok(RememberedPath { rate_bytes_per_sec: rate, capacity_bytes_per_sec: rate, rtt })
}

/// Seconds of one message on a connection of its own.
async fn once(scene: &TransportScene<'_>, start: Start, known: RememberedPath) -> Result<f64> {
    let message = async {
        let way = MessageTransport::Quic(link::Choice::default());
        let client =
            MessageClient::begin(&scene.ready, way, scene.window_bytes(), start, Some(known)).await?;
        let is_early = client.flow().is_some_and(|flow| !flow.is_proven());
        if start == Start::AtOnce && !is_early {
            return Err(Error::internal(
                "expected a server that is asked at once, found that it was not known",
            ));
        }
        client.receive(1, MESSAGE_BYTES, Arc::default()).await?.await
    };
    wall_clock::seconds(message).await
}
