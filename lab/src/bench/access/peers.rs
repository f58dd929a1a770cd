//! The peers: other projects' servers and clients doing the same reads. Each client is a small Python program in
//! `lab/peers`, which says how it is tuned, checks every byte, and prints one line of JSON.

use std::fs::Permissions;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use array::{Error, Result, Selection};
use serde_json::{Value, json};

use super::super::options::Options;
use super::super::process::{LinkSide, RunningProcess, command};
use super::contest::{Measured, received_bytes};
use super::field::Field;

/// Time above which a client does only a part of the reads; its time is then scaled.
const MAX_SECS: f64 = 180.0;
const MAX_QUICK_SECS: f64 = 10.0;

const SCRIPTS: &[(&str, &str)] = &[
    ("field.py", include_str!("../../../peers/field.py")),
    ("prepare.py", include_str!("../../../peers/prepare.py")),
    ("xrootd_reads.py", include_str!("../../../peers/xrootd_reads.py")),
    ("tensorstore_reads.py", include_str!("../../../peers/tensorstore_reads.py")),
    ("zarr_python_reads.py", include_str!("../../../peers/zarr_python_reads.py")),
    ("h5py_reads.py", include_str!("../../../peers/h5py_reads.py")),
];

/// Kind of server that serves the peer's data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Serves {
    Xrootd,
    Http,
}

/// One peer.
#[derive(Clone, Copy)]
pub(super) struct ReadingPeer {
    /// Name in reports and on the command line.
    pub(super) name: &'static str,
    script: &'static str,
    serves: Serves,
    /// Whether it runs as often as ours; only the fastest peer does.
    pub(super) is_repeated: bool,
}

/// All peers.
pub(super) const ALL: &[ReadingPeer] = &[
    ReadingPeer { name: "xrootd", script: "xrootd_reads.py", serves: Serves::Xrootd, is_repeated: true },
    ReadingPeer {
        name: "tensorstore",
        script: "tensorstore_reads.py",
        serves: Serves::Http,
        is_repeated: false,
    },
    ReadingPeer {
        name: "zarr-python",
        script: "zarr_python_reads.py",
        serves: Serves::Http,
        is_repeated: false,
    },
    ReadingPeer { name: "h5py", script: "h5py_reads.py", serves: Serves::Http, is_repeated: false },
];

/// The reads of a peer.
pub(super) enum Reads<'a> {
    /// Each of these rows by itself.
    Rows(&'a [u64]),
    /// One selection.
    Hyperslab(&'a Selection),
}

/// Result that a client printed.
pub(super) struct PeerReads {
    pub(super) measured: Measured,
    /// Operations that were run; the time is scaled to all of them.
    pub(super) sampled: Option<f64>,
    /// Its settings, as it reports them.
    pub(super) tuning: String,
}

/// Peers that were chosen, with a folder for their data and programs.
pub(super) struct ReadingPeers<'a> {
    options: &'a Options,
    side: LinkSide,
    folder: PathBuf,
    field: &'a Field,
    is_prepared: bool,
}

impl<'a> ReadingPeers<'a> {
    pub(super) fn new(options: &'a Options, field: &'a Field, folder: &Path) -> Result<Self> {
        let folder = folder.join("peers");
        std::fs::create_dir(&folder)?;
        for (name, text) in SCRIPTS {
            std::fs::write(folder.join(name), text)?;
        }
        Ok(Self { options, side: LinkSide::of(options), folder, field, is_prepared: false })
    }

    /// Runs `reads` by `peer` in processes of their own.
    pub(super) async fn run(&mut self, peer: ReadingPeer, reads: &Reads<'_>) -> Result<PeerReads> {
        let python = self.python(peer.script).await?;
        if peer.serves == Serves::Http && !self.is_prepared {
            let arguments =
                json!({ "file": self.field.file, "shape": self.field.shape, "folder": self.folder });
            self.script(&python, "prepare.py", &arguments).await?;
            self.is_prepared = true;
        }
        let port = free_port()?;
        let server = self.serve(peer.serves, port).await?;
        let job = self.job(reads, port)?;
        let before = (server.cpu_secs(), received_bytes());
        let said = self.script(&python, peer.script, &job).await?;
        outcome(&said, server.cpu_secs() - before.0, received_bytes() - before.1)
    }

