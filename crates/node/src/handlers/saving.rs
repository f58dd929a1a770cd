//! Operations `still` and `film`: pictures of any size and films of what a session shows, for a page to save.
//!
//! They are drawn behind the pictures of viewers: on threads of lower priority, with blocks of their own that are requested
//! after theirs, in memory of their own. One is drawn at a time; others wait.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use array::{Error, ErrorKind, Result, Source};
use bytes::Bytes;
use export::film::{FilmOptions, Journey, PicturesRequest, TimeSteps, VideoCodec, check_output, draw};
use export::picture::PictureRequest;
use export::row_pictures::{MAX_PANES, SheetPane, SheetRequest, SheetStage, draw_png};
use render::{CameraPath, ImageSize, Rect};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use server::ops::{BeginOutcome, Handler, OperationCall};
use stream::{DrawResources, GeometryFetch, MIN_MEMORY_BYTES, Session, ViewChoice};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use wire::ops::{self, encode_json};

/// Pictures and films that may wait for the one being drawn; one more is refused.
const MAX_WAITING: usize = 8;
/// Bytes of a file in one item.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces of a picture that wait until the connection has room for them; then drawing waits.
const PIECES_AHEAD: usize = 2;
/// Longest time for which a connection may take nothing of a file; then the call ends.
const MOST_STALLED: Duration = Duration::from_secs(60);
/// Most stops of a film's path: as many as a session has bookmarks.
const MAX_STOPS: usize = 64;

/// Parameters of `still`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct StillParameters {
    /// View of the picture.
    #[serde(flatten)]
    view: ViewChoice,
    width: u32,
    height: u32,
    /// Whether axes, a scale bar and legends are drawn.
    #[serde(default)]
    annotations: bool,
    /// Whether the picture has no background.
    #[serde(default)]
    transparent: bool,
    /// Several views side by side instead of one.
    #[serde(default)]
    panes: Vec<PaneParameters>,
}

/// Part of a picture: the fields of the view that differ, and its place.
#[derive(Clone, Debug, Deserialize)]
struct PaneParameters {
    #[serde(default)]
    view: Map<String, Value>,
    left: u32,
    top: u32,
    width: u32,
    height: u32,
}

/// Parameters of `film`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FilmParameters {
    /// View of the first picture.
    #[serde(flatten)]
    view: ViewChoice,
    width: u32,
    height: u32,
    /// Whether axes, a scale bar and legends are drawn.
    #[serde(default)]
    annotations: bool,
    /// Motion.
    of: FilmSubject,
    /// Number of pictures; by default that of the time steps, or 100.
    #[serde(default)]
    pictures: Option<u32>,
    /// Pictures per second.
    #[serde(default)]
    fps: Option<f64>,
    /// Quality, from 1 to 100.
    #[serde(default)]
    quality: Option<u8>,
    /// Codec and container.
    #[serde(default)]
    format: FilmFormat,
}

/// Subject of a film.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FilmSubject {
    /// Time steps from `start` to before `stop`.
    Time {
        #[serde(default)]
        start: Option<u64>,
        #[serde(default)]
        stop: Option<u64>,
        #[serde(default)]
        step: Option<u64>,
    },
    /// A turn around the point that the camera looks at, in degrees.
    Turn { degrees: f64 },
    /// A path through views with cameras.
    Path {
        stops: Vec<Map<String, Value>>,
        #[serde(default)]
        straight: bool,
    },
}

/// Codec and container of a film.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FilmFormat {
    /// H.264 in MP4.
    #[default]
    Mp4,
    /// AV1 in MP4.
    Av1,
    /// AV1 in WebM.
    Webm,
}

/// Item of `still` and `film`.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum SavingItem<'a> {
    /// Progress: `waiting`, `blocks`, `rows` or `pictures`.
    Progress { what: &'a str, done: u64, total: u64 },
    /// Part of the file, in the item's bulk, which begins at byte `offset`.
    Piece { offset: u64 },
    /// The end: what the file shows.
    Result(Value),
}

