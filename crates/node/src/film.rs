//! Pictures in files: one, or many of time steps and of a camera that travels, numbered or as a film.
//!
//! What a picture shows is [`picture`](crate::picture)'s business; here is which pictures there are, and how each is written.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use array::{ArrayInfo, Attribute, Axis, AxisKind, Coordinates, Dataset, Error, Result};
use render::{Background, Camera, Image, ImageSize, Key, Notes, Span, TransferFunction, VolumeView, stereo};
use serde_json::{Map, Value, json};
use session::{Truth, View};
pub use stream::compose::{Communicator, Method};
use stream::{
    Film, FilmRequest, H264, Means, Still, camera_in, grid_colour, render_by_threads, render_together,
};

use crate::assemble::Stack;
use crate::output::Draft;
use crate::output::mp4::Mp4;
use crate::picture::{PictureRequest, ViewMode, colour_map, view_of, wish};

/// Most pictures of one command: a quarter of an hour at 25 a second.
pub const MAX_PICTURES: u32 = 22_500;
/// Pictures of a camera's journey where nobody says how many.
const JOURNEY_PICTURES: u32 = 100;
/// Largest file of a journey's places, bytes.
const MAX_JOURNEY_BYTES: u64 = 4 << 20;

/// Which pictures are drawn.
#[derive(Clone, Debug)]
pub struct PicturesRequest {
    /// What each shows.
    pub picture: PictureRequest,
    /// Time steps, instead of the picture's one.
    pub times: Option<Times>,
    /// How the camera travels from the first picture to the last one.
    pub journey: Option<Journey>,
    /// How many; the time steps are spread over them. By default as many as there are time steps, or 100.
    pub pictures: Option<u32>,
    /// Rate of a film.
    pub pictures_per_sec: f64,
    /// With the volume's box, a scale bar and a legend.
    pub is_annotated: bool,
}

impl From<PictureRequest> for PicturesRequest {
    /// One picture, plain.
    fn from(picture: PictureRequest) -> Self {
        Self {
            picture,
            times: None,
            journey: None,
            pictures: None,
            pictures_per_sec: 25.0,
            is_annotated: false,
        }
    }
}

impl PicturesRequest {
    /// Whether it asks for more than one picture, as far as can be seen without the data.
    #[must_use]
    pub fn is_several(&self) -> bool {
        self.times.is_some() || self.journey.is_some() || self.pictures.is_some()
    }
}

/// Time steps from `start` to before `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    start: Option<u64>,
    stop: Option<u64>,
    step: u64,
}

impl FromStr for Times {
    type Err = Error;

    /// `START:STOP[:STEP]` as in a selection; each may be left out.
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::invalid(format!(
                "expected time steps such as `3`, `0:24` or `::6` (START:STOP:STEP), found `{text}`"
            ))
        };
        let number = |part: &str| match part.trim() {
            "" => Ok(None),
            digits => digits.parse().map(Some).map_err(|_| bad()),
        };
        let parts: Vec<Option<u64>> = text.split(':').map(number).collect::<Result<_>>()?;
        match *parts.as_slice() {
            [start, stop] => Ok(Self { start, stop, step: 1 }),
            [start, stop, step] if step != Some(0) => Ok(Self { start, stop, step: step.unwrap_or(1) }),
            _ => Err(bad()),
        }
    }
}

impl Times {
    /// The steps, of `count` that there are.
    fn of(self, count: u64) -> Result<Vec<u64>> {
        let (start, stop) = (self.start.unwrap_or(0), self.stop.unwrap_or(count));
        if start >= stop || stop > count {
            return Err(Error::invalid(format!(
                "expected time steps between 0 and {count}, and at least one, found {start} to before {stop}"
            )));
        }
        let steps = (stop - start).div_ceil(self.step);
        if steps > u64::from(MAX_PICTURES) {
            return Err(Error::too_large(format!(
                "expected at most {MAX_PICTURES} time steps, found {steps}"
            )));
        }
        Ok((0..steps).map(|number| start + number * self.step).collect())
    }
}

