//! Processes that a benchmark starts, on this side or on the server's: this program and others, and their processor time.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::options::Options;

/// Longest time until a new process answers.
const START_WITHIN: Duration = Duration::from_secs(60);
/// Pause between attempts to reach it.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// Kernel ticks per second in `/proc`: `USER_HZ`, the same on every Linux.
const TICKS_PER_SEC: f64 = 100.0;

/// Side of a link on which server processes run, and the address at which they are reached.
#[derive(Clone, Debug)]
pub(super) struct LinkSide {
    /// Words before a command.
    command: Vec<String>,
    pub(super) address: IpAddr,
}

impl LinkSide {
    /// This machine, by loopback.
    pub(super) fn here() -> Self {
        Self { command: Vec::new(), address: Ipv4Addr::LOCALHOST.into() }
    }

    /// The server's side that a caller chose.
    pub(super) fn of(options: &Options) -> Self {
        Self { command: options.server_command.clone(), address: options.server_address }
    }

    /// `program` on that side, in an environment of its own.
    fn command(&self, program: &Path, home: &Path) -> Command {
        let Some((first, rest)) = self.command.split_first() else { return command(program, home) };
        let mut command = command(Path::new(first), home);
        command.args(rest).arg(program);
        command
    }
}

/// A process that runs until dropped, with folders of its own, so that no cache of an earlier run is used.
pub(super) struct RunningProcess {
    /// Its first JSON line; null for programs that print none.
    pub(super) line: Value,
    process: Child,
    _home: TempDir,
}

impl RunningProcess {
    /// Starts `program ARGUMENTS --listen 127.0.0.1:0 --json` and waits for its first line.
    pub(super) async fn start(program: &Path, arguments: &[&str]) -> Result<Self> {
        Self::start_at(&LinkSide::here(), program, arguments).await
    }

    /// Starts the program on `side` as [`start`](Self::start) does here.
    pub(super) async fn start_at(side: &LinkSide, program: &Path, arguments: &[&str]) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let listen = std::net::SocketAddr::new(side.address, 0).to_string();
        let mut process = side
            .command(program, home.path())
            .args(arguments)
            .args(["--listen", &listen, "--json"])
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

    /// Starts another project's server on `side` and waits until `port` answers.
    pub(super) async fn other(side: &LinkSide, program: &str, arguments: &[&str], port: u16) -> Result<Self> {
        let mut running = Self::unasked(side, program, arguments)?;
        let reachable = async {
            while TcpStream::connect((side.address, port)).await.is_err() {
                if let Some(status) = running.process.try_wait()? {
                    return Err(Error::internal(format!("`{program}` ended at once: {status}")));
                }
                tokio::time::sleep(RETRY_AFTER).await;
            }
            Ok(())
        };
        let late = |_| Err(Error::new(ErrorKind::TimedOut, format!("`{program}` cannot be reached")));
        tokio::time::timeout(START_WITHIN, reachable).await.unwrap_or_else(late)?;
        Ok(running)
    }

    /// Starts another project's server without waiting until it is ready.
    pub(super) fn unasked(side: &LinkSide, program: &str, arguments: &[&str]) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let mut command = side.command(Path::new(program), home.path());
        let process = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Self { line: Value::Null, process, _home: home })
    }

    /// Text field of its first line.
    pub(super) fn text(&self, field: &str) -> Result<&str> {
        let found = self.line.get(field).and_then(Value::as_str);
        found.ok_or_else(|| Error::internal(format!("expected `{field}` in {}", self.line)))
    }

    /// Ends it at once, without a chance to close connections (`kill -9`).
    pub(super) fn kill(&mut self) -> Result<()> {
        Ok(self.process.start_kill()?)
    }

    /// Peak of its memory, bytes.
    pub(super) fn peak_bytes(&self) -> Option<f64> {
        self.memory_bytes("VmHWM:")
    }

    /// Resident memory, bytes.
    pub(super) fn resident_bytes(&self) -> Option<f64> {
        self.memory_bytes("VmRSS:")
    }

    fn memory_bytes(&self, field: &str) -> Option<f64> {
        memory_bytes(self.process.id()?, field)
    }

    /// Processor time that it and its children used so far, seconds.
    pub(super) fn cpu_secs(&self) -> f64 {
        self.process.id().map_or(0.0, cpu_secs)
    }
}

/// Resident memory of a process, bytes.
pub(super) fn resident_bytes(id: u32) -> Option<f64> {
    memory_bytes(id, "VmRSS:")
}

fn memory_bytes(id: u32, field: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.parse::<f64>().ok().map(|kib| kib * 1024.0)
}

/// Processor time that this process used so far, seconds.
pub(super) fn own_cpu_secs() -> f64 {
    cpu_of(std::process::id()).map_or(0.0, |(_, secs)| secs)
}

/// Processor time of a process and its descendants, seconds.
fn cpu_secs(root: u32) -> f64 {
    let ids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: HashMap<u32, (u32, f64)> = ids.filter_map(|id| Some((id, cpu_of(id)?))).collect();
    let belongs = |mut id: u32| {
        while id != root {
            match all.get(&id) {
                Some(&(parent, _)) if parent != 0 => id = parent,
                _ => return false,
            }
        }
        true
    };
    let mut secs: Vec<f64> = all.iter().filter(|(id, _)| belongs(**id)).map(|(_, (_, secs))| *secs).collect();
    secs.sort_by(f64::total_cmp);
    secs.iter().sum()
}

/// Parent of a process, and the processor time of itself and of children that ended.
fn cpu_of(id: u32) -> Option<(u32, f64)> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name may hold spaces and brackets; what follows the last one is numbers.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11..15)?.iter().filter_map(|n| n.parse::<f64>().ok()).sum();
    Some((fields.get(1)?.parse().ok()?, ticks / TICKS_PER_SEC))
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
