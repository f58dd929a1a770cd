//! `corridor lab`

use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use array::{Error, Result};
use lab::emulate::{self, Change, Options, Running};
use tokio::process::{Child, Command};

use crate::cli::{EmulatorEngine, LabAction, LabLink, LabOptions, LabUp, LinkNature};
use crate::common::{print, say};

/// Interval at which counters are written.
const PUBLISH_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which requests of other commands are checked.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(50);
/// Exit code of shells for a command that a signal has ended, to which the number of the signal is added.
const KILLED: u8 = 128;

pub(crate) async fn run(options: &LabOptions) -> Result<ExitCode> {
    match &options.action {
        LabAction::Up(options) => up(options).await,
        LabAction::Change { name, link } => emulate::change(name, &change(link)).map(|()| ExitCode::SUCCESS),
        LabAction::Down { name } => emulate::down(name).map(|()| ExitCode::SUCCESS),
        LabAction::Stats { name } => emulate::stats_of(name)
            .and_then(|stats| print(&json(serde_json::to_string(&stats))?))
            .map(|()| ExitCode::SUCCESS),
        LabAction::Check { engine, json } => check(*engine, *json),
    }
}

async fn up(options: &LabUp) -> Result<ExitCode> {
    let mut link = emulate::up(&options.name, &link_options(&options.link), engine(options.engine))?;
    let mut checks = tokio::time::interval(FOLLOW_INTERVAL);
    let mut publications = tokio::time::interval(PUBLISH_INTERVAL);
    let mut child = match options.command.is_empty() {
        true => None,
        false => Some(start(&options.command, &link)?),
    };
    if child.is_none() {
        say(&description(&link));
    }
    let code = loop {
        tokio::select! {
            status = wait_for(child.as_mut()) => break exit_code(status?),
            _ = publications.tick() => link.publish()?,
            _ = checks.tick() => follow(&mut link),
        }
    };
    say(&json(serde_json::to_string(&link.stats()))?);
    Ok(code)
}

/// Waits for the end of a command; if there is none, waits forever.
async fn wait_for(child: Option<&mut Child>) -> Result<ExitStatus> {
    match child {
        Some(child) => Ok(child.wait().await?),
        None => std::future::pending().await,
    }
}

/// Applies a change that another command requested; if that fails, prints a warning and leaves the link as it is.
fn follow(link: &mut Running) {
    if let Err(error) = link.follow() {
        say(&format!("warning: the link stays as it is: {error}"));
    }
}

fn start(command: &[String], link: &Running) -> Result<Child> {
    let [program, arguments @ ..] = command else { return Err(Error::invalid("expected a command")) };
    let (names, addresses) = (link.namespaces(), link.addresses());
    let place = |prefix: &str, host: usize| {
        [
            (format!("LAB_{prefix}"), names[host].to_owned()),
            (format!("LAB_{prefix}_ADDRESS"), addresses[host].clone()),
        ]
    };
    Command::new(program)
        .args(arguments)
        .envs(place("A", 0))
        .envs(place("B", 1))
        .kill_on_drop(true)
        .spawn()
        .map_err(|e| Error::from(e).context(format!("starting `{program}`")))
}

fn exit_code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let signal = || status.signal().and_then(|s| u8::try_from(s).ok()).unwrap_or_default();
    let code = status.code().map(|code| u8::try_from(code).unwrap_or(1));
    ExitCode::from(code.unwrap_or_else(|| KILLED + signal()))
}

fn description(link: &Running) -> String {
    let hosts = link.namespaces().into_iter().zip(link.addresses());
    let hosts: Vec<String> = hosts.map(|(name, address)| format!("{name} ({address})")).collect();
    let engine = format!("{:?}", link.engine()).to_lowercase();
    let other = link.namespaces().pop().unwrap_or_default().to_owned();
    format!(
        "{} are joined ({engine} engine) until this ends (Ctrl-C); `ip netns exec {other} COMMAND` runs something there.",
        hosts.join(", ")
    )
}

fn link_options(link: &LabLink) -> Options {
    Options { mtu: link.mtu, hosts: link.hosts, seed: link.seed, ..Options::default() }
        .changed(&change(&link.nature))
}

fn change(nature: &LinkNature) -> Change {
    let LinkNature { rate, rtt, jitter, queue, loss, late, cross } = nature.clone();
    Change { rate, rtt, jitter, queue, loss, late, cross }
}

fn engine(engine: EmulatorEngine) -> emulate::Engine {
    match engine {
        EmulatorEngine::Auto => emulate::Engine::Auto,
        EmulatorEngine::Tun => emulate::Engine::Tun,
        EmulatorEngine::Netem => emulate::Engine::Netem,
        EmulatorEngine::Veth => emulate::Engine::Veth,
    }
}

fn check(chosen: EmulatorEngine, as_json: bool) -> Result<ExitCode> {
    let report = emulate::check::run(engine(chosen))?;
    print(
        if as_json { json(serde_json::to_string(&report))? } else { lab::bench::table(&report) }.trim_end(),
    )?;
    let meets_goals = report.cases.iter().all(|case| case.meets_goal == Some(true));
    Ok(if meets_goals { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn json(text: serde_json::Result<String>) -> Result<String> {
    text.map_err(|e| Error::internal(format!("JSON: {e}")))
}
