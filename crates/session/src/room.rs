//! Room of a session: its participants, their views, and the order of changes.
//!
//! A state machine without clock or sockets: frame loops draw the views and the node sends the items that it returns.
//! Following and presenting are in `following.rs`, removal by owners in `removal.rs`; edits of the shared content, pointers
//! and the history of views in `sharing.rs`.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use serde_json::{Map, Value};
use view::View;

use crate::together::history::ViewHistory;
use crate::together::log::ContentLog;
use crate::together::pointer::PointerPlace;
use crate::{Item, MAX_NAME_BYTES, ParticipantId, ParticipantInfo, Role, Severity, ViewChange};

/// Most participants of one room: each has a frame loop. Includes those who are away.
pub const MAX_PARTICIPANTS: usize = 64;
/// Places that only owners get, so that they can enter and remove guests.
const FOR_OWNERS: usize = 8;
/// Most pictures of one connection in a session: a page has up to ten, and opens the next before the last has ended.
const MAX_OF_CONNECTION: usize = 16;
/// Longest time that the place of a participant whose connection broke is kept.
pub const MAX_AWAY: Duration = Duration::from_secs(60);
/// Colors of participants, distinct on dark and on light pictures; further participants share them.
const COLORS: [&str; 12] = [
    "#4cc9f0", "#f9c74f", "#f3722c", "#90be6d", "#f15bb5", "#b388ff", "#43e0c0", "#ff6b6b", "#a3e635",
    "#7aa2ff", "#ffb3c6", "#d4a373",
];

/// Output event of a room.
#[derive(Clone, Debug, PartialEq)]
pub enum RoomEvent {
    /// Item to send to a participant.
    Tell(ParticipantId, Item),
    /// View to draw for a participant from now on.
    Show {
        /// Participant that sees the view.
        to: ParticipantId,
        /// Number of the view; rises with each change.
        seq: u64,
        /// View to draw.
        view: View,
        /// More changes follow soon.
        moving: bool,
    },
    /// A participant lacks something, to be fetched from the room when their connection has room for it: nothing is
    /// queued, and nothing is lost.
    Due(ParticipantId, DueUpdate),
}

/// State that a participant has not been sent yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueUpdate {
    /// Shared content: [`Room::shared_update`].
    Content,
    /// Pointers: [`Room::pointers`].
    Pointers,
}

/// Person who joins.
#[derive(Clone, Debug, Default)]
pub struct RoomEntry<'a> {
    /// Name, as shown to the others.
    pub name: &'a str,
    /// Secret of an earlier `joined`, to be the same participant again; empty for a new one.
    pub resume: &'a str,
    /// Secret by which the new participant can come back, hard to guess; empty if they cannot.
    pub secret: String,
    /// Number of the connection, by which the pictures of one page belong together; 0 if it is not known.
    pub connection: u64,
}

pub(crate) struct RoomMember {
    pub(crate) name: String,
    pub(crate) color: usize,
    pub(crate) role: Role,
    /// Role that the participant's token gives; only the same token resumes.
    admitted_as: Role,
    pub(crate) secret: String,
    pub(crate) view: View,
    /// Number of `view`.
    pub(crate) seq: u64,
    /// Number of the newest change that the participant sent.
    heard: u64,
    /// Value of `moving` in the newest change accepted from the participant.
    pub(crate) moving: bool,
    pub(crate) history: ViewHistory,
    /// Participant whose view this one shows.
    pub(crate) follows: Option<ParticipantId>,
    /// The participant does not take part in the present presentation.
    pub(crate) opted_out: bool,
    pub(crate) pointer: Option<(PointerPlace, bool)>,
    /// Number of the newest edit that was accepted or refused.
    pub(crate) edits_heard: u64,
    /// Newest change of the shared content, and newest own edit, that the participant was sent.
    pub(crate) content_sent: Option<(u64, u64)>,
    /// Time since which the participant has no connection.
    pub(crate) away_since: Option<Duration>,
    /// True for a further picture of another participant's page.
    pub(crate) is_pane: bool,
    /// Number of the connection; 0 if it is not known.
    pub(crate) connection: u64,
}

