//! `corridor get`

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use array::{Error, ErrorKind, Result, Source};
use client::remote::Carried;
use client::text::{plain, size};
use export::get::{GetRequest, get};
use export::mesh::{self, MeshReport, MeshRequest};
use export::selection_text::ArraySelection;
use node::memory::MemoryBudget;
use serde_json::json;

use crate::cli::{GetFormat, GetOptions};
use crate::common::{context, memory, open, print, say, warning_outside};
use crate::progress::{ProgressMeter, ProgressOutput, ProgressUnit};

/// Maximum size of a list of selections, in bytes.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// Maximum number of times that a copy restarts because its data changed.
const MAX_RESTARTS: u32 = 4;
/// Pause before each restart.
const RESTART_PAUSE: Duration = Duration::from_millis(600);
/// Maximum number of folders left by processes with the same id that are skipped.
const MAX_SKIPPED_FOLDERS: u32 = 100;

pub(crate) async fn run(options: &GetOptions) -> Result<()> {
    if options.output.as_os_str() != "-" {
        return run_with_restarts(options, &options.output).await;
    }
    if options.json || options.iso.is_some() {
        return Err(Error::invalid(
            "expected a file as the output of `--json` and of `--iso`, found standard output",
        ));
    }
    let kind = match options.format {
        GetFormat::Npy => "npy",
        GetFormat::Raw => "raw",
        GetFormat::Csv => "csv",
    };
    // Parts of the result arrive in any order, so it is assembled in a file first.
    let folder = TempFolder::new()?;
    let whole = folder.0.join(format!("data.{kind}"));
    run_with_restarts(options, &whole).await?;
    let mut file = std::fs::File::open(&whole)?;
    let copy = move || match std::io::copy(&mut file, &mut std::io::stdout().lock()) {
        // A reader such as `head` has closed the pipe after enough lines.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        copied => copied.map(drop).map_err(Error::from),
    };
    tokio::task::spawn_blocking(copy)
        .await
        .map_err(|e| Error::internal(format!("a writer ended early: {e}")))?
}

/// A private folder of this process for a result for standard output; removed when dropped.
struct TempFolder(PathBuf);

impl TempFolder {
    fn new() -> Result<Self> {
        let parent = std::env::temp_dir();
        for number in 0..MAX_SKIPPED_FOLDERS {
            let folder = parent.join(format!("corridor-get-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(Self(folder)),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(Error::from(e).context(format!("folder `{}`", folder.display()))),
            }
        }
        Err(Error::new(ErrorKind::Io, format!("no folder could be made in `{}`", parent.display())))
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Copies; restarts if the data changed meanwhile, because a copy must have one state of the data.
async fn run_with_restarts(options: &GetOptions, output: &Path) -> Result<()> {
    for _ in 0..MAX_RESTARTS {
        match run_once(options, output).await {
            Err(error) if error.kind() == ErrorKind::Stale => {
                say("the data changed while they were copied; the copy begins again");
                tokio::time::sleep(RESTART_PAUSE).await;
            }
            done => return done,
        }
    }
    run_once(options, output).await
}

async fn run_once(options: &GetOptions, output: &Path) -> Result<()> {
    let budget = MemoryBudget::viewing(memory(options.resources.memory.as_deref())?);
    let mut selections = selections(options)?;
    let progress = ProgressOutput::before_result(options.json);
    let context = context(budget, options.resources.cache_dir.as_deref(), &options.reaching, progress)?;
    let (stack, array) = open(&options.location, &context).await?;
    let remote = stack.clone();
    for selection in selections.iter_mut().filter(|p| p.array.is_empty()) {
        selection.array.clone_from(&array);
    }
    if let (Some(value), [selection]) = (options.iso, &selections[..]) {
        let request = MeshRequest {
            selection: selection.clone(),
            level: options.level,
            value,
            output: options.output.clone(),
            memory_bytes: budget.render,
        };
        return export_mesh(stack.source, &request, options, progress).await;
    }
    let request = GetRequest {
        selections,
        level: options.level,
        is_decoded: options.decoded,
        output: output.to_path_buf(),
        memory_bytes: budget.render,
    };
    let meter = ProgressMeter::new(ProgressUnit::Bytes, progress);
    let done = get(stack.source, &request, &|c| meter.set("copying", c.done_bytes, c.total_bytes)).await;
    meter.clear();
    let done = done?;
    done.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    if options.json {
        let mut result =
            json!({"output": options.output, "shape": done.shape, "dtype": done.dtype, "bytes": done.bytes});
        if options.selections.is_some() {
            result["selections"] = json!(done.selections);
        }
        if let Some(Carried { data_bytes, carried_bytes }) = remote.carried() {
            result["carried"] = json!({"data_bytes": data_bytes, "carried_bytes": carried_bytes});
        }
        return print(&result.to_string());
    }
    let is_piped = output != options.output;
    let output = if is_piped { "standard output".to_owned() } else { plain(&output.display().to_string()) };
    let what = match done.selections.len() {
        1 => format!("shape {:?}, {}", done.shape, done.dtype),
        count => format!("{count} selections, one after another"),
    };
    say(&format!("{output}: {what}, {}", size(done.bytes)));
    if let Some(Carried { data_bytes, carried_bytes }) =
        remote.carried().filter(|c| c.carried_bytes < c.data_bytes)
    {
        say(&format!("{} of data came compressed as {}", size(data_bytes), size(carried_bytes)));
    }
    Ok(())
}

async fn export_mesh(
    source: Arc<dyn Source>,
    request: &MeshRequest,
    options: &GetOptions,
    progress: ProgressOutput,
) -> Result<()> {
    let meter = ProgressMeter::new(ProgressUnit::Voxels, progress);
    let done = mesh::export(source, request, |done, total| meter.set("marching", done, total)).await;
    meter.clear();
    let MeshReport { vertices, triangles, range } = done?;
    match range {
        Some((least, greatest)) if !(least..=greatest).contains(&request.value) => {
            say(&warning_outside(request.value, least, greatest));
        }
        Some(_) => {}
        None => say("warning: all values are missing, so there is no isosurface"),
    }
    if options.json {
        let result = json!({"output": options.output, "vertices": vertices, "triangles": triangles});
        return print(&result.to_string());
    }
    let output = plain(&options.output.display().to_string());
    say(&format!("{output}: {vertices} vertices, {triangles} triangles"));
    Ok(())
}

fn selections(options: &GetOptions) -> Result<Vec<ArraySelection>> {
    let Some(list) = &options.selections else {
        return Ok(vec![ArraySelection::parse(options.selection.as_deref().unwrap_or_default())?]);
    };
    let at = |e: std::io::Error| Error::from(e).context(format!("file `{}`", list.display()));
    let bytes = std::fs::metadata(list).map_err(at)?.len();
    if bytes > MAX_LIST_BYTES {
        return Err(Error::too_large(format!(
            "expected at most {MAX_LIST_BYTES} bytes of selections, found {bytes}"
        )));
    }
    let selections = ArraySelection::parse_lines(&std::fs::read_to_string(list).map_err(at)?);
    selections.map_err(|e| e.context(format!("file `{}`", list.display())))
}
