//! People together, over real connections: guests with their roles, presenting, notes, and what guests cannot do.

use std::sync::Arc;
use std::time::Duration;

use array::{ErrorKind, Priority, Urgency};
use client::directories::UserDirectories;
use link::Trust;
use node::take_part::{SessionAddress, SessionClient, SessionNews};
use serde_json::{Map, Value, json};
use server::guests::{Guest, GuestRole, Guests};
use server::token::{Admission, Token};
use tokio::task::JoinSet;
use wire::{ClientConfig, ops};

use crate::common::options;

struct Node {
    links: Vec<String>,
    port: u16,
    watch_token: String,
    folder: tempfile::TempDir,
    _running: JoinSet<()>,
}

async fn viewing_node() -> Node {
    let folder = tempfile::tempdir().unwrap();
    let sample = node::demo::sample(folder.path()).unwrap();
    let mut options = options(folder.path(), &[sample.to_str().unwrap()]);
    let guest = |role| Guest { token: Token::random().unwrap(), role };
    let guests = vec![guest(GuestRole::Steer), guest(GuestRole::Watch)];
    let watch_token = guests[1].token.secret().to_owned();
    options.admission = Admission::TokenAndGuests(Token::random().unwrap(), Arc::new(Guests::new(guests)));
    let viewer = node::view::start(&options, None, stream::DrawDevice::Cpu, None).await.unwrap();
    let mut links = vec![viewer.page()];
    links.extend(viewer.invitations().into_iter().map(|(_, link)| link));
    let port = viewer.address.port();
    let mut running = JoinSet::new();
    running.spawn(viewer.run());
    Node { links, port, watch_token, folder, _running: running }
}

impl Node {
    fn address(&self, link: usize) -> SessionAddress {
        let directories = UserDirectories::below(self.folder.path());
        SessionAddress::parse(&self.links[link], None, &directories).unwrap()
    }

    async fn join(&self, link: usize, name: &str) -> SessionClient {
        SessionClient::join(&self.address(link), name).await.unwrap()
    }

    /// Returns the reason why nobody can join with a link.
    async fn refusal(&self, link: usize) -> array::Error {
        SessionClient::join(&self.address(link), "Bob").await.err().expect("the link is refused")
    }
}

fn fields(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else { unreachable!() };
    fields
}

/// Waits until the state is as expected.
async fn until(client: &mut SessionClient, what: &str, is_so: impl Fn(&SessionClient) -> bool) {
    let waiting = async {
        while !is_so(client) {
            client.next().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .unwrap_or_else(|_| panic!("{what} did not happen"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_presenter_is_seen_by_guests_and_notes_reach_late_joiners() {
    let node = viewing_node().await;
    let mut ada = node.join(0, "Ada").await;
    let mut bob = node.join(1, "Bob").await;
    let mut eve = node.join(2, "Eve").await;
    ada.present().unwrap();
    until(&mut ada, "presenting", SessionClient::presents).await;
    ada.change(fields(json!({"background": [1, 2, 3]}))).unwrap();
    let sees = |client: &SessionClient| client.view()["background"] == json!([1, 2, 3]);
    until(&mut bob, "Bob sees the presented view", sees).await;
    until(&mut eve, "Eve sees the presented view", sees).await;
    assert!(bob.is_presentation_of_others() && eve.present().is_err());

    bob.add_note("a crack", Some([1.0, 2.0, 3.0])).unwrap();
    until(&mut bob, "the note is accepted", SessionClient::is_heard).await;
    let late = node.join(2, "Late").await;
    let notes = late.notes().unwrap();
    assert_eq!(notes[0]["text"], "a crack");
    assert_eq!((&notes[0]["author"]["name"], &notes[0]["place"]), (&json!("Bob"), &json!([1.0, 2.0, 3.0])));
    assert!(sees(&late), "a late joiner follows the presenter");

    eve.add_note("not allowed", None).unwrap();
    let refusal = async {
        loop {
            if let SessionNews::Message(text, true) = eve.next().await.unwrap() {
                return text;
            }
        }
    };
    let text = tokio::time::timeout(Duration::from_secs(60), refusal).await.unwrap();
    assert!(text.contains("you are watching"), "{text}");
    assert_eq!(eve.notes().unwrap().as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_who_was_removed_cannot_come_back_and_the_others_stay() {
    let node = viewing_node().await;
    let mut ada = node.join(0, "Ada").await;
    let mut bob = node.join(1, "Bob").await;
    let mut dan = node.join(1, "Dan").await;
    until(&mut ada, "all are there", |ada| ada.participants().len() == 3).await;
    ada.remove("Bob").unwrap();
    let ended = async {
        loop {
            if let Err(error) = bob.next().await {
                return error;
            }
        }
    };
    let error = tokio::time::timeout(Duration::from_secs(60), ended).await.unwrap();
    assert!(error.kind() == ErrorKind::Denied && error.to_string().contains("Ada removed you"), "{error}");
    until(&mut ada, "Bob is gone", |ada| ada.participants().len() == 2).await;
    assert_eq!(node.refusal(1).await.kind(), ErrorKind::Denied, "the link is replaced");
    dan.add_note("still here", None).unwrap();
    until(&mut dan, "Dan's note is accepted", SessionClient::is_heard).await;
    let watcher = node.join(2, "Eve").await;
    assert_eq!(watcher.notes().unwrap()[0]["text"], "still here", "another link stays valid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_can_describe_the_data_but_not_read_them() {
    let node = viewing_node().await;
    let link = link::carrier::ws::connect("127.0.0.1", node.port, &Trust::Plain).await.unwrap();
    let token = node.watch_token.clone();
    let (client, driver) = link::connect(link, ClientConfig { token, ..ClientConfig::default() }).unwrap();
    let mut running = JoinSet::new();
    running.spawn(driver);
    let ask = async |name: &str, parameters: bytes::Bytes| {
        let urgency = Urgency::of(Priority::INTERACTIVE);
        client.request(name, parameters, urgency).await.unwrap().only_item().await
    };
    let describe = ops::DescribeParameters { name: String::new() }.encode();
    assert!(ask(ops::DESCRIBE, describe).await.is_ok());
    for name in [ops::READ, ops::READ_BLOCK, ops::INTERPRET, ops::PROBE, "anything"] {
        let error = ask(name, bytes::Bytes::new()).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{name}: {error}");
    }
}