/// Participants of a session and their views.
///
/// Four kinds of methods: *inputs* ([`join`](Self::join), [`change`](Self::change), [`set`](Self::set),
/// [`set_first_view`](Self::set_first_view), [`refuse`](Self::refuse), [`tell`](Self::tell),
/// [`leave`](Self::leave), [`remove`](Self::remove), [`follow`](Self::follow), [`present`](Self::present), [`edit`](Self::edit),
/// [`point`](Self::point), [`undo`](Self::undo) and others) report events; *output* is
/// [`poll_event`](Self::poll_event), to be called until it returns `None` after each input, and
/// [`shared_update`](Self::shared_update), called when it says so; *queries* ([`view`](Self::view),
/// [`first_view`](Self::first_view), [`participants`](Self::participants)) change nothing. Failed inputs change
/// nothing either.
///
/// Events that were not taken yet are replaced by newer ones of the same kind for the same participant, so
/// the queue is bounded by the number of participants times the number of kinds. Content that must not be lost is
/// therefore never in an event: an event only says that there is something to fetch.
pub struct Room {
    dataset: String,
    first_view: View,
    pub(crate) participants: BTreeMap<ParticipantId, RoomMember>,
    next_id: u32,
    pub(crate) presenter: Option<ParticipantId>,
    pub(crate) content: ContentLog,
    events: VecDeque<RoomEvent>,
}

impl Room {
    /// Creates an empty room for `dataset`, whose participants first see `first_view`.
    #[must_use]
    pub fn new(dataset: impl Into<String>, first_view: View) -> Self {
        Self {
            dataset: dataset.into(),
            first_view,
            participants: BTreeMap::new(),
            next_id: 1,
            presenter: None,
            content: ContentLog::default(),
            events: VecDeque::new(),
        }
    }

    /// Adds a participant who cannot resume, and first sees the room's first view.
    ///
    /// # Errors
    /// `Busy` if there are [`MAX_PARTICIPANTS`] already.
    pub fn join(&mut self, name: &str, role: Role) -> Result<ParticipantId> {
        self.enter(&RoomEntry { name, ..RoomEntry::default() }, role)
    }

    /// Adds a participant, or lets one who was here before continue: with the same number, view, history and edits.
    /// `role` is what their token allows.
    ///
    /// # Errors
    /// `Busy` if there are [`MAX_PARTICIPANTS`] already, none of them away.
    pub fn enter(&mut self, entry: &RoomEntry<'_>, role: Role) -> Result<ParticipantId> {
        let id = match self.known(entry.resume, role) {
            Some(id) => id,
            None => self.add(entry, role)?,
        };
        let Some(member) = self.participants.get_mut(&id) else { return Ok(id) };
        member.away_since = None;
        member.content_sent = None;
        member.connection = entry.connection;
        let (seq, view) = (member.seq, member.view.clone());
        let joined = Item::Joined {
            you: id,
            role: member.role,
            dataset: self.dataset.clone(),
            view: view.clone(),
            seq,
            resume: member.secret.clone(),
            edits: member.edits_heard,
        };
        self.push(RoomEvent::Tell(id, joined));
        self.push(RoomEvent::Show { to: id, seq, view, moving: false });
        self.tell_participants();
        self.tell_history(id);
        self.tell_following(id, String::new());
        self.push(RoomEvent::Due(id, DueUpdate::Content));
        self.push(RoomEvent::Due(id, DueUpdate::Pointers));
        Ok(id)
    }

    /// Returns the participant whose secret this is.
    fn known(&self, resume: &str, role: Role) -> Option<ParticipantId> {
        // All are compared, in a time that does not depend on the secrets.
        let mut found = None;
        for (&id, member) in &self.participants {
            if !member.secret.is_empty() && is_same(&member.secret, resume) && member.admitted_as == role {
                found = Some(id);
            }
        }
        found
    }

