//! State that all parts of a running session share: the data, the room, the viewers and the feed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use array::{
    ArrayInfo, Dataset, DatasetId, Error, ErrorKind, Generation, LongTask, Meaning, Result, Source,
    WorkProgress,
};
use bytes::Bytes;
use serde_json::{Map, Value};
use session::{
    DueUpdate, Item, JoinParams, MAX_AWAY, ParticipantId, ParticipantNote, PictureSize, RemovedMember, Role,
    Room, RoomEntry, RoomEvent, Severity, ViewChange,
};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use view::View;

use crate::geometry::GeometryCache;
use crate::loading::feed::{Feed, StaleHint};
use crate::loading::regrid::{Regridded, StoredPlaces};
use crate::loading::volume::Volumes;
use crate::painter::{DrawResources, Painter};
use crate::ranks::launcher::Launcher;
use crate::viewer::check::check;
use crate::viewer::grid_boxes::{GridBoxCache, GridBoxes};
use crate::viewer::outbox::OutgoingItem;
use crate::viewer::scene::{camera_of, shared_camera, volume_of};
use crate::viewer::together::{RoomUpdate, apply};
use crate::viewer::viewer_state::ViewerState;

/// Most pictures drawn at once: each uses all cores, a second one fills the gaps of the first.
pub(crate) const DRAWS_AT_ONCE: usize = 2;
/// Divisor of the memory that gives the part for blocks in flight.
const IN_FLIGHT_SHARE: u64 = 4;
/// Most memory for blocks in flight, bytes.
const MAX_IN_FLIGHT_BYTES: u64 = 256 << 20;

/// Attempts to describe changed data before the failure is reported to participants, and the pause between them.
pub(crate) const DESCRIBE_ATTEMPTS: u32 = 5;
pub(crate) const DESCRIBE_PAUSE: Duration = Duration::from_secs(1);

/// Progress of long work behind a session's source; `None` while there is none.
pub type ProgressQuery = Arc<dyn Fn(LongTask) -> Option<WorkProgress> + Send + Sync>;

/// Withdraws the access of a participant who was removed; returns a sentence for the owner about it, `None` if the
/// participant has access that cannot be withdrawn.
pub type RemovalHook = Box<dyn Fn(&RemovedMember) -> Option<String> + Send + Sync>;

pub(crate) struct SharedState {
    source: Arc<dyn Source>,
    pub(crate) work: ProgressQuery,
    dataset: RwLock<Arc<Dataset>>,
    pub(crate) volumes: Arc<Volumes>,
    pub(crate) feed: Feed,
    pub(crate) draws: Arc<Semaphore>,
    pub(crate) painter: Arc<Painter>,
    grids: GridBoxCache,
    /// Geometry of the layers of views.
    pub(crate) geometry: GeometryCache,
    /// Source that knows which arrays are drawn on other axes than those of the data.
    pub(crate) regridded: OnceLock<Regridded>,
    /// Launcher of the other ranks, if several draw.
    pub(crate) launcher: Option<Arc<Launcher>>,
    room_state: Mutex<RoomState>,
    started: Instant,
    /// Notified when a participant's connection broke.
    away: Notify,
    /// Withdraws the access of participants who are removed.
    pub(crate) on_removed: OnceLock<RemovalHook>,
}

struct RoomState {
    room: Room,
    viewers: BTreeMap<ParticipantId, Arc<ViewerState>>,
}

impl SharedState {
    pub(crate) fn new(
        dataset: Arc<Dataset>,
        source: Arc<dyn Source>,
        resources: DrawResources,
        first_view: View,
        work: ProgressQuery,
    ) -> Self {
        let DrawResources { memory_bytes, painter, geometry } = resources;
        let in_flight = (memory_bytes / IN_FLIGHT_SHARE).min(MAX_IN_FLIGHT_BYTES);
        let for_pools = usize::try_from(memory_bytes - in_flight).unwrap_or(usize::MAX);
        let volumes = Arc::new(Volumes::new(for_pools));
        let room = Room::new(dataset.name.clone(), first_view);
        Self {
            feed: Feed::new(Arc::clone(&source), Arc::clone(&volumes), in_flight),
            volumes,
            draws: Arc::new(Semaphore::new(DRAWS_AT_ONCE)),
            painter,
            grids: GridBoxCache::default(),
            geometry: GeometryCache::new(geometry, memory_bytes),
            regridded: OnceLock::new(),
            launcher: None,
            room_state: Mutex::new(RoomState { room, viewers: BTreeMap::new() }),
            started: Instant::now(),
            away: Notify::new(),
            on_removed: OnceLock::new(),
            dataset: RwLock::new(dataset),
            source,
            work,
        }
    }

