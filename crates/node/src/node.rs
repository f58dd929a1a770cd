//! A running server: open data sets, a port with services, and a record by which other commands of the user find it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use array::Result;
use client::running_servers::{self, RunningServer, RunningServerFile};
use client::url::{Location, Url};
use link::quic;
use server::answer_memory::AnswerMemory;
use server::connection::Service;
use server::connections::Limits;
use server::exports::{Exports, Opener};
use server::http::uploads::Uploads;
use server::http::{HttpSite, colormaps, redirect_router, router};
use server::identity::{self, IdentityChoice};
use server::metrics::Metrics;
use server::ops::{NodeState, OperationRegistry};
use server::peers::check_chain;
use server::port::listen::listen;
use server::port::{Port, Routers, open_files};
use server::public_address::{ReverseProxy, ServerNames};
use server::reverse::WaitingClient;
use server::rooms::Rooms;
use server::token::Admission;
use server::zarr;

use crate::assemble::Context;
use crate::relay::Relays;

/// Address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Loopback, on this port, or on any free port if it is taken.
    Loopback(u16),
    /// This address only.
    At(SocketAddr),
}

impl Listen {
    /// Returns the requested port; `None` if any port will do.
    fn requested_port(self) -> Option<u16> {
        let port = match self {
            Self::Loopback(port) => port,
            Self::At(address) => address.port(),
        };
        Some(port).filter(|&port| port != 0)
    }
}

/// Options for starting a server.
#[derive(Clone)]
pub struct ServerOptions {
    /// Locations of the data to serve.
    pub locations: Vec<Location>,
    /// Whether a folder that is not a data set itself stands for all data sets in it.
    pub explores_folders: bool,
    /// Address to listen on.
    pub listen: Listen,
    /// Rule that decides which clients are admitted.
    pub admission: Admission,
    /// Certificate and key of the server.
    pub identity: IdentityChoice,
    /// Host names accepted from browsers, besides addresses, `localhost`, the name of this machine and the names in the
    /// certificate.
    pub names: Vec<String>,
    /// Reverse proxies in front of the server.
    pub proxies: ReverseProxy,
    /// Directories, memory, progress.
    pub context: Context,
    /// Other servers of the same data; clients receive these URLs with their tokens.
    pub peers: Vec<Url>,
    /// Clients that wait for this server, by the URLs that they printed.
    pub waiting_clients: Vec<Url>,
    /// Maximum rate of one connection, in bytes per second; clients may request less. The streams of one link count as
    /// one connection.
    pub most_bytes_per_sec: Option<f64>,
}

impl ServerOptions {
    /// Returns whether only people on this machine who have the token are served.
    pub(crate) fn is_local(&self) -> bool {
        let is_loopback = match self.listen {
            Listen::Loopback(_) => true,
            Listen::At(address) => address.ip().is_loopback(),
        };
        is_loopback && self.proxies.public.is_empty() && self.admission.token().is_some()
    }
}

/// Data sets that people open beside those of the options: their rooms, and the folder of files that they send.
#[derive(Default)]
pub(crate) struct FurtherData {
    pub(crate) rooms: Arc<Rooms>,
    /// Present if files may be sent.
    pub(crate) uploads: Option<Arc<Uploads>>,
}

/// A server that is ready: [`ServerNode::run`] serves.
pub struct ServerNode {
    /// Address on which the server listens.
    pub address: SocketAddr,
    /// Requested port, if another process has taken it.
    pub taken_port: Option<u16>,
    /// Fingerprint of its certificate.
    pub fingerprint: String,
    /// Whether the certificate is self-signed.
    pub is_self_signed: bool,
    admission: Admission,
    shared: Arc<NodeState>,
    port: Port,
    _record: Option<RunningServerFile>,
}

/// Opens the data sets; the first half of starting a server.
///
/// # Errors
/// The errors of opening.
pub async fn open(options: &ServerOptions) -> Result<Arc<NodeState>> {
    open_by(options, &options.context).await
}

