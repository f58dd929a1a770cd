//! Network namespaces: creates, enters and deletes them, and ends their processes. Uses the `ip` command, so that
//! `ip netns` knows them.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Network of every link; host n of it is `10.77.0.n`.
const NETWORK: &str = "10.77.0";
/// Name of a link's device in its namespace.
pub const DEVICE: &str = "lab0";
/// Length of the device's queue, packets: more than the emulator ever leaves unread.
const DEVICE_QUEUE_PACKETS: &str = "20000";
/// Time between the request to end and the end of the programs in a namespace.
const GRACE: Duration = Duration::from_millis(500);

/// Network namespace of a link; deleted when dropped.
#[derive(Debug)]
pub(super) struct Namespace {
    name: String,
}

impl Namespace {
    /// # Errors
    /// Those of `ip`: no root, or the name is taken.
    pub(super) fn create(name: &str) -> Result<Self> {
        command("ip", &["netns", "add", name])?;
        Ok(Self { name: name.to_owned() })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sets the address and MTU of the device and enables it. TCP may use `buffer_bytes`.
    pub(super) fn configure(&self, host: u8, mtu: u32, buffer_bytes: u64) -> Result<()> {
        let ip = |arguments: &[&str]| command("ip", &[&["-n", &self.name], arguments].concat());
        self.inside(|| configure_kernel(buffer_bytes))??;
        ip(&["link", "set", "lo", "up"])?;
        ip(&["addr", "add", &format!("{}/24", address(host)), "dev", DEVICE])?;
        ip(&["link", "set", DEVICE, "mtu", &mtu.to_string(), "txqueuelen", DEVICE_QUEUE_PACKETS, "up"])
    }

    /// Runs `work` on a thread in the namespace; sockets that it opens belong to the namespace.
    ///
    /// # Errors
    /// Those of entering the namespace.
    pub(super) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let name = &self.name;
        let enter = || {
            let namespace = File::open(format!("/run/netns/{name}"))?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok::<_, std::io::Error>(())
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .name(format!("in {name}"))
                .spawn_scoped(scope, || enter().map(|()| work()));
            let entered = thread.map_err(Error::from)?.join();
            let done =
                entered.map_err(|_| Error::internal(format!("a thread in namespace {name} panicked")))?;
            done.map_err(|e| Error::from(e).context(format!("entering network namespace {name}")))
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        delete(&self.name);
    }
}

/// Ends the processes in a namespace and deletes it, if it exists.
pub(super) fn delete(name: &str) {
    if !exists(name) {
        return;
    }
    for signal in [Signal::TERM, Signal::KILL] {
        let pids = pids(name);
        if pids.is_empty() {
            break;
        }
        for pid in pids {
            // It may have ended in the meantime.
            let _ended = kill_process(pid, signal).is_err();
        }
        std::thread::sleep(GRACE);
    }
    if let Err(error) = command("ip", &["netns", "delete", name]) {
        tracing::warn!("network namespace {name} stays: {error}");
    }
}

pub(super) fn exists(name: &str) -> bool {
    std::path::Path::new("/run/netns").join(name).exists()
}

fn pids(name: &str) -> Vec<Pid> {
    let out = Command::new("ip").args(["netns", "pids", name]).output();
    let text = out.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    let own = std::process::id().cast_signed();
    text.split_whitespace()
        .filter_map(|t| t.parse().ok())
        .filter(|p| *p != own)
        .filter_map(Pid::from_raw)
        .collect()
}

/// Returns the address of a host of a link.
#[must_use]
pub fn address(host: u8) -> String {
    format!("{NETWORK}.{host}")
}

/// Configures the kernel in the namespace of the calling thread.
fn configure_kernel(buffer_bytes: u64) -> Result<()> {
    let write = |setting: &str, value: &str| {
        std::fs::write(format!("/proc/sys/net/{setting}"), value)
            .map_err(|e| Error::from(e).context(format!("setting {setting}")))
    };
    let buffers = format!("4096 131072 {buffer_bytes}");
    write("ipv4/tcp_rmem", &buffers)?;
    write("ipv4/tcp_wmem", &buffers)?;
    // A measurement must not depend on earlier ones.
    write("ipv4/tcp_no_metrics_save", "1")?;
    if std::path::Path::new("/proc/sys/net/ipv6").exists() {
        write("ipv6/conf/all/disable_ipv6", "1")?;
        write("ipv6/conf/default/disable_ipv6", "1")?;
    }
    Ok(())
}

/// Runs a command of the system.
///
/// # Errors
/// `NotFound` if it is not installed; otherwise an error with its output.
pub(super) fn command(program: &str, arguments: &[&str]) -> Result<()> {
    let out = Command::new(program).args(arguments).output().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Error::not_found(format!("expected the command `{program}`, found none: install iproute2"))
        }
        _ => Error::from(e).context(format!("running {program}")),
    })?;
    if out.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&out.stderr);
    let said = said.trim();
    let denied = ["not permitted", "Permission denied"].iter().any(|words| said.contains(words));
    let kind = if denied { ErrorKind::Denied } else { ErrorKind::Io };
    let hint = if denied { "; an emulated link needs root" } else { "" };
    Err(Error::new(kind, format!("{program} {}: {said}{hint}", arguments.join(" "))))
}
