//! Catalogues: servers with different data sets, presented as one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use array::conformance::check_source;
use array::{Error, ErrorKind, Priority, Result, Selection, Source, Urgency};
use bytes::Bytes;
use client::directories::UserDirectories;
use client::peers::{DatasetPeers, MAX_CHAIN, PEERS};
use client::servers::Sharing;
use client::url::{Location, Url};
use node::assemble::assemble;
use node::node::{Listen, ServerOptions};
use node::operations::of_data_server;
use server::connections::Limits;
use server::ops::{BeginOutcome, Handler, OperationCall};
use server::stack::Stack;
use wire::ops::{BlockPlace, StatsParameters, encode_json};

use crate::common::{Served, context, local, read};

/// Number of days in each of the test's years.
const DAYS: u64 = 6;

/// Writes a raw file with the days of one year, and its description; returns the path of the description.
fn year(folder: &Path, number: u64, value: u8) -> String {
    let name = format!("year{number}");
    let bytes: Vec<u8> = (0..DAYS * 8 * 9).map(|i| u8::try_from(i % 200).unwrap() + value).collect();
    std::fs::write(folder.join(format!("{name}.bin")), bytes).unwrap();
    let origin = number * DAYS;
    let description = folder.join(format!("{name}.toml"));
    let text = format!(
        "file = \"{name}.bin\"\nshape = [{DAYS}, 8, 9]\ndtype = \"u1\"\nname = \"t2m\"\naxes = [\n\
         {{ name = \"time\", kind = \"time\", units = \"days since 1990-01-01\", spacing = 1, origin = {origin} }},\n\
         {{ name = \"lat\", kind = \"y\" }},\n{{ name = \"lon\", kind = \"x\" }},\n]\n"
    );
    std::fs::write(&description, text).unwrap();
    description.to_string_lossy().into_owned()
}

/// Returns one URL for several servers, without the name of a data set.
fn joined_url(servers: &[&Served]) -> Url {
    let url = |server: &&Served| Url { dataset: String::new(), ..server.url().clone() };
    Url::joined(servers.iter().map(url)).expect("servers without a data set")
}

async fn open(server: &Served, url: Url, sharing: Sharing) -> Result<Stack> {
    let mut context = context(server.folder.path()).sharing(sharing);
    context.directories.runtime = server.folder.path().join("elsewhere");
    assemble(&Location::Remote(url), &context).await
}

async fn read_all(source: &Arc<dyn Source>, array: u32) -> Result<Vec<u8>> {
    let described = source.describe().await?;
    read(source, array, Selection::all(described.array(array)?.shape())).await
}

