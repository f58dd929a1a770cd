//! Life cycle of a link: namespaces, devices, threads, and the record for other processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde::{Deserialize, Serialize};

use super::lane::LaneState;
use super::namespace::{self, DEVICE, Namespace, address};
use super::netem;
use super::pump::Pump;
use super::spec::{Change, LaneSpec, LinkSpec, Options};
use super::stats::{LinkStats, Live};
use super::tun::Tun;

/// Folder with the records of the links that are up.
const FOLDER: &str = "/run/corridor-lab";
/// Longest name of a link, bytes: names of namespaces and processes contain it.
const MAX_NAME_BYTES: usize = 24;
/// Host number of side a; those of side b follow.
const HOST_A: u8 = 1;
const FIRST_HOST_B: u8 = 2;
/// Size of TCP buffers in capacities of the link; at least [`LEAST_BUFFER_BYTES`].
const BUFFERS_PER_LINK: f64 = 4.0;
const LEAST_BUFFER_BYTES: f64 = 64e6;
/// Longest wait for a link to end.
const ENDS_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Longest wait for a link to change.
const CHANGES_WITHIN: Duration = Duration::from_secs(5);

/// Engine that emulates the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// The kernel's netem if it exists and can emulate the link, otherwise TUN devices.
    Auto,
    /// TUN devices and this process.
    Tun,
    /// A veth pair with netem.
    Netem,
    /// A veth pair without emulation: as fast as this machine.
    Veth,
}

/// Link that is up; it ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    name: String,
    options: Options,
    engine: Engine,
    /// Changes that the threads of both directions have not applied yet.
    changes: [Arc<Mutex<Option<LaneSpec>>>; 2],
    threads: Vec<JoinHandle<Result<()>>>,
    ends: Arc<AtomicBool>,
    forward: Arc<Live>,
    backward: Arc<Live>,
    /// Side a first, then the hosts of side b.
    namespaces: Vec<Namespace>,
}

/// Record of a link that is up, for other processes.
#[derive(Debug, Serialize, Deserialize)]
struct LinkRecord {
    pid: i32,
    namespaces: Vec<String>,
    options: Options,
    stats: LinkStats,
}

/// Creates a link. Side a is namespace `NAME-a`, side b `NAME-b`, further hosts `NAME-b2` and so on.
///
/// # Errors
/// `Invalid` for a bad name or one that is in use, and for options that are not understood; `Denied` without root;
/// `Unsupported` if the engine is missing or cannot emulate the link.
pub fn up(name: &str, options: &Options, engine: Engine) -> Result<Running> {
    check_name(name)?;
    let spec = options.parse()?;
    let names = names_of(name, spec.hosts);
    if let Some(taken) = names.iter().find(|n| namespace::exists(n)) {
        return Err(Error::invalid(format!(
            "expected a name that is not in use, found that network namespace {taken} exists: \
             `corridor lab down {name}` removes the link"
        )));
    }
    let record = LinkRecord {
        pid: own_pid(),
        namespaces: names.clone(),
        options: options.clone(),
        stats: LinkStats::default(),
    };
    write_record(name, &record)?;
    let made = names.iter().map(|n| Namespace::create(n)).collect::<Result<Vec<_>>>();
    let namespaces = made.inspect_err(|_| remove_record(name))?;
    let mut link = Running {
        name: name.to_owned(),
        options: options.clone(),
        engine,
        changes: Default::default(),
        threads: Vec::new(),
        ends: Arc::default(),
        forward: Arc::default(),
        backward: Arc::default(),
        namespaces,
    };
    link.join(&spec)?;
    Ok(link)
}

impl Running {
    /// Returns the chosen engine.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Returns the namespaces: side a, then each host of side b.
    #[must_use]
    pub fn namespaces(&self) -> Vec<&str> {
        self.namespaces.iter().map(Namespace::name).collect()
    }

