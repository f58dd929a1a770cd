//! Sessions drawn by several ranks on threads: the pictures equal those of one rank, and no rank hangs.

use std::sync::Arc;
use std::time::Duration;

use array::conformance::{MemorySource, one_array};
use array::{Dataset, DatasetId, Error, Result, Source};
use compose::threads;
use render::ImageSize;
use serde_json::json;
use session::{Item, JoinParams, PictureCodec, Role};
use tokio::task::JoinSet;

use super::*;
use crate::{MIN_MEMORY_BYTES, OutgoingItem, Participant, Session, StillRequest, render_still, run_worker};

const SIDE: u64 = 64;
const SIZE: ImageSize = ImageSize { width: 144, height: 112 };
const MEMORY: u64 = 4 * MIN_MEMORY_BYTES;
/// Timeout of waits.
const PATIENCE: Duration = Duration::from_secs(120);

/// Data of a generation: an opaque fog in one half that hides what lies behind it, and a transparent haze in the
/// other half. Only measured work tells them apart.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
fn source_of(generation: u32) -> (Dataset, Arc<dyn Source>) {
    let value = |i: u64| {
        let [x, y, z] = [i % SIDE, i / SIDE % SIDE, i / (SIDE * SIDE)].map(|n| n as f64);
        let wave = 20.0 * (0.3 * x).sin() * (0.2 * y).cos() + 10.0 * (0.25 * z).sin();
        (if x < 32.0 { 200.0 } else { 70.0 } + wave) as u8
    };
    let bytes: Vec<u8> = (0..SIDE.pow(3)).map(value).collect();
    let mut dataset = one_array("|u1".parse().unwrap(), &[SIDE; 3], &[16; 3]);
    // A rewritten file is another data set.
    dataset.id = DatasetId(u128::from(generation) + 1);
    let source = Arc::new(MemorySource::new(dataset.clone(), vec![vec![bytes.into()]]).unwrap());
    (dataset, source)
}

fn source() -> (Dataset, Arc<dyn Source>) {
    source_of(0)
}

/// Session by several ranks, with the tasks of the other ranks.
struct Stage {
    session: Session,
    others: JoinSet<Result<()>>,
}

fn begun(count: usize) -> Stage {
    let (_, source) = source();
    begun_with(count, &source)
}

/// Starts a session whose other ranks read from `theirs`.
fn begun_with(count: usize, theirs: &Arc<dyn Source>) -> Stage {
    let (dataset, source) = source();
    let mut ranks = threads(count).unwrap().into_iter().zip(threads(count).unwrap());
    let both = |(work, cancellations)| RankChannels {
        work: Arc::new(work),
        cancellations: Arc::new(cancellations),
        method: Method::Auto,
    };
    let first = both(ranks.next().unwrap());
    let mut others = JoinSet::new();
    for pair in ranks {
        others.spawn(run_worker(Arc::clone(theirs), MEMORY, both(pair)));
    }
    let none = Arc::new(|_| None);
    let session = Session::begin_with_ranks(Arc::new(dataset), source, MEMORY, None, none, first).unwrap();
    Stage { session, others }
}

impl Stage {
    fn join(&self) -> Viewer {
        let join = JoinParams {
            session: String::new(),
            name: "Ada".into(),
            width: SIZE.width,
            height: SIZE.height,
            resume: String::new(),
        };
        Viewer { participant: self.session.join(&join, Role::Own).unwrap(), view: View::default(), seq: 0 }
    }

    fn launcher(&self) -> Arc<Launcher> {
        self.session.launcher().expect("several ranks")
    }

    /// Ends the session, and with it the other ranks.
    async fn end(self) {
        let Self { session, mut others } = self;
        drop(session);
        while let Some(ended) = tokio::time::timeout(PATIENCE, others.join_next()).await.expect("an end") {
            ended.unwrap().unwrap();
        }
    }
}

struct Viewer {
    participant: Participant,
    view: View,
    seq: u64,
}

impl Viewer {
    fn change(&mut self, fields: &serde_json::Value, moving: bool) {
        // Higher than the numbers that the session assigns.
        self.seq = self.seq.max(99) + 1;
        let note = json!({"kind": "view", "seq": self.seq, "view": fields, "moving": moving});
        self.participant.note(note.to_string().as_bytes());
    }

