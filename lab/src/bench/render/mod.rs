//! `corridor bench render`: the CPU ray caster in this process, frame by frame, in turn with other projects' renderers that
//! are told the same volume, camera, size, transfer function and step; and what a viewer waits for.
//!
//! Frames of our caster are measured without encoding and without a network, peers' without showing them in a window.
//! `compositing` has several ranks draw one picture, on threads and, where the program has MPI, in processes.
//! `overlap` draws a film of data that come over a limited link. `watching` goes through all of `corridor view`; `slabs` measures
//! what a viewer could draw by itself while it waits.

mod clock;
mod compositing;
mod frames;
mod overlap;
mod peers;
mod scaling;
mod scenes;
mod slabs;
mod viewer;
mod volume;
mod watching;

use std::path::Path;

use array::{Error, Result};

use super::finished::Finished;
use super::options::{Company, Options};
use super::report::BenchReport;

/// Groups of cases, as [`Options::only`] names them.
const GROUPS: &[&str] = &["frames", "scaling", "slabs", "compositing", "overlap", "watching"];

pub(super) async fn run(program: &Path, options: &Options) -> Result<BenchReport> {
    options.check_only(GROUPS)?;
    let mut finished = Finished::with(options);
    if let Some(Company(ranks)) = &options.company {
        if options.only != ["compositing"] {
            let found = &options.only;
            return Err(Error::invalid(format!(
                "expected `--only compositing` in a process of an MPI program, found {found:?}: start the others alone"
            )));
        }
        compositing::by_processes(&**ranks, options, &mut finished)?;
        return Ok(finished.into_report(BenchReport::here("render", options.link.clone())));
    }
    let folder = tempfile::tempdir()?;
    for &group in GROUPS.iter().filter(|group| options.has(group)) {
        let result = match group {
            "frames" => frames::run(options, folder.path(), &mut finished).await,
            "scaling" => scaling::run(options, &mut finished),
            "compositing" => compositing::run(program, options, &mut finished).await,
            "overlap" => overlap::run(program, options, folder.path(), &mut finished).await,
            "slabs" => slabs::run(options, folder.path(), &mut finished).await,
            _ => watching::run(program, options, folder.path(), &mut finished).await,
        };
        finished.end_of(group, result);
    }
    Ok(finished.into_report(BenchReport::here("render", options.link.clone())))
}
