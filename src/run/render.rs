//! `corridor render`

use std::path::Path;
use std::sync::Arc;

use array::{Error, Result};
use export::film::{
    self, DrawnPictures, FilmOptions, PicturesRequest, SlabPictureRequest, TimeSteps, agreed, check_output,
    check_slabs_output, draw, is_film,
};
use export::picture::{PictureRequest, parse_range, parse_size};
use node::geometry;
use node::layers::with_layers;
use node::memory::MemoryBudget;
use render::ImageSize;
use serde_json::json;
use server::stack::Stack;
use stream::{DrawDevice, DrawResources, Painter, RankChannels, RankGroup};

use crate::cli::{self, RenderOptions};
use crate::common::{context, device, memory, open, print, say};
use crate::progress::{ProgressMeter, ProgressOutput, ProgressUnit};

/// Runs the command. `ranks` are the processes of an MPI program that draw together, including this one.
pub(crate) async fn run(options: &RenderOptions, ranks: Option<RankChannels>) -> Result<()> {
    if film::is_slabs(&options.location) {
        return draw_slabs(options, ranks.is_some()).await;
    }
    let others = ranks.clone().map(|ranks| ranks.work);
    let progress = match &others {
        Some(ranks) if ranks.rank() > 0 => ProgressOutput::Hidden,
        _ => ProgressOutput::before_result(options.json),
    };
    let job = prepare(options, ranks, progress).await;
    let job = match others {
        None => Some(job?),
        Some(others) => agreed(others, job).await?,
    };
    // If the preparation failed in any process, the first one reports the reason.
    let Some(RenderJob { request, size, group, stack, resources }) = job else { return Ok(()) };
    let painter = Arc::clone(resources.painter());
    let is_several = request.is_several() || is_film(&options.output)?;
    let (unit, what) =
        if is_several { (ProgressUnit::Pictures, "drawing") } else { (ProgressUnit::Blocks, "fetching") };
    let meter = ProgressMeter::new(unit, progress);
    let on_progress = |done, total| meter.set(what, done, total);
    let drawn = draw(&stack.source, &request, size, resources, group, &options.output, on_progress).await;
    meter.clear();
    // The first of several processes has the pictures, and reports them.
    drawn?.map_or(Ok(()), |drawn| report(options, &painter, is_several, drawn))
}

/// The pictures to draw, the data, and the processes and devices that draw.
struct RenderJob {
    request: PicturesRequest,
    size: ImageSize,
    group: Option<RankGroup>,
    stack: Stack,
    resources: DrawResources,
}

/// Parses the options and opens the data.
async fn prepare(
    options: &RenderOptions,
    ranks: Option<RankChannels>,
    progress: ProgressOutput,
) -> Result<RenderJob> {
    let group = rank_group(options, ranks)?;
    let size = parse_size(&options.size)?;
    let film = film_options(options)?;
    check_output(&options.output, size, &film)?;
    let mut request = request(options, film)?;
    request.check_numbers(&options.output)?;
    let budget = MemoryBudget::viewing(memory(options.resources.memory.as_deref())?);
    let context = context(budget, options.resources.cache_dir.as_deref(), &options.reaching, progress)?;
    let (stack, array) = open(&options.location, &context).await?;
    if request.picture.fields.text("array").is_none() && !array.is_empty() {
        request.picture.fields.set("array", &array.into())?;
    }
    let has_view = request.picture.view.is_some();
    let stack = with_layers(stack, &mut request.picture.fields, has_view, &context).await?;
    // Ranks draw on the CPU.
    let device = if group.is_none() { device(options.drawing) } else { DrawDevice::Cpu };
    let resources = DrawResources::open(device, budget.render).await?;
    let resources = resources.with_geometry(geometry::for_user(&stack));
    Ok(RenderJob { request, size, group, stack, resources })
}

/// Reports the pictures and the devices that drew them.
fn report(options: &RenderOptions, painter: &Painter, is_several: bool, drawn: DrawnPictures) -> Result<()> {
    if options.json {
        let mut result = json!({"output": options.output, "device": painter.to_string(), "truth": drawn.fidelity, "view": drawn.view, "values": drawn.values});
        if let Some(reason) = painter.reason() {
            result["device_reason"] = reason.into();
        }
        if let Some(slabs) = &options.slabs.slabs {
            result["slabs"] = json!(slabs);
        }
        if is_several {
            result["pictures"] = drawn.pictures.into();
        }
        return print(&result.to_string());
    }
    let mut text = drawn.fidelity.text;
    if is_several {
        text = format!("{} pictures; the last one: {text}", drawn.pictures);
    }
    say(&match painter.reason() {
        // A missing graphics processor is mentioned only if one was requested; `--json` always mentions it.
        Some(reason) if painter.has_gpu() => format!("{text} Drawn on the CPU: {reason}."),
        _ if painter.is_gpu() => format!("{text} Drawn on {painter}."),
        _ => text,
    });
    Ok(())
}