/// Reads until a read fails, and returns the error: connections end a moment after their server.
async fn read_until_error(source: &Arc<dyn Source>, array: u32, text: &str) -> Error {
    let described = source.describe().await.unwrap();
    let selection = Selection::parse(text, described.array(array).unwrap().shape()).unwrap();
    loop {
        match read(source, array, selection.clone()).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn years_on_three_servers_are_one_array_and_replicas_replace_a_stopped_server() {
    let folder = tempfile::tempdir().unwrap();
    let years: Vec<String> = (0..4).map(|n| year(folder.path(), n, u8::try_from(n).unwrap())).collect();
    let mut expected = Vec::new();
    for path in &years {
        expected.extend(read_all(&local(folder.path(), path).await.source, 0).await.unwrap());
    }
    let mut first = Served::start(&[&years[2], &years[0]]).await;
    let mut second = Served::start(&[&years[1]]).await;
    let third = Served::start(&[&years[3], &years[0], &years[2]]).await;
    for sharing in [Sharing::Auto, Sharing::Files] {
        let stack = open(&third, joined_url(&[&first, &second, &third]), sharing).await.unwrap();
        let described = stack.source.describe().await.unwrap();
        assert_eq!(described.arrays.len(), 1, "{:?}", described.warnings);
        assert_eq!(
            (described.arrays[0].name.as_str(), described.arrays[0].shape()),
            ("t2m", &[24, 8, 9][..])
        );
        check_source(Arc::clone(&stack.source)).await;
    }
    // A new stack, whose cache is empty.
    let stack = open(&third, joined_url(&[&first, &second, &third]), Sharing::Files).await.unwrap();
    first.task.shutdown().await;
    assert!(
        read_all(&stack.source, 0).await.unwrap() == expected,
        "the third server has copies of the first one's data"
    );
    second.task.shutdown().await;
    let error = read_until_error(&stack.source, 0, "7").await;
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("data set `year1.toml`"), "{error}");
    let states = stack.servers();
    let is_used = |server: &Served, dataset: &str| {
        let (_, state) = states
            .iter()
            .find(|(name, state)| name.as_deref() == Some(dataset) && state.name == server.url().authority())
            .expect("a server of the data set");
        state.away.is_none() && state.delivered_bytes > 0
    };
    assert!(is_used(&third, "year0.toml") && is_used(&third, "year3.toml"), "{states:?}");
    assert!(!is_used(&first, "year0.toml") && !is_used(&second, "year1.toml"), "{states:?}");
    let selection = Selection::parse("18:24", &[24, 8, 9]).unwrap();
    assert_eq!(
        read(&stack.source, 0, selection).await.unwrap(),
        expected[18 * 72..],
        "the other data sets stay readable"
    );
    let refused = open(&third, joined_url(&[&second, &third]), Sharing::Files).await.map(|_| ()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unreachable);
    assert!(refused.to_string().contains("remove it from the URL"), "{refused}");
}

/// Handler that fails on every request.
struct FailingHandler(&'static str);

impl Handler for FailingHandler {
    type Work = ();

    fn name(&self) -> &'static str {
        self.0
    }

    fn begin(&self, _parameters: Bytes) -> Result<BeginOutcome<()>> {
        Err(Error::new(ErrorKind::Unreachable, "its disk is gone"))
    }

    async fn run(&self, (): (), _call: &OperationCall) -> Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incomplete_series_is_never_presented_as_complete() {
    let folder = tempfile::tempdir().unwrap();
    let (early, late) = (year(folder.path(), 0, 0), year(folder.path(), 1, 9));
    let first = Served::start(&[&early]).await;
    let mut gone = Served::start(&[&late]).await;
    gone.task.shutdown().await;
    let mut registry = of_data_server();
    registry.add(FailingHandler("describe"));
    // It lists its data sets, but fails to describe them.
    let broken = Served::with(&[&late], registry, Limits::default()).await;
    for second in [&gone, &broken] {
        for order in [[&first, second], [second, &first]] {
            let error = open(&first, joined_url(&order), Sharing::Auto).await.map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
            for part in [&second.url().authority(), "its data sets are not known", "`--rule replicated`"] {
                assert!(error.to_string().contains(part), "{error}");
            }
        }
    }
    // With `replicated`, the reachable servers suffice.
    let stack = open(&first, joined_url(&[&first, &gone]), Sharing::Replicated).await.unwrap();
    assert_eq!(stack.source.describe().await.unwrap().arrays[0].shape(), [DAYS, 8, 9]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cycle_through_a_catalogue_is_refused() {
    let mut first = Served::restartable(&["synthetic:waves?shape=7,9,11&dtype=u16"]).await;
    let other = Served::start(&["synthetic:noise?shape=5,6,7&dtype=u8"]).await;
    let middle = Served::with_options(&[&joined_url(&[&first, &other]).to_string()], |_| {}).await.unwrap();
    let at = first.url().authority().parse().unwrap();
    let upstream = middle.url().to_string();
    first.task.shutdown().await;
    // The first server restarts at the same address with data that come from itself; the other one still answers.
    let restart = |options: &mut ServerOptions| {
        options.listen = Listen::At(at);
        options.context.directories = UserDirectories::below(first.folder.path());
    };
    let error = Served::with_options(&[&upstream], restart).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("come from this one"), "{error}");
}

/// Handler that reports these servers as the chain through which its data come.
struct ChainHandler(Vec<String>);

impl Handler for ChainHandler {
    type Work = ();

    fn name(&self) -> &'static str {
        PEERS
    }

    fn begin(&self, _parameters: Bytes) -> Result<BeginOutcome<()>> {
        encode_json(&DatasetPeers { peers: Vec::new(), chain: self.0.clone() }).map(BeginOutcome::Answered)
    }

    async fn run(&self, (): (), _call: &OperationCall) -> Result<()> {
        Ok(())
    }
}

/// Starts a server whose data come through servers with these numbers.
async fn serve_with_chain(location: &str, servers: std::ops::Range<usize>) -> Served {
    let mut registry = of_data_server();
    registry.add(ChainHandler(servers.map(|n| format!("server-{n}")).collect()));
    Served::with(&[location], registry, Limits::default()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn new_data_sets_of_a_server_appear_in_servers_of_its_catalogue() {
    let folder = tempfile::tempdir().unwrap();
    let years: Vec<String> = (0..3).map(|n| year(folder.path(), n, u8::try_from(n).unwrap())).collect();
    let first = Served::start(&[&years[0]]).await;
    let second = Served::restartable(&[&years[1]]).await;
    let often = |options: &mut ServerOptions| options.context.ask_again_after = Duration::from_millis(50);
    let middle = Served::with_options(&[&joined_url(&[&first, &second]).to_string()], often).await.unwrap();
    let steps = async || middle.stack().await.source.describe().await.unwrap().arrays[0].shape()[0];
    assert_eq!(steps().await, 2 * DAYS);
    let _second = second.restart(&[&years[1], &years[2]], |_| {}).await;
    let grown = async {
        while steps().await < 3 * DAYS {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), grown).await.expect("the new data set appears");
    let last = read_all(&local(folder.path(), &years[2]).await.source, 0).await.unwrap();
    let found = read_all(&middle.stack().await.source, 0).await.unwrap();
    assert_eq!(found[found.len() - last.len()..], last);
}

#[tokio::test(flavor = "multi_thread")]
async fn length_of_chains_is_limited_for_catalogues_too() {
    let half = MAX_CHAIN / 2;
    let (waves, noise) = ("synthetic:waves?shape=7,9,11&dtype=u16", "synthetic:noise?shape=5,6,7&dtype=u8");
    let cases = [
        (vec![serve_with_chain(waves, 0..MAX_CHAIN - 1).await], true),
        (vec![serve_with_chain(waves, 0..MAX_CHAIN).await], false),
        (vec![serve_with_chain(waves, 0..half).await, serve_with_chain(noise, half..MAX_CHAIN).await], false),
        // Servers in both chains count once.
        (vec![serve_with_chain(waves, 0..half + 9).await, serve_with_chain(noise, 9..half + 9).await], true),
    ];
    for (number, (servers, is_allowed)) in cases.iter().enumerate() {
        let url = joined_url(&servers.iter().collect::<Vec<_>>());
        let served = Served::with_options(&[&url.to_string()], |_| {}).await.map(|_| ());
        assert_eq!(served.is_ok(), *is_allowed, "case {number}: {served:?}");
        if let Err(error) = served {
            assert!(error.to_string().contains("at most 64 servers"), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalogue_of_several_servers_can_be_served_again() {
    let servers = [
        Served::start(&["synthetic:waves?shape=7,9,11&dtype=u16"]).await,
        Served::start(&["synthetic:noise?shape=5,6,7&dtype=u8"]).await,
    ];
    let url = joined_url(&servers.each_ref());
    let middle = Served::with_options(&[&url.to_string()], |_| {}).await.unwrap();
    for stack in [open(&servers[0], url, Sharing::Auto).await.unwrap(), middle.stack().await] {
        let described = stack.source.describe().await.unwrap();
        let names: Vec<&str> = described.arrays.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(names, ["noise/noise", "waves/waves"]);
        let place =
            |array| BlockPlace { dataset: described.id, generation: described.generation, array, level: 0 };
        for (array, server) in [(1, &servers[0]), (0, &servers[1])] {
            let request = StatsParameters { place: place(array), selection: None, bins: 8 };
            let urgency = Urgency::of(Priority::NORMAL);
            let found = stack.stats(&request, urgency, 1 << 20).await.unwrap();
            let there = server.stack().await.source.describe().await.unwrap();
            let there = BlockPlace { dataset: there.id, generation: there.generation, ..place(0) };
            let request = StatsParameters { place: there, ..request };
            assert_eq!(found, server.stack().await.stats(&request, urgency, 1 << 20).await.unwrap());
            let there = read_all(&server.stack().await.source, 0).await.unwrap();
            assert_eq!(read_all(&stack.source, array).await.unwrap(), there);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn error_names_the_servers_that_disagree_about_a_data_set() {
    let servers = [
        Served::start(&["synthetic:waves?shape=7,9,11&dtype=u16"]).await,
        Served::start(&["synthetic:waves?shape=7,9,12&dtype=u16"]).await,
    ];
    for sharing in [Sharing::Auto, Sharing::Files] {
        let error =
            open(&servers[0], joined_url(&servers.each_ref()), sharing).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        for server in &servers {
            assert!(error.to_string().contains(&server.url().authority()), "{error}");
        }
    }
    let missing = Url { dataset: "none".into(), ..servers[0].url().clone() };
    let error = open(&servers[0], missing, Sharing::Files).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_blocks_reads_each_block_from_one_of_its_two_servers() {
    let waves = "synthetic:waves?shape=90,200,200&dtype=u16";
    let mut servers =
        [Served::start(&[waves]).await, Served::start(&[waves]).await, Served::start(&[waves]).await];
    let url = Url::joined(servers.iter().map(|s| s.url().clone())).unwrap();
    let stack = open(&servers[0], url, Sharing::Blocks).await.unwrap();
    let expected = read_all(&local(servers[0].folder.path(), waves).await.source, 0).await.unwrap();
    assert!(read_all(&stack.source, 0).await.unwrap() == expected);
    servers[1].task.shutdown().await;
    assert!(read_all(&stack.source, 0).await.unwrap() == expected, "each block is assigned to two servers");
}
