//! Sessions and films with the colors of another array: blocks that are fetched, chosen colors, and badges.

#![expect(clippy::unwrap_used, reason = "a test says where it failed")]

mod support;

use std::sync::Arc;

use corridor_stream::{
    Film, FilmRequest, MIN_MEMORY_BYTES, PixelPrecision, Session, Still, StillRequest, render_still,
};
use render::{Background, ImageSize};
use serde_json::json;
use session::{FidelityState, JoinParams, Role};
use support::{Pyramid, Viewer};
use view::View;

const MEMORY: u64 = 64 << 20;
const SIZE: ImageSize = ImageSize { width: 128, height: 96 };

fn session_on(data: &Pyramid, memory_bytes: u64, view: Option<View>) -> Session {
    Session::begin(data.dataset(), data.source(), memory_bytes, view, Arc::new(|_| None)).unwrap()
}

/// Returns a view of the first array, which is not the default one.
fn view_of_ball(data: &Pyramid) -> View {
    View { array: data.dataset().arrays[0].name.clone(), ..View::default() }
}

fn join(session: &Session) -> Viewer {
    join_with(session, SIZE.width, SIZE.height)
}

fn join_with(session: &Session, width: u32, height: u32) -> Viewer {
    let join =
        JoinParams { session: String::new(), name: "Ada".into(), width, height, resume: String::new() };
    Viewer::new(session.join(&join, Role::Own).unwrap())
}

/// Returns all pictures, each with the blocks requested by the time it was finished.
async fn film_of(data: &Pyramid, views: Vec<View>) -> Vec<(Still, Vec<array::BlockKey>)> {
    let (resources, pixels) = (MEMORY.into(), PixelPrecision::default());
    let request = FilmRequest {
        views,
        choice: None,
        range: Default::default(),
        size: SIZE,
        resources,
        slabs: None,
        rank_group: None,
        pixels,
    };
    let mut film = Film::open(data.source(), request).await.unwrap();
    let mut pictures = Vec::new();
    while let Some(still) = film.next(|_, _| {}).await.unwrap() {
        pictures.push((still, data.asked()));
    }
    pictures
}

#[tokio::test(start_paused = true)]
async fn colors_of_another_array_are_chosen_fetched_once_and_shown_with_the_same_blocks() {
    let data = Pyramid::with_heat(64, 16, 1);
    let session = session_on(&data, MEMORY, Some(view_of_ball(&data)));
    let mut ada = join(&session);
    ada.frame(|f| f.fidelity.exact).await;
    let (plain, before) = (ada.bulk.clone(), data.asked());
    assert!(before.iter().all(|key| key.array == 0), "no color block was requested yet");
    ada.change(&json!({"color_by": {"array": "heat"}}), false);
    let frame = ada.frame(|f| f.fidelity.exact && f.seq >= 100).await;
    let by = ada.view.color_by.clone().unwrap();
    let [low, high] = by.range.unwrap();
    assert!(low > 0.0 && low < 10.0 && high > 90.0 && high < 100.0, "{by:?}");
    assert_eq!(by.map.as_deref(), Some("viridis"));
    let after = data.asked().split_off(before.len());
    assert!(!after.is_empty() && after.iter().all(|key| key.array == 1), "the other blocks stay");
    assert_eq!(frame.fidelity.blocks_total, data.asked().len() as u64, "both arrays' blocks are counted");
    let mut once = after.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), after.len());
    let colored = ada.bulk.clone();
    assert_ne!(plain, colored);
    let request = StillRequest {
        view: Some(ada.view.clone()),
        choice: None,
        size: ImageSize { width: 128, height: 96 },
        resources: MEMORY.into(),
    };
    let still = render_still(data.source(), request.clone(), |_, _| {}).await.unwrap();
    let background = ada.view.background.map(|c| f32::from(c) / 255.0);
    assert!(still.image.to_png(Background::Color(background)).unwrap() == colored, "the same pixels");
    // Another color map needs no further block, nor does the return to the first view.
    let asked = data.asked().len();
    ada.change(&json!({"color_by": {"array": "heat", "map": "magma", "range": [low, high]}}), false);
    ada.frame(|f| f.fidelity.exact && f.seq >= 101).await;
    assert_ne!(ada.bulk, colored);
    let magma = StillRequest { choice: Some(view::TransferChoice::Map("magma".into())), ..request };
    let still = render_still(data.source(), magma, |_, _| {}).await.unwrap();
    assert!(
        still.image.to_png(Background::Color(background)).unwrap() == ada.bulk,
        "its map is the one meant"
    );
    ada.change(&json!({"color_by": null}), false);
    ada.frame(|f| f.fidelity.exact && f.seq >= 102).await;
    assert!(ada.bulk == plain && data.asked().len() > asked, "asked: by the still only");
}

