//! Participation of a program in a viewing session: joins as a page does, by the operation `join`.
//!
//! It keeps the state that the node sends: the own view, the participants, and the shared content. Pictures are
//! confirmed and dropped, so the node draws few.

use array::{Error, ErrorKind, Priority, Result, Urgency};
use client::directories::UserDirectories;
use client::running_servers;
use client::url::Url;
use link::{ClientHandle, OpStream, Trust};
use serde_json::{Map, Value, json};
use session::{
    ContentReceiver, Item, JoinParams, MIN_PICTURE_SIDE, ParticipantId, ParticipantInfo, ParticipantNote,
    PointerPlace, Role, Severity, SharedEdit, SharedUpdate, ViewChange,
};
use tokio::task::JoinSet;
use wire::{ClientConfig, ops};

/// Largest shared content that is accepted, bytes; the bounds of its parts give about 6 MiB.
const MAX_CONTENT_BYTES: u64 = 32 << 20;
/// Step of the numbers of own changes: the node numbers its changes by one in between.
const SEQ_STEP: u64 = 1024;

/// Address of a session: a link of the viewer's page, or `corridor://`.
#[derive(Clone, Debug)]
pub struct SessionAddress {
    url: Url,
    trust: Trust,
}

impl SessionAddress {
    /// Parses a link. `fingerprint` is that of a self-signed certificate, if the link has none; `directories` are
    /// those in which servers of this user leave their records.
    ///
    /// # Errors
    /// `Invalid` for anything else than a link to a viewing node without a path.
    pub fn parse(link: &str, fingerprint: Option<&str>, directories: &UserDirectories) -> Result<Self> {
        let (scheme, rest) = link.split_once("://").unwrap_or(("", link));
        let default_port = match scheme {
            "http" => Some(80),
            "https" => Some(443),
            "corridor" => None,
            _ => return Err(Error::invalid("expected a link such as `http://127.0.0.1:26775/#token=...`")),
        };
        let (place, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let authority = place.trim_end_matches('/');
        if authority.contains('/') || authority.contains('?') {
            return Err(Error::unsupported(
                "expected a link to the node itself, found one with a path, as of a proxy; use the node's own address",
            ));
        }
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let port = default_port.filter(|_| !has_port).map_or_else(String::new, |port| format!(":{port}"));
        let url: Url = format!("corridor://{authority}{port}/#{fragment}").parse()?;
        let url = running_servers::complete(&directories.runtime, url);
        let fingerprint = fingerprint.or(url.fingerprint.as_deref());
        let trust = match (scheme, fingerprint) {
            ("http", _) => Trust::Plain,
            (_, Some(text)) => Trust::Fingerprint(text.parse()?),
            (_, None) => Trust::System,
        };
        Ok(Self { url, trust })
    }
}

/// Change of the session that a program may wait for.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionNews {
    /// The own view was changed by the node, or by the leader.
    View,
    /// The list of participants changed.
    Participants,
    /// The shared content changed.
    Content,
    /// A picture of the own view was drawn; [`SessionClient::drawn`] is its view.
    Drawn,
    /// Message for the user; true if it is a warning or an error.
    Message(String, bool),
}

/// Program that takes part in a session, until it is dropped.
pub struct SessionClient {
    stream: OpStream,
    _client: ClientHandle,
    _driving: JoinSet<()>,
    you: ParticipantId,
    role: Role,
    view: Map<String, Value>,
    /// Own changes that the node may not have.
    changing: Map<String, Value>,
    seq: u64,
    edits: u64,
    heard: u64,
    drawn: u64,
    participants: Vec<ParticipantInfo>,
    content: ContentReceiver,
}

impl SessionClient {
    /// Joins under a name, and waits until the state of the session has arrived.
    ///
    /// # Errors
    /// Those of connecting; `Denied` without the right token.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the session.
    pub async fn join(address: &SessionAddress, name: &str) -> Result<Self> {
        let SessionAddress { url, trust } = address;
        let link = link::carrier::ws::connect(&url.host, url.port, trust).await?;
        let token = url.token.clone().unwrap_or_default();
        let (client, driver) = link::connect(link, ClientConfig { token, ..ClientConfig::default() })?;
        let mut driving = JoinSet::new();
        driving.spawn(driver);
        let join = JoinParams {
            session: String::new(),
            name: name.to_owned(),
            width: MIN_PICTURE_SIDE,
            height: MIN_PICTURE_SIDE,
            resume: String::new(),
        };
        let urgency = Urgency::of(Priority::INTERACTIVE);
        let stream = client.request(ops::JOIN, ops::encode_json(&join)?, urgency).await?;
        let mut joined = Self {
            stream: stream.with_bulk_up_to(MAX_CONTENT_BYTES),
            _client: client,
            _driving: driving,
            you: ParticipantId(0),
            role: Role::Watch,
            view: Map::new(),
            changing: Map::new(),
            seq: 0,
            edits: 0,
            heard: 0,
            drawn: 0,
            participants: Vec::new(),
            content: ContentReceiver::default(),
        };
        while joined.you.0 == 0 || joined.participants.is_empty() || joined.content.content().is_none() {
            joined.next().await?;
        }
        Ok(joined)
    }

