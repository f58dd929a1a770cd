//! Pictures in files: one, or many of time steps and a moving camera, numbered or as a film.
//!
//! [`picture`](crate::picture) defines the content of a picture; this module determines the sequence of pictures, and
//! writes them.

mod annotations;
mod axis_notes;
mod journey;
mod legend;
mod line_plot;
mod sink;
mod slab_pictures;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use array::{Dataset, Error, Result, Source};
use render::{ImageSize, stereo};
use serde_json::{Map, json};
use session::{FidelityBadge, ValueSummary};
use stream::compose::{self, Communicator};
use stream::{
    DrawResources, Film, FilmRequest, FilmSlabs, PixelPrecision, RankGroup, Regridded, camera_in,
    encode_slabs, run_worker,
};
use view::View;

pub(crate) use self::annotations::annotations;
pub use self::journey::{Journey, TimeSteps};
pub(crate) use self::line_plot::line_plot;
pub use self::sink::{FilmOptions, check_output, default_codec, is_film};
use self::sink::{PictureFileKind, PictureSink, check_numbered, numbered_or_as_is, write};
pub use self::slab_pictures::{SlabPictureRequest, check_slabs_output, draw_slabs, is_slabs, read_slabs};
pub use crate::output::mp4::VideoCodec;
use crate::picture::{PictureRequest, framed_view, transfer_choice, with_isovalues};
use crate::row_pictures::{SheetRequest, SheetStage, draw_png_file, png_texts};

/// Maximum number of pictures of one command: a quarter of an hour at 25 per second.
pub const MAX_PICTURES: u32 = 22_500;
/// Examples of names for several outputs, for error messages.
const PICTURES_SUCH_AS: &str = "`x-%04d.png`, or a film, `x.mp4`,";
/// Default number of pictures of a camera's journey.
const JOURNEY_PICTURES: u32 = 100;

/// Request for one or more pictures.
#[derive(Clone, Debug)]
pub struct PicturesRequest {
    /// Content of each picture.
    pub picture: PictureRequest,
    /// Time steps, instead of the picture's one; by default all for a film with a fixed camera.
    pub times: Option<TimeSteps>,
    /// Motion of the camera from the first picture to the last one.
    pub journey: Option<Journey>,
    /// Number of pictures; the time steps are spread over them. By default the number of time steps, or 100.
    pub pictures: Option<u32>,
    /// Options of a film.
    pub film: FilmOptions,
    /// Whether the volume's box, a scale bar and a legend are drawn.
    pub is_annotated: bool,
    /// Whether PNG files have no background: where nothing is drawn, they are transparent.
    pub is_transparent: bool,
    /// Slabs beside each picture, and their file, with a placeholder for the number as for pictures.
    pub slabs: Option<(PathBuf, FilmSlabs)>,
}

impl From<PictureRequest> for PicturesRequest {
    /// Requests one picture, without annotations.
    fn from(picture: PictureRequest) -> Self {
        Self {
            picture,
            times: None,
            journey: None,
            pictures: None,
            film: FilmOptions::default(),
            is_annotated: false,
            is_transparent: false,
            slabs: None,
        }
    }
}

impl PicturesRequest {
    /// Returns whether more than one picture is requested, as far as is known without the data.
    #[must_use]
    pub fn is_several(&self) -> bool {
        self.times.is_some() || self.journey.is_some() || self.pictures.is_some()
    }

    /// Checks that outputs have placeholders for the pictures' numbers, as far as their count is known without the
    /// data.
    ///
    /// # Errors
    /// `Invalid`, with valid forms.
    pub fn check_numbers(&self, output: &Path) -> Result<()> {
        let of_journey = self.journey.as_ref().map_or(1, |_| JOURNEY_PICTURES);
        let of_times = self.times.and_then(TimeSteps::count).unwrap_or(1);
        let count = self.pictures.unwrap_or(if of_times > 1 { of_times } else { of_journey });
        self.check_numbers_of(count, output)
    }

    fn check_numbers_of(&self, count: u32, output: &Path) -> Result<()> {
        if let Some((output, _)) = &self.slabs {
            check_numbered(output, count, "`x-%04d.slabs`")?;
        }
        check_numbered(output, count, PICTURES_SUCH_AS)
    }
}

/// Result of drawing.
#[derive(Clone, Debug)]
pub struct DrawnPictures {
    /// Number of pictures.
    pub pictures: u32,
    /// Record of the content of the last picture.
    pub fidelity: FidelityBadge,
    /// View of the last picture, with all defaults filled in.
    pub view: View,
    /// Statistics of the values that it shows, if known.
    pub values: Option<ValueSummary>,
}

