//! A film over a limited link: while one time step is drawn the next one comes. N steps, each of which takes L to load and R to
//! draw, are to take little more than N max(L, R) + min(L, R).
//!
//! L and R are those of each step drawn by itself, by a client that has nothing yet: until its last block is there, and from then
//! on. The link is a relay that lets so many bytes per second through, chosen so that L is a half of R, as long, and twice as
//! long.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use array::{Error, Result};
use client::dial::{Compression, ConnectOptions};
use client::directories::UserDirectories;
use client::url::{Location, Url};
use node::assemble::{Context, assemble};
use node::memory::MemoryBudget;
use render::ImageSize;
use stream::{DrawDevice, DrawResources, Film, FilmRequest, PixelPrecision};
use view::View;

use super::super::finished::Finished;
use super::super::options::Options;
use super::super::process::RunningProcess;
use super::super::relay::Relay;
use super::super::report::{Better, Case, median};
use super::volume::BenchVolume;

/// Runs of each case.
const RUNS: usize = 3;
const QUICK_RUNS: usize = 1;
/// Voxels a side of each time step, and how many there are.
const SIDE: u64 = 256;
const QUICK_SIDE: u64 = 64;
const STEPS: u64 = 8;
const QUICK_STEPS: u64 = 3;
/// The bound takes loading for something that costs no processor time. On a link slow enough to load for as long as small pictures
/// are drawn, it takes as much as drawing; of large ones a tenth.
const SIZES: [ImageSize; 2] =
    [ImageSize { width: 1024, height: 800 }, ImageSize { width: 3840, height: 2160 }];
const QUICK_SIZE: ImageSize = ImageSize { width: 160, height: 128 };
/// Memory of the client, bytes.
const MEMORY_BYTES: u64 = 1 << 30;
/// Time to load over the time to draw.
const LOADS: [f64; 3] = [0.5, 1.0, 2.0];
/// Lowest rate of the links of the cases, bytes per second.
const MIN_RATE: f64 = 1e6;

const GOAL_RATIO: f64 = 1.05;

pub(super) async fn run(
    program: &Path,
    options: &Options,
    folder: &Path,
    finished: &mut Finished,
) -> Result<()> {
    let (side, steps, sizes) = if options.is_quick {
        (QUICK_SIDE, QUICK_STEPS, &[QUICK_SIZE][..])
    } else {
        (SIDE, STEPS, &SIZES[..])
    };
    let runs = options.runs_or(RUNS, QUICK_RUNS);
    let file = series(folder, side, steps)?;
    let server = RunningProcess::start(program, &["serve", &file]).await?;
    let mut url: Url = server.text("url")?.parse()?;
    let no_address = |_| Error::internal(format!("expected an address, found `{}`", url.authority()));
    let address: SocketAddr = url.authority().parse().map_err(no_address)?;
    let step_bytes = side.pow(3) as f64;
    for &size in sizes {
        for share in LOADS {
            let mut took = Vec::new();
            for _ in 0..runs {
                // What drawing takes without a limit decides how slow the link is.
                let (_, draw_secs) = film(&FilmPlace::of(&url, size), 0..1).await?.alone()?;
                let rate = (step_bytes / (share * draw_secs)).max(MIN_RATE);
                let relay = Relay::start(address, rate).await?;
                let port = std::mem::replace(&mut url.port, relay.address.port());
                took.push(once(&FilmPlace::of(&url, size), steps, rate).await?);
                url.port = port;
            }
            finished.add(case((share, size), steps, step_bytes, &took));
        }
    }
    Ok(())
}

/// Times of one run, seconds.
struct FilmTimes {
    rate: f64,
    load_secs: f64,
    render_secs: f64,
    total_secs: f64,
    bound_secs: f64,
}

impl FilmTimes {
    fn ratio(&self) -> f64 {
        self.total_secs / self.bound_secs
    }
}

/// Draws the steps one by one, each by a new client, and then all as a film by another.
async fn once(seat: &FilmPlace<'_>, steps: u64, rate: f64) -> Result<FilmTimes> {
    let (mut load_secs, mut render_secs) = (0.0, 0.0);
    for step in 0..steps {
        let (load, draw) = film(seat, step..step + 1).await?.alone()?;
        load_secs += load / steps as f64;
        render_secs += draw / steps as f64;
    }
    let total_secs = film(seat, 0..steps).await?.total_secs;
    let bound_secs = steps as f64 * load_secs.max(render_secs) + load_secs.min(render_secs);
    Ok(FilmTimes { rate, load_secs, render_secs, total_secs, bound_secs })
}

