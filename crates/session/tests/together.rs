//! People together, simulated with fixed seeds: conflicting edits, slow and reordering connections, interruptions and
//! late joiners. All end with the same shared content, every edit counts once, followers see the view of their leader,
//! and everything stays within its bounds.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use corridor_session::{
    ContentReceiver, DueUpdate, Item, MAX_AWAY, MAX_BOOKMARKS, MAX_CHAT_LINES, MAX_PARTICIPANTS,
    MAX_PINNED_NOTES, ParticipantId, PointerPlace, Role, Room, RoomEntry, RoomEvent, SharedEdit, SharedId,
    SharedUpdate, ViewChange,
};
use serde_json::{Map, Value, json};
use view::View;

/// Random numbers of SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n.max(1) as u64).unwrap()
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> Option<T> {
        (!list.is_empty()).then(|| list[self.below(list.len())])
    }
}

fn fields(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else { unreachable!() };
    fields
}

enum Sent {
    Edit(u64, SharedEdit),
    View(ViewChange),
    Follow(Option<ParticipantId>),
    Present(Option<ParticipantId>),
    Remove(ParticipantId),
    Point(PointerPlace),
    Undo,
    Redo,
}

/// Page of one person, with its connection.
#[derive(Default)]
struct Page {
    secret: String,
    role: Option<Role>,
    id: Option<ParticipantId>,
    is_connected: bool,
    /// An owner removed the person, whose page then stays away.
    is_removed: bool,
    to_room: VecDeque<Sent>,
    from_room: Vec<(u64, u64, SharedUpdate)>,
    is_content_due: bool,
    content: ContentReceiver,
    /// Edits that the node has not answered.
    pending: BTreeMap<u64, SharedEdit>,
    seq: u64,
    view_seq: u64,
    shown: Option<(u64, View)>,
}