/// How the camera travels.
#[derive(Clone, Debug, PartialEq)]
pub enum Journey {
    /// About what it looks at, by so many degrees.
    Turn(f64),
    /// Through the cameras of a JSON file: a list of cameras as in a view, or of views.
    Through(PathBuf),
}

impl FromStr for Journey {
    type Err = Error;

    /// `turn`, `turn:DEGREES`, or the name of a file.
    fn from_str(text: &str) -> Result<Self> {
        let degrees = match text.split_once(':') {
            None if text == "turn" => "360",
            Some(("turn", degrees)) => degrees,
            _ => return Ok(Self::Through(text.into())),
        };
        let degrees: Option<f64> = degrees.trim().parse().ok().filter(|d: &f64| d.is_finite());
        degrees.map(Self::Turn).ok_or_else(|| {
            Error::invalid(format!("expected `turn`, `turn:DEGREES` or a file of cameras, found `{text}`"))
        })
    }
}

impl Journey {
    /// The cameras of so many pictures, from `first` on.
    fn cameras(&self, first: &Camera, pictures: u32) -> Result<Vec<Camera>> {
        match self {
            Self::Turn(degrees) => Ok(render::turn(first, *degrees, pictures)),
            Self::Through(path) => {
                let failed = |e: Error| {
                    e.context(format!(
                        "a journey is `turn`, `turn:DEGREES` or a file of cameras; read `{}`",
                        path.display()
                    ))
                };
                let places = places(path).map_err(failed)?;
                render::through(&places, pictures).map_err(failed)
            }
        }
    }
}

/// The cameras that a file lists.
fn places(path: &Path) -> Result<Vec<Camera>> {
    let size = std::fs::metadata(path)?.len();
    if size > MAX_JOURNEY_BYTES {
        return Err(Error::too_large(format!("expected at most {MAX_JOURNEY_BYTES} bytes, found {size}")));
    }
    let bad = |why: &dyn std::fmt::Display| {
        Error::invalid(format!(
            "expected a JSON list of cameras as in a view, or of views with cameras, found another: {why}"
        ))
    };
    let list: Vec<Map<String, Value>> = serde_json::from_slice(&std::fs::read(path)?).map_err(|e| bad(&e))?;
    let camera = |mut place: Map<String, Value>| {
        let value = place.remove("camera").unwrap_or(Value::Object(place));
        serde_json::from_value(value).map_err(|e| bad(&e))
    };
    list.into_iter().map(camera).collect()
}

/// What was drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// How many pictures.
    pub pictures: u32,
    /// What the last one shows.
    pub truth: Truth,
}

/// Who draws a picture together with this process.
#[derive(Clone)]
pub enum Company {
    /// So many ranks in it, which share its memory.
    Threads(usize),
    /// Other processes, which make the same call; rank 0 writes the file.
    Processes(Arc<dyn Communicator>),
}