/// Opens the data sets as [`open`] does, by `opener` instead of the options' context.
///
/// # Errors
/// The errors of opening.
pub async fn open_by(options: &ServerOptions, opener: &dyn Opener) -> Result<Arc<NodeState>> {
    let exports = Exports::open(&options.locations, opener, options.explores_folders).await?;
    let answer_memory = AnswerMemory::new(options.context.budget.send);
    let complete = |peer: &Url| running_servers::complete(&options.context.directories.runtime, peer.clone());
    let peers = options.peers.iter().map(complete).collect();
    let (name, rejecting) = (OnceLock::new(), OnceLock::new());
    let (paths, metrics) = (options.context.paths.clone(), Metrics::default());
    Ok(Arc::new(NodeState { exports, answer_memory, peers, name, rejecting, paths, metrics }))
}

/// Listens and records the server, if possible; the second half of starting. `registry` contains the operations.
///
/// # Errors
/// `Io` if the address is not available, `Invalid` if the data come from this server itself, and the errors of loading
/// the identity.
pub async fn start(
    options: &ServerOptions,
    shared: Arc<NodeState>,
    registry: OperationRegistry,
) -> Result<ServerNode> {
    start_with(options, shared, registry, FurtherData::default()).await
}

/// Listens as [`start`] does, with further data sets that people open.
///
/// # Errors
/// As [`start`].
pub(crate) async fn start_with(
    options: &ServerOptions,
    shared: Arc<NodeState>,
    registry: OperationRegistry,
    further: FurtherData,
) -> Result<ServerNode> {
    let mut node = listen_with(options, shared, registry, further).await?;
    let record = RunningServer {
        address: node.address,
        machine: running_servers::machine_name(),
        token: options.admission.token().map(|t| t.secret().to_owned()),
        fingerprint: Some(node.fingerprint.clone()),
        pid: std::process::id(),
    };
    match running_servers::post(&options.context.directories.runtime, &record) {
        Ok(file) => node._record = Some(file),
        Err(error) => {
            tracing::warn!("other commands of this user cannot find this server: {error}")
        }
    }
    Ok(node)
}

/// Listens without a record by which other commands find the server.
///
/// # Errors
/// As [`start`].
pub(crate) async fn start_unrecorded(
    options: &ServerOptions,
    shared: Arc<NodeState>,
    registry: OperationRegistry,
) -> Result<ServerNode> {
    listen_with(options, shared, registry, FurtherData::default()).await
}

async fn listen_with(
    options: &ServerOptions,
    shared: Arc<NodeState>,
    registry: OperationRegistry,
    further: FurtherData,
) -> Result<ServerNode> {
    let machine = running_servers::machine_name();
    let directories = &options.context.directories;
    let identity = identity::load(&options.identity, &directories.identity, &machine)?;
    let tls = identity.server_config(&link::carrier::tls::SERVED)?;
    let listener = listen(&addresses(options.listen)).await?;
    let address = listener.local_addr()?;
    if let Some(most) = options.most_bytes_per_sec
        && let Err(error) = link::carrier::tcp::hold_to(&listener, most)
    {
        tracing::warn!(%error, "the maximum rate is not enforced for TCP connections");
    }
    let quic_options = quic::EndpointOptions {
        most_bytes_per_sec: options.most_bytes_per_sec,
        // Operations that do more than read wait for the end of the handshake (`server::ops`).
        start: quic::Start::AtOnce,
        ..quic::EndpointOptions::default()
    };
    // If the UDP port is taken or forbidden, the server has TCP only.
    let udp = quic::Listener::bind(address, &identity, quic_options);
    let udp = udp.inspect_err(|error| tracing::warn!(%error, "no QUIC on UDP port {}", address.port())).ok();
    udp.iter().for_each(|udp| drop(shared.rejecting.set(udp.rejecting())));
    let fingerprint = identity.fingerprint().to_string();
    let name = shared.name.get_or_init(|| running_servers::server_name(&machine, address, &fingerprint));
    for export in shared.exports.all().iter() {
        check_chain(export, name).await?;
    }
    let waiting_client = |client| WaitingClient::of(client, options.most_bytes_per_sec);
    let waiting_clients = options.waiting_clients.iter().map(waiting_client).collect::<Result<_>>()?;
    let service = Arc::new(Service::new(options.admission.clone(), registry, Arc::clone(&shared)));
    let mut hosts = options.names.clone();
    hosts.push(machine);
    hosts.extend(identity.names());
    let proxies = options.proxies.clone();
    let is_guarded = options.admission.token().is_some();
    let names = Arc::new(ServerNames { hosts, proxies, port: address.port(), is_guarded });
    Ok(ServerNode {
        address,
        taken_port: options.listen.requested_port().filter(|&port| port != address.port()),
        fingerprint,
        is_self_signed: matches!(options.identity, IdentityChoice::Own),
        admission: options.admission.clone(),
        shared,
        port: Port::new(listener, udp, tls, routers(names, &service, further.uploads), service)
            .connecting_to(waiting_clients)
            .with_rooms(further.rooms),
        _record: None,
    })
}

