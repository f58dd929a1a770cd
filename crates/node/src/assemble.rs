//! Builds the stack of sources between the data and their readers.
//!
//! ```text
//!   path, synthetic:   store::open (format, levels, side cache)  --+
//!                                                                  +-->  cache::Cached  -->  readers
//!   corridor://        dial -> RemoteSource  (one, or several -> Servers, Catalogue)  --+
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use array::{Error, ErrorKind, LongWork, Meaning, Priority, Result, Source, Urgency};
use cache::Cached;
use client::catalogue::{self, Catalogue, CatalogueEntry, CatalogueHost, FoundDataset};
use client::dial::{self, ConnectOptions, Dialer};
use client::directories::UserDirectories;
use client::paths::{InspectSettings, Paths};
use client::peers::{self, CHAIN_TIMEOUT};
use client::remote::RemoteSource;
use client::requests::List;
use client::servers::{MAX_SERVERS, ReplicaServer, ReplicaSource, Servers, Sharing, SharingRule};
use client::upstream::{CatalogueUpstream, DatasetServers, NamedPeers, ReplicatedUpstream, Upstream};
use client::url::{Location, Url};
use client::{reverse, running_servers};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use link::Protocol;
use server::exports::{ASK_AGAIN_AFTER, Opener};
use server::geometry_origin::GeometryOrigin;
use server::identity::{self, IdentityChoice};
use server::reverse::wait_at;
use server::stack::Stack;
use wire::ops::ListEntry;

use crate::growing::{GrowingSource, ReopenSource};
use crate::memory::MemoryBudget;

/// Number of data sets of several servers that are compared concurrently.
const MAX_CONCURRENT_COMPARISONS: usize = 64;

/// Callback that receives the URL, with its token, to which an awaited server must connect.
pub type OnAwait = Arc<dyn Fn(&Url) + Send + Sync>;

/// Settings and shared resources from which stacks are built.
#[derive(Clone)]
pub struct Context {
    /// This user's directories.
    pub directories: UserDirectories,
    /// Memory budget of the process.
    pub budget: MemoryBudget,
    /// Called with the progress of long work, such as indexing a compressed file.
    pub on_progress: Option<store::OnProgress>,
    /// Options of connections to other servers.
    pub reach: ConnectOptions,
    /// Distribution of data among the servers of one URL: the same data on each, or different data sets.
    pub sharing: Sharing,
    /// Called with the URL to which an awaited server must connect.
    pub on_await: Option<OnAwait>,
    /// Database of the network paths to other hosts.
    pub paths: Paths,
    /// Minimum interval between requests to other servers for their data sets and peers.
    pub ask_again_after: Duration,
    /// Meaning of the arrays of files, as given by the user.
    pub meaning: Option<Meaning>,
    /// Exported folder within which files may refer to one another; `None`: a file may refer only to its own folder.
    folder: Option<PathBuf>,
    /// Scratch memory for reading files, shared by all data sets.
    scratch: store::Scratch,
}

impl Context {
    /// Creates a context for stacks that share `budget`.
    #[must_use]
    pub fn new(
        directories: UserDirectories,
        budget: MemoryBudget,
        on_progress: Option<store::OnProgress>,
    ) -> Self {
        let scratch = store::Scratch::new(budget.scratch);
        let paths = Paths::in_folder(&directories.state);
        Self {
            directories,
            budget,
            on_progress,
            reach: ConnectOptions::default(),
            sharing: Sharing::default(),
            on_await: None,
            paths,
            ask_again_after: ASK_AGAIN_AFTER,
            meaning: None,
            folder: None,
            scratch,
        }
    }

    /// Returns this context with the connection options `reach`.
    #[must_use]
    pub fn reaching(self, reach: ConnectOptions) -> Self {
        Self { reach, ..self }
    }

    /// Returns this context with the distribution of data among the servers of one URL.
    #[must_use]
    pub fn sharing(self, sharing: Sharing) -> Self {
        Self { sharing, ..self }
    }

    /// Returns this context with the meaning of the arrays of files, as given by the user.
    #[must_use]
    pub fn meaning(self, meaning: Option<Meaning>) -> Self {
        Self { meaning, ..self }
    }

    /// Returns this context with a callback for the URLs to which awaited servers must connect.
    #[must_use]
    pub fn with_on_await(self, on_await: OnAwait) -> Self {
        Self { on_await: Some(on_await), ..self }
    }

    /// Returns this context without the callback for awaited servers.
    #[must_use]
    pub(crate) fn without_await(self) -> Self {
        Self { on_await: None, ..self }
    }

    /// Returns a copy of this context with another memory budget and separate scratch memory.
    #[must_use]
    pub fn within(&self, budget: MemoryBudget) -> Self {
        Self { budget, scratch: store::Scratch::new(budget.scratch), ..self.clone() }
    }

