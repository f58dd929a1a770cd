//! Remote data sets behave like local ones.

use std::sync::Arc;

use array::conformance::check_source;
use array::{ErrorKind, Priority, Retry, Selection, Source, Urgency};
use client::dial::{ConnectOptions, Dialer, Endpoint};
use client::remote::RemoteSource;
use client::requests::List;

use crate::common::{Served, local, read};

const WAVES: &str = "synthetic:waves?shape=70,90,110&dtype=u16";

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_source_conforms() {
    let served = Served::start(&[WAVES]).await;
    check_source(Arc::new(RemoteSource::new(served.dialer(), String::new()))).await;
}

/// Tests that all callers that wait for a connection get the error of a single failed attempt.
#[tokio::test]
async fn waiting_callers_share_the_error_of_one_connection_attempt() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut accepting = tokio::task::JoinSet::new();
    accepting.spawn(async move {
        let mut calls = 0;
        while let Ok(Ok(_)) = tokio::time::timeout(std::time::Duration::from_secs(1), listener.accept()).await
        {
            calls += 1;
        }
        calls
    });
    let (trust, token) = (link::Trust::System, String::new());
    let dialer = Dialer::new(Endpoint {
        host: "127.0.0.1".into(),
        port,
        trust,
        token,
        window_bytes: 1 << 20,
        reach: ConnectOptions::default(),
        paths: None,
    });
    let asked = futures::future::join_all((0..20).map(|_| dialer.client())).await;
    assert!(asked.iter().all(|a| a.as_ref().is_err_and(|e| e.kind() == ErrorKind::Unreachable)));
    assert_eq!(accepting.join_next().await.unwrap().unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_stack_with_its_cache_conforms() {
    let served = Served::start(&[WAVES]).await;
    check_source(served.stack().await.source).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn remote_selections_equal_local_ones() {
    let folder = tempfile::tempdir().unwrap();
    let sample = node::demo::sample(folder.path()).unwrap();
    let sample = sample.to_str().unwrap();
    let served = Served::start(&[sample, WAVES]).await;
    for (url, location) in served.urls.iter().zip([sample, WAVES]) {
        let here = local(folder.path(), location).await;
        let there = served.stack_of(url.clone()).await.unwrap();
        let (a, b) = (here.source.describe().await.unwrap(), there.source.describe().await.unwrap());
        assert_eq!(a, b, "descriptions are transferred unchanged");
        for text in ["", "0", "::3, 5:60:7, -1", "10:11, 20:90, 30:31", "0:0", "69, 89, 99"] {
            let selection = Selection::parse(text, a.arrays[0].shape()).unwrap();
            let expect = read(&here.source, 0, selection.clone()).await.unwrap();
            assert_eq!(read(&there.source, 0, selection).await.unwrap(), expect, "{location} [{text}]");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_are_listed_and_other_names_are_not_found() {
    let served = Served::start(&[WAVES, WAVES]).await;
    let list = served.dialer().ask(List, Urgency::of(Priority::NORMAL)).await.unwrap();
    let names: Vec<&str> = list.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["waves", "waves-2"]);
    for name in ["", "other", "../waves", "/etc/passwd"] {
        let source = RemoteSource::new(served.dialer(), name.into());
        assert_eq!(source.describe().await.unwrap_err().kind(), ErrorKind::NotFound, "`{name}`");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_is_stale_until_described_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = node::demo::sample(folder.path()).unwrap();
    let served = Served::start(&[path.to_str().unwrap()]).await;
    let source = RemoteSource::new(served.dialer(), String::new());
    let before = source.describe().await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap().replace("spacings: 1 1 1", "spacings: 2 2 2");
    std::fs::write(&path, text).unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    // Another client describes the data again, so that the description of the first one is out of date.
    let other = RemoteSource::new(served.dialer(), String::new());
    assert_ne!(other.describe().await.unwrap().id, before.id);
    let source: Arc<dyn Source> = Arc::new(source);
    let everything = Selection::all(before.arrays[0].shape());
    let error = read(&source, 0, everything.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale, "{error}");
    assert!(read(&source, 0, everything).await.is_ok(), "after a new description it can be read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_is_unreachable_until_it_restarts() {
    let served = Served::restartable(&[WAVES]).await;
    let source: Arc<dyn Source> = Arc::new(RemoteSource::new(served.dialer(), String::new()));
    let selection = Selection::parse("0:4, 0:4, 0:4", &[70, 90, 110]).unwrap();
    let expect = read(&source, 0, selection.clone()).await.unwrap();
    let url = served.url().clone();
    let Served { folder, mut task, .. } = served;
    task.shutdown().await;
    // Connections of the server end a moment later.
    let error = loop {
        match read(&source, 0, selection.clone()).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert_eq!((error.kind(), error.retry()), (ErrorKind::Unreachable, Retry::MayHelp), "{error}");
    // Restart with the same identity, address and token.
    let mut options = crate::common::options(folder.path(), &[WAVES]);
    options.listen = node::node::Listen::At(url.authority().parse().unwrap());
    let token = server::token::Token::chosen(url.token.as_deref().unwrap()).unwrap();
    options.admission = server::token::Admission::Token(token);
    let shared = node::node::open(&options).await.unwrap();
    let node = node::node::start(&options, shared, node::operations::of_data_server()).await.unwrap();
    let mut task = tokio::task::JoinSet::new();
    task.spawn(node.run());
    assert_eq!(read(&source, 0, selection).await.unwrap(), expect);
}