/// Draws pictures into files: `output` ends in `.png` or `.exr`, with `%d` or `%04d` in its name for several (numbers
/// from 0), or in `.mp4`. In a `rank_group` of processes, which all make the same call, rank 0 writes them and the others
/// get `None`. `progress` is called with the blocks present and requested of a single picture, otherwise with the
/// pictures completed and requested.
///
/// # Errors
/// The errors of the view, of blocks that cannot be fetched, and `Io`. Pictures that were finished before are kept. In
/// a rank group, rank 0 gets the error of any process.
///
/// # Cancel safety
/// Dropping the future leaves the finished pictures; an unfinished film is removed.
pub async fn draw(
    source: &Arc<dyn Source>,
    request: &PicturesRequest,
    size: ImageSize,
    resources: DrawResources,
    rank_group: Option<RankGroup>,
    output: &Path,
    mut progress: impl FnMut(u64, u64),
) -> Result<Option<DrawnPictures>> {
    let kind = PictureFileKind::of(output)?;
    if let Some(RankGroup::Processes(ranks)) = rank_group.as_ref().filter(|rank_group| rank_group.is_worker())
    {
        run_worker(Arc::new(Regridded::open(Arc::clone(source)).await?), resources, ranks.clone()).await?;
        return Ok(None);
    }
    if request.is_transparent && kind != PictureFileKind::Png {
        return Err(Error::invalid(
            "a transparent background is for pictures in PNG files; films have a background, and EXR files never have one",
        ));
    }
    let stored = Arc::clone(source);
    let request = &PicturesRequest {
        picture: with_isovalues(source, &request.picture, size, &resources).await?,
        ..request.clone()
    };
    let is_single = kind == PictureFileKind::Png && !request.is_several() && request.slabs.is_none();
    if is_single && rank_group.is_none() && is_in_rows(size, &resources) {
        return draw_in_rows(source, request, size, resources, output, progress).await.map(Some);
    }
    size.check()?;
    let source = Regridded::open(Arc::clone(source)).await?;
    let dataset = source.describe().await?;
    let views = views(request, size, &dataset, &source, kind)?;
    let count = u32::try_from(views.len()).unwrap_or(u32::MAX);
    if kind.is_film() {
        check_several(count, request.pictures, "select several time steps with `--time`, move")?;
    }
    request.check_numbers_of(count, output)?;
    let (slabs_output, slabs) = request.slabs.clone().unzip();
    let mut sink = PictureSink::open(output, kind, size, &request.film, request.is_transparent)?;
    let choice = transfer_choice(&request.picture)?;
    // Annotations lie behind transparent parts of the volume.
    let pixels = if request.is_annotated || kind == PictureFileKind::Exr {
        PixelPrecision::Full
    } else {
        PixelPrecision::Rgb8
    };
    let film = FilmRequest {
        views,
        choice,
        range: request.picture.range,
        size,
        resources,
        slabs,
        rank_group,
        pixels,
    };
    let mut film = Film::open(Arc::new(source), film).await?;
    let (mut done, mut last) = (0, None);
    let is_several = request.is_several() || kind.is_film();
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
        last = Some((still.fidelity.clone(), still.view.clone(), still.values.clone()));
        let plot = line_plot(&*stored, &still.view, size.width).await?;
        // Plots have their own axes.
        let is_annotated = request.is_annotated && plot.is_none();
        let notes = is_annotated.then(|| annotations(&still.view, size, &dataset)).transpose()?;
        let slabs_output = slabs_output.as_deref().map(|output| numbered_or_as_is(output, done));
        let finish = move || {
            if let Some(plot) = plot {
                still.image = plot.draw(size);
            }
            if let Some((output, slabs)) = slabs_output.zip(still.slabs.take()) {
                write(&output, &encode_slabs(&slabs)?.1)?;
            }
            match (notes, still.view.stereo) {
                (Some(notes), Some(parallax)) => stereo::annotate_pair(&mut still.image, &notes, parallax)?,
                (Some(notes), None) => render::annotate(&mut still.image, &notes)?,
                (None, _) => {}
            }
            let texts = png_texts(&still.fidelity, &still.view);
            sink.take(done, &still.image, still.view.background, &texts).map(|()| sink)
        };
        // The blocks of the next picture are fetched meanwhile.
        let taken = tokio::task::spawn_blocking(finish).await;
        sink = taken.map_err(|e| Error::internal(format!("a picture could not be written: {e}")))??;
        done += 1;
        if is_several {
            progress(u64::from(done), u64::from(count));
        }
    }
    sink.finish()?;
    let (fidelity, view, values) = last.ok_or_else(|| Error::internal("expected a picture, found none"))?;
    Ok(Some(DrawnPictures { pictures: done, fidelity, view, values }))
}

