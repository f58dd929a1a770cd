//! Pictures and films by several ranks in one process equal those of one rank, whatever memory each has.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use array::conformance::{MemorySource, one_array};
use array::{Completion, Completions, Dataset, Error, ReadRequest, Region, Result, Source, Want};
use corridor_stream::compose::Method;
use corridor_stream::{Film, FilmRequest, MIN_MEMORY_BYTES, PixelPrecision, RankGroup, Still};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use render::ImageSize;
use serde_json::{Value, json};
use view::View;

const SHAPE: [u64; 4] = [4, 40, 48, 56];
const SIZE: ImageSize = ImageSize { width: 80, height: 60 };
const MEMORY: u64 = 8 * MIN_MEMORY_BYTES;
/// Timeout of waits.
const PATIENCE: Duration = Duration::from_secs(120);

/// Source of waves that change with time; the opaque part moves from one end to the other.
struct Waves {
    memory: MemorySource,
    /// Time steps of the requested blocks, in order.
    asked: Mutex<Vec<u64>>,
}

impl Waves {
    fn new() -> Arc<Self> {
        let [times, nz, ny, nx] = SHAPE;
        let value = |i: u64| {
            let [x, y, z, t] =
                [i % nx, i / nx % ny, i / (nx * ny) % nz, i / (nx * ny * nz)].map(|n| n as f64);
            let wave = 80.0 + 50.0 * (0.3 * x + t).sin() * (0.2 * y).cos() + 40.0 * (0.25 * z).sin();
            let hill = if (x - 14.0 * t - 7.0).abs() < 8.0 { 70.0 } else { 0.0 };
            (wave + hill) as u8
        };
        let bytes: Vec<u8> = (0..times * nz * ny * nx).map(value).collect();
        let mut dataset = one_array("|u1".parse().expect("a type"), &SHAPE, &[1, 16, 16, 16]);
        // A second array with other values and blocks.
        let mut heat = dataset.arrays[0].clone();
        (heat.name, heat.levels[0].block) = ("heat".into(), vec![1, 11, 24, 24]);
        dataset.arrays.push(heat);
        let hot = |i: u64| ((i % nx) * 2 + (i / nx % ny) * 3 + i / (nx * ny * nz) * 9) as u8;
        let hot: Vec<u8> = (0..times * nz * ny * nx).map(hot).collect();
        let elements = vec![vec![bytes.into()], vec![hot.into()]];
        let memory = MemorySource::new(dataset, elements).expect("as described");
        Arc::new(Self { memory, asked: Mutex::default() })
    }

    fn asked(&self) -> Vec<u64> {
        self.asked.lock().unwrap().clone()
    }
}

impl Source for Waves {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        self.memory.describe()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let dataset = self.memory.dataset();
        let array = |want: &Want| &dataset.arrays[want.key().array as usize];
        let step = |want: &Want| array(want).levels[0].grid_position(want.key().index).unwrap()[0];
        self.asked.lock().unwrap().extend(wants.iter().map(step));
        self.memory.blocks(wants)
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        self.memory.read(request, into)
    }
}

/// Returns views that differ from the default one by these fields.
fn views(waves: &Waves, fields: &[Value]) -> Vec<View> {
    let first = View::first_of(&waves.memory.dataset()).unwrap();
    fields.iter().map(|fields| first.merged(fields.as_object().unwrap()).unwrap()).collect()
}

fn request(views: Vec<View>, ranks: Option<(usize, Method)>, pixels: PixelPrecision) -> FilmRequest {
    let rank_group = ranks.map(|(count, method)| RankGroup::Threads(count, method));
    FilmRequest {
        views,
        choice: None,
        range: Default::default(),
        size: SIZE,
        resources: MEMORY.into(),
        slabs: None,
        rank_group,
        pixels,
    }
}

