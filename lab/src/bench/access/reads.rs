//! Random reads, the whole array split into operations, and one strided hyperslab.

use array::{Result, Selection, Target};

use super::super::options::Options;
use super::ceiling::{Ceiling, Stretch};
use super::contest::{Contest, Measured, SHARE_SOUGHT, aim, least_secs, measure};
use super::field::{ROW_BYTES, check_rows};
use super::ours::{BenchReads, Ours};
use super::peers::{ALL, ReadingPeer, ReadingPeers, Reads};
use super::sealed::Sealed;
use super::{AccessScene, Finished};

const CEILING: &str = "ceiling";
const SEALED: &str = "ceiling over TLS";
/// Into how many operations the whole array is split.
const SPLITS: &[u64] = &[1, 10, 100, 1000, 10_000, 100_000, 500_000];
const QUICK_SPLITS: &[u64] = &[1, 100, 10_000];
/// A link counts as warm after this share of the array was read over it.
const WARMING: u64 = 10;

/// Reads of runs of rows, each run an operation; what all contestants do.
struct ReadPlan<'a> {
    scene: &'a AccessScene,
    /// The first row of each operation.
    firsts: Vec<u64>,
    /// Rows of each operation.
    each: u64,
}

impl ReadPlan<'_> {
    fn rows(&self) -> impl Iterator<Item = u64> {
        self.firsts.iter().flat_map(|&first| first..first + self.each)
    }

    fn bytes(&self) -> u64 {
        self.firsts.len() as u64 * self.each * ROW_BYTES as u64
    }

    fn work(&self) -> Result<(BenchReads, Target)> {
        let boxes = self.firsts.iter().map(|&first| self.scene.field.rows_box(first, self.each));
        BenchReads::new(boxes.collect::<Result<Vec<Selection>>>()?)
    }

    fn stretches(&self) -> Vec<Stretch> {
        let bytes = u32::try_from(self.each * ROW_BYTES as u64).unwrap_or(u32::MAX);
        let stretch = |&first: &u64| Stretch { offset: first * ROW_BYTES as u64, bytes };
        self.firsts.iter().map(stretch).collect()
    }

    async fn connect(&self) -> Result<Ours> {
        Ours::connect(self.scene.served.text("url")?, &self.scene.folder.path().join("client")).await
    }

    /// Ours, over a new connection or over one that has carried data already.
    async fn ours(&self, is_warm: bool) -> Result<Measured> {
        let (work, target) = self.work()?;
        let measured = if is_warm {
            let client = self.connect().await?;
            let (warming, _) = BenchReads::new(vec![self.warming()?])?;
            client.read(warming).await?;
            measure(&self.scene.served, client.read(work)).await?
        } else {
            measure(&self.scene.served, async { self.connect().await?.read(work).await }).await?
        };
        check_rows(&target.into_vec()?, self.rows())?;
        Ok(measured)
    }

    fn warming(&self) -> Result<Selection> {
        self.scene.field.rows_box(0, self.scene.field.rows() / WARMING / 2)
    }

    /// The ceiling's, likewise.
    async fn ceiling(&self, is_warm: bool) -> Result<Measured> {
        let address = self.scene.ceiling_address()?;
        self.asked(is_warm, || Ceiling::connect(address), Ceiling::read).await
    }

    /// The ceiling's over TLS, over a connection that has carried data already.
    async fn sealed(&self) -> Result<Measured> {
        let (address, fingerprint) = self.scene.sealed_address()?;
        self.asked(true, || Sealed::connect(address, fingerprint), Sealed::read).await
    }

    /// All stretches in one go, over a new connection or over one that has carried data already.
    async fn asked<C>(
        &self,
        is_warm: bool,
        connect: impl Fn() -> Result<C>,
        read: impl Fn(&C, &[Stretch], &mut [u8]) -> Result<()>,
    ) -> Result<Measured> {
        let stretches = self.stretches();
        let mut into = vec![1; usize::try_from(self.bytes()).unwrap_or(usize::MAX)];
        let measured = if is_warm {
            let client = connect()?;
            let bytes = self.warming()?.len().unwrap_or(0);
            let warming = Stretch { offset: 0, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) };
            read(&client, &[warming], &mut into[..warming.bytes as usize])?;
            measure(&self.scene.ceiling, async { read(&client, &stretches, &mut into) }).await?
        } else {
            measure(&self.scene.ceiling, async { read(&connect()?, &stretches, &mut into) }).await?
        };
        check_rows(&into, self.rows())?;
        Ok(measured)
    }
}

