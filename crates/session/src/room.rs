//! The room: who takes part, what each of them sees, and in which order changes count.
//!
//! A state machine without clock or sockets. It decides; the frame loops draw, the node sends.

use std::collections::{BTreeMap, VecDeque};

use array::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use view::View;

use crate::{Item, MAX_NAME_BYTES, ParticipantInfo, Severity, ViewChange};

/// Most participants of one room: each costs a frame loop.
pub const MAX_PARTICIPANTS: usize = 64;

/// A participant's number in its room; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ParticipantId(pub u32);

/// Role of a participant: the changes that it may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything; the session is theirs.
    Own,
    /// Change what they see.
    Steer,
    /// Look at what the room shows.
    Watch,
}

impl Role {
    /// True for those who may change a view.
    #[must_use]
    pub fn may_steer(self) -> bool {
        matches!(self, Self::Own | Self::Steer)
    }
}

/// Output event of a room.
#[derive(Clone, Debug, PartialEq)]
pub enum RoomEvent {
    /// Send this to that participant.
    Tell(ParticipantId, Item),
    /// Draw this view for that participant: it is the current one.
    Show {
        /// Participant that sees the view.
        to: ParticipantId,
        /// Number of the view; rises with each change.
        seq: u64,
        /// View to draw.
        view: View,
        /// More changes follow at once.
        moving: bool,
    },
}

struct RoomMember {
    name: String,
    role: Role,
    view: View,
    /// Number of `view`.
    seq: u64,
    /// Number of the newest change that came from the participant.
    heard: u64,
    /// Value of `moving` in the newest change accepted from the participant.
    moving: bool,
}

/// The participants of a session and their views.
///
/// Four kinds of methods: *inputs* ([`join`](Self::join), [`change`](Self::change), [`set`](Self::set),
/// [`set_first_view`](Self::set_first_view), [`refuse`](Self::refuse), [`tell`](Self::tell), [`leave`](Self::leave)) take what happened;
/// *output* is [`poll_event`](Self::poll_event), to be called until it gives `None` after each input; *questions* ([`view`](Self::view),
/// [`first_view`](Self::first_view), [`participants`](Self::participants)) change nothing. An input that is refused changes nothing either.
///
/// Events that were not taken yet are replaced by newer ones of the same kind for the same participant, so
/// the queue is bounded by the number of participants times the number of kinds.
pub struct Room {
    dataset: String,
    first_view: View,
    participants: BTreeMap<ParticipantId, RoomMember>,
    next_id: u32,
    events: VecDeque<RoomEvent>,
}

impl Room {
    /// An empty room for `dataset`; whoever comes first sees `first_view`.
    #[must_use]
    pub fn new(dataset: impl Into<String>, first_view: View) -> Self {
        Self {
            dataset: dataset.into(),
            first_view,
            participants: BTreeMap::new(),
            next_id: 1,
            events: VecDeque::new(),
        }
    }

    /// Somebody comes, at any time; they see what the room showed first.
    ///
    /// # Errors
    /// `Busy` when [`MAX_PARTICIPANTS`] are there.
    pub fn join(&mut self, name: &str, role: Role) -> Result<ParticipantId> {
        if self.participants.len() >= MAX_PARTICIPANTS {
            return Err(Error::new(
                ErrorKind::Busy,
                format!("the session is full: it has {MAX_PARTICIPANTS} participants"),
            ));
        }
        let id = ParticipantId(self.next_id);
        self.next_id =
            self.next_id.checked_add(1).ok_or_else(|| Error::internal("numbers of participants ran out"))?;
        let view = self.first_view.clone();
        let name = legal_name(name).unwrap_or_else(|| format!("Guest {}", id.0));
        self.push(RoomEvent::Tell(
            id,
            Item::Joined { you: id, role, dataset: self.dataset.clone(), view: view.clone() },
        ));
        self.push(RoomEvent::Show { to: id, seq: 0, view: view.clone(), moving: false });
        self.participants.insert(id, RoomMember { name, role, view, seq: 0, heard: 0, moving: false });
        self.tell_participants();
        Ok(id)
    }

