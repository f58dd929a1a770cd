//! `corridor bench access`: reads of a remote array that are split into few or many operations, beside other projects' programs
//! and the least that TCP can do, on the link that lies between this process and the server's side.
//!
//! What lies between is the caller's: the benchmark runs where it is started and starts servers by
//! [`Options::server_command`]. Every byte that anybody reads is compared.

mod ceiling;
mod contest;
mod field;
mod files;
mod ours;
mod peers;
mod reads;
mod urgent;

use std::path::Path;

use array::Result;
use tempfile::TempDir;

use super::options::Options;
use super::process::{Running, Side};
use super::report::{Case, Report};
use peers::Peers;

pub use ceiling::serve as serve_ceiling;
pub(super) use field::Field;

/// Groups of cases, as [`Options::only`] names them.
pub const GROUPS: &[&str] = &["random", "split", "hyperslab", "urgent"];

/// Runs of each case.
const RUNS: usize = 3;

/// The servers that everybody but peers needs, and what they serve.
struct Scene {
    field: Field,
    folder: TempDir,
    served: Running,
    ceiling: Running,
    runs: usize,
}

impl Scene {
    async fn open(program: &Path, options: &Options) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        open_to_all(folder.path())?;
        let field = Field::write(folder.path(), options.is_quick)?;
        let side = Side::of(options);
        let description = field.description.to_string_lossy();
        let served = Running::start_at(&side, program, &["serve", &description]).await?;
        let file = field.file.to_string_lossy();
        let ceiling = Running::start_at(&side, program, &["bench", "ceiling", "--serve-file", &file]).await?;
        let runs = options.runs.unwrap_or(if options.is_quick { 1 } else { RUNS });
        Ok(Self { field, folder, served, ceiling, runs })
    }

    fn ceiling_address(&self) -> Result<std::net::SocketAddr> {
        self.ceiling.text("address")?.parse().map_err(|e| array::Error::internal(format!("an address: {e}")))
    }
}

pub(super) async fn run(program: &Path, options: &Options) -> Result<Report> {
    let mut report = Report::here("access", options.link.clone());
    if !options.files.is_empty() {
        report.cases = files::run(program, options, options.runs.unwrap_or(RUNS)).await?;
        return Ok(report);
    }
    let scene = Scene::open(program, options).await?;
    let mut peers = Peers::new(options, &scene.field, scene.folder.path())?;
    let mut cases: Vec<Case> = Vec::new();
    if options.has("random") {
        cases.extend(reads::random(&scene, options, &mut peers).await?);
    }
    if options.has("split") {
        cases.extend(reads::split(&scene, options).await?);
    }
    if options.has("hyperslab") {
        cases.extend(reads::hyperslab(&scene, options, &mut peers).await?);
    }
    if options.has("urgent") {
        cases.push(urgent::run(&scene).await?);
    }
    report.cases = cases;
    Ok(report)
}

/// A peer's server may run as another user.
fn open_to_all(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?)
}
