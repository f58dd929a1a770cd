//! `corridor render`

use std::sync::Arc;

use node::array::{Error, Result};
use node::memory::Budget;
use node::picture::{
    Communicator, Company, Method, PictureRequest, ViewMode, draw, parse_size, parse_slice, parse_surface,
};
use node::stream::{Device, Means};
use serde_json::json;

use crate::cli::{self, Mode, Render, Switch};
use crate::common::{context, device, memory, open, print, say};
use crate::progress::{Meter, Progress, Unit};

pub(crate) async fn run(options: &Render, ranks: Option<Arc<dyn Communicator>>) -> Result<()> {
    let company = company(options, ranks)?;
    let method: Method = options.compositing.parse()?;
    let size = parse_size(&options.size)?;
    if options.output.extension().is_none_or(|e| !e.eq_ignore_ascii_case("png")) {
        return Err(Error::invalid(format!(
            "expected an output that ends in .png, found `{}`",
            options.output.display()
        )));
    }
    let budget = Budget::viewing(memory(options.resources.memory.as_deref())?);
    let is_told = !matches!(&company, Company::Processes(ranks) if ranks.rank() > 0);
    let progress = if is_told { Progress::before_result(options.json) } else { Progress::Hidden };
    let context = context(budget, options.resources.cache_dir.as_deref(), &options.reaching, progress)?;
    let (stack, array) = open(&options.location, &context).await?;
    let request = PictureRequest {
        view: options.view.clone(),
        array: options.array.clone().or(Some(array).filter(|a| !a.is_empty())),
        camera: options.camera.clone(),
        transfer: options.tf.clone(),
        surfaces: options.iso.iter().map(|text| parse_surface(text)).collect::<Result<_>>()?,
        slices: options.slice.iter().map(|text| parse_slice(text)).collect::<Result<_>>()?,
        shading: options.shading.map(|switch| switch == Switch::On),
        mode: options.mode.map(|mode| match mode {
            Mode::Composite => ViewMode::Composite,
            Mode::Surfaces => ViewMode::Surfaces,
            Mode::Maximum => ViewMode::Maximum,
            Mode::Minimum => ViewMode::Minimum,
        }),
        time: options.time,
        level: options.level,
    };
    // Ranks draw on the CPU.
    let device = if matches!(company, Company::Alone) { device(options.drawing) } else { Device::Cpu };
    let means = Means::open(device, budget.render).await?;
    let painter = Arc::clone(means.painter());
    let meter = Meter::new(Unit::Blocks, progress);
    let on_progress = |done, total| meter.set("fetching", done, total);
    let truth = draw(&stack, &request, size, means, (company, method), &options.output, on_progress).await;
    meter.clear();
    // The first of several processes has the picture, and says so.
    let Some(truth) = truth? else { return Ok(()) };
    if options.json {
        return print(
            &json!({"output": options.output, "device": painter.to_string(), "truth": truth}).to_string(),
        );
    }
    say(&if painter.is_gpu() { format!("{} Drawn on {painter}.", truth.text) } else { truth.text });
    Ok(())
}

/// Who draws: the processes that were started with this one, or as many ranks as were asked for.
fn company(options: &Render, ranks: Option<Arc<dyn Communicator>>) -> Result<Company> {
    let company = match (ranks, options.ranks) {
        (Some(_), Some(count)) => {
            return Err(Error::invalid(format!(
                "expected no `--ranks` in a process of an MPI program, found {count}: each process is a rank"
            )));
        }
        (Some(ranks), None) => Company::Processes(ranks),
        (None, Some(count)) if count > 1 => Company::Threads(count as usize),
        (None, _) => Company::Alone,
    };
    if options.drawing.device == cli::Device::Gpu && !matches!(company, Company::Alone) {
        return Err(Error::unsupported("expected `--device cpu` or `auto` for several ranks, found `gpu`"));
    }
    Ok(company)
}
