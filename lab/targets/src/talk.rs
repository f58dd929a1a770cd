//! Messages of participants in a session: a view, then notes, one per line.

use std::collections::BTreeMap;

use array::Dataset;
use session::{JoinParams, ParticipantId, ParticipantNote, Role, Room, RoomEvent};
use view::{MAX_VIEW_BYTES, View};

/// Most events that may wait: one of each kind of item, a picture and two updates, for each participant.
const MAX_EVENTS: usize = 3 * 11;

/// Description of the data set that the session shows.
const DATASET: &str = include_str!("../../fuzz/seeds/description/volume.json");

/// Plays a session: the first line is a view as in a link, the others are notes of three participants in turn.
pub fn take_part(text: &[u8]) {
    let dataset: Dataset = serde_json::from_str(DATASET).expect("the description is one");
    let mut lines = text.split(|&b| b == b'\n');
    let first = lines.next().and_then(|line| std::str::from_utf8(line).ok());
    let view = first.and_then(|line| View::parse(line).ok()).unwrap_or_default();
    check_view(&view);
    let mut room = Room::new("dataset", view);
    let people =
        [Role::Own, Role::Steer, Role::Watch].map(|role| room.join("Ada", role).expect("there is room"));
    let mut seen = BTreeMap::new();
    for (line, &who) in lines.zip(people.iter().cycle()) {
        if let Ok(join) = JoinParams::parse(line) {
            assert!(join.size().width() * join.size().height() <= session::MAX_PICTURE_PIXELS);
        }
        let note = ParticipantNote::parse(line);
        if let Ok(note) = &note {
            share(&mut room, who, note.clone());
        }
        if let Ok(ParticipantNote::View(change)) = note {
            let change = session::ViewChange {
                view: room
                    .view(who)
                    .map_or_else(Default::default, |(_, v)| v.with_consequences(&change.view, &dataset)),
                ..change
            };
            let changed = room.change(who, &change, |view| view.place_in(&dataset).map(drop));
            if let Err(error) = changed {
                room.refuse(who, change.seq, &error);
            }
        }
        take_events(&mut room, &mut seen);
    }
}

/// Applies a note about anything but the own view; refusals are expected.
fn share(room: &mut Room, who: ParticipantId, note: ParticipantNote) {
    let done = match note {
        ParticipantNote::Rename { name } => room.rename(who, &name),
        ParticipantNote::Follow { leader } => room.follow(who, leader),
        ParticipantNote::Present { presenter } => room.present(who, presenter),
        ParticipantNote::Role { who: whose, role } => room.set_role(who, whose, role),
        ParticipantNote::Pointer { at, laser } => room.point(who, at, laser),
        ParticipantNote::Edit { seq, edit } => room.edit(who, seq, edit, 0),
        ParticipantNote::Undo => room.undo(who, |_| Ok(())),
        ParticipantNote::Redo => room.redo(who, |_| Ok(())),
        _ => Ok(()),
    };
    done.unwrap_or_default();
    if let Some((_, update)) = room.shared_update(who) {
        let text = update.to_json().expect("shared content is JSON");
        assert_eq!(session::SharedUpdate::parse(&text).expect("what was written can be read"), update);
    }
}

/// Takes all events: they are few, show legal views, and their numbers never fall.
fn take_events(room: &mut Room, seen: &mut BTreeMap<ParticipantId, u64>) {
    for count in 0.. {
        let Some(event) = room.poll_event() else { return };
        assert!(count < MAX_EVENTS, "more events than kinds and people");
        if let RoomEvent::Show { to, seq, view, .. } = event {
            check_view(&view);
            let last = seen.insert(to, seq).unwrap_or_default();
            assert!(seq >= last, "view {seq} after {last}");
        }
    }
}

/// Checks that an accepted view is legal, and the same after a link has carried it.
fn check_view(view: &View) {
    view.check().expect("an accepted view is legal");
    let text = serde_json::to_string(view).expect("a view is JSON");
    assert!(text.len() <= MAX_VIEW_BYTES);
    assert_eq!(&View::parse(&text).expect("what was written can be read"), view);
}