    fn add(&mut self, entry: &RoomEntry<'_>, role: Role) -> Result<ParticipantId> {
        let of_connection = |p: &&RoomMember| p.connection == entry.connection && p.away_since.is_none();
        if entry.connection > 0
            && self.participants.values().filter(of_connection).count() >= MAX_OF_CONNECTION
        {
            return Err(Error::new(
                ErrorKind::Busy,
                format!("this connection takes part with {MAX_OF_CONNECTION} pictures already"),
            ));
        }
        let is_guest = role != Role::Own;
        let places = if is_guest { MAX_PARTICIPANTS - FOR_OWNERS } else { MAX_PARTICIPANTS };
        // Owners may take the places of all who are away, guests those of guests.
        let rivals = || self.participants.iter().filter(|(_, p)| !is_guest || p.admitted_as != Role::Own);
        let taken = rivals().count();
        if taken >= places {
            let away = rivals().filter_map(|(&id, p)| Some((p.away_since?, id)));
            let Some((_, longest_away)) = away.min() else {
                return Err(Error::new(
                    ErrorKind::Busy,
                    format!("the session is full: it has {taken} participants"),
                ));
            };
            self.leave(longest_away);
        }
        let id = ParticipantId(self.next_id);
        self.next_id =
            self.next_id.checked_add(1).ok_or_else(|| Error::internal("numbers of participants ran out"))?;
        let used = |color: usize| self.participants.values().filter(|p| p.color == color).count();
        let color = (0..COLORS.len()).min_by_key(|&color| used(color)).unwrap_or_default();
        let mut member = RoomMember {
            name: legal_name(entry.name).unwrap_or_else(|| format!("Guest {}", id.0)),
            color,
            role,
            admitted_as: role,
            secret: entry.secret.clone(),
            view: self.first_view.clone(),
            seq: 0,
            heard: 0,
            moving: false,
            history: ViewHistory::default(),
            follows: None,
            opted_out: false,
            pointer: None,
            edits_heard: 0,
            content_sent: None,
            away_since: None,
            is_pane: false,
            connection: entry.connection,
        };
        if let Some((leader, view)) = self.first_leader(role) {
            member.follows = Some(leader);
            member.view = view;
        }
        self.participants.insert(id, member);
        Ok(id)
    }

    /// Notes that a participant is a further picture of another one's page, whom the lists of participants
    /// leave out.
    ///
    /// # Errors
    /// `NotFound` for a participant who left; `Denied` for guests whose connection has no other picture: nobody is in a
    /// session unseen.
    pub fn set_pane(&mut self, who: ParticipantId) -> Result<()> {
        let (connection, is_owner) = {
            let member = self.find(who)?;
            (member.connection, member.admitted_as == Role::Own)
        };
        if !is_owner && !self.has_listed(connection, who) {
            return Err(Error::new(
                ErrorKind::Denied,
                "a further picture needs a page that takes part in the session by the same connection",
            ));
        }
        let member = self.find(who)?;
        member.is_pane = true;
        // It shows what its page wants, also during presentations.
        (member.follows, member.opted_out) = (None, true);
        self.tell_participants();
        Ok(())
    }

    /// Returns whether somebody in the lists of participants, except `who`, came by this connection.
    fn has_listed(&self, connection: u64, who: ParticipantId) -> bool {
        let listed = |(&id, member): (&ParticipantId, &RoomMember)| {
            id != who && !member.is_pane && member.connection == connection
        };
        connection != 0 && self.participants.iter().any(listed)
    }

    /// Returns the further pictures of the page of a participant.
    pub(crate) fn panes_of(&self, who: ParticipantId) -> Vec<ParticipantId> {
        let Some(connection) = self.participants.get(&who).map(|member| member.connection) else {
            return Vec::new();
        };
        let panes = self.participants.iter().filter(|(_, member)| member.is_pane);
        panes
            .filter(|(_, member)| connection != 0 && member.connection == connection)
            .map(|(&id, _)| id)
            .collect()
    }