    /// Turns the camera.
    fn turn(&mut self, angle: f64, moving: bool) {
        self.change(&json!({"camera": camera_of_turn(angle)}), moving);
    }

    async fn take(&mut self) -> OutgoingItem {
        let out =
            tokio::time::timeout(PATIENCE, self.participant.next()).await.expect("an item arrives in time");
        let out = out.expect("an open session");
        match &out.item {
            Item::Frame(info) => {
                let shown = json!({"kind": "shown", "frame": info.id});
                self.participant.note(shown.to_string().as_bytes());
            }
            Item::Joined { view, .. } | Item::View { view, .. } => self.view = view.clone(),
            _ => {}
        }
        out
    }

    /// Receives items until the exact picture of the newest view.
    async fn exact(&mut self) -> OutgoingItem {
        loop {
            let out = self.take().await;
            if let Item::Frame(info) = &out.item
                && info.fidelity.exact
                && info.seq >= self.seq
            {
                return out;
            }
            if let Item::Message { text, .. } = &out.item {
                panic!("{text}");
            }
        }
    }
}

/// Draws a view with one caster; returns the image and its fidelity.
async fn alone(view: &View) -> (render::Image, session::FidelityBadge) {
    let request =
        StillRequest { view: Some(view.clone()), choice: None, size: SIZE, resources: MEMORY.into() };
    let still = render_still(source().1, request, |_, _| {}).await.unwrap();
    (still.image, still.fidelity)
}