    /// Returns options for opening data that are not kept on disk, with the scratch memory of this context.
    #[must_use]
    pub fn scratch_options(&self) -> store::OpenOptions {
        store::OpenOptions { scratch: self.scratch.clone(), ..store::OpenOptions::default() }
    }

    /// Returns the settings of this context for inspecting network paths.
    #[must_use]
    pub fn inspect_settings(&self) -> InspectSettings {
        InspectSettings {
            runtime: self.directories.runtime.clone(),
            paths: self.paths.clone(),
            reach: self.reach,
            receive_bytes: self.budget.receive,
        }
    }

    /// Returns a copy of this context for one of `count` data sets that share its memory.
    #[must_use]
    pub fn share_of(&self, count: usize) -> Self {
        Self { budget: self.budget.share_of(count), ..self.clone() }
    }
}

impl Opener for Context {
    fn open(&self, location: Location, meaning: Option<Meaning>) -> BoxFuture<'static, Result<Stack>> {
        let context = self.clone().meaning(meaning);
        async move { assemble(&location, &context).await }.boxed()
    }

    fn default_meaning(&self) -> Option<Meaning> {
        self.meaning
    }

    fn asks_again_after(&self) -> Duration {
        self.ask_again_after
    }

    fn for_one_of(&self, count: usize) -> Arc<dyn Opener> {
        Arc::new(self.share_of(count))
    }

    fn for_folder(&self, folder: PathBuf) -> Arc<dyn Opener> {
        Arc::new(Self { folder: Some(folder), ..self.clone() })
    }
}

/// Builds the stack for a location. Reads only the headers of a file, or the description from a server.
///
/// # Errors
/// The errors of the store, or of connecting.
pub async fn assemble(location: &Location, context: &Context) -> Result<Stack> {
    let is_local = matches!(location, Location::Path(_) | Location::Synthetic(_));
    if context.meaning.is_some() && !is_local {
        return Err(Error::invalid(
            "the meaning of arrays is set on the server with the files, which computes their levels: \
             `corridor serve --meaning ...` there",
        ));
    }
    let work = LongWork::default();
    let mut array = String::new();
    let (name, inner, upstream) = match location {
        Location::Path(path) => {
            let text = path.to_str().ok_or_else(|| {
                Error::unsupported(format!("expected a path in UTF-8, found `{}`", path.display()))
            })?;
            let name = path.file_name().map_or_else(|| "data".into(), |n| n.to_string_lossy().into_owned());
            let opened = open_growing(text, context, &work).await;
            let opened = opened.map_err(|error| match error.kind() {
                ErrorKind::Unsupported | ErrorKind::Corrupt if path.is_file() && ::geometry::is_geometry_name(text) => {
                    error.context(format!(
                        "`{name}` is geometry, which is drawn beside an array: name the array as the location, and the geometry with \
                         `--layer {text}`"
                    ))
                }
                _ => error,
            });
            (name, opened?, Upstream::Here)
        }
        Location::Synthetic(text) => {
            (synthetic_name(text), open(text, context, &work).await?, Upstream::Here)
        }
        Location::Remote(url) => {
            let (inner, upstream) = remote(url, context).await?;
            let name = match url.dataset.as_str() {
                "" => inner.describe().await?.name.clone(),
                name => name.to_owned(),
            };
            (name, inner, upstream)
        }
        Location::Ssh(address) => {
            let dialer = Dialer::through_ssh(address.clone(), context.budget.receive, context.reach);
            let remote = RemoteSource::new(dialer.clone(), String::new());
            let name = remote.describe().await?.name.clone();
            array = dialer.named_array().await?;
            (name, growing(&remote), Upstream::only(remote))
        }
        Location::Awaited(address) => {
            let dialer = awaited(address, context).await?;
            let remote = RemoteSource::new(dialer, address.dataset.clone());
            let name = remote.describe().await?.name.clone();
            (name, growing(&remote), Upstream::only(remote))
        }
    };
    let mut stack = Stack { work, array, ..stack_of(name, inner, upstream, context) };
    if let Location::Path(path) = location {
        stack.geometry.folder = Some(folder_of(path));
    }
    Ok(stack)
}

/// Returns the stack of a source, with a cache of the context's size over it.
#[must_use]
pub fn stack_of(name: String, source: Arc<dyn Source>, upstream: Upstream, context: &Context) -> Stack {
    let cached = Cached::with_held_memory(source, context.budget.cache, context.budget.held_memory());
    let source: Arc<dyn Source> = Arc::new(cached.clone());
    let geometry = GeometryOrigin { folder: None, upstream: upstream.clone(), source: Arc::clone(&source) };
    Stack { name, source, cached, work: LongWork::default(), array: String::new(), upstream, geometry }
}

