//! Things that participants share besides their views: notes of participants about it, and the updates that they are due.
//!
//! Updates are not queued. A participant's connection takes the newest state when it has room, so a slow participant
//! costs no memory and loses nothing.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use array::{Dataset, Result};
use bytes::Bytes;
use session::{DueUpdate, Item, ParticipantId, ParticipantNote, PointerInfo, Room, SharedUpdate};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::tasks::sleep_until;
use crate::viewer::outbox::OutgoingItem;

/// Shortest time between two updates of the pointers that one participant gets: 20 per second look smooth.
const POINTER_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Default)]
struct DueFlags {
    content: bool,
    pointers: bool,
    pointers_sent: Option<Instant>,
}

/// Updates that one participant is due.
#[derive(Default)]
pub(crate) struct DueUpdates {
    flags: Mutex<DueFlags>,
    changed: Notify,
}

impl DueUpdates {
    pub(crate) fn mark(&self, what: DueUpdate) {
        self.with(|flags| match what {
            DueUpdate::Content => flags.content = true,
            DueUpdate::Pointers => flags.pointers = true,
        });
        self.changed.notify_one();
    }

    /// Waits for an update; it is no longer due then.
    ///
    /// # Cancel safety
    /// Safe: an update is taken only when it is returned. Only one task may call it at a time.
    pub(crate) async fn next(&self) -> DueUpdate {
        loop {
            let changed = self.changed.notified();
            let now = Instant::now();
            let (due, wait) = self.with(|flags| flags.take(now));
            if let Some(due) = due {
                return due;
            }
            tokio::select! {
                () = changed => {}
                () = sleep_until(wait) => {}
            }
        }
    }

    fn with<T>(&self, f: impl FnOnce(&mut DueFlags) -> T) -> T {
        f(&mut self.flags.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl DueFlags {
    /// Takes what may be sent now; else returns the time at which more may be sent.
    fn take(&mut self, now: Instant) -> (Option<DueUpdate>, Option<Instant>) {
        if std::mem::take(&mut self.content) {
            return (Some(DueUpdate::Content), None);
        }
        if !self.pointers {
            return (None, None);
        }
        match self.pointers_sent.map(|sent| sent + POINTER_INTERVAL).filter(|&next| next > now) {
            Some(next) => (None, Some(next)),
            None => {
                self.pointers = false;
                self.pointers_sent = Some(now);
                (Some(DueUpdate::Pointers), None)
            }
        }
    }
}

/// State that a due update carries; [`item`](Self::item) encodes it, without the lock of the room.
pub(crate) enum RoomUpdate {
    Content(Box<(Item, SharedUpdate)>),
    Pointers(Vec<PointerInfo>),
}

impl RoomUpdate {
    /// Takes the state from the room; `None` if there is nothing new.
    pub(crate) fn take(room: &mut Room, to: ParticipantId, due: DueUpdate) -> Option<Self> {
        match due {
            DueUpdate::Content => room.shared_update(to).map(|update| Self::Content(Box::new(update))),
            DueUpdate::Pointers => Some(Self::Pointers(room.pointers(to))),
        }
    }

    /// # Errors
    /// Those of serializing, which do not happen.
    pub(crate) fn item(self) -> Result<OutgoingItem> {
        Ok(match self {
            Self::Content(update) => {
                let (item, content) = *update;
                OutgoingItem { item, bulk: content.to_json()?.into() }
            }
            Self::Pointers(list) => OutgoingItem { item: Item::Pointers { list }, bulk: Bytes::new() },
        })
    }
}

/// Applies a note about anything but pictures and the own view.
///
/// # Errors
/// Those of the room's inputs.
pub(crate) fn apply(
    room: &mut Room,
    from: ParticipantId,
    note: ParticipantNote,
    dataset: &Dataset,
) -> Result<()> {
    let check = |view: &view::View| crate::viewer::check::check(view, dataset);
    match note {
        ParticipantNote::Rename { name } => room.rename(from, &name),
        ParticipantNote::Follow { leader } => room.follow(from, leader),
        ParticipantNote::Present { presenter } => room.present(from, presenter),
        ParticipantNote::Role { who, role } => room.set_role(from, who, role),
        ParticipantNote::Pointer { at, laser } => room.point(from, at, laser),
        ParticipantNote::Edit { seq, edit } => room.edit(from, seq, edit, unix_millis()),
        ParticipantNote::Undo => room.undo(from, check),
        ParticipantNote::Redo => room.redo(from, check),
        ParticipantNote::Pane => room.set_pane(from),
        ParticipantNote::Resend => {
            room.resend(from);
            Ok(())
        }
        ParticipantNote::View(_)
        | ParticipantNote::Resize { .. }
        | ParticipantNote::Shown { .. }
        | ParticipantNote::Remove { .. }
        | ParticipantNote::Still => Ok(()),
    }
}

/// Returns the time, milliseconds since 1970 UTC; 0 for a clock before that.
fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pointers_are_due_at_most_20_times_a_second_and_the_newest_is_never_lost() {
        let due = DueUpdates::default();
        let began = Instant::now();
        let mut taken = 0;
        let moving = async {
            for _ in 0..1000 {
                due.mark(DueUpdate::Pointers);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::pin!(moving);
        loop {
            tokio::select! {
                biased;
                what = due.next() => {
                    assert_eq!(what, DueUpdate::Pointers);
                    taken += 1;
                }
                () = &mut moving => break,
            }
        }
        assert!((19..=21).contains(&taken), "{taken} in {:?}", began.elapsed());
        due.mark(DueUpdate::Pointers);
        let last = tokio::time::timeout(2 * POINTER_INTERVAL, due.next()).await;
        assert_eq!(last.unwrap(), DueUpdate::Pointers, "the last position");
        due.mark(DueUpdate::Content);
        assert_eq!(due.next().await, DueUpdate::Content, "content does not wait");
    }
}