    /// Changes a participant's view. A change that is not newer than their last one is dropped. `check`
    /// checks the new view against the data. A change by the person ends following; an automatic one of their
    /// page has no effect while they follow.
    ///
    /// # Errors
    /// `NotFound` for a participant who left, `Denied` for a role that may not change views, and those of
    /// [`View::merged`] and `check`; the view then stays unchanged.
    pub fn change(
        &mut self,
        from: ParticipantId,
        change: &ViewChange,
        check: impl FnOnce(&View) -> Result<()>,
    ) -> Result<()> {
        let member = self.find(from)?;
        if !member.role.may_steer() {
            return Err(Error::new(ErrorKind::Denied, "you are watching: only others can change the view"));
        }
        if change.seq <= member.heard {
            return Ok(());
        }
        // The end of a movement, without fields, is no change by the person.
        let is_own = !change.automatic && !change.view.is_empty();
        if member.follows.is_some() && !is_own {
            member.heard = change.seq;
            return Ok(());
        }
        let view = member.view.merged(&change.view)?;
        check(&view)?;
        let before = std::mem::replace(&mut member.view, view.clone());
        member.heard = change.seq;
        member.moving = change.moving;
        let undoable = member.history.counts();
        if !change.automatic {
            member.history.changed(&before, &view, change.moving);
        }
        let has_new_step = undoable != member.history.counts();
        let has_followed = member.follows.is_some();
        // The node may have changed the view meanwhile: numbers only rise, and reach at least that of the
        // change.
        member.seq = member.seq.saturating_add(1).max(change.seq);
        let seq = member.seq;
        self.push(RoomEvent::Show { to: from, seq, view, moving: change.moving });
        if has_followed {
            self.stop_following(from, "because you changed the view");
            self.tell_participants();
        }
        if has_new_step {
            self.tell_history(from);
        }
        self.lead(from);
        Ok(())
    }

    /// Changes view number `at` of a participant on behalf of the node, for example fills in a transfer
    /// function, and tells them. Changes nothing, and returns false, if the view has another number by now. For a
    /// participant who follows somebody, it is the leader's view that changes, and thereby their own.
    ///
    /// # Errors
    /// `NotFound` for a participant who left, and those of [`View::merged`].
    pub fn set(&mut self, to: ParticipantId, at: u64, fields: &Map<String, Value>) -> Result<bool> {
        let member = self.find(to)?;
        if member.seq != at {
            return Ok(false);
        }
        let view = member.view.merged(fields)?;
        let leader = self.leaders_of(to).pop().unwrap_or(to);
        self.put_view(leader, view);
        self.lead(leader);
        Ok(true)
    }

    /// Sets the view that later participants see first.
    pub fn set_first_view(&mut self, view: View) {
        self.first_view = view;
    }

    /// Tells a participant why their change number `refused` was rejected, and resends the current view under
    /// a number that is newer than the change, so that they return to it.
    pub fn refuse(&mut self, to: ParticipantId, refused: u64, error: &Error) {
        self.tell(to, Severity::Warning, error.to_string());
        let Some(member) = self.participants.get_mut(&to) else { return };
        member.heard = member.heard.max(refused);
        member.seq = member.seq.saturating_add(1).max(refused);
        let (seq, view, moving) = (member.seq, member.view.clone(), member.moving);
        self.push(RoomEvent::Show { to, seq, view: view.clone(), moving });
        self.push(RoomEvent::Tell(to, Item::View { seq, view }));
    }

    /// Sends a message to a participant.
    pub fn tell(&mut self, to: ParticipantId, severity: Severity, text: String) {
        if self.participants.contains_key(&to) {
            self.push(RoomEvent::Tell(to, Item::Message { severity, text }));
        }
    }

    /// Tells all participants to describe the data again.
    pub fn tell_changed(&mut self) {
        let ids: Vec<ParticipantId> = self.participants.keys().copied().collect();
        for id in ids {
            self.push(RoomEvent::Tell(id, Item::Changed));
        }
    }

    /// Removes a participant and their events.
    pub fn leave(&mut self, who: ParticipantId) {
        let Some(member) = self.participants.remove(&who) else { return };
        if member.connection != 0 && !member.is_pane && !self.has_listed(member.connection, who) {
            // What stays of a page without its main picture is listed.
            let left = self.participants.values_mut().filter(|other| other.connection == member.connection);
            left.for_each(|other| other.is_pane = false);
        }
        self.events.retain(|event| event.to() != who);
        self.end_leading(who, &member.name);
        self.tell_participants();
        if member.pointer.is_some() {
            self.pointers_changed(who);
        }
    }

    /// Notes that the connection of a participant broke: their place is kept for [`MAX_AWAY`], if they can resume.
    /// `now` is the time since any fixed moment.
    pub fn disconnect(&mut self, who: ParticipantId, now: Duration) {
        let Some(member) = self.participants.get_mut(&who) else { return };
        if member.secret.is_empty() {
            return self.leave(who);
        }
        member.away_since = Some(now);
        member.moving = false;
        let has_pointed = member.pointer.take().is_some();
        self.events.retain(|event| event.to() != who);
        self.tell_participants();
        if has_pointed {
            self.pointers_changed(who);
        }
    }

