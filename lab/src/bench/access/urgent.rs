//! One small urgent read while very many others are queued, beside what a bare round trip takes under the same load.

use std::sync::Arc;
use std::time::Duration;

use array::{Error, Priority, Result, Target};

use super::super::report::{Better, Case, median};
use super::super::wall_clock;
use super::AccessScene;
use super::ceiling::{Ceiling, Stretch};
use super::contest::aim;
use super::field::check_rows;
use super::ours::{BenchReads, Ours};

/// An urgent read may take so much longer than the bare round trip, seconds.
const SLACK_SECS: f64 = 0.05;
/// Pause between urgent reads; before the first one the load builds up.
const PAUSE: Duration = Duration::from_millis(100);

/// Times urgent reads, and bare ones beside them, until the load is over.
pub(super) async fn run(scene: &AccessScene) -> Result<Case> {
    let client = Ours::connect(scene.served.text("url")?, &scene.folder.path().join("client")).await?;
    let rows = scene.field.shuffled_rows();
    let boxes = rows.iter().map(|&row| scene.field.rows_box(row, 1)).collect::<Result<Vec<_>>>()?;
    let (load, target) = BenchReads::new(boxes)?;
    let mut urgent = Vec::new();
    let mut bare = Vec::new();
    let probing = async {
        let probe = Arc::new(Ceiling::connect(scene.ceiling_address()?)?);
        for row in 0_u64.. {
            tokio::time::sleep(PAUSE).await;
            urgent.push(urgent_secs(scene, &client, row % scene.field.rows()).await?);
            bare.push(bare_secs(Arc::clone(&probe)).await?);
        }
        Ok::<(), Error>(())
    };
    // The load ends, the probing never does.
    tokio::select! {
        result = client.read(load) => result?,
        result = probing => result?,
    }
    check_rows(&target.into_vec()?, rows.iter().copied())?;
    let bare = median(&mut bare);
    let mut case = Case::measured("an urgent read of one row under load", "s", Better::Lower, urgent)
        .with("operations queued", rows.len());
    case.peers.insert("bare round trip under the same load".into(), bare);
    if case.ours.is_none() {
        case.why = "the load was over before the first urgent read".into();
    }
    Ok(aim(case, bare.map(|secs| secs + SLACK_SECS)))
}

async fn urgent_secs(scene: &AccessScene, client: &Ours, row: u64) -> Result<f64> {
    let selection = scene.field.rows_box(row, 1)?;
    let (target, region) = Target::new(&selection.shape(), 1)?;
    let start = wall_clock::now();
    client.one(selection, region, Priority::URGENT).await?;
    let secs = start.elapsed().as_secs_f64();
    check_rows(&target.into_vec()?, [row])?;
    Ok(secs)
}

/// A round trip over a connection of its own on the same link.
async fn bare_secs(probe: Arc<Ceiling>) -> Result<f64> {
    let ask = move || -> Result<f64> {
        let start = wall_clock::now();
        probe.read(&[Stretch { offset: 0, bytes: 1 }], &mut [0])?;
        Ok(start.elapsed().as_secs_f64())
    };
    // It blocks, and the load goes on meanwhile.
    tokio::task::spawn_blocking(ask).await.map_err(|e| Error::internal(e.to_string()))?
}
