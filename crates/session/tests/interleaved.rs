//! Random interleavings of joining, leaving and changes: every participant ends with the view that they set
//! last, numbers of views only rise, and watching participants change nothing. The seed is fixed, so that
//! failures are reproducible.

use std::collections::BTreeMap;

use corridor_session::{MAX_PARTICIPANTS, ParticipantId, Role, Room, RoomEvent, ViewChange};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Map, Value, json};
use view::View;

#[derive(Clone, Debug)]
enum Action {
    Join(Role),
    /// `who` is an index into all participants so far; `age` is subtracted from the number of the change, which
    /// is stale if it is above 0.
    Change {
        who: usize,
        field: &'static str,
        value: u64,
        age: u64,
        moving: bool,
    },
    /// Change by the node, for the current view or, if `is_late`, for a view with another number.
    Set {
        who: usize,
        level: u8,
        is_late: bool,
    },
    Leave {
        who: usize,
    },
    Drain,
}

fn action() -> impl Strategy<Value = Action> {
    let role = prop_oneof![Just(Role::Own), Just(Role::Steer), Just(Role::Watch)];
    let field = prop_oneof![Just("time"), Just("unknown")];
    prop_oneof![
        2 => role.prop_map(Action::Join),
        10 => (0..20usize, field, 0..50u64, 0..3u64, any::<bool>())
            .prop_map(|(who, field, value, age, moving)| Action::Change { who, field, value, age, moving }),
        2 => (0..20usize, 0..5u8, any::<bool>()).prop_map(|(who, level, is_late)| Action::Set { who, level, is_late }),
        1 => (0..20usize).prop_map(|who| Action::Leave { who }),
        3 => Just(Action::Drain),
    ]
}

/// Expected state of one participant, computed by a simple reference model.
struct Expected {
    role: Role,
    fields: Map<String, Value>,
    sent: u64,
    seq: u64,
}

#[derive(Default)]
struct Model {
    everybody: Vec<ParticipantId>,
    present: BTreeMap<ParticipantId, Expected>,
    shown: BTreeMap<ParticipantId, (u64, View)>,
}

impl Model {
    fn person(&self, who: usize) -> Option<ParticipantId> {
        (!self.everybody.is_empty()).then(|| self.everybody[who % self.everybody.len()])
    }

    fn drain(&mut self, room: &mut Room) {
        while let Some(event) = room.poll_event() {
            let RoomEvent::Show { to, seq, view, .. } = event else { continue };
            assert!(self.present.contains_key(&to), "{to:?} left");
            if let Some((before, _)) = self.shown.insert(to, (seq, view)) {
                assert!(seq > before, "numbers only rise: {before}, then {seq}");
            }
        }
    }

    fn change(&mut self, room: &mut Room, id: ParticipantId, change: &ViewChange) {
        let outcome = room.change(id, change, |_| Ok(()));
        let Some(expected) = self.present.get_mut(&id) else {
            assert!(outcome.is_err());
            return;
        };
        assert_eq!(outcome.is_ok(), expected.role.may_steer());
        if outcome.is_ok() && change.seq > expected.sent {
            expected.sent = change.seq;
            expected.fields.extend(change.view.clone());
        }
    }

    fn apply(&mut self, room: &mut Room, action: Action) {
        match action {
            Action::Join(role) => {
                let outcome = room.join("somebody", role);
                assert_eq!(outcome.is_ok(), self.present.len() < MAX_PARTICIPANTS);
                if let Ok(id) = outcome {
                    assert!(!self.everybody.contains(&id), "numbers are used once");
                    self.everybody.push(id);
                    self.present.insert(id, Expected { role, fields: Map::new(), sent: 0, seq: 0 });
                }
            }
            Action::Change { who, field, value, age, moving } => {
                let Some(id) = self.person(who) else { return };
                let sent = self.present.get(&id).map_or(0, |e| e.sent);
                let view = Map::from_iter([(field.to_owned(), json!(value))]);
                self.change(
                    room,
                    id,
                    &ViewChange { seq: (sent + 1).saturating_sub(age), view, moving, automatic: false },
                );
            }
            Action::Set { who, level, is_late } => {
                let Some(id) = self.person(who) else { return };
                let fields = Map::from_iter([("level".to_owned(), json!(level))]);
                let now = room.view(id).map_or(0, |(seq, _)| seq);
                let at = if is_late { now + 1 } else { now };
                assert_eq!(room.set(id, at, &fields).is_ok(), self.present.contains_key(&id));
                // The views of those who watch are those of their leaders.
                let leader = leader_of(room, id);
                if let (false, Some(expected)) = (is_late, self.present.get_mut(&leader)) {
                    expected.fields.extend(fields);
                }
            }
            Action::Leave { who } => {
                let Some(id) = self.person(who) else { return };
                room.leave(id);
                self.present.remove(&id);
            }
            Action::Drain => self.drain(room),
        }
        for (id, expected) in &mut self.present {
            let (seq, _) = room.view(*id).expect("present");
            assert!(seq >= expected.seq && seq >= expected.sent);
            expected.seq = seq;
        }
    }
}

/// Returns the participant whose view somebody sees: their own, or that of the one they follow.
fn leader_of(room: &Room, id: ParticipantId) -> ParticipantId {
    let follows = |id| room.participants().into_iter().find(|person| person.id == id)?.follows;
    std::iter::successors(Some(id), |&id| follows(id)).last().unwrap_or(id)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        rng_seed: RngSeed::Fixed(20_260_711),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_participant_ends_with_the_view_that_they_set_last(actions in prop::collection::vec(action(), 1..150)) {
        let first = View { array: "rho".into(), ..View::default() };
        let mut room = Room::new("data", first.clone());
        let mut model = Model::default();
        for action in actions {
            model.apply(&mut room, action);
        }
        model.drain(&mut room);
        for (id, expected) in &model.present {
            let (seq, view) = room.view(*id).expect("present");
            let wanted = match expected.role.may_steer() {
                true => first.merged(&expected.fields).expect("legal"),
                false => view.clone(),
            };
            prop_assert_eq!(view, &wanted);
            prop_assert_eq!(model.shown.get(id), Some(&(seq, wanted)));
        }
        prop_assert_eq!(room.participants().len(), model.present.len());
    }
}