    /// Removes the participants who were away for [`MAX_AWAY`].
    pub fn expire(&mut self, now: Duration) {
        let is_over =
            |p: &RoomMember| p.away_since.is_some_and(|since| now.saturating_sub(since) >= MAX_AWAY);
        let over: Vec<ParticipantId> =
            self.participants.iter().filter(|(_, p)| is_over(p)).map(|(&id, _)| id).collect();
        for who in over {
            self.leave(who);
        }
    }

    /// Takes the next event from the queue; `None` when it is empty.
    pub fn poll_event(&mut self) -> Option<RoomEvent> {
        self.events.pop_front()
    }

    /// Returns the current view of a participant and its number; `None` for a participant who left.
    #[must_use]
    pub fn view(&self, of: ParticipantId) -> Option<(u64, &View)> {
        self.participants.get(&of).map(|p| (p.seq, &p.view))
    }

    /// Returns the view that later participants see first.
    #[must_use]
    pub fn first_view(&self) -> &View {
        &self.first_view
    }

    /// Returns all participants, in order of arrival.
    #[must_use]
    pub fn participants(&self) -> Vec<ParticipantInfo> {
        let info = |(&id, p): (&ParticipantId, &RoomMember)| ParticipantInfo {
            id,
            name: p.name.clone(),
            role: p.role,
            color: COLORS.get(p.color).copied().unwrap_or_default().to_owned(),
            follows: p.follows,
            presents: self.presenter == Some(id),
            away: p.away_since.is_some(),
        };
        self.participants.iter().map(info).collect()
    }

    pub(crate) fn find(&mut self, id: ParticipantId) -> Result<&mut RoomMember> {
        self.participants
            .get_mut(&id)
            .ok_or_else(|| Error::not_found(format!("participant {} has left", id.0)))
    }

    /// Replaces a participant's view and tells them.
    pub(crate) fn put_view(&mut self, to: ParticipantId, view: View) {
        let Some(member) = self.participants.get_mut(&to) else { return };
        member.view = view.clone();
        member.seq = member.seq.saturating_add(1);
        let (seq, moving) = (member.seq, member.moving);
        self.push(RoomEvent::Show { to, seq, view: view.clone(), moving });
        self.push(RoomEvent::Tell(to, Item::View { seq, view }));
    }

    pub(crate) fn tell_participants(&mut self) {
        let mut list = self.participants();
        let all: Vec<ParticipantId> = list.iter().map(|person| person.id).collect();
        list.retain(|person| self.participants.get(&person.id).is_some_and(|member| !member.is_pane));
        for id in all {
            self.push(RoomEvent::Tell(id, Item::Participants { list: list.clone() }));
        }
    }

    /// Appends an event, or replaces an older one of the same kind for the same participant. Except for the
    /// first items after joining, only the newest matters. Nothing is sent to participants who are away.
    pub(crate) fn push(&mut self, event: RoomEvent) {
        if self.participants.get(&event.to()).is_some_and(|member| member.away_since.is_some()) {
            return;
        }
        match self.events.iter_mut().find(|old| old.is_replaced_by(&event)) {
            Some(old) => *old = event,
            None => self.events.push_back(event),
        }
    }
}

impl RoomEvent {
    fn to(&self) -> ParticipantId {
        match self {
            Self::Tell(to, _) | Self::Show { to, .. } | Self::Due(to, _) => *to,
        }
    }

    fn is_replaced_by(&self, newer: &Self) -> bool {
        let same_kind = match (self, newer) {
            (Self::Tell(_, a), Self::Tell(_, b)) => std::mem::discriminant(a) == std::mem::discriminant(b),
            (Self::Show { .. }, Self::Show { .. }) => true,
            (Self::Due(_, a), Self::Due(_, b)) => a == b,
            _ => false,
        };
        same_kind && self.to() == newer.to()
    }
}

/// Returns whether two secrets are the same, in a time that depends only on their lengths.
fn is_same(a: &str, b: &str) -> bool {
    let difference = a.bytes().zip(b.bytes()).fold(a.len() ^ b.len(), |sum, (a, b)| sum | usize::from(a ^ b));
    std::hint::black_box(difference) == 0
}

