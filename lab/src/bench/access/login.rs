//! `ssh://`: time of a command that gets one row, beside a login without work; and of the whole array, beside the direct
//! link. Each is a command of its own.

use std::path::Path;
use std::process::Stdio;

use array::{Error, Result};
use tokio::process::Command;

use super::super::options::Options;
use super::super::process::{LinkSide, command};
use super::super::report::{Better, Case, median};
use super::super::wall_clock;
use super::contest::{SHARE_SOUGHT, aim};
use super::field::{ROW_BYTES, check_rows};
use super::sshd::Sshd;
use super::{AccessScene, Finished};

const LOGIN: &str = "ssh HOST true";
const DIRECT: &str = "corridor://";
const SSH_ALONE: &str = "ssh:// without the direct link";

/// SSH server of all contestants, and the data there.
struct LoginScene<'a> {
    program: &'a Path,
    scene: &'a AccessScene,
    sshd: Sshd,
    host: String,
    /// The data by ssh, and by the direct link.
    urls: [String; 2],
}

/// Measures both; without an SSH server it notes the reason.
pub(super) async fn run(
    program: &Path,
    options: &Options,
    scene: &AccessScene,
    finished: &mut Finished,
) -> Result<()> {
    let side = LinkSide::of(options);
    let folder = scene.folder.path().join("ssh");
    std::fs::create_dir(&folder)?;
    let absent = |error: Error| {
        let absent = Case::measured("ssh://: one row", "s", Better::Lower, Vec::new());
        Case { why: format!("no login by ssh: {error}"), ..absent }
    };
    let sshd = match Sshd::start(&side, &folder).await {
        Ok(sshd) => sshd,
        Err(error) => {
            finished.add(absent(error));
            return Ok(());
        }
    };
    let by_ssh = format!("ssh://{}{}", side.address, scene.field.description.display());
    let host = side.address.to_string();
    let way = LoginScene { program, scene, sshd, host, urls: [by_ssh, scene.served.text("url")?.to_owned()] };
    // A namespace may forbid system calls of sshd; then no login succeeds.
    if let Err(error) = way.login().await {
        finished.add(absent(error));
        return Ok(());
    }
    finished.add(way.first_row(options).await?);
    finished.add(way.all().await?);
    Ok(())
}

impl LoginScene<'_> {
    /// Measures commands that get one row into a file.
    async fn first_row(&self, options: &Options) -> Result<Case> {
        let (mut ours, mut direct, mut logins) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..self.scene.runs {
            logins.push(self.login().await?);
            ours.push(self.get(&self.urls[0], "[0:1, 0:1, 0:1]", &[0], true).await?);
            direct.push(self.get(&self.urls[1], "[0:1, 0:1, 0:1]", &[0], true).await?);
        }
        let login = median(&mut logins);
        let mut case =
            Case::measured("ssh://: one row, from the command to its end", "s", Better::Lower, ours);
        if let (Some(ours), Some(login), Some(rtt)) =
            (case.ours, login, options.link.rtt.filter(|&rtt| rtt > 0.0))
        {
            case = case.with("round trips", ours / rtt).with("round trips of the login", login / rtt);
        }
        case.peers.insert(LOGIN.into(), login);
        case.peers.insert(DIRECT.into(), median(&mut direct));
        Ok(case)
    }

    /// Measures commands that get the whole array into a file.
    async fn all(&self) -> Result<Case> {
        let (mut ours, mut direct, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        let rows: Vec<u64> = (0..self.scene.field.rows()).collect();
        for _ in 0..self.scene.runs {
            ours.push(self.get(&self.urls[0], "", &rows, true).await?);
            direct.push(self.get(&self.urls[1], "", &rows, true).await?);
            alone.push(self.get(&self.urls[0], "", &rows, false).await?);
        }
        let (direct, login) = (median(&mut direct), self.login().await?);
        let mut case = Case::measured("ssh://: the whole array into a file", "s", Better::Lower, ours);
        case = case.with("bytes", rows.len() * ROW_BYTES);
        case.peers.insert(DIRECT.into(), direct);
        case.peers.insert(SSH_ALONE.into(), median(&mut alone));
        Ok(aim(case, direct.map(|secs| secs / SHARE_SOUGHT + login)))
    }

    /// Seconds of a login without work.
    async fn login(&self) -> Result<f64> {
        let mut login = command(Path::new("ssh"), self.scene.folder.path());
        login.arg("-F").arg(&self.sshd.configuration).args([self.host.as_str(), "true"]);
        timed(&mut login).await
    }

    /// Seconds of a copy, whose rows are compared.
    async fn get(&self, url: &str, selection: &str, rows: &[u64], may_be_direct: bool) -> Result<f64> {
        let folder = tempfile::tempdir_in(self.scene.folder.path())?;
        let out = folder.path().join("out.raw");
        let mut get = command(self.program, folder.path());
        get.args(["get", url]).args((!selection.is_empty()).then_some(selection)).arg("-o").arg(&out);
        get.env("CORRIDOR_SSH", format!("ssh -F {}", self.sshd.configuration.display()));
        get.env("CORRIDOR_SSH_COMMAND", self.program);
        if !may_be_direct {
            get.env("CORRIDOR_SSH_DIRECT", "no");
        }
        let secs = timed(&mut get).await?;
        check_rows(&std::fs::read(&out)?, rows.iter().copied())?;
        Ok(secs)
    }
}

/// Seconds that a command takes.
async fn timed(command: &mut Command) -> Result<f64> {
    let start = wall_clock::now();
    let done = command.stdout(Stdio::null()).stderr(Stdio::piped()).output().await?;
    let secs = start.elapsed().as_secs_f64();
    if done.status.success() {
        return Ok(secs);
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let last = said.trim_end().lines().next_back().unwrap_or_default();
    Err(Error::internal(format!("a command failed, {}: {last}", done.status)))
}
