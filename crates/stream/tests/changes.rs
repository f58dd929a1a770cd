//! Data that change during a session: the messages and pictures of participants.

#![expect(clippy::unwrap_used, reason = "a test says where it failed")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use array::conformance::{MemorySource, one_array};
use array::{ArrayInfo, Generation, Source};
use corridor_stream::Session;
use serde_json::json;
use session::{FidelityState, Item, JoinParams, Role};
use support::{Changing, Pyramid, Viewer};
use view::View;

const MEMORY: u64 = 64 << 20;

/// Starts a session on `source`, which delivers `data`.
fn session_over(data: &Pyramid, source: Arc<dyn Source>) -> Session {
    Session::begin(data.dataset(), source, MEMORY, None, Arc::new(|_| None)).unwrap()
}

fn join(session: &Session) -> Viewer {
    let join = JoinParams {
        session: String::new(),
        name: "Ada".into(),
        width: 128,
        height: 96,
        resume: String::new(),
    };
    Viewer::new(session.join(&join, Role::Own).unwrap())
}

#[tokio::test(start_paused = true)]
async fn data_that_change_are_described_again_and_shown() {
    let (old, new) = (Pyramid::new(32, 16, 3), Pyramid::of_generation(1, 64, 16, 3));
    let source = Changing::new(old.source());
    let session = session_over(&old, Arc::new(source.clone()));
    let (mut ada, mut bob) = (join(&session), join(&session));
    ada.frame(|f| f.fidelity.exact).await;
    bob.frame(|f| f.fidelity.exact).await;
    source.become_source(new.source());
    ada.change(&json!({"time": 1}), false);
    for viewer in [&mut ada, &mut bob] {
        assert!(viewer.message().await.contains("The data changed"));
        let frame = viewer.frame(|f| f.fidelity.exact).await;
        assert_eq!(frame.fidelity.state, FidelityState::Complete);
    }
    assert_eq!((ada.view.time, bob.view.time), (1, 0));
    assert!(new.asked().iter().any(|key| new.time_of(key) == 1 && key.generation.0 == 1));

    // A view that does not fit the new size causes a message, and the session continues.
    let shorter = Pyramid::of_generation(2, 32, 16, 1);
    source.become_source(shorter.source());
    bob.change(&json!({"time": 2}), false);
    ada.take_for(Duration::from_secs(3)).await;
    let told = |i: &Item| matches!(i, Item::Message { text, .. } if text.contains("below 1"));
    assert!(ada.items.iter().any(told), "{:?}", ada.items);
    ada.change(&json!({"time": 0}), false);
    let seq = ada.seq();
    ada.frame(|f| f.fidelity.exact && f.seq >= seq).await;
}

#[tokio::test(start_paused = true)]
async fn participants_of_a_removed_array_and_later_ones_see_another_array() {
    let bytes = || vec![(0..16 * 16 * 16).map(|i: u32| i.to_le_bytes()[1]).collect::<Vec<u8>>().into()];
    let plain = one_array("|u1".parse().unwrap(), &[16; 3], &[16; 3]);
    let mut with_more = plain.clone();
    with_more.arrays.push(ArrayInfo { name: "a (color)".into(), ..plain.arrays[0].clone() });
    let old = MemorySource::new(with_more.clone(), vec![bytes(), bytes()]).unwrap();
    let mut changed = plain;
    changed.generation = Generation(1);
    let new = MemorySource::new(changed, vec![bytes()]).unwrap();
    let source = Changing::new(Arc::new(old));
    let first = View { array: "a (color)".into(), ..View::default() };
    let session = Session::begin(
        Arc::new(with_more),
        Arc::new(source.clone()),
        MEMORY,
        Some(first),
        Arc::new(|_| None),
    )
    .unwrap();
    let (mut ada, mut bob) = (join(&session), join(&session));
    ada.frame(|f| f.fidelity.exact).await;
    bob.change(&json!({"array": "a"}), false);
    bob.frame(|f| f.fidelity.exact).await;
    source.become_source(Arc::new(new));
    session.describe_again();
    let text = ada.message().await;
    assert!(text.contains("`a (color)` no longer exists; `a` is shown instead"), "{text}");
    let text = bob.message().await;
    assert!(text.contains("the picture shows the new state"), "{text}");
    let mut eve = join(&session);
    for viewer in [&mut ada, &mut bob, &mut eve] {
        viewer.frame(|f| f.fidelity.exact).await;
        assert_eq!(viewer.view.array, "a");
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_participant_is_told_if_nothing_can_be_drawn() {
    let data = Pyramid::new(32, 16, 1);
    let source = Changing::new(data.source());
    let session = session_over(&data, Arc::new(source.clone()));
    let mut ada = join(&session);
    ada.frame(|f| f.fidelity.exact).await;
    let mut point = one_array("|u1".parse().unwrap(), &[1], &[1]);
    point.generation = Generation(1);
    source.become_source(Arc::new(MemorySource::new(point, vec![vec![vec![0u8].into()]]).unwrap()));
    session.describe_again();
    ada.message().await;
    let mut eve = join(&session);
    eve.take_for(Duration::from_secs(1)).await;
    let is_told =
        |i: &Item| matches!(i, Item::Fidelity { fidelity } if fidelity.state == FidelityState::Failed);
    assert!(eve.items.iter().any(is_told), "{:?}", eve.items);
}

#[tokio::test(start_paused = true)]
async fn unchanged_data_cause_no_message_after_a_check() {
    let (data, new) = (Pyramid::new(32, 16, 1), Pyramid::of_generation(1, 32, 16, 1));
    let source = Changing::new(data.source());
    let session = session_over(&data, Arc::new(source.clone()));
    let mut ada = join(&session);
    ada.frame(|f| f.fidelity.exact).await;
    session.describe_again();
    ada.take_for(Duration::from_secs(30)).await;
    assert!(!ada.items.iter().any(|i| matches!(i, Item::Message { .. })), "{:?}", ada.items);
    // The data change before the next check.
    source.become_source(new.source());
    session.describe_again();
    assert!(ada.message().await.contains("The data changed"));
}

#[tokio::test(start_paused = true)]
async fn changed_data_that_cannot_be_described_cause_a_message() {
    let (old, new) = (Pyramid::new(32, 16, 2), Pyramid::of_generation(1, 32, 16, 2));
    let source = Changing::new(old.source());
    let session = session_over(&old, Arc::new(source.clone()));
    let mut ada = join(&session);
    ada.frame(|f| f.fidelity.exact).await;
    source.change_unseen(new.source());
    ada.change(&json!({"time": 1}), false);
    let text = ada.message().await;
    assert!(text.contains("restart the viewing node"), "{text}");
}
