//! A real OpenSSH server on the server's side, with keys and configuration of its own: nothing of the user's is read.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use array::{Error, Result};

use super::super::process::{LinkSide, RunningProcess, command};
use super::peers::free_port;

/// The server's program; it wants to be called by its whole path.
const PROGRAM: &str = "/usr/sbin/sshd";
/// Folder for privilege separation, which the server requires when it runs as root.
const OWN_FOLDER: &str = "/run/sshd";

/// SSH server that accepts the user who runs the benchmark.
pub(super) struct Sshd {
    pub(super) running: RunningProcess,
    pub(super) user: String,
    /// Configuration file with which a client reaches this server: `ssh -F` and this path.
    pub(super) configuration: PathBuf,
}

impl Sshd {
    /// Starts one whose files lie in `folder`.
    pub(super) async fn start(side: &LinkSide, folder: &Path) -> Result<Self> {
        let port = free_port()?;
        let key = key(folder).await?;
        if rustix::process::geteuid().is_root() {
            std::fs::DirBuilder::new().mode(0o755).recursive(true).create(OWN_FOLDER)?;
        }
        let (address, key_text, own) = (side.address, key.display(), folder.display());
        let server = folder.join(format!("sshd-{port}.conf"));
        std::fs::write(
            &server,
            format!(
                "ListenAddress {address}:{port}\nHostKey {key_text}\nAuthorizedKeysFile {key_text}.pub\nStrictModes no\n\
                 UsePAM no\nPidFile none\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n\
                 SetEnv CORRIDOR_CACHE_DIR={own}/side XDG_RUNTIME_DIR={own}\n"
            ),
        )?;
        let user = user(folder).await?;
        let configuration = folder.join(format!("ssh-{port}.conf"));
        std::fs::write(
            &configuration,
            format!(
                "Host *\nUser {user}\nPort {port}\nIdentityFile {key_text}\nIdentitiesOnly yes\nBatchMode yes\n\
                 StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"
            ),
        )?;
        let arguments = ["-D", "-f", &server.to_string_lossy()];
        let running = RunningProcess::other(side, PROGRAM, &arguments, port).await?;
        Ok(Self { running, user, configuration })
    }
}

/// One key for everything: the host's, the user's.
async fn key(folder: &Path) -> Result<PathBuf> {
    let key = folder.join("key");
    if !key.exists() {
        let text = key.to_string_lossy();
        let mut make = command(Path::new("ssh-keygen"), folder);
        if !make.args(["-q", "-t", "ed25519", "-N", "", "-f", &text]).status().await?.success() {
            return Err(Error::internal("`ssh-keygen` failed"));
        }
    }
    Ok(key)
}

async fn user(folder: &Path) -> Result<String> {
    let said = command(Path::new("id"), folder).arg("-un").stdout(Stdio::piped()).output().await?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}
