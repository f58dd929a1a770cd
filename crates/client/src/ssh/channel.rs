//! The local side: a running `ssh`, its channel as a link, and the error if it ends too early.

use std::collections::VecDeque;
use std::io::Write;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use array::{Error, ErrorKind, Result, Retry};
use link::Link;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::SshAddress;
use super::greeting::{GreetedStream, Greeting, OpenRequest};
use crate::text::plain;

/// Variable with the `ssh` program, with options that come first; words are separated by blanks.
const PROGRAM_VARIABLE: &str = "CORRIDOR_SSH";
/// Variable with the command to run on the other host, as its shell parses it.
const COMMAND_VARIABLE: &str = "CORRIDOR_SSH_COMMAND";
/// Variable that disables direct links with `no`: all data pass through ssh.
const DIRECT_VARIABLE: &str = "CORRIDOR_SSH_DIRECT";
/// Options that disable settings for interactive logins: no terminal, no forwarding, no other command.
const OPTIONS: [&str; 7] = [
    "-T",
    "-x",
    "-a",
    "-oClearAllForwardings=yes",
    "-oPermitLocalCommand=no",
    "-oRemoteCommand=none",
    "-oRequestTTY=no",
];
/// Timeout for the end of a program that has closed its output.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for the last error output after the end of a program.
const ERROR_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);
/// Number of lines of error output that are kept for the error, and their maximum length in bytes.
const KEPT_LINES: usize = 8;
const KEPT_LINE_BYTES: u64 = 1 << 10;

/// A running `ssh` and the program it started. Both end when this is dropped.
pub(crate) struct SshChannel {
    host: String,
    process: Child,
    greeting: Option<oneshot::Receiver<Result<Greeting>>>,
    error_lines: Arc<Mutex<VecDeque<String>>>,
    listening: JoinSet<()>,
}

impl SshChannel {
    /// Starts `ssh`. Frames can be sent over the link at once; they wait for the login.
    ///
    /// # Errors
    /// `NotFound` if there is no `ssh` on this machine, `Invalid` for a malformed environment variable.
    pub(crate) async fn start(address: &SshAddress) -> Result<(Self, Link)> {
        let request = OpenRequest { path: address.path.clone(), direct: wants_direct()? };
        let mut process = command(address)?;
        let no_pipe = || Error::internal("a process without its pipes");
        let mut output = process.stdin.take().ok_or_else(no_pipe)?;
        let input = process.stdout.take().ok_or_else(no_pipe)?;
        let errors = process.stderr.take().ok_or_else(no_pipe)?;
        let error_lines = Arc::new(Mutex::new(VecDeque::new()));
        let mut listening = JoinSet::new();
        listening.spawn(show_errors(errors, Arc::clone(&error_lines)));
        // Written to an empty pipe. An `ssh` that has ended already reports the reason by its exit code.
        output.write_all(request.line()?.as_bytes()).await.unwrap_or_default();
        let (sender, greeting) = oneshot::channel();
        let link = link::carrier::tcp::over(GreetedStream::new(input, output, sender), address.authority());
        let host = address.authority();
        Ok((Self { host, process, greeting: Some(greeting), error_lines, listening }, link))
    }

    /// Waits for the greeting of the other side. May be called once.
    ///
    /// # Errors
    /// The reason that there is no other side, for display.
    pub(crate) async fn greeting(&mut self) -> Result<Greeting> {
        let greeting =
            self.greeting.take().ok_or_else(|| Error::internal("the greeting was requested twice"))?;
        match greeting.await {
            Ok(Ok(Greeting { error: Some(error), .. })) => Err(Error::from(error)),
            Ok(Ok(greeting)) => Ok(greeting),
            Ok(Err(error)) => {
                Err(error.context(format!("set {COMMAND_VARIABLE} if the program has another name there")))
            }
            Err(_) => Err(self.why().await),
        }
    }

    /// Returns the reason that the program ended before its greeting.
    async fn why(&mut self) -> Error {
        let status = tokio::time::timeout(EXIT_TIMEOUT, self.process.wait()).await;
        // The last error output may not have arrived; a shared connection may keep standard error open without end.
        drop(tokio::time::timeout(ERROR_OUTPUT_TIMEOUT, self.listening.join_next()).await);
        let error_lines: Vec<String> = self.error_lines.lock().iter().cloned().collect();
        match status {
            Ok(Ok(status)) => explain(&self.host, status, &error_lines),
            _ => Error::new(ErrorKind::Unreachable, "ssh closed the channel but is still running"),
        }
    }
}