/// Draws pictures into files: `output` ends in `.png` or `.exr`, with `%d` or `%04d` in its name for several (numbers from 0),
/// or in `.mp4`. Where there is `company` it is one `.png`. `None` where another process writes it. `progress` hears blocks present and wanted of a single picture, else pictures done and asked for.
///
/// # Errors
/// What does not fit in the view, blocks that cannot be had, `Io`. Pictures that were finished before stay.
///
/// # Cancel safety
/// Dropping it leaves the pictures that are finished; of a film nothing.
pub async fn draw(
    stack: &Stack,
    request: &PicturesRequest,
    size: ImageSize,
    means: Means,
    company: Option<(Company, Method)>,
    output: &Path,
    mut progress: impl FnMut(u64, u64),
) -> Result<Option<Drawn>> {
    let kind = Kind::of(output)?;
    if let Some(company) = company {
        if request.is_several() || request.is_annotated || kind != Kind::Png {
            return Err(Error::unsupported(
                "expected one picture as .png, without notes, of several ranks; films, several pictures, .exr and `--annotate` are \
                 drawn by one",
            ));
        }
        return draw_together(stack, &request.picture, size, means, company, output, progress).await;
    }
    let dataset = stack.source.describe().await?;
    let views = views(request, size, &dataset)?;
    let count = u32::try_from(views.len()).unwrap_or(u32::MAX);
    let mut sink = Sink::open(output, kind, count, size, request.pictures_per_sec)?;
    let colour_map = colour_map(&request.picture)?;
    let film = FilmRequest { views, colour_map, size, means };
    let mut film = Film::open(Arc::clone(&stack.source), film).await?;
    let (mut done, mut truth) = (0, None);
    let is_several = request.is_several();
    if is_several {
        progress(0, u64::from(count));
    }
    loop {
        let of_blocks = |blocks, total| {
            if !is_several {
                progress(blocks, total);
            }
        };
        let Some(mut still) = film.next(of_blocks).await? else { break };
        truth = Some(still.truth.clone());
        let notes = request.is_annotated.then(|| notes(&still.view, size, &dataset)).transpose()?;
        let finish = move || {
            match (notes, still.view.stereo) {
                (Some(notes), Some(parallax)) => stereo::annotate_pair(&mut still.image, &notes, parallax)?,
                (Some(notes), None) => render::annotate(&mut still.image, &notes)?,
                (None, _) => {}
            }
            sink.take(done, &still).map(|()| sink)
        };
        // The next one's blocks come meanwhile.
        let taken = tokio::task::spawn_blocking(finish).await;
        sink = taken.map_err(|e| Error::internal(format!("a picture could not be written: {e}")))??;
        done += 1;
        if is_several {
            progress(u64::from(done), u64::from(count));
        }
    }
    sink.finish()?;
    let truth = truth.ok_or_else(|| Error::internal("expected a picture, found none"))?;
    Ok(Some(Drawn { pictures: done, truth }))
}

/// One picture by several ranks.
async fn draw_together(
    stack: &Stack,
    request: &PictureRequest,
    size: ImageSize,
    means: Means,
    (company, method): (Company, Method),
    output: &Path,
    progress: impl FnMut(u64, u64),
) -> Result<Option<Drawn>> {
    let still = wish(stack, request, size, means).await?;
    let source = Arc::clone(&stack.source);
    let finished = match company {
        Company::Processes(ranks) => render_together(source, still, ranks, method, progress).await?,
        Company::Threads(count) => Some(render_by_threads(source, still, count, method, progress).await?),
    };
    let Some(finished) = finished else { return Ok(None) };
    write(output, &render::png_of_rgb8(size, &finished.rgb)?)?;
    Ok(Some(Drawn { pictures: 1, truth: finished.truth }))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let draft = Draft::beside(path)?;
    std::fs::write(&draft.path, bytes).map_err(|e| draft.failed(e))?;
    draft.keep()
}

/// One view for each picture.
fn views(request: &PicturesRequest, size: ImageSize, dataset: &Dataset) -> Result<Vec<View>> {
    // Each picture's time is set below; the box that a camera frames is that of all.
    let base = view_of(&request.picture, size, dataset)?;
    let steps = match request.times {
        None => vec![base.time],
        Some(times) => {
            let (_, array) = dataset.find(&base.array)?;
            let count = array.time_axis().map_or(1, |axis| array.shape()[axis]);
            times.of(count)?
        }
    };
    let is_one_step = steps.len() == 1;
    let steps_count = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let few = if request.journey.is_some() && is_one_step { JOURNEY_PICTURES } else { steps_count };
    let count = request.pictures.unwrap_or(few);
    if count == 0 || count > MAX_PICTURES {
        return Err(Error::invalid(format!("expected 1 to {MAX_PICTURES} pictures, found {count}")));
    }
    let cameras = match &request.journey {
        None => Vec::new(),
        Some(journey) => journey.cameras(&camera_in(&base, dataset, size)?, count)?,
    };
    (0..count as usize)
        .map(|number| {
            let mut fields = Map::new();
            fields.insert("time".into(), steps[number * steps.len() / count as usize].into());
            if let Some(camera) = cameras.get(number) {
                fields.insert("camera".into(), json!(camera));
            }
            base.merged(&fields)
        })
        .collect()
}

