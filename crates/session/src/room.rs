//! Room of a session: its participants, their views, and the order of changes.
//!
//! A state machine without clock or sockets: frame loops draw the views and the node sends the items that it returns.

use std::collections::{BTreeMap, VecDeque};

use array::{Error, ErrorKind, Result};
use serde_json::{Map, Value};
use view::View;

use crate::{Item, MAX_NAME_BYTES, ParticipantId, ParticipantInfo, Role, Severity, ViewChange};

/// Most participants of one room: each has a frame loop.
pub const MAX_PARTICIPANTS: usize = 64;

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
}

struct RoomMember {
    name: String,
    role: Role,
    view: View,
    /// Number of `view`.
    seq: u64,
    /// Number of the newest change that the participant sent.
    heard: u64,
    /// Value of `moving` in the newest change accepted from the participant.
    moving: bool,
    /// True for a further picture of another participant's page.
    is_pane: bool,
}

/// Participants of a session and their views.
///
/// Four kinds of methods: *inputs* ([`join`](Self::join), [`change`](Self::change), [`set`](Self::set),
/// [`set_first_view`](Self::set_first_view), [`refuse`](Self::refuse), [`tell`](Self::tell),
/// [`leave`](Self::leave)) report events; *output* is [`poll_event`](Self::poll_event), to be called until it
/// returns `None` after each input; *queries* ([`view`](Self::view), [`first_view`](Self::first_view),
/// [`participants`](Self::participants)) change nothing. Failed inputs change nothing either.
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
    /// Creates an empty room for `dataset`, whose participants first see `first_view`.
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

    /// Adds a participant, who first sees the room's first view.
    ///
    /// # Errors
    /// `Busy` if there are [`MAX_PARTICIPANTS`] already.
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
        self.participants
            .insert(id, RoomMember { name, role, view, seq: 0, heard: 0, moving: false, is_pane: false });
        self.tell_participants();
        Ok(id)
    }

    /// Notes that a participant is a further picture of another one's page, whom the lists of participants
    /// leave out.
    ///
    /// # Errors
    /// `NotFound` for a participant who left.
    pub fn set_pane(&mut self, who: ParticipantId) -> Result<()> {
        self.find(who)?.is_pane = true;
        self.tell_participants();
        Ok(())
    }

    /// Changes a participant's view. A change that is not newer than their last one is dropped. `check`
    /// checks the new view against the data.
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
        let view = member.view.merged(&change.view)?;
        check(&view)?;
        member.view = view.clone();
        member.heard = change.seq;
        member.moving = change.moving;
        // The node may have changed the view meanwhile: numbers only rise, and reach at least that of the
        // change.
        member.seq = member.seq.saturating_add(1).max(change.seq);
        let seq = member.seq;
        self.push(RoomEvent::Show { to: from, seq, view, moving: change.moving });
        Ok(())
    }

    /// Changes view number `at` of a participant on behalf of the node, for example fills in a transfer
    /// function, and tells them. Does nothing if the view has another number by now.
    ///
    /// # Errors
    /// `NotFound` for a participant who left, and those of [`View::merged`].
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
        if self.participants.remove(&who).is_some() {
            self.events.retain(|event| event.to() != who);
            self.tell_participants();
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
        let all = self.participants.iter();
        all.map(|(&id, p)| ParticipantInfo { id, name: p.name.clone(), role: p.role }).collect()
    }

    fn find(&mut self, id: ParticipantId) -> Result<&mut RoomMember> {
        self.participants
            .get_mut(&id)
            .ok_or_else(|| Error::not_found(format!("participant {} has left", id.0)))
    }

    fn tell_participants(&mut self) {
        let mut list = self.participants();
        let all: Vec<ParticipantId> = list.iter().map(|person| person.id).collect();
        list.retain(|person| self.participants.get(&person.id).is_some_and(|member| !member.is_pane));
        for id in all {
            self.push(RoomEvent::Tell(id, Item::Participants { list: list.clone() }));
        }
    }

    /// Appends an event, or replaces an older one of the same kind for the same participant. Except for the
    /// first items after joining, only the newest matters.
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

/// Returns a printable and short name; `None` if nothing is left.
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
        assert!(room.change(ada, &ViewChange { seq: 3, view: bad, moving: false }, fits).is_err());
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