/// Returns the folder that a file or folder lies in.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Listens for a server that connects to this process, and reports the URL that it needs.
async fn awaited(at: &reverse::AwaitAddress, context: &Context) -> Result<Dialer> {
    let protocol = context.reach.protocol;
    if !matches!(protocol, Protocol::Auto | Protocol::Tcp) || context.reach.choice.is_some() {
        let what = "servers connect to a waiting client by TCP; omit `--link` and `--controller`";
        return Err(Error::unsupported(what));
    }
    let machine = running_servers::machine_name();
    let identity = identity::load(&IdentityChoice::Own, &context.directories.identity, &machine)?;
    let awaiting = wait_at(at, &identity).await?;
    let address = awaiting.address();
    let url = Url {
        host: running_servers::reachable_host(address),
        port: address.port(),
        dataset: String::new(),
        array: String::new(),
        token: Some(awaiting.token().to_owned()),
        fingerprint: Some(identity.fingerprint().to_string()),
        replicas: Vec::new(),
    };
    if let Some(on_await) = &context.on_await {
        on_await(&url);
    }
    Ok(Dialer::awaiting(awaiting, context.budget.receive, context.reach.compression))
}

/// Lists the data sets of a server.
///
/// # Errors
/// The errors of connecting.
pub async fn exports(url: &Url, context: &Context) -> Result<Vec<ListEntry>> {
    let url = running_servers::complete(&context.directories.runtime, url.clone());
    let dialer = Dialer::new(server(&url, context.budget.receive, context)?);
    dialer.ask(List, Urgency::of(Priority::INTERACTIVE)).await
}

/// Returns the server of a URL, with the options of the context.
fn server(url: &Url, window_bytes: u64, context: &Context) -> Result<dial::Endpoint> {
    let server = dial::Endpoint::of(url, window_bytes)?;
    Ok(server.by(context.reach).remembering(context.paths.clone()))
}

/// Opens a file that may grow while it is open.
async fn open_growing(location: &str, context: &Context, work: &LongWork) -> Result<Arc<dyn Source>> {
    let opened = open(location, context, work).await?;
    let (location, context, work) = (location.to_owned(), context.clone(), work.clone());
    let reopen: ReopenSource = Arc::new(move || {
        let (location, context, work) = (location.clone(), context.clone(), work.clone());
        async move { open(&location, &context, &work).await }.boxed()
    });
    Ok(Arc::new(GrowingSource::new(opened, reopen)))
}

/// Returns the data of a server, which may grow, as a source.
fn growing(remote: &RemoteSource) -> Arc<dyn Source> {
    let described = remote.clone();
    let reopen: ReopenSource = Arc::new(move || {
        let described = described.clone();
        async move {
            described.describe_again().await?;
            Ok(Arc::new(described) as Arc<dyn Source>)
        }
        .boxed()
    });
    Arc::new(GrowingSource::new(Arc::new(remote.clone()), reopen))
}

/// Opens a file on a thread for blocking work: a header may be on a slow disk.
async fn open(location: &str, context: &Context, work: &LongWork) -> Result<Arc<dyn Source>> {
    let options = store::OpenOptions {
        side_dir: Some(context.directories.cache.clone()),
        folder: context.folder.clone(),
        on_progress: context.on_progress.clone(),
        scratch: context.scratch.clone(),
        work: work.clone(),
        meaning: context.meaning,
    };
    let location = location.to_owned();
    tokio::task::spawn_blocking(move || store::open(&location, &options))
        .await
        .map_err(|e| Error::internal(format!("the task that opens a file ended early: {e}")))?
}

/// Returns the name of a computed field: `synthetic:waves?shape=...` is called `waves`.
fn synthetic_name(text: &str) -> String {
    let rest = text.strip_prefix("synthetic:").unwrap_or(text);
    rest.split('?').next().unwrap_or(rest).to_owned()
}

/// Returns the servers of a URL as one source: replicas of the same data, or servers of different data sets.
async fn remote(url: &Url, context: &Context) -> Result<(Arc<dyn Source>, Upstream)> {
    let complete = |url: Url| running_servers::complete(&context.directories.runtime, url);
    let urls: Vec<Url> = url.servers().into_iter().map(complete).collect();
    let may_differ = match context.sharing {
        Sharing::Auto => urls.len() > 1 && url.dataset.is_empty(),
        Sharing::Files => true,
        Sharing::Replicated | Sharing::Blocks => false,
    };
    if may_differ {
        let hosts = hosts(&urls, context)?;
        let is_open = context.sharing == Sharing::Auto;
        // A server that cannot be reached now may be a replica of the others, or have data that no other one has.
        let hint = "if all have the same data, name the data set, or use `--rule replicated`";
        let refused = |error: Error| if is_open { error.context(hint) } else { error };
        let found = catalogue::find(&hosts, &url.dataset).await.map_err(refused)?;
        if !is_open || !catalogue::is_one(&hosts, &found).await.map_err(refused)? {
            return open_catalogue(hosts, url.dataset.clone(), found).await;
        }
    }
    let [only] = &urls[..] else { return replicas(urls, context).await };
    match replicas(urls.clone(), context).await {
        Err(error) if error.kind() == ErrorKind::NotFound && url.dataset.is_empty() => {
            catalogue_of(only, context, error).await
        }
        opened => opened,
    }
}