    /// Waits for the next change.
    ///
    /// # Errors
    /// The error that ended the session.
    ///
    /// # Cancel safety
    /// Safe: no change is lost.
    pub async fn next(&mut self) -> Result<SessionNews> {
        loop {
            let ended = || Error::new(ErrorKind::Unreachable, "the session has ended");
            let item = self.stream.next_item().await.ok_or_else(ended)??;
            // Items of a later version are ignored.
            let Ok(news) = serde_json::from_slice::<Item>(&item.body) else { continue };
            if let Some(news) = self.take(news, &item.bulk)? {
                return Ok(news);
            }
        }
    }

    fn take(&mut self, item: Item, bulk: &[u8]) -> Result<Option<SessionNews>> {
        Ok(Some(match item {
            Item::Joined { you, role, view, seq, edits, .. } => {
                (self.you, self.role, self.seq, self.edits) = (you, role, seq, edits);
                self.view = fields(&view);
                SessionNews::View
            }
            Item::View { seq, view } => {
                self.view = fields(&view);
                if seq < self.seq {
                    // The node sent it before it had the last change.
                    self.view.extend(self.changing.clone());
                } else {
                    self.seq = seq;
                    self.changing.clear();
                }
                SessionNews::View
            }
            Item::Participants { list } => {
                self.participants = list;
                SessionNews::Participants
            }
            Item::Shared { rev, heard } => {
                self.heard = self.heard.max(heard);
                if self.content.receive(rev, SharedUpdate::parse(bulk)?).is_err() {
                    self.note(&ParticipantNote::Resend)?;
                }
                SessionNews::Content
            }
            Item::Frame(frame) => {
                self.note(&ParticipantNote::Shown { frame: frame.id })?;
                self.drawn = self.drawn.max(frame.seq);
                if self.drawn >= self.seq {
                    self.changing.clear();
                }
                SessionNews::Drawn
            }
            Item::Following { text, .. } if !text.is_empty() => SessionNews::Message(text, false),
            Item::Message { severity, text } => SessionNews::Message(text, severity != Severity::Info),
            _ => return Ok(None),
        }))
    }

    /// Returns the own view, which is that of the leader while this participant follows somebody, as JSON.
    #[must_use]
    pub fn view(&self) -> &Map<String, Value> {
        &self.view
    }

    /// Returns the participants, in order of arrival.
    #[must_use]
    pub fn participants(&self) -> &[ParticipantInfo] {
        &self.participants
    }

    /// Returns the own number and role.
    #[must_use]
    pub fn own(&self) -> (ParticipantId, Role) {
        let listed = self.participants.iter().find(|person| person.id == self.you);
        (self.you, listed.map_or(self.role, |person| person.role))
    }

    /// Returns the participant whose view is shown; `None` for the own one.
    #[must_use]
    pub fn leader(&self) -> Option<ParticipantId> {
        self.participants.iter().find(|person| person.id == self.you)?.follows
    }

    /// Returns the number of the newest view of which a picture was drawn: the node has accepted that change, or has
    /// refused it and reported that before.
    #[must_use]
    pub fn drawn(&self) -> u64 {
        self.drawn
    }

    /// Returns whether this participant presents.
    #[must_use]
    pub fn presents(&self) -> bool {
        self.participants.iter().any(|person| person.id == self.you && person.presents)
    }

    /// Returns whether somebody else presents.
    #[must_use]
    pub fn is_presentation_of_others(&self) -> bool {
        self.participants.iter().any(|person| person.id != self.you && person.presents)
    }