/// What is written into the picture of a finished view.
fn notes(view: &View, size: ImageSize, dataset: &Dataset) -> Result<Notes> {
    let (number, array, position) = view.place_in(dataset)?;
    let name = |kind: AxisKind, other: &str| {
        let own = array.axes.iter().find(|axis| axis.kind == kind).map(|axis| axis.name.as_str());
        own.filter(|name| !name.is_empty()).unwrap_or(other).to_owned()
    };
    let values = match array.units.as_str() {
        "" => array.name.clone(),
        units => format!("{} [{units}]", array.name),
    };
    // Of surfaces and slices alone only slices have the colours of the transfer function.
    let has_colours = view.mode != ViewMode::Surfaces || !view.slices.is_empty();
    let transfer = view.transfer.as_ref().filter(|_| has_colours).map(|transfer| TransferFunction {
        colour_map: transfer.map.clone(),
        reversed: false,
        range: transfer.range,
        opacity: Vec::new(),
    });
    let colour_of = |level: usize| Key {
        colour: grid_colour(level, array.levels.len()),
        text: format!("grids of level {level}"),
    };
    let surfaces = view.surfaces.iter().map(|s| Key::of_value(s.colour, s.value, &array.units));
    let has_grids = view.grids && dataset.grids_of(array).is_some();
    let levels = (0..if has_grids { array.levels.len() } else { 0 }).rev();
    // Where there are no colours of a scale nothing else says what is shown.
    let (what, when) = (transfer.is_none().then(|| values.clone()), time_text(dataset, array, view.time));
    let brightness: u32 = view.background.iter().map(|&c| u32::from(c)).sum();
    Ok(Notes {
        camera: camera_in(view, dataset, size)?,
        bounds: VolumeView::new(dataset, number, &position)?.bounds(),
        axes: [name(AxisKind::X, "x"), name(AxisKind::Y, "y"), name(AxisKind::Z, "z")],
        world_units: array.world_units.clone(),
        spans: [AxisKind::X, AxisKind::Y, AxisKind::Z].map(|kind| span(array, kind)),
        values,
        title: [what, when].into_iter().flatten().collect::<Vec<_>>().join("   "),
        keys: surfaces.chain(levels.map(colour_of)).collect(),
        transfer,
        is_dark: brightness < 3 * 128,
    })
}

/// Which time a step is, in words; `None` for an array without time.
fn time_text(dataset: &Dataset, array: &ArrayInfo, step: u64) -> Option<String> {
    let axis = &array.axes[array.time_axis()?];
    let count = array.shape()[array.time_axis()?];
    if matches!(axis.coordinates, Coordinates::Index) {
        return Some(format!("step {step} of 0 to {}", count.saturating_sub(1)));
    }
    let value = axis.coordinates.at(step);
    let calendar = |array: &ArrayInfo| match array.attributes.get("calendar") {
        Some(Attribute::Text(name)) => Some(name.clone()),
        _ => None,
    };
    let own =
        dataset.find(&axis.name).ok().and_then(|(_, of_axis)| calendar(of_axis)).or_else(|| calendar(array));
    let date = array::time::date(value, &axis.units, own.as_deref().unwrap_or("standard"));
    Some(date.unwrap_or_else(|| Key::of_value([0; 3], value, &axis.units).text))
}

/// What an axis spans where the picture does not show it to scale: by its coordinates, or by index where it has none
/// beside others that have some.
#[expect(clippy::cast_precision_loss, reason = "a length in voxels")]
fn span(array: &ArrayInfo, kind: AxisKind) -> Option<Span> {
    let (number, axis) = array.axes.iter().enumerate().find(|(_, axis)| axis.kind == kind)?;
    let last = array.shape()[number].saturating_sub(1) as f64;
    let world = array.level(0).ok()?.world_from_voxel;
    let place = [AxisKind::X, AxisKind::Y, AxisKind::Z].iter().position(|&one| one == kind)?;
    let drawn =
        |index: f64| world.apply(std::array::from_fn(|n| if n == place { index } else { 0.0 }))[place];
    let (from, to) = match &axis.coordinates {
        Coordinates::Regular { origin, step } => (*origin, origin + last * step),
        Coordinates::Explicit(samples) => (*samples.first()?, *samples.last()?),
        Coordinates::Index => {
            let is_index = |other: &Axis| other.coordinates == Coordinates::Index;
            let has_others = array.axes.iter().any(|other| other.kind.is_spatial() && !is_index(other));
            return has_others.then(|| Span { from: 0.0, to: last, units: String::new() });
        }
    };
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * (to - from).abs();
    let is_even = !matches!(axis.coordinates, Coordinates::Explicit(_));
    let is_to_scale = is_even && near(drawn(0.0), from) && near(drawn(last), to);
    (!is_to_scale).then(|| Span { from, to, units: axis.units.clone() })
}

