//! Following, presenting, roles, undo: rules that the pages show to people.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use array::ErrorKind;
use corridor_session::{Item, ParticipantId, PointerPlace, Role, Room, RoomEvent, SharedEdit, ViewChange};
use serde_json::{Map, Value, json};
use view::View;

fn time(seq: u64, time: u64, moving: bool) -> ViewChange {
    let Value::Object(view) = json!({ "time": time }) else { unreachable!() };
    ViewChange { seq, view, moving, automatic: false }
}

struct People {
    room: Room,
    ada: ParticipantId,
    bob: ParticipantId,
    eve: ParticipantId,
}

/// An owner, one who steers, and one who watches.
fn people() -> People {
    let mut room = Room::new("data", View::default());
    let ada = room.join("Ada", Role::Own).unwrap();
    let bob = room.join("Bob", Role::Steer).unwrap();
    let eve = room.join("Eve", Role::Watch).unwrap();
    People { room, ada, bob, eve }
}

impl People {
    fn set(&mut self, who: ParticipantId, seq: u64, to: u64) {
        self.room.change(who, &time(seq, to, false), |_| Ok(())).unwrap();
    }

    fn times(&self) -> [u64; 3] {
        [self.ada, self.bob, self.eve].map(|who| self.room.view(who).unwrap().1.time)
    }

    fn follows(&self) -> [Option<ParticipantId>; 3] {
        let list = self.room.participants();
        [self.ada, self.bob, self.eve].map(|who| list.iter().find(|p| p.id == who).unwrap().follows)
    }

    /// Takes all events; returns the sentences about following that somebody was told.
    fn told(&mut self, who: ParticipantId) -> Vec<String> {
        std::iter::from_fn(|| self.room.poll_event())
            .filter_map(|event| match event {
                RoomEvent::Tell(to, Item::Following { text, .. }) if to == who => Some(text),
                _ => None,
            })
            .collect()
    }
}

#[test]
fn a_follower_sees_the_leader_until_they_change_the_view() {
    let mut p = people();
    p.set(p.ada, 1, 5);
    p.room.follow(p.bob, Some(p.ada)).unwrap();
    p.set(p.ada, 2, 6);
    assert_eq!(p.times(), [6, 6, 6], "those who watch follow the first who may steer");
    assert_eq!(p.room.follow(p.ada, Some(p.bob)).unwrap_err().kind(), ErrorKind::Invalid, "a circle");
    p.room.follow(p.ada, Some(p.ada)).unwrap_err();
    let automatic = ViewChange { automatic: true, ..time(3, 40, false) };
    p.room.change(p.bob, &automatic, |_| Ok(())).unwrap();
    assert_eq!(p.times(), [6, 6, 6], "the page alone does not end following");
    p.told(p.bob);
    p.set(p.bob, 1024, 9);
    assert_eq!(p.told(p.bob), ["You no longer follow Ada because you changed the view."]);
    p.set(p.ada, 7, 7);
    assert_eq!((p.times(), p.follows()), ([7, 9, 7], [None, None, Some(p.ada)]));
    // Undo returns to the leader's view, then to the own view before following.
    p.room.undo(p.bob, |_| Ok(())).unwrap();
    assert_eq!(p.times()[1], 6);
    p.room.undo(p.bob, |_| Ok(())).unwrap();
    assert_eq!(p.times()[1], 0);
}

#[test]
fn a_presenter_leads_all_who_do_not_opt_out_and_can_hand_over() {
    let mut p = people();
    let carl = p.room.join("Carl", Role::Steer).unwrap();
    assert_eq!(p.room.present(p.eve, Some(p.eve)).unwrap_err().kind(), ErrorKind::Denied);
    p.room.present(p.bob, Some(p.ada)).unwrap_err();
    p.room.present(p.bob, Some(p.bob)).unwrap();
    p.set(p.bob, 1, 3);
    assert_eq!(p.times(), [3, 3, 3]);
    p.room.present(carl, Some(carl)).unwrap_err();
    p.room.present(carl, None).unwrap_err();
    p.room.follow(p.bob, Some(p.ada)).unwrap_err();
    p.room.follow(carl, None).unwrap();
    let late = p.room.join("Dan", Role::Steer).unwrap();
    assert_eq!(p.room.view(late).unwrap().1.time, 3, "late joiners follow");
    p.room.present(p.bob, Some(p.eve)).unwrap_err();
    p.room.present(p.bob, Some(p.ada)).unwrap();
    p.set(p.ada, 2048, 8);
    assert_eq!((p.times(), p.room.view(carl).unwrap().1.time), ([8, 8, 8], 3), "Carl opted out");
    p.told(p.bob);
    p.room.present(p.ada, None).unwrap();
    assert_eq!(p.told(p.bob), ["Ada ended the presentation: you have your own view again."]);
    assert_eq!(p.follows(), [None; 3]);
    p.room.present(p.bob, Some(p.bob)).unwrap();
    assert_eq!(p.room.participants().iter().filter(|x| x.follows == Some(p.bob)).count(), 4, "all again");
    p.room.present(p.ada, Some(p.ada)).unwrap();
    p.room.leave(p.ada);
    assert!(p.room.participants().iter().all(|x| x.follows.is_none() && !x.presents));
}

