//! Whole real files over a slow link: all their arrays by Corridor, the files themselves by programs that copy files.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use array::{Error, Result, Selection, Target};
use client::dial::Compression;
use futures::future::try_join_all;

use super::super::options::Options;
use super::super::process::{LinkSide, RunningProcess, command};
use super::Finished;
use super::contest::{Contest, Measured, aim, measure};
use super::ours::Ours;
use super::peers::free_port;
use super::sshd::Sshd;

/// Corridor itself, without compression.
const PLAIN: &str = "--compression none";
/// Programs that copy files.
const COPIERS: &[Copier] = &[Copier::Rsync, Copier::RsyncPacked, Copier::Scp];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Copier {
    Rsync,
    RsyncPacked,
    Scp,
}

impl Copier {
    fn name(self) -> &'static str {
        match self {
            Self::Rsync => "rsync",
            Self::RsyncPacked => "rsync -z",
            Self::Scp => "scp",
        }
    }
}

/// Fetches each file.
pub(super) async fn run(
    program: &Path,
    options: &Options,
    runs: usize,
    finished: &mut Finished,
) -> Result<()> {
    for file in &options.files {
        // Servers of others are given their configuration by path, from another folder.
        let file = std::fs::canonicalize(file)?;
        let contest = fetch(program, options, &file, runs).await?;
        let fastest =
            COPIERS.iter().filter_map(|copier| contest.peer_secs(copier.name())).min_by(f64::total_cmp);
        finished.add(aim(contest.time(&options.link), fastest));
        finished.add_all(contest.costs());
    }
    Ok(())
}

async fn fetch(program: &Path, options: &Options, file: &Path, runs: usize) -> Result<Contest> {
    let folder = tempfile::tempdir()?;
    let side = LinkSide::of(options);
    let location = file.to_string_lossy();
    let expected = contents(&Ours::connect(&location, &folder.path().join("here")).await?).await?;
    let served = RunningProcess::start_at(&side, program, &["serve", &location]).await?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let bytes: usize = expected.iter().map(Vec::len).sum();
    let file_bytes = std::fs::metadata(file)?.len();
    let mut contest =
        Contest::new(&format!("all arrays of {name}"), bytes as u64).with("file_bytes", file_bytes);
    let (there, url) = (folder.path().join("there"), served.text("url")?);
    for _ in 0..runs {
        let read = async |compression| {
            let mut found = Vec::new();
            let reading = async {
                found = contents(&Ours::connect_with(url, &there, compression).await?).await?;
                Ok(())
            };
            let measured = measure(&served, reading).await?;
            if found == expected {
                return Ok(measured);
            }
            Err(Error::corrupt(format!("the arrays of `{name}` have other bytes than the file here")))
        };
        contest.ours.push(read(Compression::Auto).await?);
        let plain = read(Compression::None).await;
        contest.add(PLAIN, plain.map_err(|e| e.to_string()));
        for &copier in COPIERS.iter().filter(|copier| options.wants_peer(copier.name())) {
            let copied = copy(copier, &side, file, folder.path()).await;
            contest.add(copier.name(), copied.map_err(|e| e.to_string()));
        }
    }
    Ok(contest)
}

/// Every array, whole, as stored; all are asked for at once.
async fn contents(client: &Ours) -> Result<Vec<Vec<u8>>> {
    let dataset = client.dataset().await?;
    let arrays = (0..).zip(&dataset.arrays).map(|(number, array)| async move {
        let selection = Selection::all(array.shape());
        let (target, region) = Target::new(&selection.shape(), array.dtype.size_bytes())?;
        client.array(number, selection, region).await?;
        target.into_vec()
    });
    try_join_all(arrays).await
}

/// Copies the file by another program from its own server, both started for it.
async fn copy(copier: Copier, side: &LinkSide, file: &Path, folder: &Path) -> Result<Measured> {
    let port = free_port()?;
    let out = folder.join(format!("copy-{port}"));
    let (server, program, arguments) = match copier {
        Copier::Scp => scp(side, file, folder).await?,
        _ => rsync(side, file, folder, port, copier == Copier::RsyncPacked).await?,
    };
    let copying = async {
        let mut command = command(Path::new(program), folder);
        let done = command.args(&arguments).arg(&out).stderr(Stdio::piped()).output().await?;
        if done.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&done.stderr);
        Err(Error::internal(format!(
            "`{program}` failed: {}",
            said.trim_end().lines().next_back().unwrap_or_default()
        )))
    };
    let measured = measure(&server, copying).await?;
    if std::fs::read(&out)? != std::fs::read(file)? {
        return Err(Error::corrupt(format!("`{program}` copied other bytes")));
    }
    Ok(measured)
}

type Started = (RunningProcess, &'static str, Vec<String>);

async fn rsync(side: &LinkSide, file: &Path, folder: &Path, port: u16, is_packed: bool) -> Result<Started> {
    let configuration = folder.join("rsyncd.conf");
    let (above, name) = split(file)?;
    std::fs::write(
        &configuration,
        format!("use chroot = no\n[data]\npath = {}\nread only = yes\n", above.display()),
    )?;
    let (address, port_text) = (side.address.to_string(), port.to_string());
    let path = configuration.to_string_lossy();
    let arguments =
        ["--daemon", "--no-detach", "--address", &address, "--port", &port_text, "--config", &path];
    let server = RunningProcess::other(side, "rsync", &arguments, port).await?;
    // The whole file: there is no older copy to compare with.
    let mut words = vec!["--whole-file".to_owned()];
    words.extend(is_packed.then(|| "-z".to_owned()));
    words.push(format!("rsync://{address}:{port}/data/{name}"));
    Ok((server, "rsync", words))
}

async fn scp(side: &LinkSide, file: &Path, folder: &Path) -> Result<Started> {
    let Sshd { running, user, configuration, .. } = Sshd::start(side, folder).await?;
    let from = format!("{user}@{}:{}", side.address, file.display());
    let words = ["-q", "-F", &configuration.to_string_lossy(), &from].map(str::to_owned).to_vec();
    Ok((running, "scp", words))
}

fn split(file: &Path) -> Result<(PathBuf, String)> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
    let found = file.parent().map(Path::to_path_buf).zip(name);
    found.ok_or_else(|| Error::invalid(format!("expected a file, found `{}`", file.display())))
}
