//! Data that are replaced while clients have stored their description, as remote sources do.

use super::*;

/// A server with a stored description, as a remote source has it: dropped after a response that the data have changed.
#[derive(Clone)]
struct StoredDescription {
    server: Simulated,
    described: Arc<Mutex<Option<Arc<Dataset>>>>,
}

impl StoredDescription {
    fn new(server: &Simulated) -> Self {
        Self { server: server.clone(), described: Arc::default() }
    }

    async fn dataset(&self) -> Result<Arc<Dataset>> {
        if let Some(known) = self.described.lock().clone() {
            return Ok(known);
        }
        self.asked().await
    }

    async fn asked(&self) -> Result<Arc<Dataset>> {
        self.server.transfer(0).await?;
        let found = self.server.current().dataset();
        *self.described.lock() = Some(Arc::clone(&found));
        Ok(found)
    }

    /// Reads data in the state of the stored description.
    async fn read_same(&self, request: ReadRequest, into: Region) -> Result<()> {
        let known = self.dataset().await?;
        self.server.transfer(into.size_bytes() as u64).await?;
        let current = self.server.current();
        if known.generation != current.dataset().generation {
            *self.described.lock() = None;
            return Err(Error::new(ErrorKind::Stale, "the data have changed"));
        }
        current.read(request, into).await
    }
}

impl ReplicaSource for StoredDescription {
    fn describe_again(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        let this = self.clone();
        async move { this.asked().await }.boxed()
    }
}

impl Source for StoredDescription {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        let this = self.clone();
        async move { this.dataset().await }.boxed()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        self.server.blocks(wants)
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        let this = self.clone();
        async move { this.read_same(request, into).await }.boxed()
    }
}

fn with_stored_descriptions(servers: &[Simulated]) -> Arc<Servers> {
    let named = servers.iter().enumerate();
    let named = named.map(|(n, s)| ReplicaServer {
        name: format!("server-{n}"),
        source: Arc::new(StoredDescription::new(s)),
    });
    Arc::new(Servers::new(named.collect(), SharingRule::Spread).unwrap())
}

fn two(here: &Arc<MemorySource>) -> [Simulated; 2] {
    [10.0, 10.0].map(|rate| Simulated::new(here, rate * MB, 20))
}

fn is_new(bytes: &[u8]) -> bool {
    bytes.iter().all(|&b| b == 0xEE)
}

#[tokio::test(start_paused = true)]
async fn a_failed_server_does_not_determine_the_data() {
    let here = data(8 << 20);
    let servers = two(&here);
    let group = with_stored_descriptions(&servers);
    read_all(&*group, &here).await;
    servers[0].set(SimulatedMode::Down);
    servers[1].set(SimulatedMode::Changed);
    assert_eq!(read(&*group, "").await.unwrap_err().kind(), ErrorKind::Stale);
    for _ in 0..3 {
        assert!(is_new(&read(&*group, "").await.unwrap()));
        sleep(Duration::from_secs(20)).await;
    }
    // With the old data it is not used; with the data of the other server it is.
    for (mode, away) in [(SimulatedMode::Up, Some(ErrorKind::Stale)), (SimulatedMode::Changed, None)] {
        servers[0].set(mode);
        sleep(Duration::from_secs(21)).await;
        assert_eq!(group.states()[0].away.as_ref().map(Error::kind), away, "{mode:?}");
        assert!(is_new(&read(&*group, "").await.unwrap()));
    }
}

#[tokio::test(start_paused = true)]
async fn new_data_are_used_after_the_last_server_with_the_old_data_has_failed() {
    let here = data(1 << 20);
    for is_many in [false, true] {
        let servers = two(&here);
        let group = with_stored_descriptions(&servers);
        read_all(&*group, &here).await;
        servers[0].set(SimulatedMode::Changed);
        read_all(&*group, &here).await;
        sleep(Duration::from_secs(60)).await;
        assert_eq!(group.states()[0].away.as_ref().map(Error::kind), Some(ErrorKind::Stale));
        servers[1].set(SimulatedMode::Down);
        let end = if is_many { read_one(&group).await } else { read(&*group, "").await.map(drop) };
        assert_eq!(end.unwrap_err().kind(), ErrorKind::Stale);
        assert!(is_new(&read(&*group, "").await.unwrap()));
    }
}

async fn read_one(group: &Arc<Servers>) -> Result<()> {
    read_rows(&**group, 0..1).await.remove(0).1.map(drop)
}

#[tokio::test(start_paused = true)]
async fn other_data_do_not_replace_those_whose_servers_are_not_available() {
    let here = data(1 << 20);
    let servers = two(&here);
    servers[1].set(SimulatedMode::Changed);
    let group = with_stored_descriptions(&servers);
    read_all(&*group, &here).await;
    servers[0].set(SimulatedMode::Down);
    for _ in 0..3 {
        assert_eq!(read(&*group, "").await.unwrap_err().kind(), ErrorKind::Unreachable);
        sleep(Duration::from_secs(20)).await;
    }
    servers[0].set(SimulatedMode::Up);
    sleep(Duration::from_secs(11)).await;
    read_all(&*group, &here).await;
}