#[test]
fn roles_decide_who_may_do_what() {
    let mut p = people();
    let note = |text: &str| SharedEdit::AddNote { text: text.into(), place: None, view: Map::new() };
    p.room.edit(p.ada, 1, note("by Ada"), 0).unwrap();
    p.room.edit(p.bob, 1, note("by Bob"), 0).unwrap();
    let [by_ada, by_bob] = [0, 1].map(|i| p.room.content().notes[i].id);
    let kind = |result: array::Result<()>| result.map_err(|error| error.kind());
    assert_eq!(kind(p.room.edit(p.eve, 1, note("x"), 0)), Err(ErrorKind::Denied));
    assert_eq!(kind(p.room.edit(p.eve, 2, SharedEdit::Say { text: "hi".into() }, 0)), Ok(()));
    assert_eq!(kind(p.room.point(p.eve, Some(PointerPlace::World([0.0; 3])), false)), Ok(()));
    assert_eq!(kind(p.room.edit(p.bob, 2, SharedEdit::DeleteNote { id: by_ada }, 0)), Err(ErrorKind::Denied));
    assert_eq!(kind(p.room.edit(p.ada, 2, SharedEdit::DeleteNote { id: by_bob }, 0)), Ok(()));
    assert_eq!(kind(p.room.set_role(p.bob, p.eve, Role::Steer)), Err(ErrorKind::Denied));
    assert_eq!(kind(p.room.set_role(p.ada, p.ada, Role::Watch)), Err(ErrorKind::Invalid));
    p.room.set_role(p.ada, p.eve, Role::Steer).unwrap();
    p.set(p.eve, 1, 4);
    p.room.set_role(p.ada, p.bob, Role::Watch).unwrap();
    assert_eq!(kind(p.room.change(p.bob, &time(1, 1, false), |_| Ok(()))), Err(ErrorKind::Denied));
    assert_eq!(kind(p.room.undo(p.bob, |_| Ok(()))), Err(ErrorKind::Denied));
    let bad =
        [f64::NAN, f64::INFINITY].map(|x| p.room.point(p.ada, Some(PointerPlace::World([x; 3])), false));
    assert!(bad.iter().all(Result::is_err));
}

#[test]
fn a_drag_is_one_step_and_undo_moves_the_followers_too() {
    let mut p = people();
    p.room.follow(p.bob, Some(p.ada)).unwrap();
    p.set(p.ada, 1, 2);
    for (seq, at) in (2..30).zip(10..) {
        p.room.change(p.ada, &time(seq, at, true), |_| Ok(())).unwrap();
    }
    p.room.change(p.ada, &ViewChange { seq: 30, ..ViewChange::default() }, |_| Ok(())).unwrap();
    p.room.undo(p.ada, |_| Ok(())).unwrap();
    assert_eq!(p.times(), [2, 2, 2]);
    p.room.redo(p.ada, |_| Ok(())).unwrap();
    assert_eq!(p.times(), [37, 37, 37]);
    p.room.undo(p.ada, |_| Err(array::Error::invalid("no such time"))).unwrap_err();
    assert_eq!(p.times(), [37, 37, 37]);
}

#[test]
fn pointers_are_those_of_others_and_vanish_with_them() {
    let mut p = people();
    p.room.point(p.ada, Some(PointerPlace::World([1.0, 2.0, 3.0])), true).unwrap();
    assert_eq!((p.room.pointers(p.ada).len(), p.room.pointers(p.bob).len()), (0, 1));
    p.room.leave(p.ada);
    assert!(p.room.pointers(p.bob).is_empty());
}

#[test]
fn what_a_followers_picture_fills_in_becomes_the_leaders() {
    let mut room = Room::new("data", View::default());
    let ada = room.join("Ada", Role::Own).unwrap();
    let eve = room.join("Eve", Role::Watch).unwrap();
    room.follow(eve, Some(ada)).unwrap();
    let level = Map::from_iter([("level".to_owned(), json!(3))]);
    let seq = room.view(eve).unwrap().0;
    assert!(!room.set(eve, seq + 1, &level).unwrap(), "a view that is not current");
    assert!(room.set(eve, seq, &level).unwrap());
    for who in [ada, eve] {
        assert_eq!(room.view(who).unwrap().1.level, Some(3));
    }
}
