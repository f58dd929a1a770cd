//! A remote data set is the same as a local one.

use std::sync::Arc;

use array::conformance::check_source;
use array::{ErrorKind, Priority, Retry, Selection, Source, Urgency};
use client::dial::{ConnectOptions, Dialer, Endpoint};
use client::remote::RemoteSource;
use client::requests::List;

use crate::common::{Served, local, read};

const WAVES: &str = "synthetic:waves?shape=70,90,110&dtype=u16";

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_source_keeps_every_promise_of_a_source() {
    let served = Served::start(&[WAVES]).await;
    check_source(Arc::new(RemoteSource::new(served.dialer(), String::new()))).await;
}

/// During an outage everybody hears of it after one attempt, not one after the other.
#[tokio::test]
async fn many_who_wait_share_one_attempt_in_vain() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut hangs_up = tokio::task::JoinSet::new();
    hangs_up.spawn(async move {
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
    assert_eq!(hangs_up.join_next().await.unwrap().unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_stack_with_its_cache_keeps_them_too() {
    let served = Served::start(&[WAVES]).await;
    check_source(served.stack().await.source).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn selections_read_from_afar_equal_those_read_here() {
    let folder = tempfile::tempdir().unwrap();
    let sample = node::demo::sample(folder.path()).unwrap();
    let sample = sample.to_str().unwrap();
    let served = Served::start(&[sample, WAVES]).await;
    for (url, location) in served.urls.iter().zip([sample, WAVES]) {
        let here = local(folder.path(), location).await;
        let there = served.stack_of(url.clone()).await.unwrap();
        let (a, b) = (here.source.describe().await.unwrap(), there.source.describe().await.unwrap());
        assert_eq!(a, b, "descriptions cross the wire unchanged");
        for text in ["", "0", "::3, 5:60:7, -1", "10:11, 20:90, 30:31", "0:0", "69, 89, 99"] {
            let selection = Selection::parse(text, a.arrays[0].shape()).unwrap();
            let expect = read(&here.source, 0, selection.clone()).await.unwrap();
            assert_eq!(read(&there.source, 0, selection).await.unwrap(), expect, "{location} [{text}]");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_are_listed_by_name_and_others_do_not_exist() {
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
async fn a_changed_file_is_stale_and_then_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = node::demo::sample(folder.path()).unwrap();
    let served = Served::start(&[path.to_str().unwrap()]).await;
    let source = RemoteSource::new(served.dialer(), String::new());
    let before = source.describe().await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap().replace("spacings: 1 1 1", "spacings: 2 2 2");
    std::fs::write(&path, text).unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    // Somebody else describes it anew; our old description is now of something that is gone.
    let other = RemoteSource::new(served.dialer(), String::new());
    assert_ne!(other.describe().await.unwrap().id, before.id);
    let source: Arc<dyn Source> = Arc::new(source);
    let everything = Selection::all(before.arrays[0].shape());
    let error = read(&source, 0, everything.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale, "{error}");
    assert!(read(&source, 0, everything).await.is_ok(), "described again, it can be read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_went_away_is_unreachable_and_found_again() {
    let served = Served::to_be_restarted(&[WAVES]).await;
    let source: Arc<dyn Source> = Arc::new(RemoteSource::new(served.dialer(), String::new()));
    let selection = Selection::parse("0:4, 0:4, 0:4", &[70, 90, 110]).unwrap();
    let expect = read(&source, 0, selection.clone()).await.unwrap();
    let url = served.url().clone();
    let Served { folder, mut task, .. } = served;
    task.shutdown().await;
    // Its connections end a moment later.
    let error = loop {
        match read(&source, 0, selection.clone()).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert_eq!((error.kind(), error.retry()), (ErrorKind::Unreachable, Retry::MayHelp), "{error}");
    // The same identity, address and token again.
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
