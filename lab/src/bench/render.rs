//! What a frame of the CPU ray caster costs, in seconds of processor time over all threads: `corridor render` of a
//! computed field, less what it costs to get the blocks (a picture of one pixel).

use std::path::Path;

use array::{Error, Result};
use tempfile::TempDir;

use super::process::command;
use super::report::{Better, Case, Link, Report};

/// Runs of each case.
const RUNS: usize = 5;
/// Transfer functions: name and JSON as in a view. The field's values are 0 to 255.
const FUNCTIONS: &[(&str, &str)] = &[
    ("haze", r#"{"range":[0,255],"map":"viridis","opacity":[[90,0],[255,0.06]]}"#),
    ("dense", r#"{"range":[0,255],"map":"viridis","opacity":[[140,0],[200,0.5]]}"#),
    ("sparse", r#"{"range":[0,255],"map":"viridis","opacity":[[196,0],[200,0.3],[204,0]]}"#),
    ("fog", r#"{"range":[0,255],"map":"viridis","opacity":[[0,0.01],[255,0.03]]}"#),
    ("solid", r#"{"range":[0,255],"map":"viridis","opacity":[[150,0],[150,1]]}"#),
];

pub(super) async fn run(program: &Path) -> Result<Report> {
    let mut report = Report::here("render", Link::default());
    let folder = tempfile::tempdir()?;
    for dtype in ["u1", "f4"] {
        for (name, function) in FUNCTIONS {
            let mut seconds = Vec::new();
            for _ in 0..RUNS {
                let whole = cpu_secs(program, &folder, dtype, function, "1024x800").await?;
                let blocks = cpu_secs(program, &folder, dtype, function, "1x1").await?;
                seconds.push(whole - blocks);
            }
            report.cases.push(
                Case::measured(&format!("{name}, {dtype}, 256^3, 1024x800"), "CPU-s", Better::Lower, seconds)
                    .with("dtype", dtype)
                    .with("transfer", *function),
            );
        }
    }
    Ok(report)
}

/// User and system time of one `corridor render`, seconds.
async fn cpu_secs(program: &Path, folder: &TempDir, dtype: &str, function: &str, size: &str) -> Result<f64> {
    let before = children_cpu_secs()?;
    let picture = folder.path().join("picture.png");
    let status = command(program, folder.path())
        .arg("render")
        .arg(format!("synthetic:waves?shape=256,256,256&dtype={dtype}"))
        .args(["--level", "0", "--size", size, "--tf", function, "-o"])
        .arg(&picture)
        .stderr(std::process::Stdio::null())
        .status()
        .await?;
    if !status.success() {
        return Err(Error::internal(format!("`corridor render` ended with {status}")));
    }
    Ok(children_cpu_secs()? - before)
}

/// Processor time of all ended child processes, seconds: fields 16 and 17 of `/proc/self/stat`, in ticks of 10 ms.
fn children_cpu_secs() -> Result<f64> {
    const TICKS_PER_SEC: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok());
    // Counted after the name in parentheses, which is field 2.
    match (ticks(13), ticks(14)) {
        (Some(user), Some(system)) => Ok((user + system) / TICKS_PER_SEC),
        _ => Err(Error::unsupported("expected Linux's /proc/self/stat")),
    }
}