/// Returns all pictures, each with the blocks requested by the time it was finished.
async fn drawn(waves: &Arc<Waves>, request: FilmRequest) -> Result<Vec<(Still, Vec<u64>)>> {
    let drawing = async {
        let mut film = Film::open(Arc::clone(waves) as Arc<dyn Source>, request).await?;
        let (mut pictures, mut last) = (Vec::new(), (0, 0));
        while let Some(still) = film.next(|done, total| last = (done, total)).await? {
            assert!(last.0 == last.1 && last.1 > 0, "rank 0 reports all blocks: {last:?}");
            pictures.push((still, waves.asked()));
        }
        Ok(pictures)
    };
    tokio::time::timeout(PATIENCE, drawing).await.expect("no rank hangs")
}

fn bytes(still: &Still) -> Vec<u8> {
    still.image.to_rgb8(still.view.background.map(|c| f32::from(c) / 255.0))
}

/// Checks that several ranks draw the same pictures as one rank, with the same fidelity and the same view.
async fn assert_same(fields: &[Value], ranks: &[(usize, Method)]) {
    let waves = Waves::new();
    let one = drawn(&waves, request(views(&waves, fields), None, PixelPrecision::Rgb8)).await.unwrap();
    for &ranks in ranks {
        let many =
            drawn(&waves, request(views(&waves, fields), Some(ranks), PixelPrecision::Rgb8)).await.unwrap();
        assert_eq!(many.len(), fields.len());
        for (number, ((one, _), (many, _))) in one.iter().zip(&many).enumerate() {
            let (expected, found) = (bytes(one), bytes(many));
            assert!(expected.iter().filter(|&&byte| byte > 30).count() > 500, "something must be seen");
            assert_eq!(expected.len(), found.len());
            let off = expected.iter().zip(&found).map(|(a, b)| a.abs_diff(*b)).max();
            assert!(off <= Some(1), "picture {number} of {ranks:?} is off by {off:?}");
            assert_eq!(many.fidelity, one.fidelity, "the badge is the same");
            assert_eq!(many.view, one.view);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranks_of_one_process_give_the_picture_of_one() {
    let ranks = [(1, Method::Auto), (3, Method::Auto), (8, Method::BinarySwap)];
    assert_same(&[json!({})], &ranks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_film_of_time_steps_by_ranks_is_that_of_one() {
    let steps: Vec<Value> = [0, 1, 2, 3, 0, 1, 2, 3, 0].map(|time| json!({"time": time})).into();
    assert_same(&steps, &[(2, Method::Auto), (5, Method::Auto)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_film_in_colors_of_another_array_by_ranks_is_that_of_one() {
    let step = |time: u64| json!({"time": time, "color_by": {"array": "heat"}});
    assert_same(&[step(0), step(1), step(3)], &[(2, Method::Auto), (4, Method::BinarySwap)]).await;
    let surface = json!([{"value": 100.0, "color": [9, 9, 9], "opacity": 0.75}]);
    let surfaces =
        json!({"surfaces": surface, "mode": "surfaces", "color_by": {"array": "heat", "map": "magma"}});
    assert_same(&[surfaces], &[(3, Method::Auto)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moving_camera_gives_the_same_pictures_with_several_ranks() {
    let camera = |angle: f64| {
        let eye = [27.0 + 110.0 * angle.sin(), 23.0 - 110.0 * angle.cos(), 40.0];
        json!({"camera": {"eye": eye, "target": [27, 23, 19], "up": [0, 0, 1],
            "projection": {"perspective": {"fov_y_rad": 0.6}}}})
    };
    let journey: Vec<Value> = (0..10).map(|step| camera(0.3 * f64::from(step))).collect();
    assert_same(&journey, &[(4, Method::Auto)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stereo_pair_by_ranks_is_that_of_one() {
    let pair = json!({"stereo": 0.1});
    assert_same(
        std::slice::from_ref(&pair),
        &[(1, Method::Auto), (3, Method::Auto), (4, Method::BinarySwap)],
    )
    .await;
    assert_same(&[pair, json!({"stereo": 0.1, "time": 1})], &[(2, Method::Auto)]).await;
}

/// Checks that pixels keep their opacity: drawing something behind a picture requires it.
#[tokio::test(flavor = "multi_thread")]
async fn full_pixels_keep_their_opacity() {
    let waves = Waves::new();
    let one = drawn(&waves, request(views(&waves, &[json!({})]), None, PixelPrecision::Full)).await.unwrap();
    let ranks = Some((3, Method::Auto));
    let many =
        drawn(&waves, request(views(&waves, &[json!({})]), ranks, PixelPrecision::Full)).await.unwrap();
    let [expected, found] = [&one, &many].map(|pictures| pictures[0].0.image.rgba.as_flattened());
    let off = expected.iter().zip(found).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(off < 0.5 / 255.0, "{off}");
    assert!(found.chunks(4).any(|pixel| pixel[3] > 0.1 && pixel[3] < 0.9), "something is half transparent");
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_of_the_next_step_arrive_at_all_ranks_while_one_is_drawn() {
    let waves = Waves::new();
    let steps: Vec<Value> = (0..3).map(|time| json!({"time": time})).collect();
    let pictures =
        drawn(&waves, request(views(&waves, &steps), Some((4, Method::Auto)), PixelPrecision::Rgb8))
            .await
            .unwrap();
    for (number, (_, asked)) in pictures.iter().enumerate() {
        assert_eq!(
            asked.iter().max(),
            Some(&(number as u64 + 1).min(2)),
            "when picture {number} was finished"
        );
    }
    let blocks = 3 * 3 * 4;
    let of_last = pictures[2].1.iter().filter(|&&step| step == 2).count();
    assert!(of_last < 4 * blocks, "each rank requests its share only: {of_last} of {blocks} blocks");
}

/// Checks that an error is reported once, whichever rank it occurs at, and that no other rank is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_picture_that_cannot_be_drawn_is_one_error() {
    let waves = Waves::new();
    let refused = async |fields: Value, ranks: (usize, Method)| {
        let request = request(views(&waves, &[fields]), Some(ranks), PixelPrecision::Rgb8);
        drawn(&waves, request).await.map(drop).unwrap_err().to_string()
    };
    let said = refused(json!({"level": 7}), (4, Method::Auto)).await;
    assert!(said.contains("level"), "{said}");
    let said = refused(json!({"grids": true}), (2, Method::Auto)).await;
    assert!(said.contains("grids as lines"), "{said}");
    let said = refused(json!({}), (3, Method::BinarySwap)).await;
    assert!(said.contains("power of two"), "{said}");
    let said = refused(json!({}), (9, Method::Auto)).await;
    assert!(said.contains("1 to 8 ranks"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_no_rank_can_load_ends_the_film() {
    let waves = Waves::new();
    let level = &waves.memory.dataset().arrays[0].levels[0];
    let last = waves.memory.key(level.block_index(&[1, 2, 2, 3]));
    for _ in 0..100 {
        waves.memory.fail_once(last, Error::corrupt("a bad block"));
    }
    let steps = [json!({"time": 0}), json!({"time": 1})];
    let request = request(views(&waves, &steps), Some((4, Method::Auto)), PixelPrecision::Rgb8);
    let said = drawn(&waves, request).await.map(drop).unwrap_err().to_string();
    assert!(said.contains("a bad block") && said.contains("cannot be loaded"), "{said}");
}

/// Source whose blocks fail after a while, by an error or a panic.
struct Failing {
    waves: Arc<Waves>,
    panics: bool,
}

impl Source for Failing {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        self.waves.describe()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let panics = self.panics;
        let late = move |want: Want| async move {
            tokio::time::sleep(Duration::from_millis(30)).await;
            assert!(!panics, "a source that panics");
            Completion { key: want.key(), result: Err(Error::corrupt("a bad block")) }
        };
        let answers: FuturesUnordered<_> = wants.into_iter().map(late).collect();
        Box::pin(answers)
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        self.waves.read(request, into)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_that_come_late_end_the_picture() {
    for panics in [false, true] {
        let waves = Waves::new();
        let request = request(views(&waves, &[json!({})]), None, PixelPrecision::Rgb8);
        let source = Arc::new(Failing { waves, panics });
        let drawing = async { Film::open(source, request).await?.next(|_, _| ()).await };
        let drawn = tokio::time::timeout(PATIENCE, drawing).await.expect("no rank hangs");
        let said = drawn.map(drop).unwrap_err().to_string();
        assert!(said.contains("cannot be loaded"), "{said}");
    }
}
