//! What all parts of one running session share: the data, the room, the seats, the feed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use array::{Dataset, Result, Source};
use bytes::Bytes;
use serde_json::{Map, Value};
use session::{Event, Join, Note, ParticipantId, PictureSize, Role, Room, Severity, View, ViewChange};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::feed::Feed;
use crate::picture::{camera_of, transfer_of, volume_of};
use crate::seat::Seat;
use crate::volume::Volumes;

/// Pictures drawn at once: each uses all cores, a second one fills the gaps of the first.
const DRAWS_AT_ONCE: usize = 2;
/// Share of the memory that holds blocks on their way: one part in so many, and a limit in bytes.
const UNDER_WAY_SHARE: u64 = 4;
const MAX_UNDER_WAY_BYTES: u64 = 256 << 20;

pub(crate) struct Host {
    pub(crate) dataset: Arc<Dataset>,
    pub(crate) volumes: Arc<Volumes>,
    pub(crate) feed: Feed,
    pub(crate) draws: Semaphore,
    people: Mutex<People>,
}

struct People {
    room: Room,
    seats: BTreeMap<ParticipantId, Arc<Seat>>,
}

impl Host {
    pub(crate) fn new(
        dataset: Arc<Dataset>,
        source: Arc<dyn Source>,
        memory_bytes: u64,
        first_view: View,
    ) -> Self {
        let under_way = (memory_bytes / UNDER_WAY_SHARE).min(MAX_UNDER_WAY_BYTES);
        let for_pools = usize::try_from(memory_bytes - under_way).unwrap_or(usize::MAX);
        let volumes = Arc::new(Volumes::new(Arc::clone(&dataset), for_pools));
        let room = Room::new(dataset.name.clone(), first_view);
        Self {
            feed: Feed::new(source, Arc::clone(&volumes), under_way),
            volumes,
            draws: Semaphore::new(DRAWS_AT_ONCE),
            people: Mutex::new(People { room, seats: BTreeMap::new() }),
            dataset,
        }
    }

    pub(crate) fn join(&self, join: &Join, role: Role) -> Result<(ParticipantId, Arc<Seat>)> {
        let mut people = self.people();
        let who = people.room.join(&join.name, role)?;
        let seat = Arc::new(Seat::new(join.size()));
        people.seats.insert(who, Arc::clone(&seat));
        people.deliver();
        Ok((who, seat))
    }

    pub(crate) fn leave(&self, who: ParticipantId) {
        let mut people = self.people();
        people.room.leave(who);
        if let Some(seat) = people.seats.remove(&who) {
            seat.leave();
        }
        people.deliver();
    }

    /// A note came from a participant; what is wrong with it is told to them.
    pub(crate) fn note(&self, from: ParticipantId, text: &[u8]) {
        let note = Note::parse(text);
        let mut people = self.people();
        match note {
            Ok(Note::View(change)) => {
                let seq = change.seq;
                if let Err(error) = people.change(from, change, &self.dataset) {
                    people.room.refuse(from, seq, &error);
                }
            }
            Ok(Note::Resize { width, height }) => {
                people.seat(from, |s| s.change(|w| w.size = PictureSize::new(width, height)));
            }
            Ok(Note::Shown { frame }) => people.seat(from, |s| s.change(|w| w.shown = w.shown.max(frame))),
            Ok(Note::Still) => people.seat(from, |s| s.change(|w| w.wants_still = true)),
            Err(error) => people.room.tell(from, Severity::Warning, error.to_string()),
        }
        people.deliver();
    }

    /// Changes view number `at` of a participant, if it is still theirs.
    pub(crate) fn fill_in(&self, who: ParticipantId, at: u64, fields: &Map<String, Value>) -> Result<()> {
        let mut people = self.people();
        people.room.set(who, at, fields)?;
        people.deliver();
        Ok(())
    }

    fn people(&self) -> MutexGuard<'_, People> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl People {
    fn change(&mut self, from: ParticipantId, mut change: ViewChange, dataset: &Dataset) -> Result<()> {
        if let Some((_, view)) = self.room.view(from) {
            change.view = view.with_consequences(&change.view, dataset);
        }
        self.room.change(from, &change, |view| check(view, dataset))
    }

    fn seat(&self, of: ParticipantId, f: impl FnOnce(&Seat)) {
        if let Some(seat) = self.seats.get(&of) {
            f(seat);
        }
    }

    /// Hands on what the room says.
    fn deliver(&mut self) {
        while let Some(event) = self.room.poll_event() {
            match event {
                Event::Tell(to, item) => self.seat(to, |s| s.outbox.push(item, Bytes::new())),
                Event::Show { to, seq, view, moving } => self.seat(to, |s| {
                    s.change(|w| {
                        w.seq = seq;
                        w.view = Arc::new(view);
                        w.says_moving = moving;
                        w.changed_at = Instant::now();
                    });
                }),
            }
        }
    }
}

/// That a view fits the data set and can be drawn.
///
/// # Errors
/// What does not fit.
pub(crate) fn check(view: &View, dataset: &Dataset) -> Result<()> {
    let volume = volume_of(view, dataset)?;
    camera_of(view, &volume)?;
    view.transfer.as_ref().map_or(Ok(()), |t| transfer_of(t).map(|_| ()))
}
