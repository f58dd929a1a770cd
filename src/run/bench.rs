//! `corridor bench`

use std::sync::Arc;

use array::{Error, Result};
use lab::bench::access::serve_ceiling;
use lab::bench::options::{Company, Options};
use lab::bench::{self, transport};
use serde_json::json;
use stream::compose::Communicator;

use crate::cli::BenchOptions;
use crate::common::print;

/// Runs the benchmarks. `process` is one of an MPI program that measures together.
pub(crate) async fn run(chosen: &BenchOptions, process: Option<Arc<mpi::Process>>) -> Result<()> {
    if chosen.name == "list" {
        return bench::ALL.iter().try_for_each(|(name, what)| print(&format!("{name:<16} {what}")));
    }
    if let (Some(file), Some(listen)) = (&chosen.serve_file, chosen.listen) {
        return serve_ceiling(file, listen, |ready| print(&json!(ready).to_string()));
    }
    if let ("messages", Some(listen)) = (chosen.name.as_str(), chosen.listen) {
        return transport::serve(listen, |ready| print(&json!(ready).to_string())).await;
    }
    let program = std::env::current_exe().map_err(Error::from)?;
    let names: Vec<&str> = match chosen.name.as_str() {
        "all" => bench::ALL.iter().map(|(name, _)| *name).collect(),
        name => vec![name],
    };
    let ranks = process.map(|process| process as Arc<dyn Communicator>);
    let is_reporter = ranks.as_ref().is_none_or(|ranks| ranks.rank() == 0);
    let options = Options { company: ranks.map(Company), ..options(chosen) };
    for name in names {
        let report = bench::run(name, &program, &options).await?;
        if !is_reporter {
            continue;
        }
        if chosen.json {
            let text = serde_json::to_string(&report)
                .map_err(|e| Error::internal(format!("a report in JSON: {e}")))?;
            print(&text)?;
        } else {
            print(bench::table(&report).trim_end())?;
        }
        if let Some(error) = report.error {
            return Err(Error::internal(format!("some cases of `{name}` failed: {error}")));
        }
    }
    Ok(())
}

fn options(chosen: &BenchOptions) -> Options {
    Options {
        is_quick: chosen.quick,
        runs: chosen.runs,
        server_command: chosen.server_command.split_whitespace().map(str::to_owned).collect(),
        server_address: chosen.server_address,
        link: chosen.link.clone(),
        make_link: chosen.make_link.clone(),
        only: chosen.only.clone(),
        peers: chosen.peers.clone(),
        python: chosen.python.clone(),
        files: chosen.files.clone(),
        company: None,
    }
}