/// Converts the options to a request, and reports all errors in them before a server is contacted.
fn request(options: &RenderOptions, film: FilmOptions) -> Result<PicturesRequest> {
    let slabs = options.slabs.request();
    slabs.as_ref().map_or(Ok(()), |(output, _)| check_slabs_output(output))?;
    let (time, times) = time(options.time.as_deref())?;
    let mut fields = options.fields.request()?;
    fields.set("time", &json!(time))?;
    let picture = PictureRequest {
        view: options.view.clone(),
        fields,
        range: options.range.as_deref().map(parse_range).transpose()?.unwrap_or_default(),
    };
    Ok(PicturesRequest {
        picture,
        times,
        journey: options.journey.as_deref().map(str::parse).transpose()?,
        pictures: options.pictures,
        film,
        is_annotated: options.annotate,
        is_transparent: options.fields.is_transparent(),
        slabs,
    })
}

/// Draws pictures of a file of slabs, in one process.
async fn draw_slabs(options: &RenderOptions, is_by_ranks: bool) -> Result<()> {
    let size = parse_size(&options.size)?;
    let film = film_options(options)?;
    check_output(&options.output, size, &film)?;
    // Options that select data or change how they are drawn do not apply to slabs.
    let of_view = options.fields.names().filter(|(field, _)| *field != "camera");
    let others = [
        ("--range", options.range.is_some()),
        ("--time", options.time.is_some()),
        ("--annotate", options.annotate),
        ("--slabs", options.slabs.slabs.is_some()),
        ("--ranks", options.ranks.is_some()),
        ("processes of an MPI program", is_by_ranks),
    ];
    let others = others.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name.to_owned());
    if let Some(name) = of_view.map(|(_, option)| format!("--{option}")).chain(others).next() {
        return Err(Error::invalid(format!(
            "expected only options of the camera and the pictures for slabs (\
             --camera, --view, --journey, --pictures, --fps, --size), found {name}"
        )));
    }
    let request = SlabPictureRequest {
        view: options.view.clone(),
        camera: options.fields.text("camera").map(str::to_owned),
        journey: options.journey.as_deref().map(str::parse).transpose()?,
        pictures: options.pictures,
        film,
    };
    let progress = ProgressOutput::before_result(options.json);
    let meter = ProgressMeter::new(ProgressUnit::Pictures, progress);
    let (location, output) = (options.location.clone(), options.output.clone());
    let drawing = move || {
        let slabs = film::read_slabs(Path::new(&location))?;
        let drawn = film::draw_slabs(&slabs, &request, size, &output, |done, total| {
            meter.set("drawing", done, total)
        });
        meter.clear();
        drawn.map(|pictures| (pictures, slabs.slabs.len()))
    };
    let drawn = tokio::task::spawn_blocking(drawing).await;
    let (pictures, count) = drawn.map_err(|e| Error::internal(format!("drawing slabs: {e}")))??;
    if options.json {
        return print(&json!({"output": options.output, "pictures": pictures, "slabs": count}).to_string());
    }
    let of = if pictures == 1 { "A picture".to_owned() } else { format!("{pictures} pictures") };
    say(&format!("{of} of {count} slabs."));
    Ok(())
}

/// Returns the options of a film.
///
/// # Errors
/// `Invalid` for options that only films have, if the output is not a film.
fn film_options(options: &RenderOptions) -> Result<FilmOptions> {
    let of_films = [("--quality", &options.quality), ("--codec", &options.codec)];
    let given = of_films.iter().find(|(_, value)| value.is_some());
    if let Some((name, _)) = given
        && !is_film(&options.output)?
    {
        return Err(Error::invalid(format!(
            "expected `{name}` for a film (.mp4, .webm) only, as pictures are exact, found `{}`",
            options.output.display()
        )));
    }
    Ok(FilmOptions {
        pictures_per_sec: options.fps,
        quality: options.quality.as_deref().map(str::parse).transpose()?.unwrap_or_default(),
        codec: match &options.codec {
            Some(codec) => codec.parse()?,
            None => film::default_codec(&options.output),
        },
    })
}

/// Parses one time step, or several.
fn time(text: Option<&str>) -> Result<(Option<u64>, Option<TimeSteps>)> {
    match text {
        None => Ok((None, None)),
        Some(text) => match text.parse() {
            Ok(step) => Ok((Some(step), None)),
            Err(_) => Ok((None, Some(text.parse()?))),
        },
    }
}

/// Returns the participants that draw together: the processes that were started with this one, or the requested number
/// of ranks. `None` if this process draws alone.
fn rank_group(options: &RenderOptions, ranks: Option<RankChannels>) -> Result<Option<RankGroup>> {
    let method = options.compositing.parse()?;
    let group = match (ranks, options.ranks) {
        (Some(_), Some(count)) => {
            return Err(Error::invalid(format!(
                "expected no `--ranks` in a process of an MPI program, found {count}: each process is a rank"
            )));
        }
        (Some(ranks), None) => Some(RankGroup::Processes(RankChannels { method, ..ranks })),
        (None, Some(count)) if count > 1 => Some(RankGroup::Threads(count as usize, method)),
        (None, _) => None,
    };
    if options.drawing.device == cli::DeviceChoice::Gpu && group.is_some() {
        return Err(Error::unsupported("expected `--device cpu` or `auto` for several ranks, found `gpu`"));
    }
    Ok(group)
}
