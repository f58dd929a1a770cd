//! Several servers of the same data, and servers of servers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use array::conformance::{check_source, fetch};
use array::{BlockKey, Content, ErrorKind, Priority, Result, Selection, Source, Urgency};
use client::directories::UserDirectories;
use client::remote::RemoteSource;
use client::url::Url;
use node::node::{Listen, ServerOptions};
use wire::ops::{BlockPlace, StatsParameters};

use crate::common::{Served, local, read};

const WAVES: &str = "synthetic:waves?shape=70,90,110&dtype=u16";

async fn serve(location: &str, change: impl FnOnce(&mut ServerOptions)) -> Result<Served> {
    Served::with_options(&[location], change).await
}

/// Returns one URL for several servers.
fn joined(servers: &[&Served]) -> Url {
    Url::joined(servers.iter().map(|s| s.url().clone())).expect("the same data set")
}

async fn read_all(source: &Arc<dyn Source>) -> Vec<u8> {
    let described = source.describe().await.expect("a description");
    read(source, 0, Selection::all(described.arrays[0].shape())).await.expect("all elements")
}

#[tokio::test(flavor = "multi_thread")]
async fn several_servers_named_in_one_url_are_one_source() {
    let servers =
        [Served::start(&[WAVES]).await, Served::start(&[WAVES]).await, Served::start(&[WAVES]).await];
    check_source(servers[0].stack_of(joined(&servers.each_ref())).await.unwrap().source).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_continue_when_some_servers_stop() {
    let mut servers =
        vec![Served::start(&[WAVES]).await, Served::start(&[WAVES]).await, Served::start(&[WAVES]).await];
    let url = joined(&servers.iter().collect::<Vec<_>>());
    let folder = tempfile::tempdir().unwrap();
    let expect = read_all(&local(folder.path(), WAVES).await.source).await;
    let last = servers.remove(1);
    let stack = last.stack_of(url).await.unwrap();
    let reading = async {
        for _ in 0..20 {
            assert!(read_all(&stack.source).await == expect, "wrong bytes");
        }
    };
    let ending = async {
        for mut server in servers {
            tokio::time::sleep(Duration::from_millis(20)).await;
            server.task.shutdown().await;
        }
    };
    tokio::join!(reading, ending);
    drop(last);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_url_is_enough_to_read_from_a_server_and_its_peers() {
    let mut peer = Served::start(&[WAVES]).await;
    let other_data = Served::start(&["synthetic:waves?shape=7,9,11&dtype=u16"]).await;
    let told = vec![peer.url().clone(), other_data.url().clone()];
    let mut first = serve(WAVES, |options| options.peers = told).await.unwrap();
    let stack = first.stack().await;
    let expect = read_all(&stack.source).await;
    first.task.shutdown().await;
    assert!(
        read_all(&stack.source).await == expect,
        "the peer has the same data, and the server of other data is left out"
    );
    peer.task.shutdown().await;
    let error = loop {
        match read(&stack.source, 0, Selection::all(&[70, 90, 110])).await {
            // Connections end a moment later.
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    let text = error.to_string();
    assert!(text.contains(&first.url().public()) && text.contains("other data"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_a_restarted_server_names_are_used() {
    let peer = Served::start(&[WAVES]).await;
    let first = Served::restartable(&[WAVES]).await;
    let upstream = first.url().to_string();
    let often = |options: &mut ServerOptions| options.context.ask_again_after = Duration::from_millis(50);
    let middle = serve(&upstream, often).await.unwrap();
    let asked = RemoteSource::new(middle.dialer(), String::new());
    let chain_length = async || client::peers::of(&asked, Duration::from_secs(5)).await.unwrap().chain.len();
    assert_eq!(chain_length().await, 2, "itself and the first server");
    let told = peer.url().clone();
    let mut first = first.restart(&[WAVES], |options| options.peers = vec![told]).await;
    let joined = async {
        while chain_length().await < 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), joined).await.expect("the peer is used too");
    first.task.shutdown().await;
    let expect = read_all(&local(peer.folder.path(), WAVES).await.source).await;
    assert!(read_all(&middle.stack().await.source).await == expect, "the peer has the same data");
}

/// Replaces a file by one of 8 x 8 x 8 elements, all equal to `value`.
fn replace(path: &Path, value: u8) {
    let mut file = b"NRRD0004\ntype: uint8\ndimension: 3\nsizes: 8 8 8\nencoding: raw\n".to_vec();
    // Comments make the sizes of the files differ: two files of equal size may be written within one tick of the clock.
    file.extend(std::iter::repeat_n(&b"#\n"[..], value.into()).flatten());
    file.push(b'\n');
    file.extend([value; 512]);
    let written = path.with_extension("new");
    std::fs::write(&written, file).unwrap();
    std::fs::rename(written, path).unwrap();
}

/// Reads until the data have the new value; meanwhile the only permitted error is `Stale`.
async fn read_until_replaced(value: u8, mut read_once: impl AsyncFnMut() -> Result<Vec<u8>>) {
    let trying = async {
        loop {
            match read_once().await {
                Ok(bytes) if bytes.iter().all(|&b| b == value) => return,
                Ok(bytes) => assert!(bytes.iter().all(|&b| b == bytes[0]), "two states in one answer"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Stale, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), trying).await.expect("the new data");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_file_is_noticed_by_a_server_of_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.nrrd");
    replace(&path, 1);
    let origin = Served::start(&[path.to_str().unwrap()]).await;
    let middle = serve(&origin.url().to_string(), |_| {}).await.unwrap();
    let source = middle.stack().await.source;
    assert_eq!(read_all(&source).await, [1; 512]);
    replace(&path, 2);
    read_until_replaced(2, async || read(&source, 0, Selection::all(&[8, 8, 8])).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_replaced_behind_the_cache_of_a_server_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.nrrd");
    replace(&path, 1);
    let origin = Served::start(&[path.to_str().unwrap()]).await;
    let peer = Served::start(&[path.to_str().unwrap()]).await;
    for url in [origin.url().clone(), joined(&[&origin, &peer])] {
        let often = |options: &mut ServerOptions| options.context.ask_again_after = Duration::from_millis(50);
        let middle = serve(&url.to_string(), often).await.unwrap();
        // A source without a cache.
        let source = RemoteSource::new(middle.dialer(), String::new());
        let first_block = async || {
            let dataset = source.describe().await?;
            let (dataset, generation) = (dataset.id, dataset.generation);
            let key = BlockKey { dataset, generation, array: 0, level: 0, index: 0 };
            let block = fetch(&source, &[key]).await.remove(&key).expect("an answer").result?;
            let Content::Data { bytes, .. } = &block.content else { panic!("not covered") };
            Ok(bytes.to_vec())
        };
        let before = first_block().await.unwrap()[0];
        replace(&path, before + 1);
        read_until_replaced(before + 1, first_block).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_describe_changed_data_after_the_first_server_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.nrrd");
    replace(&path, 1);
    let peer = Served::start(&[path.to_str().unwrap()]).await;
    let told = vec![peer.url().clone()];
    let mut first = serve(path.to_str().unwrap(), |options| options.peers = told).await.unwrap();
    let middle = serve(&first.url().to_string(), |_| {}).await.unwrap();
    let source = middle.stack().await.source;
    assert_eq!(read_all(&source).await, [1; 512]);
    first.task.shutdown().await;
    replace(&path, 2);
    read_until_replaced(2, async || read(&source, 0, Selection::all(&[8, 8, 8])).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_a_server_conforms() {
    let origin = Served::start(&[WAVES]).await;
    let middle = serve(&origin.url().to_string(), |_| {}).await.unwrap();
    let last = serve(&middle.url().to_string(), |_| {}).await.unwrap();
    let stack = last.stack().await;
    let described = stack.source.describe().await.unwrap();
    assert_eq!(
        described,
        origin.stack().await.source.describe().await.unwrap(),
        "the identity of the data is kept"
    );
    check_source(Arc::clone(&stack.source)).await;
    let place = BlockPlace { dataset: described.id, generation: described.generation, array: 0, level: 0 };
    let request = StatsParameters { place, selection: None, bins: 8 };
    let urgency = Urgency::of(Priority::NORMAL);
    let there = stack.stats(&request, urgency, 1 << 20).await.unwrap();
    assert_eq!(there, origin.stack().await.stats(&request, urgency, 1 << 20).await.unwrap());
    let text = last.url().to_string();
    assert!(
        !text.contains(origin.url().token.as_deref().unwrap()),
        "clients do not learn the token of the origin"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cyclic_chain_is_refused() {
    let mut first = Served::restartable(&[WAVES]).await;
    let second = serve(&first.url().to_string(), |_| {}).await.unwrap();
    let third = serve(&second.url().to_string(), |_| {}).await.unwrap();
    // The first server restarts at the same address with data that come from itself.
    let at = first.url().authority().parse().unwrap();
    let upstream = third.url().to_string();
    first.task.shutdown().await;
    let closed = serve(&upstream, |options| {
        options.listen = Listen::At(at);
        // The same folders, and therefore the same certificate.
        options.context.directories = UserDirectories::below(first.folder.path());
    });
    let error = closed.await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("come from this one"), "{error}");
}