    /// Returns the addresses of the same hosts.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        (HOST_A..).take(self.namespaces.len()).map(address).collect()
    }

    /// Returns the counters so far; all zero with netem, which has its own.
    #[must_use]
    pub fn stats(&self) -> LinkStats {
        LinkStats { forward: self.forward.read(), backward: self.backward.read() }
    }

    /// Writes the counters to the record for other processes; to be called about once a second.
    ///
    /// # Errors
    /// Those of the disk, or the error of a direction that has stopped.
    pub fn publish(&mut self) -> Result<()> {
        for thread in self.threads.extract_if(.., |t| t.is_finished()) {
            thread.join().map_err(|_| Error::internal("a thread of the emulated link panicked"))??;
        }
        let namespaces = self.namespaces.iter().map(|n| n.name().to_owned()).collect();
        let options = self.options.clone();
        write_record(&self.name, &LinkRecord { pid: own_pid(), namespaces, options, stats: self.stats() })
    }

    /// Applies a change that another process has requested ([`change`]), if any; to be called several times a second.
    ///
    /// # Errors
    /// Those of the disk and of the change.
    pub fn follow(&mut self) -> Result<()> {
        let path = change_path(&self.name);
        if !path.exists() {
            return Ok(());
        }
        let asked = fs::read(&path).map_err(Error::from).and_then(|text| {
            serde_json::from_slice(&text).map_err(|e| Error::corrupt(format!("a change of a link: {e}")))
        });
        let changed = asked.and_then(|change| self.change(&change));
        // The other process waits until the file is removed, and then reads the new properties from the record.
        self.publish()?;
        fs::remove_file(path)?;
        changed
    }

    /// Changes the properties of the link at once; packets in transit keep their order.
    ///
    /// # Errors
    /// `Unsupported` for engines other than [`Engine::Tun`]; those of [`up`].
    pub fn change(&mut self, change: &Change) -> Result<()> {
        if self.engine != Engine::Tun {
            return Err(unchangeable());
        }
        let options = self.options.changed(change);
        let spec = options.parse()?;
        for (place, lane) in self.changes.iter().zip([spec.forward, spec.backward]) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(lane);
        }
        self.options = options;
        Ok(())
    }

    /// Runs `work` on a thread in the namespace of a host: 0 is side a, 1 and more are those of side b.
    ///
    /// # Errors
    /// Those of entering the namespace.
    ///
    /// # Panics
    /// For a host that does not exist.
    pub fn inside<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> Result<T> {
        self.namespaces[host].inside(work)
    }

    fn join(&mut self, spec: &LinkSpec) -> Result<()> {
        let [a, others @ ..] = &self.namespaces[..] else { return Ok(()) };
        let Some(b) = others.first() else { return Ok(()) };
        self.engine = match self.engine {
            Engine::Auto if netem::refusal(spec).is_none() && netem::is_there(a) => Engine::Netem,
            Engine::Auto => Engine::Tun,
            chosen => chosen,
        };
        match self.engine {
            Engine::Netem if !netem::is_there(a) => {
                return Err(Error::unsupported("expected a kernel with netem, found none: use --engine tun"));
            }
            Engine::Netem => netem::join(a, b, spec)?,
            Engine::Veth => netem::join_plainly(a, b, spec)?,
            Engine::Auto | Engine::Tun => self.start_pumps(spec)?,
        }
        for (namespace, host) in self.namespaces.iter().zip(HOST_A..) {
            namespace.configure(host, spec.mtu, buffer_bytes(spec))?;
        }
        Ok(())
    }

    fn start_pumps(&mut self, spec: &LinkSpec) -> Result<()> {
        let device = |n: &Namespace| n.inside(|| Tun::create(DEVICE))?.map(Arc::new);
        let mut devices = self.namespaces.iter().map(device).collect::<Result<Vec<_>>>()?;
        let hosts_b = devices.split_off(1);
        let changes = self.changes.each_ref().map(Arc::clone);
        let pump = |(lane, change): (&LaneSpec, Arc<_>),
                    seed: u64,
                    from: &[Arc<Tun>],
                    to: &[Arc<Tun>],
                    first_host,
                    counters: &Arc<Live>| Pump {
            lane: LaneState::new(lane.clone(), spec.mtu, seed),
            change,
            from: from.to_vec(),
            to: to.to_vec(),
            first_host,
            counters: Arc::clone(counters),
            ends: Arc::clone(&self.ends),
        };
        let [forward, backward] = changes;
        let directions = [
            (
                "forward",
                pump((&spec.forward, forward), spec.seed, &devices, &hosts_b, FIRST_HOST_B, &self.forward),
            ),
            (
                "backward",
                pump(
                    (&spec.backward, backward),
                    spec.seed ^ u64::MAX,
                    &hosts_b,
                    &devices,
                    HOST_A,
                    &self.backward,
                ),
            ),
        ];
        for (direction, pump) in directions {
            let thread = std::thread::Builder::new().name(format!("lab {direction}")).spawn(|| pump.run());
            self.threads.push(thread.map_err(Error::from)?);
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            if let Ok(Err(error)) = thread.join() {
                tracing::warn!("the emulated link: {error}");
            }
        }
        self.namespaces.clear();
        remove_record(&self.name);
    }
}

/// Returns the counters of a link that is up, perhaps in another process.
///
/// # Errors
/// `NotFound` if no link has this name.
pub fn stats_of(name: &str) -> Result<LinkStats> {
    read_record(name).map(|record| record.stats)
}