    /// A participant changes what they see. A change that is not newer than their last one is dropped.
    /// `check` says whether the new view fits the data.
    ///
    /// # Errors
    /// `NotFound` for somebody who left, `Denied` for a role that may not, and those of [`View::merged`] and
    /// `check`; the view then stays as it was.
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
        let view = member.view.merged(&change.view)?;
        check(&view)?;
        member.view = view.clone();
        member.heard = change.seq;
        member.moving = change.moving;
        // The node may have changed it meanwhile: numbers only rise, and reach at least the one heard.
        member.seq = member.seq.saturating_add(1).max(change.seq);
        let seq = member.seq;
        self.push(RoomEvent::Show { to: from, seq, view, moving: change.moving });
        Ok(())
    }

    /// The node changes view number `at` of a participant, for example fills in a transfer function, and tells
    /// them. Dropped when the view is another one by now: then the node answered an old question.
    ///
    /// # Errors
    /// `NotFound` for somebody who left, and those of [`View::merged`].
    pub fn set(&mut self, to: ParticipantId, at: u64, fields: &Map<String, Value>) -> Result<()> {
        let member = self.find(to)?;
        if member.seq != at {
            return Ok(());
        }
        member.view = member.view.merged(fields)?;
        member.seq = member.seq.saturating_add(1);
        let (seq, view, moving) = (member.seq, member.view.clone(), member.moving);
        self.push(RoomEvent::Show { to, seq, view: view.clone(), moving });
        self.push(RoomEvent::Tell(to, Item::View { seq, view }));
        Ok(())
    }

    /// The node changes what people who come from now on see first.
    pub fn set_first_view(&mut self, view: View) {
        self.first_view = view;
    }

    /// Tells a participant why their change number `refused` does not count, and the view that holds instead,
    /// under a number that is newer than the change, so that they go back to it.
    pub fn refuse(&mut self, to: ParticipantId, refused: u64, error: &Error) {
        self.tell(to, Severity::Warning, error.to_string());
        let Some(member) = self.participants.get_mut(&to) else { return };
        member.heard = member.heard.max(refused);
        member.seq = member.seq.saturating_add(1).max(refused);
        let (seq, view, moving) = (member.seq, member.view.clone(), member.moving);
        self.push(RoomEvent::Show { to, seq, view: view.clone(), moving });
        self.push(RoomEvent::Tell(to, Item::View { seq, view }));
    }

    /// Tells a participant something.
    pub fn tell(&mut self, to: ParticipantId, severity: Severity, text: String) {
        if self.participants.contains_key(&to) {
            self.push(RoomEvent::Tell(to, Item::Message { severity, text }));
        }
    }

    /// Tells all participants that the data are to be described again.
    pub fn tell_changed(&mut self) {
        let ids: Vec<ParticipantId> = self.participants.keys().copied().collect();
        for id in ids {
            self.push(RoomEvent::Tell(id, Item::Changed));
        }
    }

    /// Somebody goes; nothing more comes out for them.
    pub fn leave(&mut self, who: ParticipantId) {
        if self.participants.remove(&who).is_some() {
            self.events.retain(|event| event.to() != who);
            self.tell_participants();
        }
    }

    /// Takes the next event out of the queue; `None` when it is empty.
    pub fn poll_event(&mut self) -> Option<RoomEvent> {
        self.events.pop_front()
    }

    /// Returns the current view of a participant and its number; `None` for a participant who left.
    #[must_use]
    pub fn view(&self, of: ParticipantId) -> Option<(u64, &View)> {
        self.participants.get(&of).map(|p| (p.seq, &p.view))
    }

    /// The view that whoever comes next sees first.
    #[must_use]
    pub fn first_view(&self) -> &View {
        &self.first_view
    }

    /// Everybody, in order of arrival.
    #[must_use]
    pub fn participants(&self) -> Vec<ParticipantInfo> {
        let all = self.participants.iter();
        all.map(|(&id, p)| ParticipantInfo { id, name: p.name.clone(), role: p.role }).collect()
    }

    fn find(&mut self, id: ParticipantId) -> Result<&mut RoomMember> {
        self.participants
            .get_mut(&id)
            .ok_or_else(|| Error::not_found(format!("participant {} has left", id.0)))
    }

    fn tell_participants(&mut self) {
        let list = self.participants();
        for person in &list {
            self.push(RoomEvent::Tell(person.id, Item::Participants { list: list.clone() }));
        }
    }

    /// Appends, or replaces an older event of the same kind for the same participant. Except for what is
    /// first told on joining, only the newest matters.
    fn push(&mut self, event: RoomEvent) {
        match self.events.iter_mut().find(|old| old.is_replaced_by(&event)) {
            Some(old) => *old = event,
            None => self.events.push_back(event),
        }
    }
}