struct World {
    random: Random,
    room: Room,
    pages: Vec<Page>,
    now: Duration,
    /// Edits that were made, and those of people who came back too late, which are lost with their page.
    abandoned: BTreeSet<SharedId>,
    accepted: BTreeSet<SharedId>,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            room: Room::new("data", View { array: "rho".into(), ..View::default() }),
            pages: Vec::new(),
            now: Duration::ZERO,
            abandoned: BTreeSet::new(),
            accepted: BTreeSet::new(),
        }
    }

    fn connect(&mut self, at: usize) {
        let secret = format!("secret {at} {}", self.now.as_nanos());
        let page = &self.pages[at];
        let role = page.role.unwrap();
        let entry = RoomEntry { name: "somebody", resume: &page.secret, secret, connection: 0 };
        if self.room.enter(&entry, role).is_err() {
            return;
        }
        self.pages[at].is_connected = true;
        // The `joined` of the event that follows is for this page.
        while let Some(event) = self.room.poll_event() {
            if let RoomEvent::Tell(to, Item::Joined { you, seq, resume, edits, .. }) = &event {
                assert_eq!(to, you);
                let page = &mut self.pages[at];
                if page.id != Some(*you) {
                    let lost =
                        page.pending.keys().map(|&seq| SharedId { author: page.id.unwrap_or(*you), seq });
                    self.abandoned.extend(lost);
                    page.pending.clear();
                    page.seq = *edits;
                }
                page.id = Some(*you);
                page.secret.clone_from(resume);
                page.view_seq = *seq;
                page.content = ContentReceiver::default();
                page.pending.retain(|seq, _| seq > edits);
                page.to_room =
                    page.pending.iter().map(|(&seq, edit)| Sent::Edit(seq, edit.clone())).collect();
                page.seq = page.seq.max(*edits);
            }
            self.deliver(event);
        }
    }

    fn deliver(&mut self, event: RoomEvent) {
        match event {
            RoomEvent::Due(to, DueUpdate::Content) => self.page_of(to, |page| page.is_content_due = true),
            RoomEvent::Show { to, seq, view, .. } => self.page_of(to, |page| {
                assert!(
                    page.shown.as_ref().is_none_or(|(before, _)| *before <= seq),
                    "numbers of views only rise"
                );
                page.shown = Some((seq, view));
            }),
            RoomEvent::Tell(to, Item::Removed { .. }) => self.removed(to),
            RoomEvent::Tell(to, Item::View { seq, .. }) => {
                self.page_of(to, |page| page.view_seq = page.view_seq.max(seq));
            }
            _ => {}
        }
    }

    /// Ends the page of somebody whom an owner removed: it does not come back by itself.
    fn removed(&mut self, id: ParticipantId) {
        let Some(page) = self.pages.iter_mut().find(|page| page.id == Some(id)) else { return };
        page.is_removed = true;
        page.is_connected = false;
        page.to_room.clear();
        page.from_room.clear();
        page.is_content_due = false;
        page.shown = None;
        page.pending.clear();
        let entry = RoomEntry { name: "somebody", resume: &page.secret, ..RoomEntry::default() };
        let role = page.role.unwrap();
        // A secret of the page that is used in spite of that gives another participant, who leaves at once.
        if let Ok(other) = self.room.enter(&entry, role) {
            assert_ne!(other, id, "the secret of somebody who was removed is not valid");
            self.room.leave(other);
        }
    }

    fn page_of(&mut self, id: ParticipantId, f: impl FnOnce(&mut Page)) {
        let page = self.pages.iter_mut().find(|page| page.id == Some(id) && page.is_connected);
        f(page.expect("events are for people who are present"));
    }

    fn disconnect(&mut self, at: usize) {
        let page = &mut self.pages[at];
        page.is_connected = false;
        page.to_room.clear();
        page.from_room.clear();
        page.is_content_due = false;
        page.shown = None;
        if let Some(id) = page.id {
            self.room.disconnect(id, self.now);
        }
        self.drain();
    }

    fn drain(&mut self) {
        let mut count = 0;
        while let Some(event) = self.room.poll_event() {
            count += 1;
            assert!(count <= 11 * MAX_PARTICIPANTS, "the queue of events is bounded");
            self.deliver(event);
        }
    }

    fn random_edit(&mut self) -> SharedEdit {
        let content = self.room.content();
        let notes: Vec<SharedId> = content.notes.iter().map(|note| note.id).collect();
        let marks: Vec<SharedId> = content.bookmarks.iter().map(|mark| mark.id).collect();
        let text = format!("text {}", self.random.below(1000));
        let view = fields(json!({"time": self.random.below(9)}));
        let (note, mark, other) =
            (self.random.pick(&notes), self.random.pick(&marks), self.random.pick(&marks));
        match (self.random.below(9), note, mark) {
            (0 | 1, ..) => SharedEdit::Say { text },
            (3, Some(id), _) => SharedEdit::EditNote { id, text },
            (4, Some(id), _) => SharedEdit::DeleteNote { id },
            (5, _, Some(id)) => SharedEdit::RenameBookmark { id, name: text },
            (6, _, Some(id)) => SharedEdit::MoveBookmark { id, before: other },
            (7, _, Some(id)) => SharedEdit::DeleteBookmark { id },
            (8, ..) => SharedEdit::AddBookmark { name: text, thumbnail: String::new(), view },
            _ => SharedEdit::AddNote { text, place: Some([1.0, 2.0, 3.0]), view },
        }
    }

    /// Something that a connected person does; it travels to the room behind what they did before.
    fn act(&mut self, at: usize) {
        let present: Vec<ParticipantId> = self.room.participants().iter().map(|person| person.id).collect();
        let somebody = self.random.pick(&present);
        let sent = match self.random.below(12) {
            0..5 => {
                let edit = self.random_edit();
                let page = &mut self.pages[at];
                page.seq += 1;
                page.pending.insert(page.seq, edit.clone());
                Sent::Edit(page.seq, edit)
            }
            5..8 => {
                let page = &mut self.pages[at];
                page.view_seq += 1024;
                let view = fields(json!({"time": self.random.below(50)}));
                let moving = self.random.below(2) == 0;
                Sent::View(ViewChange { seq: page.view_seq, view, moving, automatic: false })
            }
            8 => Sent::Follow(somebody),
            9 => Sent::Present(somebody.filter(|_| self.random.below(2) == 0)),
            // Rarely, so that enough people stay.
            10 if self.random.below(60) == 0 => Sent::Remove(somebody.expect("the person is present")),
            10 => Sent::Point(PointerPlace::Picture([0.5, 0.5])),
            _ if self.random.below(2) == 0 => Sent::Undo,
            _ => Sent::Redo,
        };
        self.pages[at].to_room.push_back(sent);
    }

    /// The room receives the next note of a person.
    fn receive(&mut self, at: usize) {
        let page = &mut self.pages[at];
        let (Some(id), Some(sent)) = (page.id, page.to_room.pop_front()) else { return };
        let done = match sent {
            Sent::Edit(seq, edit) => {
                let done = self.room.edit(id, seq, edit, 7);
                if done.is_ok() {
                    assert!(self.accepted.insert(SharedId { author: id, seq }), "an edit counts once");
                }
                done
            }
            Sent::View(change) => {
                let done = self.room.change(id, &change, |_| Ok(()));
                if let Err(error) = &done {
                    self.room.refuse(id, change.seq, error);
                }
                done
            }
            Sent::Follow(leader) => self.room.follow(id, leader),
            Sent::Present(presenter) => self.room.present(id, presenter),
            Sent::Remove(who) => self.room.remove(id, who).map(|_| ()),
            Sent::Point(place) => self.room.point(id, Some(place), false),
            Sent::Undo => self.room.undo(id, |_| Ok(())),
            Sent::Redo => self.room.redo(id, |_| Ok(())),
        };
        // Refusals are expected: roles, deleted things, circles.
        drop(done);
        self.drain();
    }

    /// The connection of a person has room for an update, or one of the last updates arrives, in any order.
    fn transfer(&mut self, at: usize) {
        let page = &mut self.pages[at];
        let Some(id) = page.id else { return };
        if std::mem::take(&mut page.is_content_due)
            && let Some((Item::Shared { rev, heard }, update)) = self.room.shared_update(id)
        {
            let update = SharedUpdate::parse(&update.to_json().unwrap()).unwrap();
            page.from_room.push((rev, heard, update));
        }
        if page.from_room.is_empty() {
            return;
        }
        let (rev, heard, update) = page.from_room.swap_remove(self.random.below(page.from_room.len()));
        if page.content.receive(rev, update).is_err() {
            self.room.resend(id);
        }
        page.pending.retain(|&seq, _| seq > heard);
    }

    fn step(&mut self) {
        self.now += Duration::from_millis(100);
        let at = self.random.below(self.pages.len());
        if self.pages[at].is_removed {
            // Stays away.
        } else if !self.pages[at].is_connected {
            if self.random.below(20) == 0 {
                self.connect(at);
            }
        } else {
            match self.random.below(100) {
                0 => self.disconnect(at),
                1..30 => self.act(at),
                30..70 => self.receive(at),
                _ => self.transfer(at),
            }
        }
        self.room.expire(self.now);
        self.drain();
        self.check_views();
    }

    /// Followers see the view of their leader, at every moment, and nobody follows in a circle.
    fn check_views(&self) {
        let people = self.room.participants();
        for person in &people {
            let Some(leader) = person.follows else { continue };
            assert_eq!(self.room.view(person.id).unwrap().1, self.room.view(leader).unwrap().1);
            let mut at = leader;
            for _ in 0..=people.len() {
                assert_ne!(at, person.id, "a circle");
                let Some(next) = people.iter().find(|p| p.id == at).and_then(|p| p.follows) else { break };
                at = next;
            }
        }
        assert!(people.iter().filter(|person| person.presents).count() <= 1);
    }

    /// Lets everybody come back and everything arrive.
    fn settle(&mut self) {
        for at in 0..self.pages.len() {
            if !self.pages[at].is_connected && !self.pages[at].is_removed {
                self.connect(at);
            }
        }
        while self.pages.iter().any(|p| !p.to_room.is_empty() || p.is_content_due || !p.from_room.is_empty())
        {
            for at in 0..self.pages.len() {
                self.receive(at);
                self.transfer(at);
            }
        }
    }
}