/// Changes a link that is up in another process, and waits until the change is applied.
///
/// # Errors
/// `NotFound` if no link has this name, `Invalid` for values that are not understood, `TimedOut` without an answer,
/// `Unsupported` if the link cannot change.
pub fn change(name: &str, change: &Change) -> Result<()> {
    let wanted = read_record(name)?.options.changed(change);
    wanted.parse()?;
    write_json(&change_path(name), change)?;
    let mut waited = Duration::ZERO;
    while change_path(name).exists() {
        if waited >= CHANGES_WITHIN {
            let _removed = fs::remove_file(change_path(name)).is_err();
            let late = format!("link {name} did not change within {CHANGES_WITHIN:?}");
            return Err(Error::new(ErrorKind::TimedOut, late));
        }
        std::thread::sleep(LOOK_EVERY);
        waited += LOOK_EVERY;
    }
    if read_record(name)?.options == wanted {
        return Ok(());
    }
    Err(unchangeable())
}

fn unchangeable() -> Error {
    Error::unsupported("only links with `--engine tun` can change while they are up")
}

/// Ends a link, and removes the remains of one that was killed.
///
/// # Errors
/// `NotFound` if nothing has this name.
pub fn down(name: &str) -> Result<()> {
    let record = read_record(name)?;
    if let Some(pid) = Pid::from_raw(record.pid).filter(|pid| is_corridor(*pid)) {
        // It may have ended by itself.
        let _ended = kill_process(pid, Signal::TERM).is_err();
        let mut waited = Duration::ZERO;
        while test_kill_process(pid).is_ok() && waited < ENDS_WITHIN {
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
    }
    record.namespaces.iter().filter(|n| n.starts_with(name)).for_each(|n| namespace::delete(n));
    remove_record(name);
    Ok(())
}

/// Returns whether the process runs this program: its number may have been reused.
fn is_corridor(pid: Pid) -> bool {
    let program = fs::read_link(format!("/proc/{}/exe", pid.as_raw_nonzero())).ok();
    let own = std::env::current_exe().ok();
    let name = |path: Option<PathBuf>| {
        path?.file_name().map(|n| n.to_string_lossy().trim_end_matches(" (deleted)").to_owned())
    };
    pid.as_raw_nonzero().get() != own_pid() && name(program).is_some_and(|p| Some(p) == name(own))
}

fn check_name(name: &str) -> Result<()> {
    let fits = !name.is_empty() && name.len() <= MAX_NAME_BYTES;
    let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && fits;
    if is_plain {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "expected a name of at most {MAX_NAME_BYTES} letters, digits and _ for the link, found `{name}`"
    )))
}

fn names_of(name: &str, hosts: u8) -> Vec<String> {
    let further = (2..=hosts).map(|host| format!("{name}-b{host}"));
    [format!("{name}-a"), format!("{name}-b")].into_iter().chain(further).collect()
}

fn buffer_bytes(spec: &LinkSpec) -> u64 {
    let held = |lane: &LaneSpec| {
        lane.rate_bytes_per_sec.unwrap_or(1.25e9) * 2.0 * lane.delay.as_secs_f64() + lane.queue_bytes
    };
    let most = held(&spec.forward).max(held(&spec.backward));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and far below the limit"
    )]
    let bytes = (most * BUFFERS_PER_LINK).clamp(LEAST_BUFFER_BYTES, 1e9) as u64;
    bytes
}

fn own_pid() -> i32 {
    std::process::id().cast_signed()
}

fn record_path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{name}.json"))
}

/// Returns the path of a requested change that was not applied yet.
fn change_path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{name}.asked"))
}

fn write_record(name: &str, record: &LinkRecord) -> Result<()> {
    write_json(&record_path(name), record)
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_vec(value).map_err(|e| Error::internal(format!("a record in JSON: {e}")))?;
    let write = || {
        fs::create_dir_all(FOLDER)?;
        let mut file = tempfile::NamedTempFile::new_in(FOLDER)?;
        std::io::Write::write_all(&mut file, &text)?;
        file.persist(path).map_err(|e| e.error)?;
        Ok::<_, std::io::Error>(())
    };
    write().map_err(|e| Error::from(e).context(format!("writing to {FOLDER}, which needs root")))
}

fn read_record(name: &str) -> Result<LinkRecord> {
    check_name(name)?;
    let text = fs::read(record_path(name)).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Error::new(ErrorKind::NotFound, format!("expected the name of a link that is up, found `{name}`"))
        }
        _ => Error::from(e),
    })?;
    serde_json::from_slice(&text).map_err(|e| Error::corrupt(format!("the record of link {name}: {e}")))
}

fn remove_record(name: &str) {
    // A change requested of this link must not be applied to a later one with the same name.
    let _without_change = fs::remove_file(change_path(name)).is_err();
    if let Err(error) = fs::remove_file(record_path(name)) {
        tracing::debug!("the record of link {name}: {error}");
    }
}
