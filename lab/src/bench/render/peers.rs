//! Other projects' renderers: Python programs of `lab/peers` that load a volume once and then draw requested frames, so
//! that the frames of all contestants can take turns.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use render::reference::ReferenceVoxels;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::super::options::Options;
use super::super::process::command;
use super::clock::WorkCosts;
use super::volume::BenchVolume;

/// Longest wait for an answer of a peer; software OpenGL takes seconds for a frame.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

const VTK: &str = include_str!("../../../peers/vtk_frames.py");
const PARAVIEW: &str = include_str!("../../../peers/paraview_frames.py");

/// A renderer, by its name in reports and on the command line.
pub(super) struct RendererKind {
    pub(super) name: &'static str,
    /// Takes seconds for a frame, so that it draws one of each scene, of the first direction only.
    pub(super) is_slow: bool,
    script: &'static str,
    text: &'static str,
    mapper: &'static str,
}

/// All renderers; goals are relative to the first.
pub(super) const KINDS: [RendererKind; 3] = [
    RendererKind { name: "vtk", is_slow: false, script: "vtk_frames.py", text: VTK, mapper: "cpu" },
    RendererKind { name: "vtk-gpu", is_slow: true, script: "vtk_frames.py", text: VTK, mapper: "gpu" },
    RendererKind {
        name: "paraview",
        is_slow: true,
        script: "paraview_frames.py",
        text: PARAVIEW,
        mapper: "cpu",
    },
];

/// A renderer that runs.
pub(super) struct RendererPeer {
    pub(super) kind: &'static RendererKind,
    /// Its settings, as it reports them once it has a volume.
    pub(super) tuning: String,
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

/// Renderers that were started, and reasons why others were not.
pub(super) struct RendererPeers {
    pub(super) running: Vec<RendererPeer>,
    pub(super) missing: Vec<(&'static str, String)>,
}

impl RendererPeers {
    pub(super) async fn start(options: &Options, folder: &Path) -> Result<Self> {
        let mut peers = Self { running: Vec::new(), missing: Vec::new() };
        for kind in &KINDS {
            std::fs::write(folder.join(kind.script), kind.text)?;
            let started = if options.wants_peer(kind.name) {
                RendererPeer::start(kind, options, folder).await
            } else {
                Err(Error::not_found("not asked for"))
            };
            match started {
                Ok(peer) => peers.running.push(peer),
                Err(error) => peers.missing.push((kind.name, error.to_string())),
            }
        }
        Ok(peers)
    }

    /// Gives the volume to all renderers; `file` may be deleted afterwards.
    pub(super) async fn load(&mut self, volume: &BenchVolume, file: &Path) -> Result<()> {
        if self.running.is_empty() {
            return Ok(());
        }
        volume.write(file)?;
        let description = json!({ "file": file, "shape": volume.shape(), "dtype": volume.numpy_dtype() });
        for peer in &mut self.running {
            let answer = peer.ask(&json!({ "volume": description })).await?;
            peer.tuning = answer["tuning"].as_str().unwrap_or_default().to_owned();
        }
        Ok(())
    }
}

impl RendererPeer {
    async fn start(kind: &'static RendererKind, options: &Options, folder: &Path) -> Result<Self> {
        let mut why = String::new();
        for program in programs(kind, options) {
            match importable(&program, kind, folder).await {
                Ok(()) => return Self::spawn(&program, kind, folder),
                Err(error) => why = error.to_string(),
            }
        }
        Err(Error::not_found(why))
    }

    fn spawn(program: &[String], kind: &'static RendererKind, folder: &Path) -> Result<Self> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let job = json!({ "mapper": kind.mapper, "threads": threads });
        let mut command = script(program, kind, folder, &job);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Error::internal("a peer without pipes"));
        };
        let output = BufReader::new(output).lines();
        Ok(Self { kind, tuning: String::new(), process, input, output })
    }

    /// Draws a frame as `super::scenes::description`; the picture goes into a file where one is asked for, RGB of 8 bits.
    pub(super) async fn draw(&mut self, description: &Value, picture: Option<&Path>) -> Result<WorkCosts> {
        let mut job = json!({ "frame": description });
        if let Some(file) = picture {
            job["picture"] = json!(file);
        }
        let answer = self.ask(&job).await?;
        let secs = |name: &str| {
            let found = answer.get(name).and_then(Value::as_f64);
            found.ok_or_else(|| Error::internal(format!("expected a number `{name}` in {answer}")))
        };
        Ok(WorkCosts { wall_secs: secs("secs")?, cpu_secs: secs("cpu_secs")? })
    }

    async fn ask(&mut self, job: &Value) -> Result<Value> {
        self.input.write_all(format!("{job}\n").as_bytes()).await?;
        let late = |_| Error::new(ErrorKind::TimedOut, format!("`{}` gave no answer", self.kind.name));
        // Libraries may print lines of their own.
        loop {
            let line = tokio::time::timeout(ANSWER_WITHIN, self.output.next_line()).await.map_err(late)??;
            let Some(line) = line else {
                let status = self.process.wait().await?;
                return Err(Error::internal(format!("`{}` ended: {status}", self.kind.name)));
            };
            if line.starts_with('{') {
                let bad = |e| {
                    Error::internal(format!("expected JSON of `{}`, found `{line}`: {e}", self.kind.name))
                };
                return serde_json::from_str(&line).map_err(bad);
            }
        }
    }
}

/// Commands that may run a peer's script, in the order in which they are tried.
fn programs(kind: &RendererKind, options: &Options) -> Vec<Vec<String>> {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect();
    if kind.name == "paraview" {
        return vec![words("xvfb-run -a pvbatch")];
    }
    let chosen = options.python.iter().map(|python| vec![python.to_string_lossy().into_owned()]);
    chosen.chain(["python3", "/usr/bin/python3"].map(words)).collect()
}

fn script(program: &[String], kind: &RendererKind, folder: &Path, job: &Value) -> Command {
    let mut command = command(Path::new(&program[0]), folder);
    command.args(&program[1..]).arg(folder.join(kind.script)).arg(job.to_string());
    command
}

/// Checks that a peer's imports are installed.
async fn importable(program: &[String], kind: &RendererKind, folder: &Path) -> Result<()> {
    let job = json!({ "only_import": true, "mapper": kind.mapper, "threads": 1 });
    let done = script(program, kind, folder, &job).output().await;
    let done = done.map_err(|e| Error::not_found(format!("`{}`: {e}", program.join(" "))))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(Error::not_found(format!(
        "`{}`: {}",
        program.join(" "),
        said.trim_end().lines().next_back().unwrap_or_default()
    )))
}