fn person(at: usize) -> Page {
    let role = [Role::Own, Role::Steer, Role::Steer, Role::Watch][at % 4];
    Page { role: Some(role), ..Page::default() }
}

#[test]
fn all_end_with_the_same_content_whatever_their_connections_do() {
    let mut removed_ever = 0;
    for seed in 0..20 {
        let mut world = World::new(seed);
        let early = 1 + world.random.below(25);
        world.pages = (0..early).map(person).collect();
        for at in 0..early {
            world.connect(at);
        }
        for step in 0..4000 {
            if step % 160 == 159 {
                // A late joiner.
                let at = world.pages.len();
                world.pages.push(person(at));
                world.connect(at);
            }
            world.step();
        }
        world.settle();
        let content = world.room.content();
        assert!(world.pages.len() <= 50 && !content.chat.is_empty(), "seed {seed}");
        let (removed, present): (Vec<&Page>, Vec<&Page>) =
            world.pages.iter().partition(|page| page.is_removed);
        removed_ever += removed.len();
        assert_eq!(world.room.participants().len(), present.len(), "seed {seed}: those removed are gone");
        for page in present {
            assert!(page.is_connected, "seed {seed}");
            assert_eq!(page.content.content(), Some(content), "seed {seed}");
            assert!(page.pending.is_empty(), "seed {seed}: every edit is answered");
            let (shown, view) = (page.shown.as_ref().unwrap(), world.room.view(page.id.unwrap()).unwrap());
            assert_eq!((shown.0, &shown.1), view, "seed {seed}");
        }
        assert!(content.chat.len() <= MAX_CHAT_LINES);
        assert!(content.notes.len() <= MAX_PINNED_NOTES && content.bookmarks.len() <= MAX_BOOKMARKS);
        let ids: Vec<SharedId> =
            content.notes.iter().map(|n| n.id).chain(content.bookmarks.iter().map(|b| b.id)).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "nothing twice");
        assert!(ids.iter().all(|id| world.accepted.contains(id)));
        assert!(world.abandoned.is_disjoint(&world.accepted) || !world.abandoned.is_empty());
    }
    assert!(removed_ever > 0, "owners removed people");
}

