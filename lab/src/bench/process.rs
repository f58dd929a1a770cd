//! Processes of this program, as a benchmark starts them.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// How long a process may take to print its first line.
const START_WITHIN: Duration = Duration::from_secs(60);

/// A `serve` or `view` that runs until dropped, with folders of its own: nothing cached before is used.
pub(super) struct Running {
    /// Its first JSON line.
    pub(super) line: Value,
    process: Child,
    _home: TempDir,
}

impl Running {
    /// Starts `program ARGUMENTS --listen 127.0.0.1:0 --json` and waits for its first line.
    pub(super) async fn start(program: &Path, arguments: &[&str]) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let mut process = command(program, home.path())
            .args(arguments)
            .args(["--listen", "127.0.0.1:0", "--json"])
            .stdout(Stdio::piped())
            .spawn()?;
        let out = process.stdout.take().ok_or_else(|| Error::internal("a process without an output"))?;
        let mut lines = BufReader::new(out).lines();
        let first = tokio::time::timeout(START_WITHIN, lines.next_line())
            .await
            .map_err(|_| Error::new(ErrorKind::TimedOut, format!("`{arguments:?}` printed nothing")))??;
        let text = first.ok_or_else(|| Error::internal(format!("`{arguments:?}` ended at once")))?;
        let line = serde_json::from_str(&text)
            .map_err(|e| Error::internal(format!("expected a JSON line, found `{text}`: {e}")))?;
        Ok(Self { line, process, _home: home })
    }

    /// A text of its first line.
    pub(super) fn text(&self, field: &str) -> Result<&str> {
        let found = self.line.get(field).and_then(Value::as_str);
        found.ok_or_else(|| Error::internal(format!("expected `{field}` in {}", self.line)))
    }

    /// The most memory it ever held, bytes.
    pub(super) fn peak_bytes(&self) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()?)).ok()?;
        let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix(" kB")?.parse::<f64>().ok().map(|kib| kib * 1024.0)
    }
}

/// `program` in an environment of its own.
pub(super) fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    for name in ["CORRIDOR_TOKEN", "CORRIDOR_MEMORY"] {
        command.env_remove(name);
    }
    command
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .env("CORRIDOR_CACHE_DIR", home.join("side"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}