/// Pixels from which on a picture is drawn in rows on the CPU: then the memory that it takes is bounded.
const IN_ROWS_FROM_PIXELS: u64 = 4 << 20;

/// Returns whether a single picture is drawn in rows. The pixels are the same; a graphics processor draws whole ones.
fn is_in_rows(size: ImageSize, resources: &DrawResources) -> bool {
    let least = if resources.painter().is_gpu() { ImageSize::MAX_PIXELS } else { IN_ROWS_FROM_PIXELS };
    size.pixels() > least
}

/// Draws a single PNG file in rows.
async fn draw_in_rows(
    source: &Arc<dyn Source>,
    request: &PicturesRequest,
    size: ImageSize,
    resources: DrawResources,
    output: &Path,
    mut progress: impl FnMut(u64, u64),
) -> Result<DrawnPictures> {
    let sheet = SheetRequest {
        is_annotated: request.is_annotated,
        is_transparent: request.is_transparent,
        ..SheetRequest::single(request.picture.clone(), size)
    };
    let of_blocks = |stage, done, total| {
        if stage == SheetStage::Blocks {
            progress(done, total);
        }
    };
    let mut drawn = draw_png_file(source, &sheet, resources, output, of_blocks).await?;
    let last = drawn.fidelity.pop().zip(drawn.views.pop());
    let (fidelity, view) = last.ok_or_else(|| Error::internal("expected a picture, found none"))?;
    Ok(DrawnPictures { pictures: 1, fidelity, view, values: drawn.values.pop().flatten() })
}

/// Combines the results of work that each process of a rank group did by itself. If one failed, only rank 0 gets an
/// error, and the others get `None`; see [`stream::compose::agreed`].
///
/// # Errors
/// At rank 0 the error of any process; those of the communicator.
pub async fn agreed<T: Send + 'static>(ranks: Arc<dyn Communicator>, own: Result<T>) -> Result<Option<T>> {
    let agreeing = tokio::task::spawn_blocking(move || compose::agreed(&*ranks, own));
    agreeing.await.map_err(|e| Error::internal(format!("agreeing with other ranks: {e}")))?
}

/// Checks that a film has more than one picture, unless the number of pictures was given. `remedy` begins the advice in
/// the error.
fn check_several(count: u32, asked: Option<u32>, remedy: &str) -> Result<()> {
    if count > 1 || asked.is_some() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "expected several pictures for a film, found one: {remedy} the camera (`--journey turn`), request several pictures \
         (`--pictures 50`), or write a picture (.png)"
    )))
}

/// Returns the time step of a picture. With more pictures than steps, all steps are shown for equal times; with fewer,
/// the first and the last step are included.
fn step_of(number: usize, pictures: usize, steps: usize) -> usize {
    if (2..steps).contains(&pictures) {
        number * (steps - 1) / (pictures - 1)
    } else {
        number * steps / pictures
    }
}

/// Returns one view for each picture.
fn views(
    request: &PicturesRequest,
    size: ImageSize,
    dataset: &Dataset,
    drawn: &Regridded,
    kind: PictureFileKind,
) -> Result<Vec<View>> {
    // Each picture's time is set below; the camera frames the common box.
    let base = framed_view(&request.picture, request.is_annotated, size, dataset, drawn)?;
    let is_of_all =
        kind.is_film() && request.journey.is_none() && request.picture.fields.get("time").is_none();
    let steps = match request.times.or(is_of_all.then(TimeSteps::default)) {
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
    let journey = match &request.journey {
        None => Vec::new(),
        Some(journey) => journey.pictures(&camera_in(&base, dataset, size)?, count)?,
    };
    (0..count as usize)
        .map(|number| {
            let mut fields = Map::new();
            fields.insert("time".into(), steps[step_of(number, count as usize, steps.len())].into());
            if let Some(picture) = journey.get(number) {
                let is_asked = |name: &str| {
                    request.picture.fields.get(name).is_some() || (name == "time" && request.times.is_some())
                };
                let own = picture.fields.iter().filter(|(name, _)| !is_asked(name));
                fields.extend(own.map(|(name, value)| (name.clone(), value.clone())));
                fields.insert("camera".into(), json!(picture.camera));
            }
            base.merged(&fields)
        })
        .collect()
}