#[test]
fn a_thousand_conflicting_edits_end_alike() {
    let mut room = Room::new("data", View::default());
    let people: Vec<ParticipantId> =
        (0..50).map(|i| room.join(&format!("p{i}"), Role::Own).unwrap()).collect();
    let mut random = Random(1992);
    let mut seqs = BTreeMap::<ParticipantId, u64>::new();
    let mut receivers = vec![ContentReceiver::default(); people.len()];
    let mark = |name: String| SharedEdit::AddBookmark { name, thumbnail: String::new(), view: Map::new() };
    for i in 0..1000 {
        let who = random.pick(&people).unwrap();
        let ids: Vec<SharedId> = room.content().bookmarks.iter().map(|b| b.id).collect();
        // Everybody works on the same few bookmarks.
        let (id, before) = (random.pick(&ids[..ids.len().min(4)]), random.pick(&ids));
        let edit = match (random.below(5), id) {
            (0, Some(id)) => SharedEdit::RenameBookmark { id, name: format!("name {i}") },
            (1 | 2, Some(id)) => SharedEdit::MoveBookmark { id, before },
            (3, Some(id)) => SharedEdit::DeleteBookmark { id },
            _ => mark(format!("bookmark {i}")),
        };
        let seq = seqs.entry(who).or_default();
        *seq += 1;
        // An edit of something that was deleted is refused.
        drop(room.edit(who, *seq, edit, i));
        // Some take every update, others only a few.
        for (at, receiver) in receivers.iter_mut().enumerate() {
            if random.below(at + 1) == 0
                && let Some((Item::Shared { rev, .. }, update)) = room.shared_update(people[at])
            {
                receiver.receive(rev, update).unwrap();
            }
        }
    }
    for (&who, receiver) in people.iter().zip(&mut receivers) {
        if let Some((Item::Shared { rev, .. }, update)) = room.shared_update(who) {
            receiver.receive(rev, update).unwrap();
        }
        assert_eq!(receiver.content(), Some(room.content()));
        assert!(room.shared_update(who).is_none(), "nothing is sent twice");
    }
}