/// Returns all data sets of one server as a catalogue, if there are several, for which the empty name is ambiguous;
/// otherwise the error `refused`.
async fn catalogue_of(url: &Url, context: &Context, refused: Error) -> Result<(Arc<dyn Source>, Upstream)> {
    let hosts = hosts(std::slice::from_ref(url), context)?;
    match catalogue::find(&hosts, "").await? {
        found if found.len() > 1 => open_catalogue(hosts, String::new(), found).await,
        _ => Err(refused),
    }
}

fn hosts(urls: &[Url], context: &Context) -> Result<Vec<CatalogueHost>> {
    let window_bytes = context.budget.receive / urls.len().max(1) as u64;
    let host = |url: &Url| {
        let dialer = Dialer::new(server(url, window_bytes, context)?);
        Ok(CatalogueHost { name: url.authority(), dialer })
    };
    urls.iter().map(host).collect()
}

/// Returns data sets of several servers as a catalogue. A data set on several servers is read from all of them.
async fn open_catalogue(
    hosts: Vec<CatalogueHost>,
    dataset: String,
    found: Vec<FoundDataset>,
) -> Result<(Arc<dyn Source>, Upstream)> {
    let mut entries = Vec::with_capacity(found.len());
    let checks: Vec<_> =
        found.iter().map(|found| catalogue::same_everywhere(&hosts, found).boxed()).collect();
    stream::iter(checks).buffered(MAX_CONCURRENT_COMPARISONS).try_collect::<()>().await?;
    for FoundDataset { name, hosts: holders } in &found {
        let remote = |&number: &usize| RemoteSource::new(hosts[number].dialer.clone(), name.clone());
        let remotes: Vec<RemoteSource> = holders.iter().map(remote).collect();
        let server = |(&number, remote): (&usize, &RemoteSource)| ReplicaServer {
            name: hosts[number].name.clone(),
            source: Arc::new(remote.clone()),
        };
        let servers = Servers::new(holders.iter().zip(&remotes).map(server).collect(), SharingRule::Spread)?;
        entries.push(DatasetServers { name: name.clone(), servers, remotes });
    }
    let entry = |dataset: &DatasetServers| CatalogueEntry {
        name: dataset.name.clone(),
        source: Arc::new(dataset.servers.clone()),
    };
    let catalogue = Catalogue::new(entries.iter().map(entry).collect())?;
    let upstream = CatalogueUpstream { catalogue: catalogue.clone(), entries, hosts, dataset, found };
    Ok((Arc::new(catalogue), Upstream::Catalogue(Arc::new(upstream))))
}

/// Returns servers of the same data as one source; a single server together with its peers.
async fn replicas(mut urls: Vec<Url>, context: &Context) -> Result<(Arc<dyn Source>, Upstream)> {
    let share_of = |servers: usize| context.budget.receive / servers as u64;
    let connect = |url: &Url, window_bytes: u64| -> Result<RemoteSource> {
        Ok(RemoteSource::new(Dialer::new(server(url, window_bytes, context)?), url.dataset.clone()))
    };
    let mut remotes = Vec::with_capacity(urls.len());
    for url in &urls {
        remotes.push(connect(url, share_of(urls.len()))?);
    }
    let mut told = None;
    if let ([only], [named]) = (&remotes[..], &urls[..]) {
        // Requested together, in one round trip.
        let (described, found) = tokio::join!(only.describe(), peers::of(only, CHAIN_TIMEOUT));
        described?;
        let others = found.unwrap_or_default().others(named);
        told = Some(NamedPeers { by: named.clone(), others: others.clone() });
        for peer in others {
            remotes.push(connect(&peer, share_of(MAX_SERVERS))?);
            urls.push(peer);
        }
    }
    if let [only] = &remotes[..] {
        let only = growing(only);
        return Ok((
            only,
            Upstream::Replicated(Arc::new(ReplicatedUpstream { remotes, servers: None, told })),
        ));
    }
    let server = |(url, remote): (&Url, &RemoteSource)| ReplicaServer {
        name: url.public(),
        source: Arc::new(remote.clone()),
    };
    let servers = Servers::new(urls.iter().zip(&remotes).map(server).collect(), context.sharing.rule())?;
    let upstream = ReplicatedUpstream { remotes, servers: Some(servers.clone()), told };
    Ok((Arc::new(servers), Upstream::Replicated(Arc::new(upstream))))
}
