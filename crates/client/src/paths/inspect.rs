//! Measures a path on request: for `corridor path HOST`, and for the report of a server on its path to a client.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use array::{Error, ErrorKind, Priority, Result, Urgency};
use link::{ClientHandle, Protocol};
use plan::Measurement;
use plan::text::time;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::report::PathSummary;
use super::{Paths, ReportingHost, host, learn, now, probe};
use crate::dial::{self, ConnectOptions, Endpoint};
use crate::requests::{List, RemoteOperation};
use crate::running_servers;
use crate::text::size;
use crate::url::Url;

/// Number of round trips that are measured; the first is not counted, because caches may be cold.
const ROUND_TRIPS: u32 = 5;
/// Pause between the round trips.
const PAUSE: Duration = Duration::from_millis(20);
/// Timeout for a QUIC connection, after TCP has connected.
const QUIC_TIMEOUT: Duration = Duration::from_secs(3);
/// Time for which facts of this host are cached.
const FACTS_VALID_FOR: Duration = Duration::from_secs(2);
/// Timeout for the whole inspection.
const INSPECT_TIMEOUT: Duration = Duration::from_secs(40);

/// The other end of a path, as users write it: `HOST`, `HOST:PORT` or `corridor://HOST[:PORT]/#token=...`.
#[derive(Clone, Debug)]
pub struct PathTarget {
    url: Url,
    /// Whether a port was given, so that there is something to connect to.
    has_port: bool,
}

impl FromStr for PathTarget {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.starts_with("corridor://") {
            return Ok(Self { url: text.parse()?, has_port: true });
        }
        if let Ok(ip) = text.parse::<IpAddr>() {
            let host = if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
            return Ok(Self { url: format!("corridor://{host}/").parse()?, has_port: false });
        }
        let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        Ok(Self { url: format!("corridor://{text}/").parse()?, has_port })
    }
}

/// Policy for sending packet trains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeMode {
    /// Only if no rate of the path is known, and only to a server that supports it. Never to this machine itself.
    #[default]
    WhereUnknown,
    /// To every server that supports it.
    Always,
}

/// Settings for inspecting a path: how servers are found and reached.
#[derive(Clone, Debug)]
pub struct InspectSettings {
    /// Directory with the records of running servers.
    pub runtime: PathBuf,
    /// Database of the network paths to other hosts.
    pub paths: Paths,
    /// Options for connecting to servers.
    pub reach: ConnectOptions,
    /// Maximum number of bulk bytes in flight to this host.
    pub receive_bytes: u64,
}

impl InspectSettings {
    fn server(&self, url: &Url) -> Result<Endpoint> {
        let server = Endpoint::of(url, self.receive_bytes)?;
        Ok(server.by(self.reach).remembering(self.paths.clone()))
    }
}

/// Reports the known values of the path to `target`, after a few round trips if the host responds: to a server whose
/// token is known (from the URL, or recorded by a server of this user), or else to any program that accepts connections
/// at the given port.
///
/// # Errors
/// `Unreachable` if the host has no address.
///
/// # Cancel safety
/// Safe: measurements made until then are remembered.
pub async fn inspect(
    target: &PathTarget,
    settings: &InspectSettings,
    probing: ProbeMode,
) -> Result<PathSummary> {
    let url = running_servers::complete(&settings.runtime, target.url.clone());
    let address = address_of(&url).await?;
    let paths = &settings.paths;
    let measuring = async {
        if url.token.is_some() || url.fingerprint.is_some() {
            let asked = ask_server(&url, address, settings).await?;
            let probed = probed(&url, address, settings, probing).await;
            Ok(format!("{asked}{}", probed.unwrap_or_default()))
        } else if target.has_port {
            connect(address, paths).await
        } else {
            Ok("nothing was measured now: give the port of a program that accepts connections, \
                or the URL of a server"
                .into())
        }
    };
    let measured = timeout(INSPECT_TIMEOUT, measuring)
        .await
        .unwrap_or_else(|_| Ok("there was no response in time".into()));
    let measured = measured.unwrap_or_else(|error| format!("nothing was measured now: {error}"));
    of_host(paths, address.ip(), measured).await
}

/// Reports the values that a server knows of the path to a client that asks.
///
/// # Errors
/// `Internal` if the facts of this host cannot be read.
///
/// # Cancel safety
/// Safe: nothing is changed.
pub async fn of_client(paths: &Paths, client: IpAddr) -> Result<PathSummary> {
    of_host(paths, client, "from connections so far".into()).await
}