/// What kind of file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// 8 bits over the view's background.
    Png,
    /// Floats without background, linear light.
    Exr,
    /// A film, H.264.
    Mp4,
}

impl Kind {
    fn of(path: &Path) -> Result<Self> {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        match extension.as_str() {
            "png" => Ok(Self::Png),
            "exr" => Ok(Self::Exr),
            "mp4" => Ok(Self::Mp4),
            _ => Err(Error::invalid(format!(
                "expected an output that ends in .png, .exr or .mp4, found `{}`",
                path.display()
            ))),
        }
    }

    /// Of one picture.
    fn encode(self, image: &Image, background: [u8; 3]) -> Result<Vec<u8>> {
        match self {
            Self::Exr => image.to_exr(),
            _ => image.to_png(Background::Colour(background.map(|c| f32::from(c) / 255.0))),
        }
    }
}

/// Whether an output of this name can be written.
///
/// # Errors
/// `Invalid`, listing what works.
pub fn check_output(path: &Path) -> Result<()> {
    Kind::of(path).map(drop)
}

/// Where pictures go.
enum Sink {
    Files { output: PathBuf, kind: Kind },
    Film { file: Box<Mp4>, encoder: Box<H264> },
}

impl Sink {
    fn open(output: &Path, kind: Kind, count: u32, size: ImageSize, pictures_per_sec: f64) -> Result<Self> {
        if kind == Kind::Mp4 {
            let encoder = H264::new(size, pictures_per_sec)?;
            let file = Mp4::create(output, (size.width, size.height), pictures_per_sec)?;
            return Ok(Self::Film { file: Box::new(file), encoder: Box::new(encoder) });
        }
        if count > 1 && numbered(output, 0).is_none() {
            return Err(Error::invalid(format!(
                "expected an output with a place for its number, such as `x-%04d.png`, or a film, `x.mp4`, for {count} pictures, \
                 found `{}`",
                output.display()
            )));
        }
        Ok(Self::Files { output: output.to_owned(), kind })
    }

    fn take(&mut self, number: u32, still: &Still) -> Result<()> {
        match self {
            Self::Files { output, kind } => {
                let path = numbered(output, number).unwrap_or_else(|| output.clone());
                let bytes = kind.encode(&still.image, still.view.background)?;
                write(&path, &bytes)
            }
            Self::Film { file, encoder } => file.add(&encoder.encode(&still.image, still.view.background)?),
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Self::Files { .. } => Ok(()),
            Self::Film { file, encoder } => file.finish(encoder.sets()),
        }
    }
}