/// State that both operations share.
pub(crate) struct SavingState {
    session: Arc<Session>,
    source: Arc<dyn Source>,
    /// Source of the geometry that views name.
    geometry: GeometryFetch,
    /// Memory for blocks, bytes.
    memory_bytes: u64,
    turn: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl SavingState {
    /// Shares what `source` describes, which is what `session` shows, and the geometry beside it.
    pub(crate) fn new(
        session: Arc<Session>,
        source: Arc<dyn Source>,
        geometry: GeometryFetch,
        memory_bytes: u64,
    ) -> Arc<Self> {
        Arc::new(Self {
            session,
            source,
            geometry,
            memory_bytes: memory_bytes.max(MIN_MEMORY_BYTES),
            turn: Arc::new(Semaphore::new(1)),
            waiting: Arc::new(Semaphore::new(1 + MAX_WAITING)),
        })
    }

    /// Waits for the turn of a call; the permits are held while it is drawn.
    async fn turn(&self, call: &OperationCall) -> Result<[OwnedSemaphorePermit; 2]> {
        let place = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| {
            Error::new(
                ErrorKind::Busy,
                format!("one picture or film is being made and {MAX_WAITING} others wait; try again later"),
            )
        })?;
        if self.turn.available_permits() == 0 {
            progress(call, "waiting", 0, 0);
        }
        let turn = Arc::clone(&self.turn).acquire_owned().await;
        Ok([place, turn.map_err(|_| Error::internal("the turns of pictures have ended"))?])
    }

    /// Returns the resources of a picture or film.
    fn resources(&self) -> Result<DrawResources> {
        Ok(DrawResources::in_background(self.memory_bytes)?.with_geometry(Arc::clone(&self.geometry)))
    }

    /// Returns the request for a picture of a view with some fields.
    fn picture(&self, choice: &ViewChoice) -> Result<PictureRequest> {
        let view = self.session.view_for(choice)?;
        let text =
            serde_json::to_string(&view).map_err(|e| Error::internal(format!("a view in JSON: {e}")))?;
        Ok(PictureRequest { view: Some(text), ..PictureRequest::default() })
    }
}

fn progress(call: &OperationCall, what: &str, done: u64, total: u64) {
    if let Ok(body) = encode_json(&SavingItem::Progress { what, done, total }) {
        // Progress is left out while the connection has no room.
        call.operation.try_item(body, Bytes::new()).unwrap_or_default();
    }
}

/// Sends a part of a file as soon as the connection has room.
///
/// # Errors
/// `TimedOut` if the connection has none for [`MOST_STALLED`]: others wait for their turn.
async fn piece(call: &OperationCall, offset: u64, bytes: Bytes) -> Result<()> {
    let sending = call.operation.item(encode_json(&SavingItem::Piece { offset })?, bytes);
    tokio::time::timeout(MOST_STALLED, sending).await.unwrap_or_else(|_| {
        let seconds = MOST_STALLED.as_secs();
        Err(Error::new(
            ErrorKind::TimedOut,
            format!("the connection took nothing of the file for {seconds} s"),
        ))
    })
}

fn parsed<T: DeserializeOwned>(parameters: &[u8], what: &str) -> Result<T> {
    serde_json::from_slice(parameters)
        .map_err(|e| Error::invalid(format!("expected parameters of `{what}` in JSON: {e}")))
}

/// Answers `still`.
pub(crate) struct StillHandler(pub(crate) Arc<SavingState>);

impl Handler for StillHandler {
    type Work = StillParameters;

    fn name(&self) -> &'static str {
        ops::STILL
    }

    fn is_forwarded(&self) -> bool {
        false
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<StillParameters>> {
        let still: StillParameters = parsed(&parameters, ops::STILL)?;
        ImageSize { width: still.width, height: still.height }.check_sides()?;
        if still.panes.len() > MAX_PANES {
            return Err(Error::too_large(format!("expected at most {MAX_PANES} pictures side by side")));
        }
        Ok(BeginOutcome::Work(still))
    }

    async fn run(&self, still: StillParameters, call: &OperationCall) -> Result<()> {
        let _turn = self.0.turn(call).await?;
        let request = self.request(&still)?;
        let resources = self.0.resources()?;
        let (pieces, mut taken) = mpsc::channel(PIECES_AHEAD);
        let on_progress = |stage, done, total| {
            let what = if stage == SheetStage::Blocks { "blocks" } else { "rows" };
            progress(call, what, done, total);
        };
        let drawing = draw_png(&self.0.source, &request, resources, PieceWriter::new(pieces), on_progress);
        let sending = async {
            let mut sent = 0;
            while let Some(bytes) = taken.recv().await {
                let count = Bytes::len(&bytes) as u64;
                piece(call, sent, bytes).await?;
                sent += count;
            }
            Ok(sent)
        };
        let (drawn, bytes) = tokio::try_join!(drawing, sending)?;
        let result =
            json!({"text": drawn.text(), "truth": drawn.fidelity, "views": drawn.views, "bytes": bytes});
        call.operation.item(encode_json(&SavingItem::Result(result))?, Bytes::new()).await
    }
}

