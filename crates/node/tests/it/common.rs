//! Servers for tests, each with temporary folders of its own.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use array::{ErrorKind, Priority, ReadRequest, Result, Selection, Source, Target};
use client::dial::{Dialer, Endpoint};
use client::directories::UserDirectories;
use client::url::{Location, Url};
use node::assemble::{Context, assemble};
use node::memory::MemoryBudget;
use node::node::{Listen, ServerOptions};
use node::operations::of_data_server;
use server::connections::Limits;
use server::identity::IdentityChoice;
use server::ops::OperationRegistry;
use server::public_address::ReverseProxy;
use server::stack::Stack;
use server::token::{Admission, Token};
use tempfile::TempDir;
use tokio::task::JoinSet;

/// Memory budget of each node in these tests, in bytes.
pub(crate) const MEMORY_BYTES: u64 = 128 << 20;

pub(crate) fn context(folder: &Path) -> Context {
    Context::new(UserDirectories::below(folder), MemoryBudget::viewing(MEMORY_BYTES), None)
}

pub(crate) fn options(folder: &Path, locations: &[&str]) -> ServerOptions {
    ServerOptions {
        locations: locations.iter().map(|l| l.parse().unwrap()).collect(),
        listen: Listen::At("127.0.0.1:0".parse().unwrap()),
        admission: Admission::Token(Token::random().unwrap()),
        identity: IdentityChoice::Own,
        names: Vec::new(),
        proxies: ReverseProxy::default(),
        explores_folders: false,
        context: context(folder),
        peers: Vec::new(),
        waiting_clients: Vec::new(),
        most_bytes_per_sec: None,
    }
}

/// A running data server; stopped when dropped.
pub(crate) struct Served {
    pub(crate) folder: TempDir,
    pub(crate) urls: Vec<Url>,
    pub(crate) task: JoinSet<()>,
}

impl Served {
    pub(crate) async fn start(locations: &[&str]) -> Self {
        Self::with_limits(locations, Limits::default()).await
    }

    pub(crate) async fn with_limits(locations: &[&str], limits: Limits) -> Self {
        Self::with(locations, of_data_server(), limits).await
    }

    pub(crate) async fn with(locations: &[&str], registry: OperationRegistry, limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), locations);
        Self::run(folder, &options, registry, limits).await.unwrap()
    }

    /// Starts a data server with options that `change` has modified.
    pub(crate) async fn with_options(
        locations: &[&str],
        change: impl FnOnce(&mut ServerOptions),
    ) -> Result<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(folder.path(), locations);
        change(&mut options);
        Self::run(folder, &options, of_data_server(), Limits::default()).await
    }

    /// Starts a server that can be restarted: it has a loopback address of its own, so that no other test takes its
    /// port meanwhile.
    pub(crate) async fn restartable(locations: &[&str]) -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        let own = Ipv4Addr::new(127, 1, 0, NEXT.fetch_add(1, Ordering::Relaxed));
        Self::with_options(locations, |options| options.listen = Listen::At((own, 0).into())).await.unwrap()
    }

    /// Restarts a server made by `restartable` with the same identity, address and token, and with other data or
    /// options.
    pub(crate) async fn restart(self, locations: &[&str], change: impl FnOnce(&mut ServerOptions)) -> Self {
        let url = self.url().clone();
        let Self { folder, mut task, .. } = self;
        task.shutdown().await;
        let mut options = options(folder.path(), locations);
        options.listen = Listen::At(url.authority().parse().unwrap());
        options.admission = Admission::Token(Token::chosen(url.token.as_deref().unwrap()).unwrap());
        change(&mut options);
        Self::run(folder, &options, of_data_server(), Limits::default()).await.unwrap()
    }

    async fn run(
        folder: TempDir,
        options: &ServerOptions,
        registry: OperationRegistry,
        limits: Limits,
    ) -> Result<Self> {
        let shared = node::node::open(options).await?;
        // The sockets of a server that has just stopped may close a moment later.
        let mut attempts = 0;
        let node = loop {
            match node::node::start(options, shared.clone(), registry.clone()).await {
                Err(error) if error.kind() == ErrorKind::Io && attempts < 100 => {
                    attempts += 1;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                node => break node?,
            }
        };
        let urls = node.exports().all().iter().map(|e| node.url(&e.name)).collect();
        let mut task = JoinSet::new();
        task.spawn(node.with_limits(limits).run());
        Ok(Self { folder, urls, task })
    }

    pub(crate) fn url(&self) -> &Url {
        &self.urls[0]
    }

    /// Opens the first export as a client on another host does: without the records of running servers.
    pub(crate) async fn stack(&self) -> Stack {
        self.stack_of(self.url().clone()).await.unwrap()
    }

    pub(crate) async fn stack_of(&self, url: Url) -> Result<Stack> {
        let mut context = context(self.folder.path());
        context.directories.runtime = self.folder.path().join("elsewhere");
        assemble(&Location::Remote(url), &context).await
    }

    pub(crate) fn dialer(&self) -> Dialer {
        Dialer::new(Endpoint::of(self.url(), 16 << 20).unwrap())
    }
}

/// Builds the stack of a location in this process.
pub(crate) async fn local(folder: &Path, location: &str) -> Stack {
    assemble(&location.parse().unwrap(), &context(folder)).await.unwrap()
}

pub(crate) async fn read(source: &Arc<dyn Source>, array: u32, selection: Selection) -> Result<Vec<u8>> {
    let item = source.describe().await?.array(array)?.dtype.size_bytes();
    let (target, region) = Target::new(&selection.shape(), item)?;
    source.read(ReadRequest { array, level: 0, selection, priority: Priority::NORMAL }, region).await?;
    target.into_vec()
}