    /// Adds the launcher of other ranks, if there are any.
    pub(crate) fn with_launcher(self, launcher: Option<Launcher>) -> Self {
        Self { launcher: launcher.map(Arc::new), ..self }
    }

    /// Returns the source that blocks are read from.
    pub(crate) fn source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.source)
    }

    /// Returns the latest known description of the data.
    pub(crate) fn dataset(&self) -> Arc<Dataset> {
        Arc::clone(&self.dataset.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the grids that a view shows as lines.
    ///
    /// # Errors
    /// Those of [`GridBoxCache::of`].
    pub(crate) async fn boxes(&self, view: &View) -> Result<Arc<GridBoxes>> {
        self.grids.of(view, &*self.source, &self.dataset()).await
    }

    /// Waits for hints about changed data, describes them again and shows the new data to all participants.
    /// Runs forever.
    ///
    /// # Cancel safety
    /// Safe: no state is left half changed.
    pub(crate) async fn follow_changes(&self) {
        let mut stale = self.feed.stale();
        while stale.changed().await.is_ok() {
            let hint = *stale.borrow_and_update();
            let known = self.dataset();
            if let Some(StaleHint { data, is_certain }) = hint
                && data == self.data()
            {
                self.describe_again(&known, is_certain).await;
            }
        }
    }

    /// Returns the identity and generation of the data.
    pub(crate) fn data(&self) -> (DatasetId, Generation) {
        let dataset = self.dataset();
        (dataset.id, dataset.generation)
    }

    /// Describes the data again, because another rank sees other data; keeps the old description on errors.
    pub(crate) async fn describe_now(&self) {
        if let Ok(new) = self.source.describe().await
            && new.check().is_ok()
        {
            *self.dataset.write().unwrap_or_else(PoisonError::into_inner) = new;
        }
    }

    async fn describe_again(&self, old: &Dataset, has_changed: bool) {
        let mut reason = has_changed.then(|| "they could not be described again".to_owned());
        for attempt in 0..DESCRIBE_ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(DESCRIBE_PAUSE).await;
            }
            match self.source.describe().await.and_then(|new| new.check().map(|()| new)) {
                Ok(new) if (new.id, new.generation) != (old.id, old.generation) => {
                    return self.show_changed(old, new);
                }
                // The uncertain hint was wrong.
                Ok(_same) if !has_changed => return,
                Ok(_same) => {}
                Err(error) => reason = Some(error.to_string()),
            }
        }
        let Some(reason) = reason else { return };
        let text =
            format!("The data changed, and {reason}: restart the viewing node, then reload this page.");
        self.room_state().tell_all(Severity::Error, &text);
    }

    /// Shows new data to all participants, at the same position.
    fn show_changed(&self, old: &Dataset, new: Arc<Dataset>) {
        *self.dataset.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&new);
        let mut room_state = self.room_state();
        room_state.room.tell_changed();
        if let Some(drawn) = self.drawn() {
            room_state.viewers.values().for_each(|viewer| viewer.outbox.push(Item::Drawn, drawn.clone()));
        }
        room_state.reshow_views(old, &new);
    }

    /// Returns the arrays that are drawn on other axes than those of the data, as JSON; `None` if this is
    /// unknown.
    fn drawn(&self) -> Option<Bytes> {
        let drawn = self.regridded.get()?.differing();
        serde_json::to_vec(&drawn).ok().map(Bytes::from)
    }

    /// Adds a participant, or lets one continue whose secret `join` has. `secret` is that of a new one; without one
    /// they cannot come back. `connection` is the number of their connection, or 0.
    pub(crate) fn join(
        &self,
        join: &JoinParams,
        role: Role,
        secret: String,
        connection: u64,
    ) -> Result<(ParticipantId, Arc<ViewerState>)> {
        let mut room_state = self.room_state();
        room_state.room.expire(self.started.elapsed());
        let entry = RoomEntry { name: &join.name, resume: &join.resume, secret, connection };
        let who = room_state.room.enter(&entry, role)?;
        let viewer = Arc::new(ViewerState::new(join.size()));
        // The older connection of a participant who is back may not have noticed yet that it broke.
        if let Some(old) = room_state.viewers.insert(who, Arc::clone(&viewer)) {
            old.leave();
        }
        room_state.deliver();
        if let Some(drawn) = self.drawn() {
            viewer.outbox.push(Item::Drawn, drawn);
        }
        Ok((who, viewer))
    }

    /// Ends a connection of a participant; has no effect if they continue on another one.
    pub(crate) fn disconnect(&self, who: ParticipantId, viewer: &Arc<ViewerState>) {
        let mut room_state = self.room_state();
        viewer.leave();
        if room_state.viewers.get(&who).is_none_or(|current| !Arc::ptr_eq(current, viewer)) {
            return;
        }
        room_state.viewers.remove(&who);
        room_state.room.disconnect(who, self.started.elapsed());
        room_state.deliver();
        self.away.notify_one();
    }

    /// Returns whether this is the connection on which a participant is present, or the last one they had.
    pub(crate) fn is_newest(&self, who: ParticipantId, viewer: &Arc<ViewerState>) -> bool {
        self.room_state().viewers.get(&who).is_none_or(|current| Arc::ptr_eq(current, viewer))
    }

    /// Removes participants who did not come back. Runs forever.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn expire_participants(&self) {
        loop {
            self.away.notified().await;
            // Those who leave meanwhile notify again.
            tokio::time::sleep(MAX_AWAY).await;
            let mut room_state = self.room_state();
            room_state.room.expire(self.started.elapsed());
            room_state.deliver();
        }
    }

    /// Returns the item of a due update; `None` if there is nothing new.
    pub(crate) fn update(&self, who: ParticipantId, due: DueUpdate) -> Option<OutgoingItem> {
        let update = RoomUpdate::take(&mut self.room_state().room, who, due)?;
        update.item().inspect_err(|error| tracing::error!(%error, "an update is lost")).ok()
    }

    /// Handles a note of a participant; errors are reported to that participant.
    pub(crate) fn note(&self, from: ParticipantId, text: &[u8]) {
        let note = ParticipantNote::parse(text);
        let mut room_state = self.room_state();
        match note {
            Ok(ParticipantNote::View(change)) => {
                let seq = change.seq;
                if let Err(error) = room_state.change(from, change, &self.dataset()) {
                    room_state.room.refuse(from, seq, &error);
                }
            }
            Ok(ParticipantNote::Resize { width, height }) => {
                room_state.with_viewer(from, |s| s.change(|w| w.size = PictureSize::new(width, height)));
            }
            Ok(ParticipantNote::Shown { frame }) => {
                room_state.with_viewer(from, |s| s.change(|w| w.shown = w.shown.max(frame)))
            }
            Ok(ParticipantNote::Still) => {
                room_state.with_viewer(from, |s| s.change(|w| w.wants_still = true))
            }
            Ok(ParticipantNote::Remove { who }) => {
                let removed = room_state.remove(from, who).map(|member| self.withdraw(&member));
                let (severity, text) = match removed {
                    Ok(text) => (Severity::Info, text),
                    Err(error) => (Severity::Warning, error.to_string()),
                };
                room_state.room.tell(from, severity, text);
            }
            Ok(note) => {
                if let Err(error) = apply(&mut room_state.room, from, note, &self.dataset()) {
                    room_state.room.tell(from, Severity::Warning, error.to_string());
                }
            }
            Err(error) => room_state.room.tell(from, Severity::Warning, error.to_string()),
        }
        room_state.deliver();
    }

    /// Withdraws the access of somebody who was removed; returns the message for the owner.
    fn withdraw(&self, member: &RemovedMember) -> String {
        let access = self.on_removed.get().and_then(|withdraw| withdraw(member));
        access.unwrap_or_else(|| {
            format!("{} was removed; whoever has the owner's link can come back with it.", member.name)
        })
    }

    /// Changes view number `at` of a participant; returns false if it is no longer their current one.
    pub(crate) fn fill_in(&self, who: ParticipantId, at: u64, fields: &Map<String, Value>) -> Result<bool> {
        let mut room_state = self.room_state();
        let is_set = room_state.room.set(who, at, fields)?;
        room_state.deliver();
        Ok(is_set)
    }

    /// Returns the current view of a participant; without one, or if they have left, the first view of participants.
    pub(crate) fn view_of(&self, who: Option<ParticipantId>) -> View {
        let room_state = self.room_state();
        let own = who.and_then(|who| room_state.room.view(who));
        own.map_or_else(|| room_state.room.first_view().clone(), |(_, view)| view.clone())
    }

    /// Returns the map from what is drawn to what is stored, for the present description.
    ///
    /// # Errors
    /// `Stale` while the data are being described again.
    pub(crate) fn stored_places(&self) -> Result<StoredPlaces> {
        let dataset = self.dataset();
        let places = self.regridded.get().map_or_else(
            || StoredPlaces::as_drawn(self.source(), Arc::clone(&dataset)),
            Regridded::stored_places,
        );
        if places.fits(&dataset) {
            return Ok(places);
        }
        Err(Error::new(ErrorKind::Stale, "the data have changed and are being described again; try again"))
    }

    fn room_state(&self) -> MutexGuard<'_, RoomState> {
        self.room_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RoomState {
    fn change(&mut self, from: ParticipantId, mut change: ViewChange, dataset: &Dataset) -> Result<()> {
        if let Some((_, view)) = self.room.view(from) {
            change.view = view.with_consequences(&change.view, dataset);
        }
        self.room.change(from, &change, |view| check(view, dataset))?;
        // With another array other fields have changed, which the participant has to know.
        if change.view.contains_key("array")
            && let Some((seq, _)) = self.room.view(from)
        {
            self.room.set(from, seq, &Map::new())?;
        }
        Ok(())
    }

    /// Removes a participant, and ends their connection once it has sent the last items.
    fn remove(&mut self, from: ParticipantId, who: ParticipantId) -> Result<RemovedMember> {
        let member = self.room.remove(from, who)?;
        self.deliver();
        if let Some(viewer) = self.viewers.remove(&who) {
            viewer.leave();
        }
        Ok(member)
    }

    fn tell_all(&mut self, severity: Severity, text: &str) {
        for person in self.room.participants() {
            self.room.tell(person.id, severity, text.to_owned());
        }
        self.deliver();
    }

    /// Gives every view a new number, as if its owner had requested it again, moves those whose array is
    /// gone, and tells the participants.
    fn reshow_views(&mut self, old: &Dataset, new: &Dataset) {
        if let Some(first) = first_view_in_changed(self.room.first_view(), old, new) {
            self.room.set_first_view(first);
        }
        let meaning = meaning_now(old, new);
        for person in self.room.participants() {
            let Some((seq, view)) = self.room.view(person.id) else { continue };
            let fields = view.in_changed(old, new);
            let text = change_message(meaning, &view.array, fields.get("array").and_then(Value::as_str));
            // A single message: a second one would replace it.
            let (severity, text) = match self.room.set(person.id, seq, &fields) {
                Ok(_) => (Severity::Info, text),
                Err(error) => (Severity::Warning, format!("{text} Your view does not fit: {error}.")),
            };
            self.room.tell(person.id, severity, text);
        }
        self.deliver();
    }

    fn with_viewer(&self, of: ParticipantId, f: impl FnOnce(&ViewerState)) {
        if let Some(viewer) = self.viewers.get(&of) {
            f(viewer);
        }
    }

    /// Delivers the events of the room.
    fn deliver(&mut self) {
        while let Some(event) = self.room.poll_event() {
            match event {
                RoomEvent::Tell(to, item) => self.with_viewer(to, |s| s.outbox.push(item, Bytes::new())),
                RoomEvent::Due(to, what) => self.with_viewer(to, |s| s.due.mark(what)),
                RoomEvent::Show { to, seq, view, moving } => self.with_viewer(to, |s| {
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

/// Returns the message to all participants after the data set has changed: the new meaning of values, if only
/// that changed; the array that is gone and the one shown instead, if any.
fn change_message(meaning: Option<&str>, seen: &str, instead: Option<&str>) -> String {
    let gone = |shown| format!("`{seen}` no longer exists; `{shown}` is shown instead");
    match (meaning, instead.map(gone)) {
        (Some(meaning), None) => format!("The values are now treated {meaning}."),
        (Some(meaning), Some(gone)) => format!("The values are now treated {meaning}: {gone}."),
        (None, None) => "The data changed; the picture shows the new state.".into(),
        (None, Some(gone)) => format!("The data changed: {gone}."),
    }
}

/// Returns the new meaning of the values, if that changed and the data did not.
fn meaning_now(old: &Dataset, new: &Dataset) -> Option<&'static str> {
    // Meanings that users can choose.
    let is_sayable = |array: &&ArrayInfo| {
        array.axes.len() > 1 && matches!(array.meaning, Meaning::Intensity | Meaning::Labels)
    };
    let meanings = |dataset: &Dataset| -> Vec<Meaning> {
        dataset.arrays.iter().filter(is_sayable).map(|array| array.meaning).collect()
    };
    let (before, now) = (meanings(old), meanings(new));
    if old.generation != new.generation || before.len() != now.len() || before == now {
        return None;
    }
    let are_all = |meaning| now.iter().all(|own| *own == meaning);
    Some(match (are_all(Meaning::Labels), are_all(Meaning::Intensity)) {
        (true, _) => "as labels",
        (_, true) => "as amounts",
        _ => "as the file says",
    })
}

/// Returns the first view of later participants, once the data set `old` has become `new`; `None` if nothing
/// can be drawn any more.
fn first_view_in_changed(first: &View, old: &Dataset, new: &Dataset) -> Option<View> {
    let changed = first.merged(&first.in_changed(old, new));
    changed
        .and_then(|view| with_shared_camera(view, new))
        .or_else(|_| with_shared_camera(View::first_of(new)?, new))
        .ok()
}

/// Adds a camera to a shared view, unless the volume is flat: then each window gets its own camera, so that
/// the volume fills it.
///
/// # Errors
/// Those of [`check`].
pub(crate) fn with_shared_camera(view: View, dataset: &Dataset) -> Result<View> {
    check(&view, dataset)?;
    let volume = volume_of(&view, dataset)?;
    if view.camera.is_some() || volume.is_flat() {
        return Ok(view);
    }
    let camera = shared_camera(&camera_of(&View::default(), &volume)?);
    Ok(View { camera: Some(camera), ..view })
}

#[cfg(test)]
mod tests {
    use array::conformance::one_array;

    use super::*;

    #[test]
    fn participants_are_told_whether_the_data_or_their_meaning_changed() {
        use Meaning::{Intensity, Labels};
        let with = |meanings: [Meaning; 2], generation| {
            let mut dataset = one_array("|u1".parse().unwrap(), &[4; 3], &[4; 3]);
            dataset.arrays.push(dataset.arrays[0].clone());
            for (array, meaning) in dataset.arrays.iter_mut().zip(meanings) {
                array.meaning = meaning;
            }
            dataset.generation = Generation(generation);
            dataset
        };
        let file = [Intensity, Labels];
        for (before, now, says) in [
            (file, [Labels; 2], Some("as labels")),
            (file, [Intensity; 2], Some("as amounts")),
            ([Labels; 2], file, Some("as the file says")),
            (file, file, None),
        ] {
            assert_eq!(meaning_now(&with(before, 0), &with(now, 0)), says, "{now:?}");
            assert_eq!(meaning_now(&with(before, 0), &with(now, 1)), None, "the file was rewritten");
        }
        assert_eq!(change_message(Some("as labels"), "a", None), "The values are now treated as labels.");
        assert_eq!(
            change_message(Some("as labels"), "a (color)", Some("a")),
            "The values are now treated as labels: `a (color)` no longer exists; `a` is shown instead."
        );
        assert!(change_message(None, "a", None).starts_with("The data changed"));
    }
}
