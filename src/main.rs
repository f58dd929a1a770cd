//! The `corridor` command line: options in, sentences and exit codes out. The work is done by `node`, and by `lab` if the
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
use stream::Ranks;
use stream::compose::Method;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::{Cli, Command};
#[cfg(feature = "lab")]
use crate::cli::{LabAction, LabOptions};

/// Answers are many small pieces of memory that one thread makes and another gives back: made for that.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long work that cannot be interrupted may take to end.
const LINGER: Duration = Duration::from_secs(2);
/// Ended by the person at the keyboard, as shells count it.
const INTERRUPTED: u8 = 130;
/// A bug, as Rust's programs end with it.
const PANICKED: u8 = 101;
/// Crates whose debug messages `-v` shows.
const TOLD_OF: [&str; 4] = ["corridor_client", "corridor_server", "corridor_export", "corridor_node"];

fn main() -> ExitCode {
    let cli = match config::matches().map(|matches| Cli::from_arg_matches(&matches)) {
        Ok(Ok(cli)) => cli,
        Ok(Err(mistake)) => mistake.exit(),
        Err(error) => return failed(&error),
    };
    start_log(cli.verbose);
    // Before there are other threads: MPI begins and ends on this one.
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
                // The others would wait for this one.
                if let Some(process) = &process {
                    process.abort(exit_code(e.kind()));
                }
                code
            }),
        }
    });
    // Writers take away what they had begun; blocking reads of slow files are not waited for longer.
    runtime.shutdown_timeout(LINGER);
    code
}

/// A panic of one process of an MPI program ends all: the others would wait for what it does not do any more.
fn end_all_on_panic(process: &Arc<mpi::Process>) {
    let tell = std::panic::take_hook();
    // MPI ends with the last who holds the process: that is not to be this.
    let process = Arc::downgrade(process);
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        if let Some(process) = process.upgrade() {
            process.abort(PANICKED);
        }
    }));
}

/// Servers are ended by a signal; that is no failure.
fn is_server(command: &Command) -> bool {
    match command {
        Command::Serve(_) | Command::View(_) | Command::Demo(_) => true,
        #[cfg(feature = "lab")]
        Command::Lab(LabOptions { action: LabAction::Up(link) }) => link.command.is_empty(),
        _ => false,
    }
}

/// The other processes of an MPI program, of commands that work with them.
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
        Command::Render(options) => run::render::run(options, ranks(process)).await,
        Command::Info(options) => run::info::run(options).await,
        Command::Get(options) => run::get::run(options).await,
        Command::Path(options) => run::path::run(options).await,
        Command::Cache(options) => run::cache::run(options),
        Command::Help(options) => run::help::run(options),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Processes of an MPI program as ranks that draw together, of which this process is one.
fn ranks(process: Option<Arc<mpi::Process>>) -> Option<Ranks> {
    process.map(|process| Ranks { news: Arc::new(process.lane(0)), work: process, method: Method::Auto })
}

/// Waits for Ctrl-C, for the system asking to end, or for the terminal being closed.
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
        // Without signals the default action ends the process.
        _ => std::future::pending().await,
    }
}

/// Whether whoever started this wants it to outlive the terminal (`nohup`).
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The first signal is the lowest bit.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}

fn start_log(verbose: u8) {
    let asked = std::env::var("CORRIDOR_LOG").ok().and_then(|text| text.parse().ok());
    let usual = match verbose {
        0 => Targets::new().with_default(LevelFilter::WARN),
        1 => {
            let told = TOLD_OF.map(|target| (target, LevelFilter::DEBUG));
            Targets::new().with_default(LevelFilter::INFO).with_targets(told)
        }
        _ => Targets::new().with_default(LevelFilter::TRACE),
    };
    let filtered = tracing_subscriber::registry().with(asked.unwrap_or(usual));
    let log = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // Times and places in the code are for those who asked how it goes.
    if verbose == 0 {
        filtered.with(log.without_time().with_target(false)).init();
    } else {
        filtered.with(log).init();
    }
}

fn failed(error: &Error) -> ExitCode {
    // One line: names out of files stand in it.
    common::say(&format!("error: {}", client::text::plain(&error.to_string())));
    if error.retry() == Retry::MayHelp {
        common::say("hint: trying again may help");
    }
    ExitCode::from(exit_code(error.kind()))
}

/// As `corridor help exit-codes` lists them.
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
