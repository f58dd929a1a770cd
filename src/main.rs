//! The `corridor` command line: options, messages and exit codes. The work is done by `node`, and by `lab` if the
//! feature of that name is on.

mod cli;
mod common;
mod config;
mod progress;
mod run;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use array::{Error, ErrorKind, Result, Retry};
use clap::FromArgMatches;
use stream::RankChannels;
use stream::compose::Method;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::{Cli, Command};
#[cfg(feature = "lab")]
use crate::cli::{LabAction, LabOptions};

/// Allocator for responses, which are many small allocations made by one thread and freed by another.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Timeout at exit for blocking work that cannot be interrupted.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Exit code after an interruption by the user, as in shells.
const INTERRUPTED: u8 = 130;
/// Exit code after a panic, as in Rust's programs.
const PANICKED: u8 = 101;
/// Crates whose debug messages `-v` shows.
const LOGGED_CRATES: [&str; 4] = ["corridor_client", "corridor_server", "corridor_export", "corridor_node"];

fn main() -> ExitCode {
    let cli = match config::matches().map(|matches| Cli::from_arg_matches(&matches)) {
        Ok(Ok(cli)) => cli,
        Ok(Err(mistake)) => mistake.exit(),
        Err(error) => return failed(&error),
    };
    start_log(cli.verbose);
    // Before there are other threads: MPI must start and end on the same one.
    let process = match join(&cli.command) {
        Ok(process) => process,
        Err(error) => return failed(&error),
    };
    if let Some(process) = &process {
        end_all_on_panic(process);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return failed(&Error::from(e).context("starting")),
    };
    let code = runtime.block_on(async {
        tokio::select! {
            biased;
            () = interrupted() => ExitCode::from(if is_server(&cli.command) { 0 } else { INTERRUPTED }),
            result = run(&cli.command, process.clone()) => result.unwrap_or_else(|e| {
                let code = failed(&e);
                // The other processes would wait for this one.
                if let Some(process) = &process {
                    process.abort(exit_code(e.kind()));
                }
                code
            }),
        }
    });
    // Writers remove their partial output; blocking reads of slow files are not waited for longer.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    code
}

/// Aborts all processes of an MPI program after a panic of this one, because the others would wait for it.
fn end_all_on_panic(process: &Arc<mpi::Process>) {
    let print_panic = std::panic::take_hook();
    // A weak reference, because MPI is finalized when the last strong one is dropped.
    let process = Arc::downgrade(process);
    std::panic::set_hook(Box::new(move |panic| {
        print_panic(panic);
        if let Some(process) = process.upgrade() {
            process.abort(PANICKED);
        }
    }));
}

/// Returns whether the command is a server, for which ending by a signal is not a failure.
fn is_server(command: &Command) -> bool {
    match command {
        Command::Serve(_) | Command::View(_) | Command::Demo(_) => true,
        #[cfg(feature = "lab")]
        Command::Lab(LabOptions { action: LabAction::Up(link) }) => link.command.is_empty(),
        _ => false,
    }
}

/// Joins the other processes of an MPI program, for commands that use them.
fn join(command: &Command) -> Result<Option<Arc<mpi::Process>>> {
    let is_shared = match command {
        Command::Render(_) | Command::View(_) => true,
        #[cfg(feature = "lab")]
        Command::Bench(options) => options.name == "render",
        _ => false,
    };
    if is_shared { Ok(mpi::join()?.map(Arc::new)) } else { Ok(None) }
}

async fn run(command: &Command, process: Option<Arc<mpi::Process>>) -> Result<ExitCode> {
    match command {
        #[cfg(feature = "lab")]
        Command::Lab(options) => return run::lab::run(options).await,
        #[cfg(feature = "lab")]
        Command::Bench(options) => run::bench::run(options, process).await,
        #[cfg(not(feature = "lab"))]
        Command::Lab(options) => Err(run::without_lab::refusal("lab", options)),
        #[cfg(not(feature = "lab"))]
        Command::Bench(options) => Err(run::without_lab::refusal("bench", options)),
        Command::Demo(options) => run::demo::run(options).await,
        Command::Serve(options) => run::serve::run(options).await,
        Command::View(options) => run::view::run(options, ranks(process)).await,
        Command::Session(options) => run::session::run(options).await,
        Command::Render(options) => run::render::run(options, ranks(process)).await,
        Command::Info(options) => run::info::run(options).await,
        Command::Get(options) => run::get::run(options).await,
        Command::Path(options) => run::path::run(options).await,
        Command::Cache(options) => run::cache::run(options),
        Command::Help(options) => run::help::run(options),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Returns the processes of an MPI program, one of which is this one, as ranks that draw together.
fn ranks(process: Option<Arc<mpi::Process>>) -> Option<RankChannels> {
    process.map(|process| RankChannels {
        cancellations: Arc::new(process.lane(0)),
        work: process,
        method: Method::Auto,
    })
}

/// Waits for Ctrl-C, for a termination signal, or for the terminal being closed.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let hangup = (!ignores_hangup()).then(|| signal(SignalKind::hangup())).transpose();
    match (signal(SignalKind::terminate()), hangup) {
        (Ok(mut terminate), Ok(mut hangup)) => {
            let hung_up = async {
                match &mut hangup {
                    Some(hangup) => hangup.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
                _ = hung_up => {}
            }
        }
        // Without signal handlers the default action ends the process.
        _ => std::future::pending().await,
    }
}

/// Returns whether this process should continue after its terminal is closed (`nohup`).
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The first signal is the lowest bit.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}

fn start_log(verbose: u8) {
    let requested = std::env::var("CORRIDOR_LOG").ok().and_then(|text| text.parse().ok());
    let default = match verbose {
        0 => Targets::new().with_default(LevelFilter::WARN),
        1 => {
            let crates = LOGGED_CRATES.map(|target| (target, LevelFilter::DEBUG));
            Targets::new().with_default(LevelFilter::INFO).with_targets(crates)
        }
        _ => Targets::new().with_default(LevelFilter::TRACE),
    };
    let filtered = tracing_subscriber::registry().with(requested.unwrap_or(default));
    let log = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // Times and code locations are for verbose output only.
    if verbose == 0 {
        filtered.with(log.without_time().with_target(false)).init();
    } else {
        filtered.with(log).init();
    }
}

fn failed(error: &Error) -> ExitCode {
    // Without control characters: it may contain names from files.
    common::say(&format!("error: {}", client::text::plain(&error.to_string())));
    if error.retry() == Retry::MayHelp {
        common::say("hint: trying again may help");
    }
    ExitCode::from(exit_code(error.kind()))
}

/// Returns the exit code, as listed by `corridor help exit-codes`.
fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Invalid => 2,
        ErrorKind::NotFound => 3,
        ErrorKind::Denied => 4,
        ErrorKind::Unreachable | ErrorKind::TimedOut | ErrorKind::Busy => 5,
        ErrorKind::Corrupt | ErrorKind::Stale => 6,
        ErrorKind::TooLarge => 7,
        ErrorKind::Internal | ErrorKind::Unsupported | ErrorKind::Cancelled | ErrorKind::Io => 1,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_exit_code_is_explained() {
        let text = cli::topics::find("exit-codes").unwrap();
        let number = |line: &str| line.split_whitespace().next()?.parse::<u8>().ok();
        let explained: Vec<u8> = text.lines().filter_map(number).collect();
        let codes = ErrorKind::ALL.into_iter().map(exit_code).chain([0, INTERRUPTED]);
        let codes: Vec<u8> = codes.collect::<BTreeSet<u8>>().into_iter().collect();
        assert_eq!(explained, codes);
    }
}