impl Drop for SshChannel {
    fn drop(&mut self) {
        // Ended by a signal that it handles, so that it restores the terminal; the other side sees the channel close.
        let pid = self.process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM).unwrap_or_default();
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

fn wants_direct() -> Result<bool> {
    variable(DIRECT_VARIABLE).map_or(Ok(true), |value| yes_or_no(&value))
}

/// Parses the value of an environment variable that is a switch.
fn yes_or_no(value: &str) -> Result<bool> {
    match value.trim() {
        "yes" | "true" | "1" => Ok(true),
        "no" | "false" | "0" => Ok(false),
        other => Err(Error::invalid(format!(
            "expected `yes`, `true`, `1`, `no`, `false` or `0` in the environment's {DIRECT_VARIABLE}, found `{other}`"
        ))),
    }
}

fn command(address: &SshAddress) -> Result<Child> {
    let program = variable(PROGRAM_VARIABLE).unwrap_or_else(|| "ssh".into());
    let mut words = program.split_whitespace();
    let ssh = words.next().unwrap_or("ssh");
    let there = variable(COMMAND_VARIABLE).unwrap_or_else(|| "corridor".into());
    let mut command = Command::new(ssh);
    command.args(words).args(OPTIONS);
    if let Some(port) = address.port {
        command.args(["-p", &port.to_string()]);
    }
    if let Some(user) = &address.user {
        command.args(["-l", user]);
    }
    command.args(["--", &address.host, &format!("{there} serve --stdio")]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::not_found(format!(
            "expected the program `{ssh}` on this machine, found none; install OpenSSH's client, or set {PROGRAM_VARIABLE} to another program"
        )),
        _ => Error::from(e).context(format!("starting `{ssh}`")),
    })
}

/// Displays the error output of `ssh` and the other side, and keeps the last lines. Prompts are not part of it: `ssh`
/// uses the terminal itself.
async fn show_errors(errors: ChildStderr, kept: Arc<Mutex<VecDeque<String>>>) {
    let mut errors = BufReader::new(errors);
    loop {
        let mut line = Vec::new();
        let read = (&mut errors).take(KEPT_LINE_BYTES).read_until(b'\n', &mut line).await;
        if read.is_ok_and(|bytes| bytes == 0) || line.is_empty() {
            return;
        }
        let line = plain(String::from_utf8_lossy(&line).trim_end()).to_string();
        if line.is_empty() {
            continue;
        }
        writeln!(std::io::stderr(), "{line}").unwrap_or_default();
        let mut kept = kept.lock();
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}

/// Converts an exit code, as shells and OpenSSH define it, to an error.
fn explain(host: &str, status: ExitStatus, error_lines: &[String]) -> Error {
    let has_line_with = |what: &str| error_lines.iter().any(|line| line.contains(what));
    let last = error_lines.last().map_or("nothing", String::as_str);
    match status.code() {
        Some(127) => Error::not_found(format!(
            "expected the program `corridor` on {host}, found none: install it there, or set {COMMAND_VARIABLE} to its path, such as \
             {COMMAND_VARIABLE}=/opt/corridor/bin/corridor"
        )),
        Some(126) => Error::new(ErrorKind::Denied, format!("the program there cannot be run: {last}")),
        Some(255)
            if has_line_with("Permission denied")
                || has_line_with("Host key verification failed")
                || has_line_with("Too many auth") =>
        {
            Error::new(ErrorKind::Denied, format!("the login failed: {last}"))
        }
        Some(255) => {
            Error::new(ErrorKind::Unreachable, format!("no login: {last}")).with_retry(Retry::MayHelp)
        }
        Some(code) => Error::unsupported(format!(
            "expected a version of `corridor` there that supports `serve --stdio`, found one that ended with code {code}: {last}"
        )),
        None => Error::new(ErrorKind::Unreachable, format!("ssh was ended by a signal: {last}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_switch_accepts_yes_no_true_false_1_and_0() {
        assert!(["yes", "true", "1", " 1 "].iter().all(|value| yes_or_no(value).unwrap()));
        assert!(!["no", "false", "0"].iter().any(|value| yes_or_no(value).unwrap()));
        for value in ["off", "maybe", "00"] {
            assert_eq!(yes_or_no(value).unwrap_err().kind(), ErrorKind::Invalid, "{value}");
        }
    }

    #[test]
    fn exit_codes_are_explained() {
        let denied = ["Warning: x".to_owned(), "me@h: Permission denied (publickey).".to_owned()];
        for (code, error_lines, kind, part) in [
            (127, &denied[..0], ErrorKind::NotFound, "CORRIDOR_SSH_COMMAND"),
            (126, &[], ErrorKind::Denied, "cannot be run"),
            (255, &denied[..], ErrorKind::Denied, "Permission denied (publickey)"),
            (255, &denied[..1], ErrorKind::Unreachable, "Warning: x"),
            (2, &[], ErrorKind::Unsupported, "code 2"),
        ] {
            let error = explain("h", ExitStatus::from_raw(code << 8), error_lines);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(part), "{error}");
        }
        assert_eq!(explain("h", ExitStatus::from_raw(9), &[]).kind(), ErrorKind::Unreachable);
    }
}
