//! Open files of the process: every connection needs two descriptors, one of them to read its statistics from the
//! kernel.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// File descriptors of each connection: its socket, and one to read its statistics; see [`link::TcpMonitor`].
const PER_CONNECTION: u64 = 2;
/// File descriptors reserved for data files and everything else.
const OTHERS: u64 = 1024;

/// Raises the limit of open files for this number of connections, as far as the system allows; logs a warning
/// otherwise.
pub fn allow(connections: usize) {
    let needed = (connections as u64).saturating_mul(PER_CONNECTION).saturating_add(OTHERS);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return;
    }
    let current = Some(maximum.map_or(needed, |maximum| maximum.min(needed)));
    let is_raised = setrlimit(Resource::Nofile, Rlimit { current, maximum }).is_ok();
    if !is_raised || maximum.is_some_and(|maximum| maximum < needed) {
        let allowed = getrlimit(Resource::Nofile).current;
        tracing::warn!(needed, allowed, "the limit of open files is too low for all clients (`ulimit -n`)");
    }
}
