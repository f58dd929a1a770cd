//! How fast messages cross a given link with each controller, beside what others do on it in the same run. The link is
//! made beforehand (`corridor lab`, or a real one) and both sides are named, this program running on the receiver's; or
//! it is told how links are made, and makes those that it needs ([`links`]).
//!
//! Messages are from memory: no array, no disk. They are encrypted and checked as everything is. The group `get` runs the whole
//! program without options instead, and messages beside it.

mod advice;
mod blind;
mod bulk;
mod evenness;
mod flows;
mod fresh;
mod get;
mod links;
mod lossy;
mod messages;
mod sharing;
mod soak;
mod stock;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use array::Result;

use super::options::Options;
use super::report::{Better, Case, Link, Report};
use super::table::line;
use flows::Scene;
use messages::{Client, Way};

pub use messages::{Ready, serve};

/// Groups of cases, as [`Options::only`] names them; `all` adds every controller to `bulk`. `soak` has to be asked for: it
/// takes half an hour.
pub const GROUPS: &[&str] = &[
    "bulk", "get", "streams", "messages", "small", "fresh", "senders", "clients", "fairness", "evenness",
    "lossy", "advice", MOST, SOAK,
];
/// The group that has to be named, and the one that has a link of its own.
const SOAK: &str = "soak";
const MOST: &str = "most";

/// Bytes of a long flow, and how long it is where it only has to work, seconds.
const BYTES: u64 = 2_000_000_000;
const QUICK_SECS: f64 = 2.0;
const QUICK_BYTES: u64 = 50_000_000;
/// Messages back to back.
const MESSAGE_BYTES: u64 = 20_000_000;
const MESSAGES: u64 = 20;
const MESSAGES_GOAL: f64 = 0.95;
/// A small message, how many of them, and what one may take beyond the round trip, seconds.
const SMALL_BYTES: u64 = 100_000;
const SMALL_MESSAGES: usize = 10;
const SMALL_BEYOND: f64 = 10e-3;
/// Bytes of data in a packet of 1500 bytes: TCP's share, the goodput that physics allows.
const DATA_SHARE: f64 = 1448.0 / 1500.0;

pub(super) async fn run(program: &Path, options: &Options) -> Result<Report> {
    options.check_only(GROUPS)?;
    let mut report = Report::here("transport", options.link.clone());
    if let Some(maker) = &options.make_link {
        let (cases, failures) = links::run(program, options, maker).await?;
        report.cases = cases;
        report.error = (!failures.is_empty()).then(|| failures.join("; "));
        return Ok(report);
    }
    let quick = options.link.rate.map_or(QUICK_BYTES, |rate| flows::rounded(rate * QUICK_SECS));
    let bytes = if options.is_quick { quick.clamp(1, BYTES) } else { BYTES };
    let scene = Scene::open(program, options, bytes).await?;
    let mut failures = Vec::new();
    for &group in GROUPS.iter().filter(|group| is_chosen(options, group)) {
        let cases = match group {
            "bulk" => bulk::run(&scene).await,
            "get" => get::run(&scene).await,
            "streams" => bulk::streams(&scene).await,
            "messages" => back_to_back(&scene).await.map(|case| vec![case]),
            "small" => small(&scene).await.map(|case| vec![case]),
            "fresh" => fresh::run(&scene).await,
            "senders" => sharing::senders(&scene).await,
            "clients" => sharing::clients(&scene).await.map(|case| vec![case]),
            "fairness" => sharing::fairness(&scene).await,
            "lossy" => lossy::run(&scene).await,
            "advice" => advice::run(&scene).await,
            MOST => bulk::most(&scene).await,
            SOAK => soak::run(&scene).await,
            _ => evenness::run(&scene).await,
        };
        match cases {
            Ok(cases) => report.cases.extend(cases.into_iter().inspect(|case| {
                // Somebody who closed it does not want it.
                writeln!(std::io::stderr(), "{}", line(case)).unwrap_or_default();
            })),
            Err(error) => failures.push(format!("{group}: {error}")),
        }
    }
    report.error = (!failures.is_empty()).then(|| failures.join("; "));
    Ok(report)
}

fn is_chosen(options: &Options, group: &str) -> bool {
    let is_named = options.only.iter().any(|name| name == group);
    // A link that was given is limited by what it is, not by the machine.
    is_named || (options.only.is_empty() && group != SOAK && (group != MOST || options.make_link.is_some()))
}

/// Bytes of data per second that the link carries at the most, less those that it loses.
fn goodput(link: &Link) -> Option<f64> {
    link.rate.map(|rate| rate * DATA_SHARE * (1.0 - link.loss.unwrap_or_default()))
}

fn limited(scene: &Scene<'_>, case: Case) -> Case {
    match goodput(&scene.options.link) {
        Some(limit) => {
            case.limited(limit, "the link's rate without headers of packets of 1500 bytes and what is lost")
        }
        None => case,
    }
}

async fn warm(scene: &Scene<'_>) -> Result<Client> {
    let client =
        Client::connect(&scene.ready, Way::Quic(link::Choice::default()), scene.window_bytes()).await?;
    client.receive(1, MESSAGE_BYTES, Arc::default()).await?.await?;
    Ok(client)
}

/// Messages of 20 MB, one after another, on a connection that has carried data before.
async fn back_to_back(scene: &Scene<'_>) -> Result<Case> {
    let client = warm(scene).await?;
    let secs =
        seconds(async { client.receive(MESSAGES, MESSAGE_BYTES, Arc::default()).await?.await }).await?;
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
async fn small(scene: &Scene<'_>) -> Result<Case> {
    let client = warm(scene).await?;
    let mut times = Vec::new();
    for _ in 0..scene.options.runs.unwrap_or(1) * SMALL_MESSAGES {
        times.push(seconds(async { client.receive(1, SMALL_BYTES, Arc::default()).await?.await }).await?);
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

async fn seconds(work: impl Future<Output = Result<()>>) -> Result<f64> {
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    let start = Instant::now();
    work.await?;
    Ok(start.elapsed().as_secs_f64())
}
