//! Sessions on a volume: the items that participants receive, their order, and the blocks that are fetched.
//!
//! Counts and facts are asserted, never times; the clock is that of tokio, paused, so that waiting takes no time.

#![expect(clippy::unwrap_used, reason = "a test says where it failed")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use array::conformance::{MemorySource, one_array};
use array::{Error, ErrorKind, Meaning, Source};
use render::{Background, ImageSize};
use serde_json::json;
use session::{FidelityLimit, FidelityState, Item, JoinParams, PictureCodec, Role};
use stream::{
    DrawDevice, DrawResources, Film, FilmRequest, FilmSlabs, MAX_FRAMES_IN_FLIGHT, PixelPrecision, Session,
    StillRequest, render_still,
};
use support::{Pyramid, Viewer};

use corridor_stream as stream;

const MEMORY: u64 = 64 << 20;

fn session_on(data: &Pyramid) -> Session {
    session_over(data, data.source())
}

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
async fn the_first_picture_needs_only_the_coarsest_blocks() {
    let data = Pyramid::new(64, 16, 1);
    let coarsest = data.coarsest();
    data.let_through(move |key| key.level == coarsest);
    let session = session_on(&data);
    let mut ada = join(&session);
    let frame = ada.frame(|_| true).await;
    assert_eq!((frame.fidelity.state, frame.fidelity.level_shown), (FidelityState::Loading, Some(coarsest)));
    assert!(frame.fidelity.level_wanted < coarsest && !frame.fidelity.exact);
    assert!(frame.fidelity.text.contains("waiting will help"), "{}", frame.fidelity.text);
    assert!(matches!(ada.items[0], Item::Joined { .. }));
    let Some(Item::View { view, .. }) = ada.items.iter().find(|i| matches!(i, Item::View { .. })) else {
        panic!("a transfer function was chosen and sent: {:?}", ada.items);
    };
    assert!(view.transfer.is_some() && view.camera.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_next_time_step_is_prefetched_when_no_block_is_missing_and_cancelled_for_another() {
    let data = Pyramid::new(32, 16, 6);
    let only = |times: &'static [u64]| {
        let levels = data.dataset().arrays[0].levels.clone();
        data.let_through(move |key| {
            times.contains(&levels[usize::from(key.level)].grid_position(key.index).unwrap()[0])
        });
    };
    only(&[0]);
    let session = session_on(&data);
    let mut ada = join(&session);
    ada.frame(|f| f.fidelity.exact).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(data.asked().iter().all(|key| data.time_of(key) == 0));
    let ahead = data.asked_ahead();
    assert!(!ahead.is_empty() && ahead.iter().all(|key| data.time_of(key) == 1), "{ahead:?}");
    assert_eq!(data.waiting().len(), ahead.len());

    only(&[0, 2]);
    ada.change(&json!({"time": 2}), false);
    ada.frame(|f| f.fidelity.exact && f.seq >= 100).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let waiting: Vec<u64> = data.waiting().iter().map(|key| data.time_of(key)).collect();
    assert!(
        !waiting.is_empty() && waiting.iter().all(|&time| time == 4),
        "as many steps further: {waiting:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_picture_with_gaps_shows_no_level() {
    let data = Pyramid::new(64, 16, 1);
    let only = data.finest_key();
    data.let_through(move |key| *key == only);
    let session = session_on(&data);
    let mut ada = join(&session);
    ada.change(&json!({"level": 0}), false);
    let frame = ada.frame(|f| f.seq >= 100).await;
    assert_eq!((frame.fidelity.level_wanted, frame.fidelity.blocks_present), (0, 1));
    assert_eq!(frame.fidelity.level_shown, None);
    assert_eq!((frame.fidelity.state, frame.fidelity.exact), (FidelityState::Loading, false));
    assert!(
        frame.fidelity.text.contains("parts of the visible volume are not shown yet"),
        "{}",
        frame.fidelity.text
    );
    data.let_through(|_| true);
    let frame = ada.frame(|f| f.fidelity.exact).await;
    assert_eq!(frame.fidelity.level_shown, Some(frame.fidelity.level_wanted));
    assert!(!frame.fidelity.text.contains("not shown"), "{}", frame.fidelity.text);
}

#[tokio::test(start_paused = true)]
async fn the_last_picture_is_exact_and_equals_a_still() {
    let data = Pyramid::new(64, 16, 1);
    let session = session_on(&data);
    let mut ada = join(&session);
    let frame = ada.frame(|f| f.fidelity.exact).await;
    assert_eq!(frame.codec, PictureCodec::Png);
    assert_eq!(frame.fidelity.level_shown, Some(frame.fidelity.level_wanted));
    assert_eq!(
        (frame.fidelity.state, frame.fidelity.blocks_present),
        (FidelityState::Complete, frame.fidelity.blocks_total)
    );
    assert_eq!(ada.silence().await, 0, "nothing is drawn when nothing changes");
    let asked = data.asked();
    let mut once = asked.clone();
    once.sort();
    once.dedup();
    assert_eq!(asked.len(), once.len(), "each block is requested once");

    let request = StillRequest {
        view: Some(ada.view.clone()),
        choice: None,
        size: ImageSize { width: 128, height: 96 },
        resources: MEMORY.into(),
    };
    let still = render_still(data.source(), request, |_, _| {}).await.unwrap();
    let background = ada.view.background.map(|c| f32::from(c) / 255.0);
    let png = still.image.to_png(Background::Color(background)).unwrap();
    assert!(png == ada.bulk, "the same pixels");
    assert!(still.fidelity.exact);
}

#[tokio::test(start_paused = true)]
async fn a_still_is_reproducible_and_reports_its_progress() {
    let data = Pyramid::new(64, 16, 1);
    let size = ImageSize { width: 90, height: 70 };
    let request = StillRequest { view: None, choice: None, size, resources: MEMORY.into() };
    let mut heard = Vec::new();
    let one = render_still(data.source(), request.clone(), |n, of| heard.push((n, of))).await.unwrap();
    let two = render_still(data.source(), request, |_, _| {}).await.unwrap();
    assert_eq!(one.image, two.image);
    assert_eq!(one.view, two.view);
    assert!(heard.is_sorted() && heard.last().is_some_and(|(n, of)| n == of), "{heard:?}");
    let seen = one.image.rgba.iter().filter(|p| p[3] > 0.1).count();
    assert!(seen > 500, "the volume is in the picture: {seen} pixels");
}

#[tokio::test(start_paused = true)]
async fn a_stereo_pair_is_two_pictures_side_by_side() {
    let data = Pyramid::new(64, 16, 1);
    let view = view::View::first_of(&data.dataset()).unwrap();
    let still = async |stereo, width| {
        let view = Some(view::View { stereo, ..view.clone() });
        let size = ImageSize { width, height: 70 };
        let request = StillRequest { view, choice: None, size, resources: MEMORY.into() };
        render_still(data.source(), request, |_, _| {}).await.unwrap()
    };
    let half = |still: &stream::Still, from: usize| -> Vec<[f32; 4]> {
        still.image.rgba.chunks_exact(180).flat_map(|row| row[from..from + 90].to_vec()).collect()
    };
    let (plain, together, apart) =
        (still(None, 90).await, still(Some(1e-12), 180).await, still(Some(0.1), 180).await);
    assert_eq!(plain.view.camera, together.view.camera, "each eye's picture is framed as one of its size");
    for from in [0, 90] {
        let near = |(a, b): (&[f32; 4], &[f32; 4])| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-3);
        let same = half(&together, from).iter().zip(&plain.image.rgba).filter(|&pair| near(pair)).count();
        assert!(
            same * 100 > 99 * plain.image.rgba.len(),
            "eyes at one position see the plain picture: {same}"
        );
    }
    assert!(half(&apart, 0) != half(&apart, 90) && apart.fidelity.exact, "eyes apart do not");
}

#[tokio::test(start_paused = true)]
async fn parallel_rays_have_no_stereo_pair() {
    let data = Pyramid::new(64, 16, 1);
    let camera = json!({"eye": [0, -200, 0], "target": [32, 32, 32], "up": [0, 0, 1],
        "projection": {"orthographic": {"height_world": 90}}});
    let view: view::View = serde_json::from_value(json!({"camera": camera, "stereo": 0.05})).unwrap();
    let size = ImageSize { width: 90, height: 70 };
    let request = StillRequest { view: Some(view), choice: None, size, resources: MEMORY.into() };
    let error = render_still(data.source(), request, |_, _| {}).await.unwrap_err().to_string();
    assert!(error.contains("perspective"), "{error}");
}

fn film_request(views: Vec<view::View>, size: ImageSize, slabs: Option<FilmSlabs>) -> FilmRequest {
    let pixels = PixelPrecision::default();
    FilmRequest {
        views,
        choice: None,
        range: Default::default(),
        size,
        resources: MEMORY.into(),
        slabs,
        rank_group: None,
        pixels,
    }
}

/// Draws a film; returns each picture with the blocks requested by the time it was finished.
async fn film_of(data: &Pyramid, views: Vec<view::View>) -> Vec<(stream::Still, Vec<array::BlockKey>)> {
    let size = ImageSize { width: 90, height: 70 };
    let request = film_request(views, size, None);
    let mut film = Film::open(data.source(), request).await.expect("a film");
    let mut pictures = Vec::new();
    while let Some(still) = film.next(|_, _| {}).await.expect("a picture") {
        pictures.push((still, data.asked()));
    }
    pictures
}

#[tokio::test(start_paused = true)]
async fn blocks_of_the_next_picture_of_a_film_arrive_while_one_is_drawn() {
    let data = Pyramid::new(64, 16, 3);
    let first = view::View::first_of(&data.dataset()).unwrap();
    let at = |time| view::View { time, ..first.clone() };
    let pictures = film_of(&data, (0..3).map(at).collect()).await;
    for (number, (still, asked)) in pictures.iter().enumerate() {
        let latest = asked.iter().map(|key| data.time_of(key)).max().unwrap();
        assert_eq!(latest, (number as u64 + 1).min(2), "requested when picture {number} was finished");
        assert_eq!(still.view.transfer, pictures[0].0.view.transfer, "one transfer function for all");
        assert!(still.fidelity.exact);
        let request = StillRequest {
            view: Some(still.view.clone()),
            choice: None,
            size: still.image.size,
            resources: MEMORY.into(),
        };
        let alone = render_still(data.source(), request, |_, _| {}).await.unwrap();
        assert_eq!(alone.image, still.image, "picture {number}");
    }
    assert_ne!(pictures[0].0.image, pictures[2].0.image);
}

#[tokio::test(start_paused = true)]
async fn slabs_of_each_picture_include_the_blocks_of_their_guard_band() {
    let data = Pyramid::new(64, 16, 2);
    let first = view::View::first_of(&data.dataset()).unwrap();
    // A camera so close that much of the volume is outside of the picture.
    let bounds = render::Bounds { min: [20.0; 3], max: [36.0; 3] };
    let camera = render::Camera::framing(&bounds, [0.1, 1.0, 0.2]);
    let fields = json!({ "camera": camera });
    let near = first.merged(fields.as_object().unwrap()).unwrap();
    let size = ImageSize { width: 90, height: 70 };
    for is_across_axis in [false, true] {
        let views = (0..2).map(|time| view::View { time, ..near.clone() }).collect();
        let slabs = Some(FilmSlabs { is_across_axis, count: 16, reduction: Some(1) });
        let request = film_request(views, size, slabs);
        let mut film = Film::open(data.source(), request).await.unwrap();
        for _ in 0..2 {
            let still = film.next(|_, _| {}).await.unwrap().unwrap();
            let plain =
                StillRequest { view: Some(still.view.clone()), choice: None, size, resources: MEMORY.into() };
            let plain = render_still(data.source(), plain, |_, _| {}).await.unwrap();
            assert_eq!(still.image, plain.image, "slabs beside it change nothing");
            let slabs = still.slabs.unwrap();
            assert_eq!(slabs.slabs.len(), 16);
            let drawn = slabs.draw(&camera, size).unwrap();
            let apart = drawn.rgba.iter().flatten().zip(plain.image.rgba.iter().flatten());
            let apart: Vec<f32> = apart.map(|(a, b)| (a - b).abs()).collect();
            let mean = apart.iter().sum::<f32>() / apart.len() as f32;
            assert!(mean < 2.0 / 255.0, "{is_across_axis}: {mean}");
            // The guard band shows the picture of its camera, including blocks outside of the first picture.
            let view = json!({ "camera": slabs.camera });
            let view = still.view.merged(view.as_object().unwrap()).unwrap();
            let wide =
                StillRequest { view: Some(view), choice: None, size: slabs.size, resources: MEMORY.into() };
            let wide = render_still(data.source(), wide, |_, _| {}).await.unwrap();
            let drawn = slabs.draw(&slabs.camera, slabs.size).unwrap();
            let apart = drawn.rgba.iter().flatten().zip(wide.image.rgba.iter().flatten());
            let worst = apart.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 8.0 / 255.0, "{is_across_axis}: {worst}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn scenes_without_slabs_are_refused_with_the_reason() {
    let data = Pyramid::new(64, 16, 1);
    let first = view::View::first_of(&data.dataset()).unwrap();
    let refused = async |fields: serde_json::Value, count| {
        let views = vec![first.merged(fields.as_object().unwrap()).unwrap()];
        let size = ImageSize { width: 90, height: 70 };
        let slabs = Some(FilmSlabs { is_across_axis: false, count, reduction: None });
        let request = film_request(views, size, slabs);
        let mut film = match Film::open(data.source(), request).await {
            Ok(film) => film,
            Err(error) => return error.to_string(),
        };
        film.next(|_, _| {}).await.unwrap_err().to_string()
    };
    let said = refused(json!({"stereo": 0.03}), 32).await;
    assert!(said.contains("stereo pair"), "{said}");
    let said = refused(json!({"mode": "maximum"}), 32).await;
    assert!(said.contains("expected a scene without extreme values"), "{said}");
    let said = refused(json!({}), 65).await;
    assert!(said.contains("expected 1 to 64 slabs"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_moving_camera_requests_no_block_twice() {
    let data = Pyramid::new(64, 16, 1);
    let first = view::View::first_of(&data.dataset()).unwrap();
    let bounds = render::Bounds { min: [0.0; 3], max: [64.0; 3] };
    let cameras = render::turn(&render::Camera::framing(&bounds, [0.0, 1.0, 0.0]), 360.0, 5);
    let view = |camera| {
        let fields = json!({"camera": camera});
        first.merged(fields.as_object().expect("an object")).expect("a view")
    };
    let pictures = film_of(&data, cameras.iter().map(view).collect()).await;
    assert_eq!(pictures.len(), 5);
    let mut asked = data.asked();
    let all = asked.len();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), all);
    let (level, wanted) =
        (pictures[0].0.fidelity.level_wanted, |n: usize| pictures[n].0.fidelity.level_wanted);
    assert!((0..5).all(|n| wanted(n) == level), "the share of memory is the same for all");
}

/// Returns resources with a GPU; `None` on a machine without one, unless one is required.
async fn gpu_resources() -> Option<DrawResources> {
    match DrawResources::open(DrawDevice::Gpu, MEMORY).await {
        Ok(resources) => Some(resources),
        Err(error) => {
            assert!(std::env::var_os("CORRIDOR_TEST_GPU").is_none(), "CORRIDOR_TEST_GPU is set: {error}");
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Checks that the mean difference of components is at most 0.15 of 255.
fn assert_alike(a: &render::Image, b: &render::Image) {
    let [a, b] = [a, b].map(|image| image.to_rgb8([0.0; 3]));
    let apart: u64 = a.iter().zip(&b).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    assert!(apart * 100 <= 15 * a.len() as u64, "{apart} in {} components", a.len());
}

#[tokio::test]
async fn a_still_by_a_gpu_equals_that_of_the_cpu_which_replaces_a_failed_gpu() {
    let Some(resources) = gpu_resources().await else { return };
    let painter = Arc::clone(resources.painter());
    assert!(painter.is_gpu());
    let data = Pyramid::new(64, 16, 1);
    let size = ImageSize { width: 90, height: 70 };
    let on_cpu = StillRequest { view: None, choice: None, size, resources: MEMORY.into() };
    let expected = render_still(data.source(), on_cpu.clone(), |_, _| {}).await.unwrap();
    let request = StillRequest { resources, ..on_cpu };
    let found = render_still(data.source(), request.clone(), |_, _| {}).await.unwrap();
    assert_eq!(expected.fidelity.exact, found.fidelity.exact);
    assert_alike(&expected.image, &found.image);
    assert!(painter.is_gpu() && painter.reason().is_none());
    painter.close();
    for _ in 0..2 {
        let instead = render_still(data.source(), request.clone(), |_, _| {}).await.unwrap();
        assert_eq!(instead.image, expected.image);
        assert!(!painter.is_gpu() && painter.to_string() == "CPU");
        assert!(painter.reason().unwrap().contains("failed"), "{:?}", painter.reason());
    }
}

#[tokio::test]
async fn scenes_that_a_gpu_cannot_draw_are_refused_with_an_alternative() {
    let Some(resources) = gpu_resources().await else { return };
    let mut dataset = one_array("<i4".parse().unwrap(), &[8; 3], &[8; 3]);
    dataset.arrays[0].meaning = Meaning::Labels;
    let elements = (0..8i32.pow(3)).flat_map(|i| (i / 99).to_le_bytes()).collect();
    let source = Arc::new(MemorySource::new(dataset, vec![vec![elements]]).unwrap());
    let size = ImageSize { width: 20, height: 16 };
    let request = StillRequest { view: None, choice: None, size, resources };
    let error = render_still(source, request, |_, _| {}).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let said = error.to_string();
    assert!(said.contains("labels of at most 16 bits") && said.contains("--device auto"), "{said}");
}

#[tokio::test]
async fn a_session_continues_when_a_gpu_fails() {
    let Some(resources) = gpu_resources().await else { return };
    let painter = Arc::clone(resources.painter());
    let data = Pyramid::new(64, 16, 1);
    let session = Session::begin(data.dataset(), data.source(), resources, None, Arc::new(|_| None)).unwrap();
    let mut ada = join(&session);
    let frame = ada.frame(|f| f.fidelity.exact).await;
    assert!(frame.fidelity.level_shown == Some(0) && frame.codec == PictureCodec::Png && painter.is_gpu());
    painter.close();
    ada.change(&json!({"mode": "maximum"}), false);
    let seq = ada.seq();
    let next = ada.frame(|f| f.fidelity.exact && f.seq == seq).await;
    assert!(next.fidelity.level_shown == Some(0) && !painter.is_gpu(), "{:?}", next.fidelity);
}

#[tokio::test(start_paused = true)]
async fn a_still_in_portrait_shows_all_of_the_volume() {
    let data = Pyramid::new(32, 16, 1);
    let mut view = view::View::first_of(&data.dataset()).unwrap();
    view.transfer = Some(
        serde_json::from_value(json!({"range": [0, 255], "map": "gray", "opacity": [[0, 0.5]]})).unwrap(),
    );
    let size = ImageSize { width: 48, height: 96 };
    let request = StillRequest { view: Some(view), choice: None, size, resources: MEMORY.into() };
    let still = render_still(data.source(), request, |_, _| {}).await.unwrap();
    let seen = |column: usize| still.image.rgba.iter().skip(column).step_by(48).any(|p| p[3] > 0.0);
    assert!(seen(24) && !seen(0) && !seen(47), "the sides of the volume are visible");
}

#[tokio::test(start_paused = true)]
async fn waiting_participants_receive_the_progress_of_long_work() {
    let data = Pyramid::new(64, 16, 1);
    let coarsest = data.coarsest();
    data.let_through(move |key| key.level == coarsest);
    let work = array::LongWork::default();
    let seen = work.clone();
    let shown: stream::ProgressQuery = Arc::new(move |task| seen.progress(task));
    let session = Session::begin(data.dataset(), data.source(), MEMORY, None, shown).unwrap();
    let mut ada = join(&session);
    assert_eq!(ada.frame(|_| true).await.fidelity.levels_made, None);
    ada.take_for(Duration::from_secs(2)).await;
    for done in [1, 5] {
        work.set(array::LongTask::Levels { array: 0 }, done, 9);
        ada.take_for(Duration::from_secs(2)).await;
        let told = ada.items.iter().rev().find_map(|i| match i {
            Item::Fidelity { fidelity } => Some(fidelity.levels_made),
            _ => None,
        });
        assert_eq!(told, Some(Some([u32::try_from(done).unwrap(), 9])));
    }
    work.end(array::LongTask::Levels { array: 0 });
    data.let_through(|_| true);
    assert_eq!(ada.frame(|f| f.fidelity.exact).await.fidelity.levels_made, None);
}

#[tokio::test(start_paused = true)]
async fn a_new_view_cancels_the_wants_of_the_old_one() {
    let data = Pyramid::new(64, 8, 2);
    let coarsest = data.coarsest();
    data.let_through(move |key| key.level == coarsest);
    let session = session_on(&data);
    let mut ada = join(&session);
    ada.frame(|_| true).await;
    let waiting = data.waiting();
    assert!(!waiting.is_empty());
    ada.change(&json!({"time": 1}), false);
    ada.frame(|f| f.fidelity.level_shown == Some(coarsest) && f.seq >= 100).await;
    let still_waiting = data.waiting();
    assert!(waiting.iter().all(|key| !still_waiting.contains(key)), "wants of the old time are withdrawn");
    assert!(!still_waiting.is_empty());
    drop(ada);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(data.waiting(), [], "a participant who left wants nothing");
    assert_eq!(session.load().wants_in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn turning_the_camera_changes_priorities() {
    let data = Pyramid::new(64, 8, 1);
    let coarsest = data.coarsest();
    data.let_through(move |key| key.level == coarsest);
    let session = session_on(&data);
    let mut ada = join(&session);
    ada.frame(|_| true).await;
    let before = data.urgencies();
    let mut camera = ada.view.camera.clone().unwrap();
    let mirrored = [0, 1, 2].map(|i| 2.0 * camera.target[i] - camera.eye[i]);
    camera.eye = mirrored;
    ada.change(&json!({ "camera": camera }), false);
    ada.frame(|f| f.seq >= 100).await;
    let after = data.urgencies();
    let changed = before.iter().filter(|(key, p)| after.get(key).is_some_and(|q| q != *p)).count();
    assert!(changed > before.len() / 2, "{changed} of {}", before.len());
    let asked = data.asked().len();
    let mut once = data.asked();
    once.sort();
    once.dedup();
    assert_eq!(asked, once.len(), "blocks that stay wanted are not requested again");
}

#[tokio::test(start_paused = true)]
async fn memory_is_a_hard_limit_and_the_badge_says_so() {
    let data = Pyramid::new(200, 25, 1);
    let memory = stream::MIN_MEMORY_BYTES;
    let session = Session::begin(data.dataset(), data.source(), memory, None, Arc::new(|_| None)).unwrap();
    let join = JoinParams {
        session: String::new(),
        name: "Ada".into(),
        width: 400,
        height: 400,
        resume: String::new(),
    };
    let mut ada = Viewer::new(session.join(&join, Role::Own).unwrap());
    let worst = ada.most_bytes_of(&session).await;
    let frame = ada.frame(|f| f.fidelity.state == FidelityState::Complete).await;
    assert!(worst <= memory, "{worst}");
    assert!(data.most_bytes_at_once() <= memory / 4);
    assert_eq!((frame.fidelity.limit, frame.fidelity.level_wanted > 0), (FidelityLimit::Memory, true));
    assert!(frame.fidelity.text.contains("Limited by memory: level 1 of 0 to"), "{}", frame.fidelity.text);
}

#[tokio::test(start_paused = true)]
async fn a_participant_that_shows_no_frames_gets_two_at_most() {
    let data = Pyramid::new(32, 16, 1);
    let session = session_on(&data);
    let mut ada = join(&session);
    ada.acknowledges = false;
    for time in 0..50 {
        ada.change(&json!({"background": [time, 0, 0]}), true);
        ada.take_for(Duration::from_millis(100)).await;
    }
    assert_eq!(ada.frames, MAX_FRAMES_IN_FLIGHT);
    // Showing one frame allows one more: the newest.
    ada.acknowledges = true;
    ada.show(1);
    let frame = ada.frame(|f| f.id == 3).await;
    assert!(frame.seq >= ada.seq());
}

#[tokio::test(start_paused = true)]
async fn acknowledging_frames_that_were_not_sent_yields_no_more_frames() {
    let data = Pyramid::new(32, 16, 1);
    let session = session_on(&data);
    let mut ada = join(&session);
    ada.acknowledges = false;
    ada.show(u64::MAX);
    for time in 0..20 {
        ada.change(&json!({"background": [time, 0, 0]}), true);
        ada.take_for(Duration::from_millis(100)).await;
    }
    assert_eq!(ada.frames, MAX_FRAMES_IN_FLIGHT);
}

#[tokio::test(start_paused = true)]
async fn a_block_that_cannot_be_loaded_is_reported_without_waiting() {
    let data = Pyramid::new(64, 16, 1);
    let bad = data.finest_key();
    data.fail(bad, &Error::corrupt("bad checksum"), 1);
    let session = session_on(&data);
    let mut ada = join(&session);
    let frame =
        ada.frame(|f| f.fidelity.state == FidelityState::Failed && f.codec == PictureCodec::Png).await;
    assert!(!frame.fidelity.exact);
    assert_eq!(frame.fidelity.blocks_total - frame.fidelity.blocks_present, 1);
    assert!(frame.fidelity.text.contains("1 of"), "{}", frame.fidelity.text);
    assert!(frame.fidelity.text.contains("bad checksum); waiting will not help"), "{}", frame.fidelity.text);
    let asked = data.asked().len();
    ada.silence().await;
    assert_eq!(data.asked().len(), asked, "no hot loop");

    data.fail(bad, &Error::corrupt("bad checksum"), 1);
    let size = ImageSize { width: 128, height: 96 };
    let request = StillRequest { view: None, choice: None, size, resources: MEMORY.into() };
    let error = render_still(data.source(), request, |_, _| {}).await.unwrap_err();
    assert!(error.to_string().contains("bad checksum"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_block_that_comes_at_the_third_attempt_completes_the_picture() {
    let data = Pyramid::new(64, 16, 1);
    data.fail(data.finest_key(), &Error::new(ErrorKind::Busy, "come back later"), 2);
    let session = session_on(&data);
    let mut ada = join(&session);
    ada.frame(|f| f.fidelity.exact).await;
    let tries = data.asked().iter().filter(|key| **key == data.finest_key()).count();
    assert_eq!(tries, 3);
}

#[tokio::test(start_paused = true)]
async fn failed_blocks_are_loaded_after_an_outage() {
    let data = Pyramid::new(64, 16, 1);
    data.fail(data.finest_key(), &Error::new(ErrorKind::Unreachable, "no route"), 8);
    let session = session_on(&data);
    let mut ada = join(&session);
    let failed = ada.frame(|f| f.fidelity.state == FidelityState::Failed).await;
    assert!(failed.fidelity.text.contains("requested again"), "{}", failed.fidelity.text);
    ada.frame(|f| f.fidelity.exact).await;
}

#[tokio::test(start_paused = true)]
async fn another_time_step_brings_its_own_blocks() {
    let data = Pyramid::new(32, 16, 3);
    let session = session_on(&data);
    let mut ada = join(&session);
    ada.frame(|f| f.fidelity.exact).await;
    let first = ada.bulk.clone();
    let before = data.asked();
    ada.change(&json!({"time": 2}), false);
    let frame = ada.frame(|f| f.fidelity.exact && f.seq >= 100).await;
    assert_eq!(frame.fidelity.state, FidelityState::Complete);
    assert_ne!(first, ada.bulk);
    let after = data.asked();
    assert!(after.len() > before.len());
    assert!(after[before.len()..].iter().all(|key| data.time_of(key) == 2));
    assert!(before.iter().all(|key| data.time_of(key) == 0));
}

#[tokio::test(start_paused = true)]
async fn two_participants_share_every_block() {
    let data = Pyramid::new(64, 16, 1);
    let session = session_on(&data);
    let (mut ada, mut bob) = (join(&session), join(&session));
    ada.frame(|f| f.fidelity.exact).await;
    bob.frame(|f| f.fidelity.exact).await;
    let mut asked = data.asked();
    let count = asked.len();
    asked.sort();
    asked.dedup();
    assert_eq!(count, asked.len());
    let load = session.load();
    assert!(load.pool_limit_bytes as u64 <= MEMORY);
    // A change of one participant does not affect the other.
    ada.change(&json!({"background": [255, 0, 0]}), false);
    ada.frame(|f| f.fidelity.exact && f.seq >= 100).await;
    assert_eq!(bob.silence().await, 0);
    assert_ne!(ada.bulk, bob.bulk);
}

#[tokio::test(start_paused = true)]
async fn participants_at_different_time_steps_share_the_memory() {
    let data = Pyramid::new(64, 16, 2);
    let session = session_on(&data);
    let (mut ada, mut bob) = (join(&session), join(&session));
    ada.change(&json!({"time": 1}), false);
    ada.frame(|f| f.fidelity.exact && f.seq >= 100).await;
    bob.frame(|f| f.fidelity.exact).await;
    let together = session.load();
    assert!(together.pool_bytes <= together.pool_limit_bytes);
    assert!(together.pool_limit_bytes as u64 <= MEMORY);
    drop(ada);
    bob.change(&json!({"background": [1, 1, 1]}), false);
    bob.frame(|f| f.fidelity.exact && f.seq >= 100).await;
    let alone = session.load();
    assert_eq!(alone.pool_limit_bytes, together.pool_limit_bytes, "the remaining participant has all of it");
    assert!(alone.pool_bytes < together.pool_bytes, "memory of blocks that are no longer viewed is released");
}

#[tokio::test(start_paused = true)]
async fn invalid_views_are_reported_and_the_session_continues() {
    let data = Pyramid::new(32, 16, 2);
    let session = session_on(&data);
    let mut ada = join(&session);
    ada.frame(|f| f.fidelity.exact).await;
    for (bad, says) in [
        (json!({"time": 2}), "below 2"),
        (json!({"array": "nothing"}), "`nothing`"),
        (json!({"transfer": {"range": [0, 1], "map": "no such map", "opacity": [[0, 1]]}}), "no such map"),
        (json!({"v": 2}), "version 1"),
    ] {
        ada.change(&bad, false);
        let text = ada.message().await;
        assert!(text.contains(says), "{text}");
        // The current view is sent again under a newer number.
        let seq = ada.seq();
        ada.frame(|f| f.seq >= seq).await;
        assert_eq!((ada.view.time, ada.view.array.as_str()), (0, "a"));
    }
    ada.say(b"\xff\xfe");
    assert!(ada.message().await.contains("expected a note"));
    ada.change(&json!({"time": 1}), false);
    ada.frame(|f| f.fidelity.exact && f.seq >= 100).await;
}

#[tokio::test(start_paused = true)]
async fn a_moving_view_is_drawn_quickly_and_a_resting_one_exactly() {
    let data = Pyramid::new(32, 16, 1);
    let session = session_on(&data);
    let mut ada = join(&session);
    ada.frame(|f| f.fidelity.exact).await;
    ada.change(&json!({"background": [9, 0, 0]}), true);
    let moving = ada.frame(|f| f.seq >= 100).await;
    assert_eq!(
        (moving.codec, moving.fidelity.state, moving.fidelity.exact),
        (PictureCodec::Jpeg, FidelityState::Moving, false)
    );
    let resting = ada.frame(|f| f.fidelity.exact).await;
    assert_eq!((resting.width, resting.height, resting.codec), (128, 96, PictureCodec::Png));
    // A new size is a new picture.
    ada.say(br#"{"kind": "resize", "width": 64, "height": 48}"#);
    let resized = ada.frame(|f| f.fidelity.exact).await;
    assert_eq!((resized.width, resized.height), (64, 48));
    // A request for an exact picture always gives one.
    ada.say(br#"{"kind": "still"}"#);
    assert!(ada.frame(|_| true).await.fidelity.exact);
}

#[tokio::test(start_paused = true)]
async fn a_level_can_be_forced() {
    let data = Pyramid::new(64, 16, 1);
    let session = session_on(&data);
    let mut ada = join(&session);
    for level in [0, 2, 1] {
        ada.change(&json!({ "level": level }), false);
        let seq = ada.seq();
        let frame = ada.frame(|f| f.fidelity.exact && f.seq >= seq).await;
        assert_eq!((frame.fidelity.level_shown, frame.fidelity.level_wanted), (Some(level), level));
        assert!(
            frame.fidelity.text.contains(&format!("level {level}"))
                || frame.fidelity.limit == FidelityLimit::Finest
        );
    }
}

#[tokio::test(start_paused = true)]
async fn slices_alone_request_only_the_blocks_that_they_cut() {
    let data = Pyramid::new(64, 16, 2);
    let session = session_on(&data);
    let mut ada = join(&session);
    ada.frame(|f| f.fidelity.exact).await;
    let slices = json!([{"axis": "z", "at": 20.0}]);
    ada.change(&json!({"time": 1, "level": 0, "mode": "surfaces", "slices": slices}), false);
    let seq = ada.seq();
    let frame = ada.frame(|f| f.fidelity.exact && f.seq >= seq).await;
    let is_finest = |key: &array::BlockKey| key.level == 0 && data.time_of(key) == 1;
    let finest = || data.asked().into_iter().filter(is_finest).count();
    assert_eq!((frame.fidelity.level_shown, finest()), (Some(0), 16), "one layer of 4 x 4 blocks");
    ada.change(&json!({"mode": "maximum"}), false);
    let seq = ada.seq();
    ada.frame(|f| f.fidelity.exact && f.seq >= seq).await;
    assert_eq!(finest(), 64, "behind the slice the whole volume is visible");
}

#[tokio::test(start_paused = true)]
async fn a_camera_that_looks_away_shows_the_background() {
    let data = Pyramid::new(32, 16, 1);
    let session = session_on(&data);
    let mut ada = join(&session);
    ada.frame(|f| f.fidelity.exact).await;
    let mut camera = ada.view.camera.clone().unwrap();
    camera.target = [0, 1, 2].map(|i| 2.0 * camera.eye[i] - camera.target[i]);
    ada.change(&json!({ "camera": camera }), false);
    let frame = ada.frame(|f| f.fidelity.exact && f.seq >= 100).await;
    assert_eq!(frame.fidelity.text, "No part of the volume is in view.");
}