/// Every row once, in random order, each an operation of its own.
pub(super) async fn random(
    scene: &AccessScene,
    options: &Options,
    peers: &mut ReadingPeers<'_>,
    finished: &mut Finished,
) -> Result<()> {
    let plan = ReadPlan { scene, firsts: scene.field.shuffled_rows(), each: 1 };
    let name = format!("{} random reads of {ROW_BYTES} bytes", plan.firsts.len());
    let mut contest = Contest::new(&name, plan.bytes()).with("operations", plan.firsts.len());
    for run in 0..scene.runs {
        contest.ours.push(plan.ours(true).await?);
        contest.add(CEILING, Ok(plan.ceiling(true).await?));
        contest.add(SEALED, Ok(plan.sealed().await?));
        compete(&mut contest, options, peers, &Reads::Rows(&plan.firsts), run).await;
    }
    let ceiling = contest.peer_secs(CEILING);
    let goal = match least_secs(&options.link, plan.bytes() as f64) {
        // At a given rate nobody can be twice as fast as a peer that fills the link.
        Some(_) => ceiling.map(|secs| secs / SHARE_SOUGHT),
        None => contest.peer_secs("xrootd").zip(ceiling).map(|(peer, least)| (peer / 2.0).min(least * 1.3)),
    };
    finished.add(aim(contest.time(&options.link), goal));
    finished.add_all(contest.costs());
    Ok(())
}

/// The whole array in order, as more and more operations.
pub(super) async fn split(scene: &AccessScene, options: &Options, finished: &mut Finished) -> Result<()> {
    for &operations in if options.is_quick { QUICK_SPLITS } else { SPLITS } {
        let each = scene.field.rows() / operations;
        let firsts = (0..operations).map(|i| i * each).collect();
        let plan = ReadPlan { scene, firsts, each };
        for (is_warm, state) in [(true, "warm"), (false, "cold")] {
            let name = format!("the array as {operations} operations, {state}");
            let mut contest =
                Contest::new(&name, plan.bytes()).with("operations", operations).with("state", state);
            for _ in 0..scene.runs {
                contest.ours.push(plan.ours(is_warm).await?);
                contest.add(CEILING, Ok(plan.ceiling(is_warm).await?));
            }
            let least = least_secs(&options.link, plan.bytes() as f64);
            let goal = match options.link.rtt {
                Some(round_trip) if !is_warm => contest.peer_secs(CEILING).map(|secs| secs + round_trip),
                Some(_) => least.map(|secs| secs / SHARE_SOUGHT),
                None => None,
            };
            let case = contest.time(&options.link);
            finished.add(match goal {
                Some(goal) => case.aiming(goal),
                None => case,
            });
            // Of less data they are fewer than a clock's tick.
            if !options.is_quick {
                finished.add_all(contest.costs());
            }
        }
    }
    Ok(())
}

/// One selection of very many runs, as one operation: over a new connection, where TCP's start is most of the time, and over
/// one that has carried data already, as the peers' soon have.
pub(super) async fn hyperslab(
    scene: &AccessScene,
    options: &Options,
    peers: &mut ReadingPeers<'_>,
    finished: &mut Finished,
) -> Result<()> {
    let slab = scene.field.hyperslab()?;
    let expected = scene.field.expected(&slab.selection);
    let bytes = expected.len() as u64;
    let name = format!("one strided hyperslab of {} runs", slab.runs);
    let new = |name: &str| Contest::new(name, bytes).with("operations", 1).with("runs", slab.runs);
    let (mut contest, mut warm) = (new(&name), new(&format!("{name}, warm")));
    let plan = ReadPlan { scene, firsts: Vec::new(), each: 0 };
    for run in 0..scene.runs {
        let client = plan.connect().await?;
        for is_warm in [false, true] {
            if is_warm {
                client.read(BenchReads::new(vec![plan.warming()?])?.0).await?;
            }
            let (work, target) = BenchReads::new(vec![slab.selection.clone()])?;
            let measured = measure(&scene.served, client.read(work)).await?;
            if is_warm { &mut warm } else { &mut contest }.ours.push(measured);
            if target.into_vec()? != expected {
                return Err(array::Error::corrupt("the hyperslab has other bytes than expected"));
            }
        }
        compete(&mut contest, options, peers, &Reads::Hyperslab(&slab.selection), run).await;
    }
    let (tensorstore, h5py) = (contest.peer_secs("tensorstore"), contest.peer_secs("h5py"));
    let goal = tensorstore.zip(h5py).map(|(a, b)| (a / 200.0).min(b / 5000.0));
    finished.add(aim(contest.time(&options.link), goal));
    finished.add_all(contest.costs());
    finished.add(aim(warm.time(&options.link), goal));
    Ok(())
}

/// Has every chosen peer do the same; those that are slow by far in the first run only.
async fn compete(
    contest: &mut Contest,
    options: &Options,
    peers: &mut ReadingPeers<'_>,
    reads: &Reads<'_>,
    run: usize,
) {
    let takes_part = |peer: &&ReadingPeer| options.wants_peer(peer.name) && (run == 0 || peer.is_repeated);
    for peer in ALL.iter().filter(takes_part) {
        let outcome = peers.run(*peer, reads).await;
        if let Ok(outcome) = &outcome {
            contest.parameters.insert(format!("{} tuning", peer.name), outcome.tuning.clone().into());
            if let Some(done) = outcome.sampled {
                contest.parameters.insert(format!("{} sampled operations", peer.name), done.into());
            }
        }
        contest.add(peer.name, outcome.map(|o| o.measured).map_err(|e| e.to_string()));
    }
}