/// A name with its number in the place of `%d` or `%04d`; `None` where it has no such place.
fn numbered(path: &Path, number: u32) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let (before, rest) = name.split_once('%')?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (width, after) = (rest[..digits].trim_start_matches('0'), rest[digits..].strip_prefix('d')?);
    let width = if width.is_empty() { 0 } else { width.parse::<usize>().ok().filter(|&w| w <= 20)? };
    Some(path.with_file_name(format!("{before}{number:0width$}{after}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_steps_are_read_as_selections_are() {
        let steps = |text: &str, count| text.parse::<Times>().and_then(|times| times.of(count));
        assert_eq!(steps(":", 3).unwrap(), [0, 1, 2]);
        assert_eq!(steps("1:8:3", 10).unwrap(), [1, 4, 7]);
        assert_eq!(steps("::6", 24).unwrap(), [0, 6, 12, 18]);
        for (text, count) in [
            ("3", 9),
            ("a:b", 9),
            ("0:3:0", 9),
            ("5:3", 9),
            ("0:10", 9),
            ("1:2:3:4", 9),
            (":", 0),
            (":", 1 << 40),
        ] {
            assert!(steps(text, count).is_err(), "{text} of {count}");
        }
    }

    /// A field of a mesh at six times.
    fn mesh() -> Dataset {
        let mut dataset = array::conformance::one_array("<f8".parse().unwrap(), &[6, 8, 8, 8], &[1, 8, 8, 8]);
        let field = &mut dataset.arrays[0];
        field.axes[0].kind = AxisKind::Time;
        field.axes[0].coordinates = Coordinates::Regular { origin: 12.0, step: 6.0 };
        field.axes[0].units = "hours since 2001-02-03".into();
        field.units = "kg".into();
        field.attributes.insert(array::GRIDS_ATTRIBUTE.into(), Attribute::Text("amr/grids".into()));
        let mut table =
            array::conformance::one_array("<f8".parse().unwrap(), &[3, 7], &[3, 7]).arrays.remove(0);
        table.name = "amr/grids".into();
        dataset.arrays.push(table);
        dataset
    }

    #[test]
    fn notes_say_the_time_and_what_surfaces_and_grids_are() {
        let mut dataset = mesh();
        let surface = |value| json!({"value": value, "colour": [1, 2, 3], "opacity": 1.0});
        let view = json!({"array": dataset.arrays[0].name, "time": 3, "mode": "surfaces", "grids": true,
            "surfaces": [surface(0.5), surface(-2e-7)]});
        let view = View::parse(&view.to_string()).unwrap();
        let size = ImageSize { width: 90, height: 70 };
        let of = |dataset: &Dataset| notes(&view, size, dataset).unwrap();
        let found = of(&dataset);
        let texts: Vec<&str> = found.keys.iter().map(|key| key.text.as_str()).collect();
        assert_eq!(texts, ["0.5 kg", "-2e-7 kg", "grids of level 0"]);
        assert_eq!(found.keys[0].colour, [1, 2, 3]);
        assert!(found.title.ends_with("[kg]   2001-02-04 06:00"), "{}", found.title);
        dataset.arrays[0].attributes.insert("calendar".into(), Attribute::Text("360_day".into()));
        assert!(of(&dataset).title.ends_with("30 hours since 2001-02-03"));
        dataset.arrays[0].axes[0].coordinates = Coordinates::Index;
        assert!(of(&dataset).title.ends_with("step 3 of 0 to 5"));
    }

    #[test]
    fn numbers_stand_where_the_name_says() {
        let name = |text: &str| numbered(Path::new(text), 7).map(|path| path.to_string_lossy().into_owned());
        assert_eq!(name("a/b-%04d.png").unwrap(), "a/b-0007.png");
        assert_eq!(name("%d.exr").unwrap(), "7.exr");
        for none in ["b.png", "50%.png", "%x.png", "%04.png", "a%99999999999999999999d.png"] {
            assert!(name(none).is_none(), "{none}");
        }
    }

    #[test]
    fn journeys_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Journey>();
        assert_eq!(read("turn").unwrap(), Journey::Turn(360.0));
        assert_eq!(read("turn:-90").unwrap(), Journey::Turn(-90.0));
        assert_eq!(read("ways/to.json").unwrap(), Journey::Through("ways/to.json".into()));
        read("turn:x").unwrap_err();
        read("turn:nan").unwrap_err();
    }

    #[test]
    fn a_file_of_cameras_or_of_views_is_a_journey() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("way.json");
        let place = json!({"eye": [0.0, -4.0, 0.0], "target": [0.0, 0.0, 0.0], "up": [0.0, 0.0, 1.0],
            "projection": {"perspective": {"fov_y_rad": 0.5}}});
        std::fs::write(&path, json!([place, {"v": 1, "camera": place}]).to_string()).unwrap();
        assert_eq!(places(&path).unwrap().len(), 2);
        for bad in ["", "{}", "[1]", "[{}]", "[{\"camera\": 3}]"] {
            std::fs::write(&path, bad).unwrap();
            assert!(places(&path).is_err(), "{bad}");
        }
        places(&folder.path().join("absent.json")).unwrap_err();
    }
}