async fn of_host(paths: &Paths, host: IpAddr, measured: String) -> Result<PathSummary> {
    let host = host.to_canonical();
    // One at a time: a client may send thousands of requests, and each takes threads of the process.
    let mut seen = paths.0.reporting.lock().await;
    let recalled = paths.recall(host, None).await;
    let known = seen.as_ref().filter(|seen| seen.host == host && seen.at.elapsed() < FACTS_VALID_FOR);
    let facts = match known {
        Some(seen) => seen.facts.clone(),
        None => {
            let reading = tokio::task::spawn_blocking(move || host::facts(host)).await;
            let facts = reading.map_err(|e| Error::internal(format!("the facts of this host: {e}")))?;
            *seen = Some(ReportingHost { host, at: Instant::now(), facts: facts.clone() });
            facts
        }
    };
    Ok(PathSummary::new(host, recalled, facts, measured, now()))
}

async fn address_of(url: &Url) -> Result<SocketAddr> {
    let none = |why: String| {
        Error::new(ErrorKind::Unreachable, format!("expected an address of `{}`: {why}", url.host))
    };
    let found = tokio::net::lookup_host((url.host.as_str(), url.port)).await;
    let mut found = found.map_err(|e| none(e.to_string()))?;
    found.next().ok_or_else(|| none("none was found".into()))
}

/// Measures by operations that a server answers at once. The connection is monitored too, and its statistics are
/// recorded at its end.
async fn ask_server(url: &Url, address: SocketAddr, settings: &InspectSettings) -> Result<String> {
    let server = settings.server(url)?;
    let (handle, driving) = dial::open(&server).await?;
    let asking = async {
        let least = ask(&handle, address.ip(), &settings.paths).await?;
        let report = match learn::ask(&handle, &settings.paths, address.ip()).await {
            Ok(true) => "it reported its measurements of the direction to this host".into(),
            Ok(false) => "it has no measurements of the direction to this host yet".into(),
            Err(error) => {
                format!("it did not report its measurements of the direction to this host: {error}")
            }
        };
        Ok(format!("{ROUND_TRIPS} requests to its server took at least {}; {report}", time(least)))
    };
    tokio::select! {
        measured = asking => measured,
        () = driving => Err(handle.closed().await),
    }
}

/// Sends packet trains, if allowed; returns the outcome as the end of a sentence.
async fn probed(
    url: &Url,
    address: SocketAddr,
    settings: &InspectSettings,
    probing: ProbeMode,
) -> Option<String> {
    let host = address.ip().to_canonical();
    if probing == ProbeMode::WhereUnknown && (host.is_loopback() || settings.paths.knows_rates(host).await) {
        return None;
    }
    let mut sum = probe::ProbeTotals::default();
    let done = async {
        let mut server = settings.server(url)?;
        server.reach.protocol = Protocol::Quic;
        let opening = timeout(QUIC_TIMEOUT, dial::open_watched(&server)).await;
        let none = |_| Error::new(ErrorKind::TimedOut, "there was no response by UDP");
        let dial::OpenedConnection { handle, driving, flow, .. } = opening.map_err(none)??;
        let none = || Error::unsupported("expected a QUIC link with statistics");
        let flow = flow.ok_or_else(none)?;
        tokio::select! {
            done = probe::probe(&handle, &*flow, &settings.paths, &mut sum) => done,
            () = driving => Err(handle.closed().await),
        }
    };
    let done = done.await;
    let probe::ProbeTotals { trains, sent_bytes } = sum;
    let sent = format!("{trains} packet trains ({})", size(sent_bytes));
    Some(match done {
        Ok(()) => format!("; {sent}"),
        Err(error) => format!("; {sent}, and then no more: {error}"),
    })
}

/// Returns the minimum round-trip time, in seconds.
async fn ask(handle: &ClientHandle, host: IpAddr, paths: &Paths) -> Result<f64> {
    handle.welcomed().await?;
    let mut least = f64::INFINITY;
    for number in 0..=ROUND_TRIPS {
        let asked = Instant::now();
        let replies = handle.request(List.name(), List.parameters()?, Urgency::of(Priority::NORMAL)).await?;
        List.answer(replies).await?;
        let secs = asked.elapsed().as_secs_f64();
        if number > 0 {
            paths.record(host, vec![Measurement::RoundTrip(secs)]);
            least = least.min(secs);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(least)
}

/// Measures by connections that are closed at once.
async fn connect(address: SocketAddr, paths: &Paths) -> Result<String> {
    let mut least = f64::INFINITY;
    for number in 0..=ROUND_TRIPS {
        let begun = Instant::now();
        let connected = TcpStream::connect(address).await;
        drop(
            connected
                .map_err(|e| Error::new(ErrorKind::Unreachable, format!("connecting to {address}: {e}")))?,
        );
        let secs = begun.elapsed().as_secs_f64();
        if number > 0 {
            paths.record(address.ip(), vec![Measurement::RoundTrip(secs)]);
            least = least.min(secs);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(format!("{ROUND_TRIPS} connections to port {} took at least {}", address.port(), time(least)))
}
