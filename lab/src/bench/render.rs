//! `corridor bench render`: the CPU ray caster in this process, frame by frame, in turn with other projects' renderers that
//! are told the same volume, camera, size, transfer function and step; and what a viewer waits for.
//!
//! Frames of our caster are measured without encoding and without a network, peers' without showing them in a window.
//! `watching` goes through all of `corridor view`; `slabs` measures what a viewer could draw by itself while it waits.

mod clock;
mod frames;
mod peers;
mod scaling;
mod scenes;
mod slabs;
mod viewer;
mod volume;
mod watching;

use std::path::Path;

use array::Result;

use super::finished::Finished;
use super::options::Options;
use super::report::Report;

/// Groups of cases, as [`Options::only`] names them.
const GROUPS: &[&str] = &["frames", "scaling", "slabs", "watching"];

pub(super) async fn run(program: &Path, options: &Options) -> Result<Report> {
    let mut finished = Finished::with(options);
    let folder = tempfile::tempdir()?;
    for &group in GROUPS.iter().filter(|group| options.has(group)) {
        let result = match group {
            "frames" => frames::run(options, folder.path(), &mut finished).await,
            "scaling" => scaling::run(options, &mut finished),
            "slabs" => slabs::run(options, folder.path(), &mut finished).await,
            _ => watching::run(program, options, &mut finished).await,
        };
        finished.end_of(group, result);
    }
    Ok(finished.into_report(Report::here("render", options.link.clone())))
}