impl RoomEvent {
    fn to(&self) -> ParticipantId {
        match self {
            Self::Tell(to, _) | Self::Show { to, .. } => *to,
        }
    }

    fn is_replaced_by(&self, newer: &Self) -> bool {
        let same_kind = match (self, newer) {
            (Self::Tell(_, a), Self::Tell(_, b)) => std::mem::discriminant(a) == std::mem::discriminant(b),
            (Self::Show { .. }, Self::Show { .. }) => true,
            _ => false,
        };
        same_kind && self.to() == newer.to()
    }
}

/// Printable and short; `None` when nothing is left.
fn legal_name(name: &str) -> Option<String> {
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
        ViewChange { seq, view, moving: false }
    }

    #[expect(clippy::unnecessary_wraps, reason = "what `Room::change` calls")]
    fn fits(_: &View) -> Result<()> {
        Ok(())
    }

    fn room() -> Room {
        Room::new("tooth", View { array: "rho".into(), ..View::default() })
    }

    #[test]
    fn a_late_comer_sees_the_first_view_and_everybody_learns_of_them() {
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
    fn who_comes_after_the_first_view_has_changed_sees_the_new_one() {
        let mut room = room();
        let ada = room.join("Ada", Role::Own).unwrap();
        room.set_first_view(View { array: "mask".into(), ..View::default() });
        let bob = room.join("Bob", Role::Steer).unwrap();
        let array = |who| room.view(who).unwrap().1.array.clone();
        assert_eq!([array(ada), array(bob)], ["rho", "mask"]);
        assert_eq!(room.first_view().array, "mask");
    }

    #[test]
    fn watching_changes_nothing() {
        let mut room = room();
        let eve = room.join("Eve", Role::Watch).unwrap();
        drain(&mut room);
        assert_eq!(room.change(eve, &time(1, 5), fits).unwrap_err().kind(), ErrorKind::Denied);
        assert_eq!(room.view(eve).unwrap(), (0, &room.first_view));
        assert_eq!(drain(&mut room), []);
    }

    #[test]
    fn old_and_illegal_changes_change_nothing() {
        let mut room = room();
        let ada = room.join("Ada", Role::Own).unwrap();
        room.change(ada, &time(2, 5), fits).unwrap();
        room.change(ada, &time(2, 6), fits).unwrap();
        room.change(ada, &time(1, 7), fits).unwrap();
        let Value::Object(bad) = json!({"clip": [[0, 0, 0], [0, 0, 0]]}) else { unreachable!() };
        assert!(room.change(ada, &ViewChange { seq: 3, view: bad, moving: false }, fits).is_err());
        assert!(
            room.change(ada, &time(3, 9), |v| Err(Error::invalid(format!("no time {}", v.time)))).is_err()
        );
        assert_eq!(room.view(ada).map(|(seq, v)| (seq, v.time)), Some((2, 5)));
    }

    #[test]
    fn a_change_by_the_node_does_not_undo_one_that_crosses_it() {
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
    fn who_is_refused_learns_why_and_what_holds() {
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
    fn the_room_and_its_events_are_bounded() {
        let mut room = room();
        let all: Vec<ParticipantId> =
            (0..MAX_PARTICIPANTS).map(|i| room.join(&format!("p{i}"), Role::Steer).unwrap()).collect();
        assert_eq!(room.join("one more", Role::Steer).unwrap_err().kind(), ErrorKind::Busy);
        for seq in 1..200 {
            for &id in &all {
                room.change(id, &time(seq, seq), fits).unwrap();
                room.refuse(id, seq, &Error::invalid("x"));
            }
        }
        // Joined, participants, view shown, view told, message.
        assert!(room.events.len() <= 5 * MAX_PARTICIPANTS, "{}", room.events.len());
    }

    #[test]
    fn who_left_is_told_nothing() {
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
