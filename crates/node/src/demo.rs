//! Demonstration in one process (`corridor demo`): a data server on its own port, and a viewing node that reads from it
//! over an encrypted connection.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use array::{Error, ErrorKind, Priority, Result, Urgency};
use client::directories::private_folder;
use client::url::Location;
use link::{ClientHandle, Trust};
use session::{FidelityState, FrameInfo, Item, JoinParams};
use tokio::task::JoinSet;
use wire::{ClientConfig, ops};

use crate::assemble::Context;
use crate::memory::MemoryBudget;
use crate::node::{self, Listen, ServerNode, ServerOptions};
use crate::operations::of_data_server;
use crate::view;

/// Header of the bundled volume.
const HEADER: &[u8] = include_bytes!("../../../data/sample/tooth.nhdr");
/// Voxels of the bundled volume, u16, big-endian.
const VOXELS: &[u8] = include_bytes!("../../../data/sample/tooth.raw");
/// Width and height of the picture of the check, in pixels.
const CHECK_SIZE: (u32, u32) = (512, 400);
/// Timeout of the check for a complete picture.
const CHECK_TIMEOUT: Duration = Duration::from_secs(120);
/// Minimum number of different colors in a picture of the sample.
const MIN_COLORS: usize = 64;

/// A data server, and a viewing node that is connected to it.
pub struct RunningDemo {
    /// The data server's URL of the sample.
    pub data_url: String,
    /// The viewing node.
    pub viewer: ServerNode,
    /// Task of the data server; aborted when this value is dropped.
    server: JoinSet<()>,
}

/// Writes the bundled volume to `folder`, unless it exists there; returns the path of its header.
///
/// # Errors
/// `Io`, `Denied`.
pub fn sample(folder: &Path) -> Result<PathBuf> {
    private_folder(folder)?;
    for (name, bytes) in [("tooth.raw", VOXELS), ("tooth.nhdr", HEADER)] {
        let path = folder.join(name);
        let at = |e: std::io::Error| Error::from(e).context(format!("write `{}`", path.display()));
        if !fs::read(&path).is_ok_and(|there| there == bytes) {
            let beside = folder.join(format!(".{name}.part{}", std::process::id()));
            fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, &path)).map_err(at)?;
        }
    }
    Ok(folder.join("tooth.nhdr"))
}

/// Starts both nodes. `options` are those of the viewing node; the URL of the sample replaces its locations.
///
/// # Errors
/// The errors of opening, listening and connecting.
pub async fn start(options: &ServerOptions) -> Result<RunningDemo> {
    let sample = sample(&options.context.directories.cache.join("sample"))?;
    // Two nodes in one process: half of its memory each.
    let half = options.context.budget.whole / 2;
    let common = &options.context;
    let with = |budget| {
        Context::new(common.directories.clone(), budget, common.on_progress.clone()).reaching(common.reach)
    };
    let serving = ServerOptions {
        locations: vec![Location::Path(sample)],
        listen: Listen::Loopback(0),
        peers: Vec::new(),
        waiting_clients: Vec::new(),
        context: with(MemoryBudget::serving(half)),
        ..options.clone()
    };
    let shared = node::open(&serving).await?;
    let server = node::start(&serving, shared, of_data_server()).await?;
    let url = server.url("tooth.nhdr");
    let mut running = JoinSet::new();
    running.spawn(server.run());
    let viewing = ServerOptions {
        locations: vec![Location::Remote(url.clone())],
        context: with(MemoryBudget::viewing(half)),
        ..options.clone()
    };
    let viewer = view::start(&viewing, None, stream::DrawDevice::Auto, None).await?;
    Ok(RunningDemo { data_url: url.to_string(), viewer, server: running })
}

impl RunningDemo {
    /// Serves until the future is dropped.
    pub async fn run(self) {
        let _server = self.server;
        self.viewer.run().await;
    }

    /// Checks the node without a browser: joins the session over the WebSocket, waits for the complete, exact picture
    /// and checks it.
    ///
    /// # Errors
    /// `TimedOut` if no complete picture arrives; `Corrupt` if it is not a picture of the sample.
    pub async fn check(self) -> Result<DemoCheck> {
        let port = self.viewer.address.port();
        let token = self.viewer.token().unwrap_or_default().to_owned();
        let mut running = self.server;
        running.spawn(self.viewer.run());
        let link = link::carrier::ws::connect("127.0.0.1", port, &Trust::Plain).await?;
        let (client, driver) = link::connect(link, ClientConfig { token, ..ClientConfig::default() })?;
        running.spawn(driver);
        tokio::time::timeout(CHECK_TIMEOUT, complete_picture(&client)).await.map_err(|_| {
            Error::new(ErrorKind::TimedOut, format!("no complete picture within {CHECK_TIMEOUT:?}"))
        })?
    }
}

/// Result of the check.
#[derive(Clone, Debug)]
pub struct DemoCheck {
    /// Facts of the picture.
    pub frame: FrameInfo,
    /// Number of frames up to it.
    pub frames: u64,
    /// Number of different colors in it.
    pub colors: usize,
}

async fn complete_picture(client: &ClientHandle) -> Result<DemoCheck> {
    let (width, height) = CHECK_SIZE;
    let join =
        JoinParams { session: String::new(), name: "check".into(), width, height, resume: String::new() };
    let urgency = Urgency::of(Priority::INTERACTIVE);
    let mut answer = client.request(ops::JOIN, ops::encode_json(&join)?, urgency).await?;
    let mut frames = 0;
    while let Some(item) = answer.next_item().await {
        let item = item?;
        let Item::Frame(frame) = ops::decode_json::<Item>(&item.body, "an item of `join`")? else { continue };
        frames += 1;
        answer.note(ops::encode_json(&session::ParticipantNote::Shown { frame: frame.id })?)?;
        if frame.fidelity.exact && frame.fidelity.state == FidelityState::Complete {
            let colors = colors(&item.bulk, &frame)?;
            return Ok(DemoCheck { frame, frames, colors });
        }
    }
    Err(Error::new(ErrorKind::Unreachable, "the session ended before the picture was complete"))
}

/// Decodes the picture and counts its colors: an empty one has a single color.
fn colors(encoded: &[u8], frame: &FrameInfo) -> Result<usize> {
    let corrupt = |what: String| Error::corrupt(format!("expected a picture of the sample, found {what}"));
    let decoder = png::Decoder::new(std::io::Cursor::new(encoded));
    let mut reader = decoder.read_info().map_err(|e| corrupt(e.to_string()))?;
    let size = reader.output_buffer_size().ok_or_else(|| corrupt("a picture beyond memory".into()))?;
    let mut pixels = vec![0; size];
    let info = reader.next_frame(&mut pixels).map_err(|e| corrupt(e.to_string()))?;
    if (info.width, info.height) != (frame.width, frame.height) || (info.width, info.height) != CHECK_SIZE {
        return Err(corrupt(format!("one of {} x {} pixels", info.width, info.height)));
    }
    let samples = info.color_type.samples();
    let colors: std::collections::BTreeSet<&[u8]> = pixels.chunks_exact(samples).collect();
    if colors.len() < MIN_COLORS {
        return Err(corrupt(format!("one of {} colors", colors.len())));
    }
    Ok(colors.len())
}