    /// Returns whether the node has answered all own edits.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.heard >= self.edits
    }

    /// Returns the notes of the session, as JSON.
    ///
    /// # Errors
    /// `Internal` if they cannot be serialized, which does not happen.
    pub fn notes(&self) -> Result<Value> {
        let notes = self.content.content().map(|content| &content.notes);
        serde_json::to_value(notes).map_err(|e| Error::internal(format!("notes in JSON: {e}")))
    }

    /// Starts presenting the own view to all.
    ///
    /// # Errors
    /// `Denied` for participants who only watch, and those of sending.
    pub fn present(&self) -> Result<()> {
        if !self.own().1.may_steer() {
            return Err(Error::new(
                ErrorKind::Denied,
                "this link only allows watching; use one for the role `steer`",
            ));
        }
        self.note(&ParticipantNote::Present { presenter: Some(self.you) })
    }

    /// Ends presenting.
    ///
    /// # Errors
    /// Those of sending.
    pub fn end_presenting(&self) -> Result<()> {
        self.note(&ParticipantNote::Present { presenter: None })
    }

    /// Changes fields of the own view; returns the number of the change.
    ///
    /// # Errors
    /// Those of sending; a view that does not fit the data is reported by a [`SessionNews::Message`].
    pub fn change(&mut self, view: Map<String, Value>) -> Result<u64> {
        self.seq += SEQ_STEP;
        // As the node does; it sends the view again if it refuses the change.
        self.view.extend(view.clone());
        self.changing.extend(view.clone());
        self.note(&ParticipantNote::View(ViewChange { seq: self.seq, view, ..ViewChange::default() }))?;
        Ok(self.seq)
    }

    /// Follows a participant by name; without one the presenter, or the first other who may change the view.
    ///
    /// # Errors
    /// `NotFound` if there is none, and those of sending.
    pub fn follow(&self, name: Option<&str>) -> Result<()> {
        let leader = match name {
            Some(name) => Some(self.other(name)?),
            None => self
                .others()
                .find(|person| person.presents)
                .or_else(|| self.others().find(|person| person.role.may_steer())),
        };
        let leader = leader.ok_or_else(|| Error::not_found("nobody else is in the session"))?;
        self.note(&ParticipantNote::Follow { leader: Some(leader.id) })
    }

    /// Ends following, and returns to an own view.
    ///
    /// # Errors
    /// Those of sending.
    pub fn stop_following(&self) -> Result<()> {
        self.note(&ParticipantNote::Follow { leader: None })
    }

    /// Hands presenting over to another participant by name.
    ///
    /// # Errors
    /// `NotFound` if there is none, and those of sending; the node's refusal is a [`SessionNews::Message`].
    pub fn hand_over(&self, name: &str) -> Result<()> {
        self.note(&ParticipantNote::Present { presenter: Some(self.other(name)?.id) })
    }

    /// Removes another participant by name; for owners.
    ///
    /// # Errors
    /// `NotFound` if there is none, and those of sending; the node's refusal is a [`SessionNews::Message`].
    pub fn remove(&self, name: &str) -> Result<()> {
        self.note(&ParticipantNote::Remove { who: self.other(name)?.id })
    }

    fn others(&self) -> impl Iterator<Item = &ParticipantInfo> {
        self.participants.iter().filter(|person| person.id != self.you)
    }

    fn other(&self, name: &str) -> Result<&ParticipantInfo> {
        let names =
            || self.others().map(|person| format!("`{}`", person.name)).collect::<Vec<_>>().join(", ");
        self.others()
            .find(|person| person.name == name)
            .ok_or_else(|| Error::not_found(format!("nobody is called `{name}`; there are: {}", names())))
    }

    /// Shows the pointer at a place in world space; `None` hides it.
    ///
    /// # Errors
    /// Those of sending.
    pub fn point(&self, place: Option<[f64; 3]>, laser: bool) -> Result<()> {
        self.note(&ParticipantNote::Pointer { at: place.map(PointerPlace::World), laser })
    }

    /// Adds a note in the own view, optionally at a place in world space; [`is_heard`](Self::is_heard) tells when the
    /// node has answered.
    ///
    /// # Errors
    /// Those of sending.
    pub fn add_note(&mut self, text: &str, place: Option<[f64; 3]>) -> Result<()> {
        self.edits += 1;
        let view = self.view.clone();
        self.note(&ParticipantNote::Edit {
            seq: self.edits,
            edit: SharedEdit::AddNote { text: text.to_owned(), place, view },
        })
    }

    fn note(&self, note: &ParticipantNote) -> Result<()> {
        self.stream.note(ops::encode_json(note)?)
    }
}

/// Returns a view as JSON.
fn fields(view: &view::View) -> Map<String, Value> {
    match json!(view) {
        Value::Object(fields) => fields,
        // A view is always a JSON object.
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_the_page_are_addresses() {
        let folder = tempfile::tempdir().unwrap();
        let directories = UserDirectories::below(folder.path());
        let parse =
            |link: &str, fingerprint: Option<&str>| SessionAddress::parse(link, fingerprint, &directories);
        let page = parse("http://127.0.0.1:26775/#token=a%2Bb&view=e30", None).unwrap();
        assert_eq!((page.url.host.as_str(), page.url.port), ("127.0.0.1", 26775));
        assert_eq!(page.url.token.as_deref(), Some("a+b"));
        assert!(matches!(page.trust, Trust::Plain));
        let site = parse("https://viz.example.org/#token=x", None).unwrap();
        assert!(site.url.port == 443 && matches!(site.trust, Trust::System));
        let digits = format!("sha256:{}", "0".repeat(64));
        let pinned = parse("https://[::1]:9/", Some(&digits)).unwrap();
        assert!(pinned.url.host == "::1" && matches!(pinned.trust, Trust::Fingerprint(_)));
        for bad in ["", "ftp://a/", "https://viz.example.org/run42/#token=x", "a"] {
            assert!(parse(bad, None).is_err(), "{bad}");
        }
    }
}