/// Server and size of the pictures.
struct FilmPlace<'a> {
    url: &'a Url,
    size: ImageSize,
}

impl<'a> FilmPlace<'a> {
    fn of(url: &'a Url, size: ImageSize) -> Self {
        Self { url, size }
    }
}

/// Times at which the first picture had its blocks, and at which the last picture was drawn.
struct PictureTimes {
    loaded_secs: Option<f64>,
    total_secs: f64,
}

impl PictureTimes {
    /// Times of a single picture: of loading, and of drawing after it, seconds.
    fn alone(&self) -> Result<(f64, f64)> {
        let loaded =
            self.loaded_secs.ok_or_else(|| Error::internal("expected blocks to come, found none"))?;
        Ok((loaded, self.total_secs - loaded))
    }
}

/// Draws time steps by a client with empty caches.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
async fn film(seat: &FilmPlace<'_>, steps: std::ops::Range<u64>) -> Result<PictureTimes> {
    let home = tempfile::tempdir()?;
    // What is counted are bytes of the link.
    let reach = ConnectOptions { compression: Compression::None, ..ConnectOptions::default() };
    let budget = MemoryBudget::viewing(MEMORY_BYTES);
    let context = Context::new(UserDirectories::below(home.path()), budget, None).reaching(reach);
    let source = assemble(&Location::Remote(seat.url.clone()), &context).await?.source;
    let dataset = source.describe().await?;
    let first = View::first_of(&dataset)?;
    let request = FilmRequest {
        views: steps.map(|time| View { time, ..first.clone() }).collect(),
        choice: None,
        range: stream::ColorRange::Usual,
        size: seat.size,
        resources: DrawResources::open(DrawDevice::Cpu, budget.render).await?,
        slabs: None,
        rank_group: None,
        pixels: PixelPrecision::default(),
    };
    let start = Instant::now();
    let mut loaded_secs = None;
    let mut film = Film::open(source, request).await?;
    let mut on_progress = |present: u64, wanted: u64| {
        if present == wanted && loaded_secs.is_none() {
            loaded_secs = Some(start.elapsed().as_secs_f64());
        }
    };
    while film.next(&mut on_progress).await?.is_some() {}
    Ok(PictureTimes { total_secs: start.elapsed().as_secs_f64(), loaded_secs })
}

fn case((share, size): (f64, ImageSize), steps: u64, step_bytes: f64, took: &[FilmTimes]) -> Case {
    let middle = |of: fn(&FilmTimes) -> f64| median(&mut took.iter().map(of).collect::<Vec<_>>());
    let ImageSize { width, height } = size;
    let name = format!("a film over a link, loading {share} times as long as drawing, {width}x{height}");
    let ratios = took.iter().map(FilmTimes::ratio).collect();
    Case::measured(&name, "", Better::Lower, ratios)
        .with("n", steps)
        .with("step_bytes", step_bytes)
        .with("rate", middle(|took| took.rate))
        .with("load_s", middle(|took| took.load_secs))
        .with("render_s", middle(|took| took.render_secs))
        .with("total_s", middle(|took| took.total_secs))
        .with("bound_s", middle(|took| took.bound_secs))
        .limited(1.0, "n max(load_s, render_s) + min(load_s, render_s), each measured alone in the same run")
        .aiming(GOAL_RATIO)
}

/// Writes time steps of the volume as a flat file with its description.
fn series(folder: &Path, side: u64, steps: u64) -> Result<String> {
    let volume = BenchVolume::new(side, false)?;
    let one = folder.join("step.raw");
    volume.write(&one)?;
    let bytes = std::fs::read(&one)?;
    let mut file = std::fs::File::create(folder.join("series.raw"))?;
    for _ in 0..steps {
        file.write_all(&bytes)?;
    }
    let description = folder.join("series.toml");
    let axes = [("t", "time"), ("z", "z"), ("y", "y"), ("x", "x")]
        .map(|(name, kind)| format!("{{ name = \"{name}\", kind = \"{kind}\" }}"))
        .join(", ");
    let shape = [steps, side, side, side];
    let text = format!("file = \"series.raw\"\nshape = {shape:?}\ndtype = \"u1\"\naxes = [{axes}]\n");
    std::fs::write(&description, text)?;
    Ok(description.to_string_lossy().into_owned())
}