fn addresses(listen: Listen) -> Vec<SocketAddr> {
    match listen {
        Listen::At(address) => vec![address],
        Listen::Loopback(port) => {
            [port, 0].map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)).to_vec()
        }
    }
}

fn routers(names: Arc<ServerNames>, service: &Arc<Service>, uploads: Option<Arc<Uploads>>) -> Routers {
    let draws = service.registry.has(wire::ops::JOIN);
    let site = HttpSite { names: Arc::clone(&names), colormaps: colormaps::json().into(), draws, uploads };
    let all = router(site).merge(zarr::router(Arc::clone(service), Arc::clone(&names)));
    Routers { all, redirect: redirect_router(Arc::clone(&names)), names }
}

impl ServerNode {
    /// Returns this server with other limits for the connections of its port.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.port = self.port.with_limits(limits);
        self
    }

    /// Returns this server, which also serves clients whose messages this process moves.
    #[must_use]
    pub fn accepting_relays(self) -> (Self, Relays) {
        let (port, links) = self.port.accepting_links();
        (Self { port, ..self }, Relays::new(links))
    }

    /// Returns the data sets that are served.
    #[must_use]
    pub fn exports(&self) -> &Exports {
        &self.shared.exports
    }

    /// Returns the token that clients need; `None` if everybody is admitted.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.admission.token().map(server::token::Token::secret)
    }

    /// Returns the token that only allows reading Zarr over HTTP, if there is one.
    #[must_use]
    pub fn zarr_token(&self) -> Option<&str> {
        self.admission.readers().map(|readers| readers.token.secret())
    }

    /// Returns the host and port by which other hosts reach the server.
    fn reachable(&self) -> (String, u16) {
        (running_servers::reachable_host(self.address), self.address.port())
    }

    /// Returns the complete URL of a data set, with token and fingerprint.
    #[must_use]
    pub fn url(&self, export: &str) -> Url {
        let (host, port) = self.reachable();
        Url {
            host,
            port,
            dataset: export.to_owned(),
            array: String::new(),
            token: self.token().map(str::to_owned),
            fingerprint: Some(self.fingerprint.clone()),
            replicas: Vec::new(),
        }
    }

    /// Returns the URL of a data set as Zarr v3 over HTTP, without the token, which is sent as `Authorization: Bearer`.
    #[must_use]
    pub fn zarr(&self, export: &str) -> String {
        format!("{}{}", self.site().trim_end_matches('/'), zarr::path(export))
    }

    /// Returns the address for browsers, with a slash at the end: the first public address, else the own one.
    fn site(&self) -> String {
        let public = self.port.sites.names.proxies.public.first();
        let own = || format!("{}://{}/", self.scheme(), self.url("").authority());
        public.map_or_else(own, ToString::to_string)
    }

    fn scheme(&self) -> &'static str {
        if self.address.ip().is_loopback() { "http" } else { "https" }
    }

    /// Returns the URL of the viewer's page, with the token in the fragment.
    #[must_use]
    pub fn page(&self) -> String {
        self.page_with(self.token())
    }

    /// Returns the URLs of the viewer's page for guests, with the names of their roles.
    #[must_use]
    pub fn invitations(&self) -> Vec<(&'static str, String)> {
        let links = self.admission.guests().map(|guests| guests.links()).unwrap_or_default();
        links.iter().map(|guest| (guest.role.name(), self.page_with(Some(guest.token.secret())))).collect()
    }

    fn page_with(&self, token: Option<&str>) -> String {
        let fragment = token.map_or_else(String::new, |t| format!("#token={}", client::url::encode(t)));
        format!("{}{fragment}", self.site())
    }

    /// Serves until the future is dropped.
    ///
    /// # Cancel safety
    /// Dropping the future ends every connection and removes the record.
    pub async fn run(self) {
        open_files::allow(self.port.most_connections());
        self.port.run().await;
    }
}