fn off(bulk: &[u8], image: &render::Image, background: [u8; 3]) -> u8 {
    let ours = crate::ranks::strips::tests::decoded_png(bulk);
    let theirs = image.to_rgb8(crate::encode::unit(background));
    assert_eq!(ours.len(), theirs.len());
    ours.iter().zip(&theirs).map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_changes_while_pictures_are_under_way_ends_with_the_picture_of_one() {
    for count in [1, 2, 4] {
        let stage = begun(count);
        let mut ada = stage.join();
        ada.exact().await;
        for step in 0..20u32 {
            // Some views rest, so that a full picture is being drawn when the next change arrives.
            ada.turn(0.15 * f64::from(step), step % 3 != 0);
            tokio::time::sleep(Duration::from_millis(u64::from(step % 4) * 15)).await;
        }
        ada.turn(2.5, false);
        let out = ada.exact().await;
        let Item::Frame(info) = &out.item else { panic!("a frame") };
        assert_eq!((info.codec, info.seq), (PictureCodec::Png, ada.seq));
        // The returned view has the fields that the node chose.
        let mut view = ada.view.clone();
        view = view.merged(json!({"camera": camera_of_turn(2.5)}).as_object().unwrap()).unwrap();
        let (image, fidelity) = alone(&view).await;
        assert!(image.rgba.iter().filter(|pixel| pixel[3] > 0.2).count() > 1000, "something is seen");
        let off = off(&out.bulk, &image, view.background);
        assert!(off <= 1, "{count} ranks are off by {off}");
        assert_eq!(
            (info.fidelity.level_shown, info.fidelity.state, info.fidelity.exact),
            (fidelity.level_shown, fidelity.state, fidelity.exact)
        );
        drop(ada);
        stage.end().await;
    }
}

fn camera_of_turn(angle: f64) -> serde_json::Value {
    let (middle, far) = ((SIDE as f64 - 1.0) / 2.0, 2.2 * SIDE as f64);
    let eye = [middle + far * angle.sin(), middle - far * angle.cos(), middle + 20.0];
    json!({"eye": eye, "target": [middle, middle, middle], "up": [0, 0, 1], "projection": {"perspective": {"fov_y_rad": 0.7}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn shares_follow_the_measured_work() {
    let stage = begun(4);
    let mut ada = stage.join();
    let steep = json!({"map": "gray", "range": [0, 255], "opacity": [[40, 0.0], [90, 0.005], [170, 0.4], [255, 0.4]]});
    ada.change(&json!({"transfer": steep}), false);
    ada.exact().await;
    let who = ada.participant.id();
    let first = stage.launcher().tree_of(who).expect("shares");
    for step in 0..8u32 {
        ada.turn(0.02 * f64::from(step), false);
        ada.exact().await;
    }
    let last = stage.launcher().tree_of(who).expect("shares");
    assert_ne!(first, last, "the fog hides blocks whose work was overestimated");
    let uneven = stage.launcher().imbalance_of(who).expect("measured");
    assert!(uneven <= 1.2, "{uneven}");
    drop(ada);
    stage.end().await;
}

/// Checks that a participant is told why another rank cannot draw, and that no rank hangs.
#[tokio::test(flavor = "multi_thread")]
async fn ranks_with_other_data_report_an_error() {
    let stage = begun_with(3, &source_of(5).1);
    let mut ada = stage.join();
    loop {
        if let Item::Message { text, .. } = ada.take().await.item {
            assert!(text.contains("rank 1") && text.contains("the data that rank 0 sees"), "{text}");
            break;
        }
    }
    drop(ada);
    stage.end().await;
}

/// Checks that a view that no rank can draw is refused, and that the next view is drawn.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_cannot_be_drawn_is_refused_and_the_next_one_is_not() {
    let stage = begun(3);
    let mut ada = stage.join();
    ada.exact().await;
    ada.change(&json!({"level": 7}), false);
    loop {
        if let Item::Message { text, .. } = ada.take().await.item {
            assert!(text.contains("level"), "{text}");
            break;
        }
    }
    ada.turn(1.0, false);
    ada.exact().await;
    drop(ada);
    stage.end().await;
}

/// Checks that two participants may leave while pictures are drawn.
#[tokio::test(flavor = "multi_thread")]
async fn participants_may_leave_while_pictures_are_drawn() {
    let stage = begun(3);
    let (mut ada, mut bob) = (stage.join(), stage.join());
    ada.exact().await;
    bob.turn(0.7, false);
    bob.exact().await;
    for step in 0..6u32 {
        ada.turn(f64::from(step), true);
        bob.turn(-f64::from(step), false);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let left = bob.participant.id();
    drop(bob);
    ada.turn(0.3, false);
    ada.exact().await;
    assert!(stage.launcher().tree_of(left).is_none(), "a participant who left has no shares");
    drop(ada);
    stage.end().await;
}

#[tokio::test]
async fn rank_0_leads_and_other_ranks_work() {
    let (dataset, source) = source();
    let pair = || threads(2).unwrap();
    let (mut work, mut cancellations) = (pair(), pair());
    let mut last = || RankChannels {
        work: Arc::new(work.pop().unwrap()),
        cancellations: Arc::new(cancellations.pop().unwrap()),
        method: Method::Auto,
    };
    let (second, first) = (last(), last());
    let refused = |result: Result<()>| result.unwrap_err().to_string();
    let begun = Session::begin_with_ranks(
        Arc::new(dataset),
        Arc::clone(&source),
        MEMORY,
        None,
        Arc::new(|_| None),
        second,
    );
    assert!(refused(begun.map(drop)).contains("rank 0"));
    assert!(refused(run_worker(source, MEMORY, first).await).contains("rank 0"));
}

#[test]
fn missing_blocks_of_several_ranks_are_reported_as_those_of_one() {
    let block_status = |lacking, failed| BlockStatus { wanted: 8, lacking, failed, ..BlockStatus::default() };
    let reason = Error::corrupt("bad");
    let both = BlockStatus { reason: Some(reason.clone()), ..block_status(3, 1) }.and(block_status(5, 0));
    let (lacking, failed_blocks) = both.within(10);
    assert_eq!(
        (lacking, failed_blocks.failed, failed_blocks.reason),
        (5, 1, Some(reason)),
        "8 of 16 is 5 of 10"
    );
    assert_eq!(block_status(7, 0).within(3).0, 2, "some block is loaded");
    assert_eq!(block_status(1, 0).within(3).0, 1, "some block is missing");
    assert_eq!(block_status(8, 7).within(5).1.failed, 4, "one block is in flight");
    assert_eq!(block_status(8, 8).within(5).1.failed, 5);
    assert_eq!(block_status(8, 8).poll_after(), Some(FAILED_POLL_INTERVAL));
    assert_eq!(block_status(0, 0).poll_after(), None);
}