#[test]
fn content_is_bounded_and_a_late_joiner_gets_all_of_it() {
    let mut room = Room::new("data", View::default());
    let ada = room.join("Ada", Role::Own).unwrap();
    for seq in 1..=1000 {
        let text = format!("line {seq}");
        let edit = match seq % 3 {
            0 => SharedEdit::Say { text },
            1 => SharedEdit::AddNote { text, place: None, view: Map::new() },
            _ => SharedEdit::AddBookmark { name: text, thumbnail: String::new(), view: Map::new() },
        };
        drop(room.edit(ada, seq, edit, 0));
    }
    let content = room.content().clone();
    assert_eq!((content.chat.len(), content.notes.len()), (MAX_CHAT_LINES, MAX_PINNED_NOTES));
    assert_eq!(content.bookmarks.len(), MAX_BOOKMARKS);
    assert_eq!(content.chat.last().unwrap().text, "line 999");
    let bob = room.join("Bob", Role::Watch).unwrap();
    let (item, update) = room.shared_update(bob).unwrap();
    assert!(matches!(item, Item::Shared { heard: 0, .. }));
    assert_eq!(update, SharedUpdate::Content(Box::new(content)));
}

#[test]
fn a_participant_who_comes_back_within_a_minute_is_the_same() {
    let mut room = Room::new("data", View::default());
    let entry = |resume: &'static str, secret: &str| RoomEntry {
        name: "Ada",
        resume,
        secret: secret.into(),
        connection: 0,
    };
    let ada = room.enter(&entry("", "s1"), Role::Own).unwrap();
    let time =
        |seq, time: u64| ViewChange { seq, view: fields(json!({"time": time})), ..ViewChange::default() };
    room.change(ada, &time(1, 5), |_| Ok(())).unwrap();
    room.edit(ada, 1, SharedEdit::Say { text: "hello".into() }, 0).unwrap();
    room.disconnect(ada, Duration::from_secs(10));
    assert!(room.participants()[0].away);
    assert_ne!(room.enter(&entry("s2", "s3"), Role::Own).unwrap(), ada, "another secret");
    assert_ne!(room.enter(&entry("s1", "s4"), Role::Watch).unwrap(), ada, "a token with another role");
    room.expire(Duration::from_secs(10) + MAX_AWAY - Duration::from_millis(1));
    while room.poll_event().is_some() {}
    assert_eq!(room.enter(&entry("s1", "s5"), Role::Own).unwrap(), ada);
    let joined = std::iter::from_fn(|| room.poll_event()).find_map(|event| match event {
        RoomEvent::Tell(to, Item::Joined { seq, edits, view, resume, .. }) if to == ada => {
            Some((seq, edits, view.time, resume))
        }
        _ => None,
    });
    assert_eq!(joined, Some((1, 1, 5, "s1".to_owned())));
    room.edit(ada, 1, SharedEdit::Say { text: "hello".into() }, 0).unwrap();
    assert_eq!(room.content().chat.len(), 1, "an edit that is sent again counts once");
    room.undo(ada, |_| Ok(())).unwrap();
    assert_eq!(room.view(ada).unwrap().1.time, 0, "the history is kept");
    room.disconnect(ada, Duration::from_secs(100));
    room.expire(Duration::from_secs(100) + MAX_AWAY);
    assert_ne!(room.enter(&entry("s1", "s6"), Role::Own).unwrap(), ada, "too late");
}

#[test]
fn people_who_are_away_make_room_for_others() {
    let mut room = Room::new("data", View::default());
    let all: Vec<ParticipantId> = (0..MAX_PARTICIPANTS)
        .map(|i| {
            let secret = format!("s{i}");
            // The last places are for owners.
            let role = if i + 8 < MAX_PARTICIPANTS { Role::Steer } else { Role::Own };
            room.enter(&RoomEntry { name: "x", secret, ..RoomEntry::default() }, role).unwrap()
        })
        .collect();
    room.join("late", Role::Steer).unwrap_err();
    room.disconnect(all[7], Duration::from_secs(2));
    room.disconnect(all[3], Duration::from_secs(1));
    room.join("late", Role::Steer).unwrap();
    assert!(room.view(all[3]).is_none() && room.view(all[7]).is_some(), "the one who is away longest");
}