/// Returns a printable and short name; `None` if nothing is left.
pub(crate) fn legal_name(name: &str) -> Option<String> {
    let mut legal: String = name.trim().chars().filter(|c| !c.is_control()).collect();
    let end = (0..=legal.len().min(MAX_NAME_BYTES)).rev().find(|&at| legal.is_char_boundary(at))?;
    legal.truncate(end);
    (!legal.is_empty()).then_some(legal)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn drain(room: &mut Room) -> Vec<RoomEvent> {
        std::iter::from_fn(|| room.poll_event()).collect()
    }

    fn time(seq: u64, time: u64) -> ViewChange {
        let Value::Object(view) = json!({ "time": time }) else { unreachable!() };
        ViewChange { seq, view, ..ViewChange::default() }
    }

    #[expect(clippy::unnecessary_wraps, reason = "signature of the check of `Room::change`")]
    fn fits(_: &View) -> Result<()> {
        Ok(())
    }

    fn room() -> Room {
        Room::new("tooth", View { array: "rho".into(), ..View::default() })
    }

    #[test]
    fn a_new_participant_sees_the_first_view_and_everybody_is_told() {
        let mut room = room();
        let ada = room.join("Ada", Role::Own).unwrap();
        room.change(ada, &time(1, 5), fits).unwrap();
        drain(&mut room);
        let bob = room.join("Bob", Role::Steer).unwrap();
        let events = drain(&mut room);
        let RoomEvent::Tell(to, Item::Joined { you, view, .. }) = &events[0] else { panic!("{events:?}") };
        assert_eq!((*to, *you, view.time), (bob, bob, 0));
        let told: Vec<ParticipantId> = events
            .iter()
            .filter(|e| matches!(e, RoomEvent::Tell(_, Item::Participants { list }) if list.len() == 2))
            .map(RoomEvent::to)
            .collect();
        assert_eq!(told, [ada, bob]);
        assert_eq!(room.view(ada).unwrap().1.time, 5);
    }

    #[test]
    fn later_participants_see_the_changed_first_view() {
        let mut room = room();
        let ada = room.join("Ada", Role::Own).unwrap();
        room.set_first_view(View { array: "mask".into(), ..View::default() });
        let bob = room.join("Bob", Role::Steer).unwrap();
        let array = |who| room.view(who).unwrap().1.array.clone();
        assert_eq!([array(ada), array(bob)], ["rho", "mask"]);
        assert_eq!(room.first_view().array, "mask");
    }

    #[test]
    fn further_pictures_of_a_page_are_not_listed() {
        let mut room = room();
        let ada = room.join("Ada", Role::Own).unwrap();
        let pane = room.join("", Role::Own).unwrap();
        room.set_pane(pane).unwrap();
        let told = drain(&mut room).into_iter().rev().find_map(|event| match event {
            RoomEvent::Tell(to, Item::Participants { list }) if to == ada => Some(list),
            _ => None,
        });
        assert_eq!(told.unwrap().iter().map(|person| person.id).collect::<Vec<_>>(), [ada]);
        assert_eq!(room.participants().len(), 2, "its view is kept up to date like others");
    }

    #[test]
    fn a_watching_participant_cannot_change_a_view() {
        let mut room = room();
        let eve = room.join("Eve", Role::Watch).unwrap();
        drain(&mut room);
        assert_eq!(room.change(eve, &time(1, 5), fits).unwrap_err().kind(), ErrorKind::Denied);
        assert_eq!(room.view(eve).unwrap(), (0, &room.first_view));
        assert_eq!(drain(&mut room), []);
    }

    #[test]
    fn stale_and_invalid_changes_have_no_effect() {
        let mut room = room();
        let ada = room.join("Ada", Role::Own).unwrap();
        room.change(ada, &time(2, 5), fits).unwrap();
        room.change(ada, &time(2, 6), fits).unwrap();
        room.change(ada, &time(1, 7), fits).unwrap();
        let Value::Object(bad) = json!({"clip": [[0, 0, 0], [0, 0, 0]]}) else { unreachable!() };
        assert!(room.change(ada, &ViewChange { seq: 3, view: bad, ..ViewChange::default() }, fits).is_err());
        assert!(
            room.change(ada, &time(3, 9), |v| Err(Error::invalid(format!("no time {}", v.time)))).is_err()
        );
        assert_eq!(room.view(ada).map(|(seq, v)| (seq, v.time)), Some((2, 5)));
    }

    #[test]
    fn a_change_by_the_node_does_not_undo_a_simultaneous_one() {
        let mut room = room();
        let ada = room.join("Ada", Role::Own).unwrap();
        room.change(ada, &time(1, 5), fits).unwrap();
        let Value::Object(level) = json!({"level": 3}) else { unreachable!() };
        room.set(ada, 1, &level).unwrap();
        room.change(ada, &time(2, 6), fits).unwrap();
        let (seq, view) = room.view(ada).unwrap();
        assert_eq!((seq, view.time, view.level), (3, 6, Some(3)));
        let Value::Object(late) = json!({"level": 1}) else { unreachable!() };
        room.set(ada, 2, &late).unwrap();
        assert_eq!(room.view(ada).unwrap().1.level, Some(3), "an answer to an old view");
    }

    #[test]
    fn a_refused_change_is_answered_with_the_reason_and_the_current_view() {
        let mut room = room();
        let ada = room.join("Ada", Role::Own).unwrap();
        drain(&mut room);
        room.change(ada, &time(7, 3), |_| Err(Error::invalid("no such time"))).unwrap_err();
        room.refuse(ada, 7, &Error::invalid("no such time"));
        let events = drain(&mut room);
        let RoomEvent::Tell(_, Item::Message { text, .. }) = &events[0] else { panic!("{events:?}") };
        assert_eq!(text, "no such time");
        // Newer than the change, so that it is undone on the other side; a frame with this number will come.
        assert!(matches!(&events[1], RoomEvent::Show { seq: 7, view, .. } if view.time == 0));
        assert!(matches!(&events[2], RoomEvent::Tell(_, Item::View { seq: 7, view }) if view.time == 0));
    }

    #[test]
    fn names_are_short_and_printable() {
        assert_eq!(legal_name(" Ada\u{7}\n "), Some("Ada".into()));
        assert_eq!(legal_name("\n"), None);
        let long = legal_name(&"é".repeat(100)).unwrap();
        assert_eq!(long.len(), MAX_NAME_BYTES);
    }

    #[test]
    fn guests_leave_places_for_owners_and_a_connection_does_not_take_all() {
        let mut room = room();
        let mut enter = |connection, role| {
            let entry = RoomEntry { name: "", resume: "", secret: String::new(), connection };
            room.enter(&entry, role)
        };
        for _ in 0..MAX_OF_CONNECTION {
            enter(7, Role::Watch).unwrap();
        }
        assert_eq!(enter(7, Role::Watch).unwrap_err().kind(), ErrorKind::Busy);
        let others = (0u64..).take(MAX_PARTICIPANTS - FOR_OWNERS - MAX_OF_CONNECTION);
        others.for_each(|i| drop(enter(10 + i, Role::Watch).unwrap()));
        assert_eq!(enter(1000, Role::Steer).unwrap_err().kind(), ErrorKind::Busy);
        enter(1000, Role::Own).unwrap();
    }

    #[test]
    fn the_room_and_its_events_are_bounded() {
        let role_of = |i| if i < FOR_OWNERS { Role::Own } else { Role::Steer };
        let mut room = room();
        let all: Vec<ParticipantId> =
            (0..MAX_PARTICIPANTS).map(|i| room.join(&format!("p{i}"), role_of(i)).unwrap()).collect();
        assert_eq!(room.join("one more", Role::Steer).unwrap_err().kind(), ErrorKind::Busy);
        for seq in 1..200 {
            for &id in &all {
                room.change(id, &time(seq, seq), fits).unwrap();
                room.refuse(id, seq, &Error::invalid("x"));
            }
        }
        // Joined, participants, view shown, view told, message, history, following, content and pointers that are due.
        assert!(room.events.len() <= 9 * MAX_PARTICIPANTS, "{}", room.events.len());
    }

    #[test]
    fn a_participant_who_left_receives_nothing() {
        let mut room = room();
        let ada = room.join("Ada", Role::Own).unwrap();
        let bob = room.join("Bob", Role::Steer).unwrap();
        room.leave(ada);
        room.leave(ada);
        room.refuse(ada, 1, &Error::invalid("x"));
        assert!(drain(&mut room).iter().all(|e| e.to() == bob));
        assert_eq!(room.change(ada, &time(1, 1), fits).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