impl StillHandler {
    fn request(&self, still: &StillParameters) -> Result<SheetRequest> {
        let size = ImageSize { width: still.width, height: still.height };
        let picture = self.0.picture(&still.view)?;
        let request = SheetRequest {
            is_transparent: still.transparent,
            is_annotated: still.annotations,
            ..SheetRequest::single(picture, size)
        };
        if still.panes.is_empty() {
            return Ok(request);
        }
        let pane = |pane: &PaneParameters| {
            let PaneParameters { left, top, width, height, .. } = *pane;
            let mut choice = still.view.clone();
            choice.view.extend(pane.view.clone());
            Ok(SheetPane { picture: self.0.picture(&choice)?, rect: Rect { left, top, width, height } })
        };
        Ok(SheetRequest { panes: still.panes.iter().map(pane).collect::<Result<_>>()?, ..request })
    }
}

/// Output of a picture: its bytes become pieces for the connection. Blocks the thread while they are not taken.
struct PieceWriter {
    pieces: mpsc::Sender<Bytes>,
    buffer: Vec<u8>,
}

impl PieceWriter {
    fn new(pieces: mpsc::Sender<Bytes>) -> Self {
        Self { pieces, buffer: Vec::new() }
    }
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() == PIECE_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.buffer));
        self.pieces.blocking_send(piece).map_err(|_| io::Error::other(Error::cancelled()))
    }
}

/// Answers `film`.
pub(crate) struct FilmHandler(pub(crate) Arc<SavingState>);

impl Handler for FilmHandler {
    type Work = FilmParameters;

    fn name(&self) -> &'static str {
        ops::FILM
    }

    fn is_forwarded(&self) -> bool {
        false
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<FilmParameters>> {
        let film: FilmParameters = parsed(&parameters, ops::FILM)?;
        if let FilmSubject::Path { stops, .. } = &film.of
            && !(2..=MAX_STOPS).contains(&stops.len())
        {
            let found = stops.len();
            return Err(Error::invalid(format!(
                "expected a path through 2 to {MAX_STOPS} views, found {found}"
            )));
        }
        Ok(BeginOutcome::Work(film))
    }

    async fn run(&self, film: FilmParameters, call: &OperationCall) -> Result<()> {
        let [_place, turn] = self.0.turn(call).await?;
        let size = ImageSize { width: film.width, height: film.height };
        let folder = FilmFolder::create()?;
        let path = folder.film(film.format);
        let request = self.request(&film)?;
        check_output(&path, size, &request.film)?;
        let resources = self.0.resources()?;
        let on_progress = |done, total| progress(call, "pictures", done, total);
        let drawn = draw(&self.0.source, &request, size, resources, None, &path, on_progress).await?;
        let drawn = drawn.ok_or_else(|| Error::internal("expected a film, found none"))?;
        // The film is finished: the next one may be drawn while this one is sent.
        drop(turn);
        let bytes = send_file(call, &path).await?;
        let text = format!("{} pictures; the last one: {}", drawn.pictures, drawn.fidelity.text);
        let result = json!({"text": text, "truth": [drawn.fidelity], "views": [drawn.view], "bytes": bytes,
            "pictures": drawn.pictures});
        call.operation.item(encode_json(&SavingItem::Result(result))?, Bytes::new()).await
    }
}

impl FilmHandler {
    fn request(&self, film: &FilmParameters) -> Result<PicturesRequest> {
        let options = FilmOptions::default();
        let (times, journey) = match &film.of {
            FilmSubject::Time { start, stop, step } => {
                (Some(TimeSteps::between(*start, *stop, step.unwrap_or(1))?), None)
            }
            FilmSubject::Turn { degrees } => (None, Some(Journey::Turn(*degrees))),
            FilmSubject::Path { stops, straight } => {
                let shape = if *straight { CameraPath::Straight } else { CameraPath::Smooth };
                (None, Some(Journey::Stops(stops.clone(), shape)))
            }
        };
        let quality = film.quality.map(|quality| quality.to_string().parse()).transpose()?;
        Ok(PicturesRequest {
            times,
            journey,
            pictures: film.pictures,
            is_annotated: film.annotations,
            film: FilmOptions {
                pictures_per_sec: film.fps.unwrap_or(options.pictures_per_sec),
                quality: quality.unwrap_or(options.quality),
                codec: match film.format {
                    FilmFormat::Mp4 => VideoCodec::H264,
                    FilmFormat::Av1 | FilmFormat::Webm => VideoCodec::Av1,
                },
            },
            ..PicturesRequest::from(self.0.picture(&film.view)?)
        })
    }
}

/// Sends a file piece by piece; returns its size.
async fn send_file(call: &OperationCall, path: &std::path::Path) -> Result<u64> {
    use tokio::io::AsyncReadExt;
    let mut file = tokio::fs::File::open(path).await?;
    let mut sent = 0;
    loop {
        let mut bytes = Vec::with_capacity(PIECE_BYTES);
        (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut bytes).await?;
        if bytes.is_empty() {
            return Ok(sent);
        }
        let count = bytes.len() as u64;
        piece(call, sent, bytes.into()).await?;
        sent += count;
    }
}