#[tokio::test(start_paused = true)]
async fn a_picture_without_its_colors_is_marked_as_loading() {
    let data = Pyramid::with_heat(64, 16, 1);
    let coarsest = data.coarsest();
    data.let_through(move |key| key.array == 0 || key.level == coarsest);
    let session = session_on(&data, MEMORY, Some(view_of_ball(&data)));
    let mut ada = join(&session);
    ada.frame(|f| f.fidelity.exact).await;
    ada.change(&json!({"color_by": {"array": "heat"}}), false);
    let frame = ada.frame(|f| f.seq >= 100 && f.fidelity.state == FidelityState::Loading).await;
    assert!(
        !frame.fidelity.exact && frame.fidelity.blocks_present < frame.fidelity.blocks_total,
        "{frame:?}"
    );
    assert_eq!(frame.fidelity.state, FidelityState::Loading);
    data.let_through(|_| true);
    ada.frame(|f| f.fidelity.exact && f.seq >= 100).await;
}

#[tokio::test(start_paused = true)]
async fn a_film_in_colors_of_another_array_keeps_them_and_fetches_ahead() {
    let data = Pyramid::with_heat(64, 16, 3);
    let first = view_of_ball(&data);
    let colored = first.merged(json!({"color_by": {"array": "heat"}}).as_object().unwrap()).unwrap();
    let at = |time| View { time, ..colored.clone() };
    let pictures = film_of(&data, (0..3).map(at).collect()).await;
    for (number, (still, asked)) in pictures.iter().enumerate() {
        for array in [0, 1] {
            let of_array = asked.iter().filter(|key| key.array == array);
            let latest = of_array.map(|key| data.time_of(key)).max().unwrap();
            assert_eq!(
                latest,
                (number as u64 + 1).min(2),
                "array {array} when picture {number} was finished"
            );
        }
        assert_eq!(still.view.color_by, pictures[0].0.view.color_by, "one range for all");
        assert!(still.fidelity.exact);
    }
    assert_ne!(pictures[0].0.image, pictures[1].0.image);
}

#[tokio::test(start_paused = true)]
async fn a_film_that_changes_the_array_chooses_colors_for_each() {
    let data = Pyramid::with_heat(32, 16, 1);
    let ball = view_of_ball(&data);
    let of = |fields: serde_json::Value| ball.merged(fields.as_object().unwrap()).unwrap();
    let name = &ball.array;
    let views = vec![
        of(json!({"layers": [{"array": "heat"}], "color_by": {"array": "heat"}})),
        of(json!({"array": "heat", "layers": [{"array": name}], "color_by": {"array": name}})),
        of(json!({"layers": [{"array": "heat"}], "color_by": {"array": "heat"}})),
    ];
    let pictures = film_of(&data, views.clone()).await;
    for (number, (still, _)) in pictures.iter().enumerate() {
        let alone = film_of(&data, vec![views[number].clone()]).await;
        let chosen = |view: &View| {
            (view.transfer.clone(), view.color_by.clone(), view.layers[0].transfer.clone().unwrap())
        };
        assert_eq!(chosen(&still.view), chosen(&alone[0].0.view), "picture {number}");
    }
    assert_ne!(pictures[0].0.view.transfer, pictures[1].0.view.transfer);
    assert_eq!(pictures[0].0.view.transfer, pictures[2].0.view.transfer);
}

#[tokio::test(start_paused = true)]
async fn memory_is_a_hard_limit_of_both_arrays() {
    let data = Pyramid::with_heat(192, 32, 1);
    let memory = MIN_MEMORY_BYTES;
    let first = view_of_ball(&data);
    let view = first.merged(json!({"color_by": {"array": "heat"}}).as_object().unwrap()).unwrap();
    let session = session_on(&data, memory, Some(view));
    let mut ada = join_with(&session, 400, 400);
    let worst = ada.most_bytes_of(&session).await;
    let frame = ada.frame(|f| f.fidelity.state == FidelityState::Complete).await;
    assert!(worst <= memory, "{worst}");
    let text = &frame.fidelity.text;
    assert!(
        text.contains("Limited by memory: level 1") && text.contains("colors are limited by memory"),
        "{text}"
    );
}
