//! A simulated viewer: joins `corridor view` in a process of its own over a WebSocket, as a browser does, and acknowledges
//! each frame at once.

use std::path::Path;
use std::time::{Duration, Instant};

use array::{Error, ErrorKind, Priority, Result, Urgency};
use link::{OpStream, Trust};
use serde_json::{Value, json};
use session::{FidelityState, FrameInfo, Item, JoinParams, ParticipantNote, ViewChange};
use tokio::task::JoinSet;
use view::ViewCamera;
use wire::{ClientConfig, ops};

use super::super::first_picture::port_of;
use super::super::process::RunningProcess;

/// Longest wait for a frame.
const WITHIN: Duration = Duration::from_secs(120);
/// Size that a JPEG of an empty picture does not reach, bytes.
const BLANK_BYTES: usize = 4096;

/// Pixels of the window.
pub(super) const WIDTH: u32 = 1024;
pub(super) const HEIGHT: u32 = 800;

/// Difference between the numbers of two changes: the viewer's own changes have those in between.
const SEQ_STEP: u64 = 1 << 20;

/// Viewer of frames from `corridor view`.
pub(super) struct Viewer {
    process: RunningProcess,
    answer: OpStream,
    seq: u64,
    camera: Option<ViewCamera>,
    _driver: JoinSet<()>,
}

/// A received frame.
pub(super) struct ReceivedFrame {
    pub(super) info: FrameInfo,
    pub(super) at: Instant,
    pub(super) bytes: usize,
}

impl ReceivedFrame {
    /// Whether it shows blocks and is not empty.
    pub(super) fn shows_something(&self) -> bool {
        self.info.fidelity.blocks_present > 0 && self.bytes > BLANK_BYTES
    }

    /// As many pixels as the window has, of a view that rests and has all it wants.
    pub(super) fn is_full(&self) -> bool {
        self.info.width == WIDTH && self.info.fidelity.state == FidelityState::Complete
    }

    /// Whether it has all blocks that its view wants.
    pub(super) fn has_all(&self) -> bool {
        let fidelity = &self.info.fidelity;
        fidelity.blocks_total > 0 && fidelity.blocks_present == fidelity.blocks_total
    }

    /// Share of the window's pixels.
    pub(super) fn share(&self) -> f64 {
        f64::from(self.info.width) * f64::from(self.info.height) / f64::from(WIDTH * HEIGHT)
    }
}

impl Viewer {
    /// Starts a viewer of `location`; returns the start time too.
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    pub(super) async fn start(program: &Path, location: &str, memory: &str) -> Result<(Self, Instant)> {
        let process = RunningProcess::start(program, &["view", location, "--memory", memory]).await?;
        let port = port_of(process.text("url")?)?;
        let config = ClientConfig { token: process.text("token")?.to_owned(), ..ClientConfig::default() };
        let mut driver = JoinSet::new();
        let start = Instant::now();
        let link = link::carrier::ws::connect("127.0.0.1", port, &Trust::Plain).await?;
        let (client, running) = link::connect(link, config)?;
        driver.spawn(running);
        let join = JoinParams {
            session: "main".into(),
            name: "bench".into(),
            width: WIDTH,
            height: HEIGHT,
            resume: String::new(),
        };
        let urgency = Urgency::of(Priority::INTERACTIVE);
        let answer = client.request(ops::JOIN, ops::encode_json(&join)?, urgency).await?;
        Ok((Self { process, answer, seq: 0, camera: None, _driver: driver }, start))
    }

    /// Peak memory of the viewer's process, bytes.
    pub(super) fn peak_bytes(&self) -> Option<f64> {
        self.process.peak_bytes()
    }

    /// Changes the view by a patch, `moving` while more changes follow at once; returns the time.
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    pub(super) fn change(&mut self, patch: &Value, moving: bool) -> Result<Instant> {
        self.seq += SEQ_STEP;
        let view = patch.as_object().cloned().unwrap_or_default();
        let note = ParticipantNote::View(ViewChange { seq: self.seq, view, moving, automatic: false });
        self.answer.note(ops::encode_json(&note)?)?;
        Ok(Instant::now())
    }

    /// Turns the camera about its target.
    pub(super) fn turn(&mut self, yaw_rad: f64, moving: bool) -> Result<Instant> {
        let Some(camera) = &mut self.camera else {
            return Err(Error::internal("the viewer told no camera"));
        };
        let projection = view::Projection::Perspective { fov_y_rad: render::Camera::DEFAULT_FOV_Y_RAD };
        let ViewCamera { eye, target, up, .. } = *camera;
        camera.eye = render::Camera { eye, target, up, projection, aside: 0.0 }.orbit(yaw_rad, 0.0).eye;
        let patch = json!({ "camera": camera });
        self.change(&patch, moving)
    }

    /// The next frame of the last change.
    pub(super) async fn frame(&mut self) -> Result<ReceivedFrame> {
        let seq = self.seq;
        loop {
            let frame = self.any_frame().await?;
            if frame.info.seq >= seq {
                return Ok(frame);
            }
        }
    }

    /// The next frame.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    pub(super) async fn any_frame(&mut self) -> Result<ReceivedFrame> {
        let next = async {
            while let Some(item) = self.answer.next_item().await {
                let item = item?;
                match ops::decode_json::<Item>(&item.body, "an item of `join`")? {
                    Item::Frame(info) => {
                        let at = Instant::now();
                        self.answer.note(ops::encode_json(&ParticipantNote::Shown { frame: info.id })?)?;
                        return Ok(ReceivedFrame { info, at, bytes: item.bulk.len() });
                    }
                    Item::Joined { view, .. } | Item::View { view, .. } => {
                        self.camera = view.camera.or(self.camera.take());
                    }
                    _ => {}
                }
            }
            Err(Error::new(ErrorKind::Unreachable, "the session ended"))
        };
        let late = |_| Error::new(ErrorKind::TimedOut, "no frame came");
        tokio::time::timeout(WITHIN, next).await.map_err(late)?
    }

    /// The next frame that fulfills a condition.
    pub(super) async fn frame_where(
        &mut self,
        is_wanted: impl Fn(&ReceivedFrame) -> bool,
    ) -> Result<ReceivedFrame> {
        loop {
            let frame = self.frame().await?;
            if is_wanted(&frame) {
                return Ok(frame);
            }
        }
    }
}
