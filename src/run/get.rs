//! `corridor get`

use std::sync::Arc;
use std::time::Duration;

use node::array::{Error, ErrorKind, Result, Source};
use node::describe::{self, size};
use node::get::{GetRequest, get};
use node::memory::Budget;
use node::mesh::{self, MeshReport, MeshRequest};
use node::pick::Pick;
use node::remote::Carried;
use serde_json::json;

use crate::cli::Get;
use crate::common::{context, memory, open, print, say, warning_outside};
use crate::progress::{Meter, Progress, Unit};

/// Longest list of selections read, bytes.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// How often a copy begins again because its data have become others meanwhile, and after which pause.
const MOST_AGAIN: u32 = 4;
const PAUSE: Duration = Duration::from_millis(600);

pub(crate) async fn run(options: &Get) -> Result<()> {
    for _ in 0..MOST_AGAIN {
        match run_once(options).await {
            // A copy is of one state of the data: of the one that they are in now.
            Err(error) if error.kind() == ErrorKind::Stale => {
                say("the data changed while they were copied; the copy begins again");
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
    run_once(options).await
}

async fn run_once(options: &Get) -> Result<()> {
    let budget = Budget::viewing(memory(options.resources.memory.as_deref())?);
    let mut picks = picks(options)?;
    let progress = Progress::before_result(options.json);
    let context = context(budget, options.resources.cache_dir.as_deref(), &options.reaching, progress)?;
    let (stack, array) = open(&options.location, &context).await?;
    let remote = stack.clone();
    for pick in picks.iter_mut().filter(|p| p.array.is_empty()) {
        pick.array.clone_from(&array);
    }
    if let (Some(value), [pick]) = (options.iso, &picks[..]) {
        let request = MeshRequest {
            pick: pick.clone(),
            level: options.level,
            value,
            output: options.output.clone(),
            memory_bytes: budget.render,
        };
        return export_mesh(stack.source, &request, options, progress).await;
    }
    let request = GetRequest {
        picks,
        level: options.level,
        is_decoded: options.decoded,
        output: options.output.clone(),
        memory_bytes: budget.render,
    };
    let meter = Meter::new(Unit::Bytes, progress);
    let done = get(stack.source, &request, &|c| meter.set("copying", c.done_bytes, c.total_bytes)).await;
    meter.clear();
    let done = done?;
    if options.json {
        let mut said =
            json!({"output": options.output, "shape": done.shape, "dtype": done.dtype, "bytes": done.bytes});
        if options.selections.is_some() {
            said["selections"] = json!(done.selections);
        }
        if let Some(Carried { data_bytes, carried_bytes }) = remote.carried() {
            said["carried"] = json!({"data_bytes": data_bytes, "carried_bytes": carried_bytes});
        }
        return print(&said.to_string());
    }
    let output = describe::plain(&options.output.display().to_string());
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
    options: &Get,
    progress: Progress,
) -> Result<()> {
    let meter = Meter::new(Unit::Voxels, progress);
    let done = mesh::export(source, request, |done, total| meter.set("marching", done, total)).await;
    meter.clear();
    let MeshReport { vertices, triangles, range } = done?;
    match range {
        Some((least, greatest)) if !(least..=greatest).contains(&request.value) => {
            say(&warning_outside(request.value, least, greatest));
        }
        Some(_) => {}
        None => say("warning: no value is there, so there is no isosurface"),
    }
    if options.json {
        let said = json!({"output": options.output, "vertices": vertices, "triangles": triangles});
        return print(&said.to_string());
    }
    let output = describe::plain(&options.output.display().to_string());
    say(&format!("{output}: {vertices} vertices, {triangles} triangles"));
    Ok(())
}

fn picks(options: &Get) -> Result<Vec<Pick>> {
    let Some(list) = &options.selections else {
        return Ok(vec![Pick::parse(options.selection.as_deref().unwrap_or_default())?]);
    };
    let at = |e: std::io::Error| Error::from(e).context(format!("file `{}`", list.display()));
    let bytes = std::fs::metadata(list).map_err(at)?.len();
    if bytes > MAX_LIST_BYTES {
        return Err(Error::too_large(format!(
            "expected at most {MAX_LIST_BYTES} bytes of selections, found {bytes}"
        )));
    }
    let picks = Pick::parse_lines(&std::fs::read_to_string(list).map_err(at)?);
    picks.map_err(|e| e.context(format!("file `{}`", list.display())))
}