    fn job(&self, reads: &Reads<'_>, port: u16) -> Result<Value> {
        let mut job = json!({
            "address": self.side.address.to_string(),
            "port": port,
            "file": self.field.file,
            "shape": self.field.shape,
            "limit_secs": if self.options.is_quick { MAX_QUICK_SECS } else { MAX_SECS },
        });
        match reads {
            Reads::Rows(rows) => {
                let file = self.folder.join("rows.u64");
                std::fs::write(&file, rows.iter().flat_map(|row| row.to_le_bytes()).collect::<Vec<_>>())?;
                job["rows_file"] = json!(file);
            }
            Reads::Hyperslab(selection) => job["selection"] = json!(selection),
        }
        Ok(job)
    }

    async fn serve(&self, serves: Serves, port: u16) -> Result<RunningProcess> {
        let configuration = self.folder.join(format!("server-{port}.conf"));
        let data = self.field.file.parent().unwrap_or(Path::new("/")).display();
        let folder = self.folder.display();
        let path = configuration.to_string_lossy();
        match serves {
            Serves::Xrootd => {
                // It keeps its own files there, as whichever user it becomes.
                let own = self.folder.join(format!("xrootd-{port}"));
                std::fs::create_dir(&own)?;
                std::fs::set_permissions(&own, Permissions::from_mode(0o777))?;
                let own = own.display();
                std::fs::write(
                    &configuration,
                    format!(
                        "xrd.port {port}\nxrd.network nodnr\nall.export {data}\nall.adminpath {own}\n\
                         all.pidpath {own}\nxrootd.async off\n"
                    ),
                )?;
                // It refuses to run as root; then it takes another user's rights by itself.
                let mut arguments = vec!["-c", &path];
                if rustix::process::geteuid().is_root() {
                    arguments.extend(["-R", "nobody"]);
                }
                RunningProcess::other(&self.side, "xrootd", &arguments, port).await
            }
            Serves::Http => {
                std::fs::write(
                    &configuration,
                    format!(
                        "daemon off; master_process off; pid {folder}/nginx-{port}.pid; error_log /dev/null;\n\
                         events {{ worker_connections 4096; multi_accept on; }}\n\
                         http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000;\n\
                         open_file_cache max=4096; client_body_temp_path {folder};\n\
                         server {{ listen {address}:{port}; root {folder}; }} }}\n",
                        address = self.side.address
                    ),
                )?;
                RunningProcess::other(&self.side, "nginx", &["-c", &path], port).await
            }
        }
    }

    /// Finds a Python interpreter with the imports of `script`.
    async fn python(&self, script: &str) -> Result<PathBuf> {
        let system = [PathBuf::from("python3"), PathBuf::from("/usr/bin/python3")];
        let mut why = String::new();
        for python in self.options.python.iter().chain(&system) {
            match self.script(python, script, &json!({ "only_import": true })).await {
                Ok(_) => return Ok(python.clone()),
                Err(error) => why = error.to_string(),
            }
        }
        Err(Error::not_found(why))
    }

    /// Runs a script with its job on the command line; its answer is the last line.
    async fn script(&self, python: &Path, script: &str, job: &Value) -> Result<Value> {
        let job_text = job.to_string();
        let done = command(python, &self.folder)
            .arg(self.folder.join(script))
            .arg(&job_text)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .await?;
        let last =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().lines().next_back().map(str::to_owned);
        if !done.status.success() {
            let said = last(&done.stderr).unwrap_or_default();
            return Err(Error::internal(format!("`{script}` failed: {said}")));
        }
        let line = last(&done.stdout).unwrap_or_else(|| "null".into());
        serde_json::from_str(&line)
            .map_err(|e| Error::internal(format!("expected JSON of `{script}`, found `{line}`: {e}")))
    }
}

fn outcome(said: &Value, server_cpu_secs: f64, received_bytes: f64) -> Result<PeerReads> {
    let number = |name: &str| {
        let found = said.get(name).and_then(Value::as_f64);
        found.ok_or_else(|| Error::internal(format!("expected a number `{name}` in {said}")))
    };
    let (done, asked) = (number("operations")?, number("asked")?);
    let scale = asked / done.max(1.0);
    Ok(PeerReads {
        measured: Measured {
            secs: number("secs")? * scale,
            client_cpu_secs: number("cpu_secs")? * scale,
            server_cpu_secs: server_cpu_secs * scale,
            received_bytes: received_bytes * scale,
        },
        sampled: (done < asked).then_some(done),
        tuning: said.get("tuning").and_then(Value::as_str).unwrap_or_default().to_owned(),
    })
}

/// Finds a free port on this side; on the server's side it is most likely free too.
pub(super) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?.local_addr()?.port())
}
