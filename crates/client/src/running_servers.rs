//! Records of running servers, from which commands of the same user on the same machine find token and fingerprint. One
//! small JSON file (mode 0600) per server, removed when the server ends.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use array::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::directories::{private_folder, read_private, write_private};
use crate::url::Url;

/// Maximum size of a record, in bytes.
const MAX_RECORD_BYTES: u64 = 16 << 10;
/// Maximum number of records that are read.
const MAX_RECORDS: usize = 256;

/// Record of a running server for its user's other commands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunningServer {
    /// Address on which it listens.
    pub address: SocketAddr,
    /// Name of the machine; several may share a home directory.
    pub machine: String,
    /// Token that authorizes clients; `None` if no token is required.
    pub token: Option<String>,
    /// Fingerprint of the server's certificate.
    pub fingerprint: Option<String>,
    /// Process id.
    pub pid: u32,
}

/// Record file, removed when this value is dropped.
#[derive(Debug)]
pub struct RunningServerFile(PathBuf);

impl Drop for RunningServerFile {
    fn drop(&mut self) {
        // A failure has no consequence: a stale record only causes one refused connection.
        drop(fs::remove_file(&self.0));
    }
}

/// Writes `record` to `folder`; the file is removed when the returned value is dropped.
///
/// # Errors
/// `Io`, `Denied`.
pub fn post(folder: &Path, record: &RunningServer) -> Result<RunningServerFile> {
    private_folder(folder)?;
    let path = folder.join(format!("{}-{}.json", record.machine, record.address.port()));
    let text = serde_json::to_string_pretty(record)
        .map_err(|e| Error::internal(format!("a record of a server in JSON: {e}")))?;
    write_private(&path, &text)?;
    Ok(RunningServerFile(path))
}

/// Finds the record of the server at `host:port` of this machine. Records of other machines, unreadable ones and those
/// of ended processes are skipped.
#[must_use]
pub fn find(folder: &Path, host: &str, port: u16) -> Option<RunningServer> {
    let machine = machine_name();
    let mut servers = of_machine(folder, &machine).filter(|n| n.address.port() == port);
    servers.find(|n| names(host, n.address.ip(), &machine))
}

/// Returns the URLs, with their tokens, of the servers that other processes of this user run on this machine.
#[must_use]
pub fn others(folder: &Path) -> Vec<Url> {
    let machine = machine_name();
    let servers = of_machine(folder, &machine).filter(|server| server.pid != std::process::id());
    let url = |server: RunningServer| Url {
        host: reachable_host(server.address),
        port: server.address.port(),
        dataset: String::new(),
        array: String::new(),
        token: server.token,
        fingerprint: server.fingerprint,
        replicas: Vec::new(),
    };
    servers.map(url).collect()
}

/// Reads the records of processes that run on this machine.
fn of_machine<'a>(folder: &Path, machine: &'a str) -> impl Iterator<Item = RunningServer> + use<'a> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_RECORDS);
    let records = entries.filter_map(|e| {
        let text = read_private(&e.path(), MAX_RECORD_BYTES).ok()?;
        serde_json::from_str::<RunningServer>(&text).ok()
    });
    records.filter(move |n| n.machine == machine && is_alive(n.pid))
}

/// Completes a URL of one server with the values of its record; values in the URL take precedence.
#[must_use]
pub fn complete(folder: &Path, mut url: Url) -> Url {
    if (url.token.is_none() || url.fingerprint.is_none())
        && let Some(record) = find(folder, &url.host, url.port)
    {
        url.token = url.token.or(record.token);
        url.fingerprint = url.fingerprint.or(record.fingerprint);
    }
    url
}

/// Returns whether `host` names this machine, on which a server listens at `ip`.
fn names(host: &str, ip: IpAddr, machine: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(asked) => asked == ip || (ip.is_unspecified() && asked.is_loopback()),
        Err(_) if host == "localhost" => ip.is_loopback() || ip.is_unspecified(),
        Err(_) => host == machine && !ip.is_loopback(),
    }
}

fn is_alive(pid: u32) -> bool {
    // Without /proc the process may exist; otherwise the connection is refused.
    !Path::new("/proc/self").exists() || Path::new(&format!("/proc/{pid}")).exists()
}

/// Returns the host name or address by which other machines reach a port of this machine.
#[must_use]
pub fn reachable_host(address: SocketAddr) -> String {
    let ip = address.ip();
    if ip.is_unspecified() { machine_name() } else { ip.to_string() }
}

/// Returns the name of a server among other servers. It stays the same when the server restarts at the same address. It
/// differs for two servers that run at the same time, even if containers share a machine's name or a user's
/// directories.
#[must_use]
pub fn server_name(machine: &str, address: SocketAddr, fingerprint: &str) -> String {
    let network = fs::read_link("/proc/self/ns/net").unwrap_or_default();
    let network: String = network.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    let digits = fingerprint.trim_start_matches("sha256:").get(..8).unwrap_or_default();
    format!("{machine}/{network}/{address}/{digits}")
}

/// Returns the name of this machine; `unnamed` if the system does not provide one.
#[must_use]
pub fn machine_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String =
        name.trim().chars().filter(|c| c.is_ascii_alphanumeric() || "-.".contains(*c)).take(64).collect();
    if name.is_empty() { "unnamed".into() } else { name }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn record(address: &str) -> RunningServer {
        RunningServer {
            address: address.parse().unwrap(),
            machine: machine_name(),
            token: Some("t".into()),
            fingerprint: None,
            pid: std::process::id(),
        }
    }

    #[test]
    fn the_same_user_finds_a_running_server() {
        let folder = tempfile::tempdir().unwrap();
        let posted = post(folder.path(), &record("127.0.0.1:9")).unwrap();
        let mode = fs::metadata(&posted.0).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        for host in ["127.0.0.1", "localhost"] {
            assert_eq!(find(folder.path(), host, 9).unwrap().token.as_deref(), Some("t"), "{host}");
        }
        assert!(find(folder.path(), "127.0.0.1", 10).is_none());
        assert!(others(folder.path()).is_empty(), "the own process");
        assert!(find(folder.path(), "elsewhere", 9).is_none());
        drop(posted);
        assert!(find(folder.path(), "127.0.0.1", 9).is_none());
    }

    #[test]
    fn records_that_others_can_read_or_of_other_machines_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let posted = post(folder.path(), &record("127.0.0.1:9")).unwrap();
        fs::set_permissions(&posted.0, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(find(folder.path(), "127.0.0.1", 9).is_none());
        let other = RunningServer { machine: "other".into(), ..record("127.0.0.1:11") };
        let _posted = post(folder.path(), &other).unwrap();
        assert!(find(folder.path(), "127.0.0.1", 11).is_none());
    }

    #[test]
    fn values_in_the_url_take_precedence() {
        let folder = tempfile::tempdir().unwrap();
        let _posted = post(folder.path(), &record("0.0.0.0:9")).unwrap();
        let url = complete(folder.path(), "corridor://127.0.0.1:9/d#token=own".parse().unwrap());
        assert_eq!(url.token.as_deref(), Some("own"));
        let url = complete(folder.path(), "corridor://127.0.0.1:9/d".parse().unwrap());
        assert_eq!(url.token.as_deref(), Some("t"));
    }
}