/// Private folder for a film that is being made, removed when dropped.
struct FilmFolder(PathBuf);

impl FilmFolder {
    /// Most leftover folders of the same process id that are skipped.
    const MAX_LEFTOVERS: u32 = 100;

    fn create() -> Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let mut number = 0;
        loop {
            let path = std::env::temp_dir().join(format!("corridor-film-{}-{number}", std::process::id()));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < Self::MAX_LEFTOVERS => {
                    number += 1
                }
                Err(e) => {
                    let what = "a film needs a temporary folder (set `TMPDIR` to one that may be written to)";
                    return Err(Error::from(e).context(what));
                }
            }
        }
    }

    fn film(&self, format: FilmFormat) -> PathBuf {
        self.0.join(match format {
            FilmFormat::Mp4 | FilmFormat::Av1 => "film.mp4",
            FilmFormat::Webm => "film.webm",
        })
    }
}

impl Drop for FilmFolder {
    fn drop(&mut self) {
        // A leftover that cannot be removed has a descriptive name.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_as_the_page_writes_them() {
        let text =
            br#"{"participant": 3, "view": {"time": 2}, "width": 16384, "height": 9000, "annotations": true,
            "panes": [{"left": 0, "top": 0, "width": 8192, "height": 9000, "view": {"time": 1}}]}"#;
        let still: StillParameters = parsed(text, "still").unwrap();
        assert_eq!(
            (still.view.view["time"].as_u64(), still.panes[0].view["time"].as_u64()),
            (Some(2), Some(1))
        );
        assert!(still.annotations && !still.transparent);
        for of in [
            r#"{"time": {}}"#,
            r#"{"time": {"start": 1, "stop": 9, "step": 2}}"#,
            r#"{"turn": {"degrees": 360}}"#,
            r#"{"path": {"stops": [{}, {}], "straight": true}}"#,
        ] {
            let text = format!(r#"{{"width": 640, "height": 480, "of": {of}, "format": "webm"}}"#);
            parsed::<FilmParameters>(text.as_bytes(), "film").unwrap();
        }
        let error = parsed::<FilmParameters>(br#"{"width": 640}"#, "film").unwrap_err().to_string();
        assert!(error.contains("`film`"), "{error}");
    }

    #[tokio::test]
    async fn pictures_have_the_geometry_of_the_session() {
        use array::conformance::{MemorySource, one_array};
        let dataset = one_array("|u1".parse().unwrap(), &[8; 3], &[8; 3]);
        let source = MemorySource::new(dataset.clone(), vec![vec![vec![7u8; 512].into()]]).unwrap();
        let source: Arc<dyn Source> = Arc::new(source);
        let session = Session::begin(
            Arc::new(dataset),
            Arc::clone(&source),
            MIN_MEMORY_BYTES,
            None,
            Arc::new(|_| None),
        );
        let fetch: GeometryFetch =
            Arc::new(|_| Box::pin(async { Ok(Bytes::from_static(b"x,y,z\n1,2,3\n")) }));
        let state = SavingState::new(Arc::new(session.unwrap()), Arc::clone(&source), fetch, 0);
        let choice = serde_json::from_str(r#"{"view": {"layers": [{"geometry": "points.csv"}]}}"#).unwrap();
        let size = ImageSize { width: 32, height: 24 };
        let request = SheetRequest::single(state.picture(&choice).unwrap(), size);
        let resources = state.resources().unwrap();
        draw_png(&source, &request, resources, io::sink(), |_, _, _| ()).await.unwrap();
    }

    #[test]
    fn a_folder_of_a_film_is_private_and_removed() {
        use std::os::unix::fs::PermissionsExt;
        let (one, other) = (FilmFolder::create().unwrap(), FilmFolder::create().unwrap());
        assert_ne!(one.0, other.0);
        assert_eq!(one.0.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(one.film(FilmFormat::Mp4), b"x").unwrap();
        let path = one.0.clone();
        drop(one);
        assert!(!path.exists() && other.0.exists());
    }

    #[tokio::test]
    async fn a_picture_whose_receiver_is_gone_is_not_written() {
        let (pieces, mut taken) = mpsc::channel(PIECES_AHEAD);
        let writing = tokio::task::spawn_blocking(move || {
            let mut out = PieceWriter::new(pieces);
            out.write_all(&vec![7; PIECE_BYTES + 5])?;
            out.flush()?;
            out.write_all(&vec![7; 4 * PIECE_BYTES])
        });
        let sizes = [taken.recv().await.unwrap().len(), taken.recv().await.unwrap().len()];
        assert_eq!(sizes, [PIECE_BYTES, 5]);
        drop(taken);
        writing.await.unwrap().unwrap_err();
    }
}
