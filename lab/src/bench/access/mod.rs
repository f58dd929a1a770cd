//! `corridor bench access`: reads of a remote array that are split into few or many operations, beside other projects' programs
//! and the least that TCP can do, on the link that lies between this process and the server's side.
//!
//! The caller provides the link: the benchmark runs where it is started and starts servers with
//! [`Options::server_command`]. Every byte that is read is compared.

mod ceiling;
mod contest;
mod field;
mod files;
mod login;
mod ours;
mod peers;
mod reads;
mod sealed;
mod sshd;
mod urgent;

use std::net::SocketAddr;
use std::path::Path;

use array::{Error, Result};
use link::Fingerprint;
use tempfile::TempDir;

use super::finished::Finished;
use super::options::Options;
use super::process::{LinkSide, RunningProcess};
use super::report::BenchReport;
use peers::ReadingPeers;

pub use ceiling::{CeilingReady, serve as serve_ceiling};
pub(super) use field::Field;

/// Groups of cases, as [`Options::only`] names them.
pub const GROUPS: &[&str] = &["random", "split", "hyperslab", "urgent", "ssh"];

/// Runs of each case.
const RUNS: usize = 3;

/// Servers of ours and of the ceiling, and the data that they serve.
struct AccessScene {
    field: Field,
    folder: TempDir,
    served: RunningProcess,
    ceiling: RunningProcess,
    runs: usize,
}

impl AccessScene {
    async fn open(program: &Path, options: &Options) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        open_to_all(folder.path())?;
        let field = Field::write(folder.path(), options.is_quick)?;
        let side = LinkSide::of(options);
        let description = field.description.to_string_lossy();
        let served = RunningProcess::start_at(&side, program, &["serve", &description]).await?;
        let file = field.file.to_string_lossy();
        let ceiling =
            RunningProcess::start_at(&side, program, &["bench", "ceiling", "--serve-file", &file]).await?;
        let runs = options.runs.unwrap_or(if options.is_quick { 1 } else { RUNS });
        Ok(Self { field, folder, served, ceiling, runs })
    }

    fn ceiling_address(&self) -> Result<SocketAddr> {
        self.ceiling_at("address")
    }

    fn sealed_address(&self) -> Result<(SocketAddr, Fingerprint)> {
        Ok((self.ceiling_at("tls")?, self.ceiling.text("fingerprint")?.parse()?))
    }

    fn ceiling_at(&self, field: &str) -> Result<SocketAddr> {
        self.ceiling.text(field)?.parse().map_err(|e| Error::internal(format!("an address: {e}")))
    }
}

pub(super) async fn run(program: &Path, options: &Options) -> Result<BenchReport> {
    let report = BenchReport::here("access", options.link.clone());
    options.check_only(GROUPS)?;
    let mut finished = Finished::with(options);
    if !options.files.is_empty() {
        let runs = options.runs.unwrap_or(RUNS);
        let result = files::run(program, options, runs, &mut finished).await;
        finished.end_of("files", result);
        return Ok(finished.into_report(report));
    }
    let scene = AccessScene::open(program, options).await?;
    let mut peers = ReadingPeers::new(options, &scene.field, scene.folder.path())?;
    for &group in GROUPS.iter().filter(|group| options.has(group)) {
        let result = match group {
            "random" => reads::random(&scene, options, &mut peers, &mut finished).await,
            "split" => reads::split(&scene, options, &mut finished).await,
            "hyperslab" => reads::hyperslab(&scene, options, &mut peers, &mut finished).await,
            "urgent" => urgent::run(&scene).await.map(|case| finished.add(case)),
            _ => login::run(program, options, &scene, &mut finished).await,
        };
        finished.end_of(group, result);
    }
    Ok(finished.into_report(report))
}

/// Lets everybody read a folder: a peer's server may run as another user.
fn open_to_all(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?)
}
