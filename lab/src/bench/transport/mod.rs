//! Messages over a given link with each controller, beside other programs on it in the same run. The link is
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
mod groups;
mod limits;
mod links;
mod lossy;
mod messages;
mod sharing;
mod soak;
mod stock;
mod warm;

use std::io::Write;
use std::path::Path;

use array::Result;

use super::options::Options;
use super::report::BenchReport;
use super::table::line;
use flows::TransportScene;
use groups::{MOST, SOAK, is_chosen};

pub use groups::GROUPS;
pub use messages::{MessageServerReady, serve};

/// Bytes of a long flow, and how long it is where it only has to work, seconds.
const BYTES: u64 = 2_000_000_000;
const QUICK_SECS: f64 = 2.0;
const QUICK_BYTES: u64 = 50_000_000;

pub(super) async fn run(program: &Path, options: &Options) -> Result<BenchReport> {
    options.check_only(GROUPS)?;
    let mut report = BenchReport::here("transport", options.link.clone());
    if let Some(maker) = &options.make_link {
        let (cases, failures) = links::run(program, options, maker).await?;
        report.cases = cases;
        report.error = (!failures.is_empty()).then(|| failures.join("; "));
        return Ok(report);
    }
    let quick = options.link.rate.map_or(QUICK_BYTES, |rate| flows::rounded(rate * QUICK_SECS));
    let bytes = if options.is_quick { quick.clamp(1, BYTES) } else { BYTES };
    let scene = TransportScene::open(program, options, bytes).await?;
    let mut failures = Vec::new();
    for &group in GROUPS.iter().filter(|group| is_chosen(options, group)) {
        let cases = match group {
            "bulk" => bulk::run(&scene).await,
            "get" => get::run(&scene).await,
            "streams" => bulk::streams(&scene).await,
            "messages" => warm::back_to_back(&scene).await.map(|case| vec![case]),
            "small" => warm::small(&scene).await.map(|case| vec![case]),
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
