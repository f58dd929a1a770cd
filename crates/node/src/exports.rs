//! The data sets a node offers, by name. Nothing else can be reached from outside.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use array::{Dataset, DatasetId, Error, ErrorKind, Generation, Result, Source};
use bytes::Bytes;
use futures::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wire::ops::{self, BlockPlace, ListEntry};

use crate::assemble::{Context, Stack, assemble};
use crate::peers;
use crate::url::Location;

/// How often at most a file is looked at for changes.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How often at most other servers are asked again what they have, and who else has it.
pub(crate) const ASK_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// One data set under its name.
pub struct Export {
    /// Its name, unique in the node.
    pub name: String,
    location: Location,
    context: Context,
    current: Arc<Mutex<Arc<Stack>>>,
    /// What it described last, so that nobody else is asked whose data these are.
    described: Mutex<Option<(DatasetId, Generation)>>,
    looked_at: Mutex<Instant>,
    /// Asks other servers again; ends with this value.
    asking: Mutex<JoinSet<()>>,
    /// What this server is called among others, once it listens.
    pub(crate) server_name: OnceLock<String>,
    /// The description as it travels.
    encoded: Said,
    /// The same as a Zarr group.
    zarr: Said,
    /// The servers through which the data come, as last heard.
    pub(crate) chain: Mutex<Vec<String>>,
    /// When that was; whoever asks for it holds this, so that one question is under way at a time.
    pub(crate) chain_heard: tokio::sync::Mutex<Option<Instant>>,
}

/// A text about a data set, made once for each of its states, so that any number of askers share the memory.
#[derive(Default)]
struct Said(Mutex<Option<(DatasetId, Generation, Bytes)>>);

impl Said {
    /// The text for this state, made by `make` if it is not there. Whoever asks meanwhile waits.
    fn of(&self, dataset: &Dataset, make: impl FnOnce(&Dataset) -> Result<Bytes>) -> Result<Bytes> {
        let mut said = self.0.lock();
        if let Some((id, generation, text)) = &*said
            && (*id, *generation) == (dataset.id, dataset.generation)
        {
            return Ok(text.clone());
        }
        let text = make(dataset)?;
        *said = Some((dataset.id, dataset.generation, text.clone()));
        Ok(text)
    }
}

impl Export {
    /// What serves it now. Where that is other servers they are asked again from time to time, beside whoever asks for it.
    #[must_use]
    pub fn stack(&self) -> Arc<Stack> {
        if matches!(self.location, Location::Remote(_)) && self.is_time(self.context.ask_again_after) {
            self.ask_again();
        }
        Arc::clone(&self.current.lock())
    }

    /// Opens everything again where other servers have other data sets now, or name other peers.
    fn ask_again(&self) {
        let mut asking = self.asking.lock();
        while asking.try_join_next().is_some() {}
        // One who asks at a time; none without a runtime, as on a thread that draws.
        let (true, Ok(runtime)) = (asking.is_empty(), Handle::try_current()) else { return };
        let (name, location, context) = (self.name.clone(), self.location.clone(), self.context.clone());
        let (current, server_name) = (Arc::clone(&self.current), self.server_name.get().cloned());
        let again = async move {
            let known = Arc::clone(&current.lock());
            if !known.upstream().has_changed().await {
                return;
            }
            match fresh(&location, &context, server_name.as_deref()).await {
                Ok(stack) => *current.lock() = Arc::new(stack),
                Err(error) => tracing::warn!(%error, "`{name}` has changed, and cannot be opened again"),
            }
        };
        asking.spawn_on(again, &runtime);
    }

    /// Its description; opens the data set again when it is another one now than when it was opened.
    ///
    /// # Errors
    /// Those of opening and describing.
    pub async fn describe(&self) -> Result<Arc<Dataset>> {
        if matches!(self.location, Location::Path(_)) && self.is_time(LOOK_AGAIN_AFTER) {
            let fresh = assemble(&self.location, &self.context).await?;
            let (old, new) = (self.stack().source.describe().await?, fresh.source.describe().await?);
            if (old.id, old.generation) != (new.id, new.generation) {
                *self.current.lock() = Arc::new(fresh);
            }
        }
        self.stack().source.describe().await
    }

    /// Its description as it travels.
    ///
    /// # Errors
    /// Those of [`describe`](Self::describe).
    pub async fn encoded(&self) -> Result<Bytes> {
        let dataset = self.describe().await?;
        self.encoded.of(&dataset, ops::encode_dataset)
    }

    /// The document of its Zarr group, all arrays in it, for the state that `dataset` describes.
    pub(crate) fn zarr_root(&self, dataset: &Dataset) -> Result<Bytes> {
        self.zarr.of(dataset, |dataset| Ok(crate::zarr::root_document(dataset).into()))
    }

    /// What serves it now, with its description, if it is these data.
    async fn having(&self, id: DatasetId, generation: Generation) -> Option<(Arc<Stack>, Arc<Dataset>)> {
        let stack = self.stack();
        let dataset = stack.source.describe().await.ok()?;
        let found = (dataset.id, dataset.generation);
        *self.described.lock() = Some(found);
        (found == (id, generation)).then_some((stack, dataset))
    }

    /// Whether it was not looked at for so long.
    fn is_time(&self, pause: Duration) -> bool {
        let now = Instant::now();
        let mut looked_at = self.looked_at.lock();
        let is_time = now.duration_since(*looked_at) >= pause;
        if is_time {
            *looked_at = now;
        }
        is_time
    }
}

/// A stack that can be described, and whose data do not come from the server of this name.
async fn fresh(location: &Location, context: &Context, server_name: Option<&str>) -> Result<Stack> {
    let stack = assemble(location, context).await?;
    stack.source.describe().await?;
    if let Some(server_name) = server_name {
        peers::check_upstream(&stack, server_name).await?;
    }
    Ok(stack)
}

/// All data sets of a node.
pub struct Exports(Vec<Arc<Export>>);

/// Opening is cheap, describing checks that it works, so that errors show at the start.
async fn described(location: &Location, context: &Context) -> Result<(Stack, Arc<Dataset>)> {
    let stack = assemble(location, context).await?;
    let dataset = stack.source.describe().await?;
    Ok((stack, dataset))
}

fn is_of_the_data(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Corrupt)
}

impl Exports {
    /// Opens every location. Names are those of the files; a second one of the same name gets `-2`. Of several those that are
    /// no data, or broken (a shell's `FOLDER/*` gives all there is), are left out with a warning.
    ///
    /// # Errors
    /// The first location's that cannot be opened for another reason, or where none is left.
    pub async fn open(locations: &[Location], context: &Context) -> Result<Self> {
        let mut names = BTreeSet::new();
        let mut exports = Vec::with_capacity(locations.len());
        let mut no_data = None;
        for location in locations {
            let (stack, dataset) = match described(location, &context.share_of(locations.len())).await {
                Err(error) if is_of_the_data(&error) && locations.len() > 1 => {
                    tracing::warn!("left out: {error}");
                    no_data = no_data.or(Some(error));
                    continue;
                }
                opened => opened?,
            };
            let name = unused(&stack.name, &names);
            if name != stack.name {
                tracing::warn!("served as `{name}`: another one has the name `{}`", stack.name);
            }
            names.insert(name.clone());
            exports.push(Arc::new(Export {
                name,
                location: location.clone(),
                context: context.share_of(locations.len()),
                current: Arc::new(Mutex::new(Arc::new(stack))),
                described: Mutex::new(Some((dataset.id, dataset.generation))),
                looked_at: Mutex::new(Instant::now()),
                asking: Mutex::default(),
                server_name: OnceLock::new(),
                encoded: Said::default(),
                zarr: Said::default(),
                chain: Mutex::default(),
                chain_heard: tokio::sync::Mutex::default(),
            }));
        }
        match no_data {
            Some(error) if exports.is_empty() => Err(error),
            _ => Ok(Self(exports)),
        }
    }

    /// In the order they were given.
    #[must_use]
    pub fn all(&self) -> &[Arc<Export>] {
        &self.0
    }

    /// By name; the empty name is the only one's.
    ///
    /// # Errors
    /// `NotFound`, naming what there is.
    pub fn find(&self, name: &str) -> Result<&Arc<Export>> {
        match (name, self.0.as_slice()) {
            ("", [only]) => Ok(only),
            _ => self.0.iter().find(|e| e.name == name).ok_or_else(|| {
                let names: Vec<&str> = self.0.iter().take(20).map(|e| e.name.as_str()).collect();
                Error::not_found(format!("expected one of the data sets {names:?}, found `{name}`"))
            }),
        }
    }

    /// What answers for a place, with the description that the place fits.
    ///
    /// # Errors
    /// `Stale` when no data set has this identity and generation now.
    pub async fn at(&self, place: &BlockPlace) -> Result<(Arc<Stack>, Arc<Dataset>)> {
        self.by_identity(place.dataset, place.generation).await
    }

    async fn by_identity(&self, id: DatasetId, generation: Generation) -> Result<(Arc<Stack>, Arc<Dataset>)> {
        let is_likely = |export: &&Arc<Export>| *export.described.lock() == Some((id, generation));
        for export in self.0.iter().filter(is_likely) {
            if let Some(found) = export.having(id, generation).await {
                return Ok(found);
            }
        }
        // One that cannot be described now, such as a server that hangs, keeps nobody from the others.
        let mut all: FuturesUnordered<_> =
            self.0.iter().map(|export| export.having(id, generation)).collect();
        while let Some(answer) = all.next().await {
            if let Some(found) = answer {
                return Ok(found);
            }
        }
        Err(Error::new(
            ErrorKind::Stale,
            format!(
                "expected a data set that is exported now, found {id} generation {}; describe it again",
                generation.0
            ),
        ))
    }

    /// For the operation `list`. One that cannot be described now says why in place of its format.
    pub async fn list(&self) -> Vec<ListEntry> {
        let mut entries = Vec::with_capacity(self.0.len());
        for export in &self.0 {
            let (format, arrays) = match export.stack().source.describe().await {
                Ok(dataset) => (dataset.format.clone(), dataset.arrays.len()),
                Err(error) => (format!("not available: {error}"), 0),
            };
            entries.push(ListEntry { name: export.name.clone(), format, arrays });
        }
        entries
    }
}

fn unused(name: &str, taken: &BTreeSet<String>) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2u32;
    while taken.contains(&candidate) {
        candidate = format!("{name}-{number}");
        number += 1;
    }
    candidate
}

#[cfg(test)]
mod tests {
    use array::{Completions, ReadRequest, Region, Want};
    use futures::FutureExt;
    use futures::future::{BoxFuture, pending};

    use super::*;
    use crate::memory::Budget;
    use crate::places::Places;

    /// Never says what it is.
    struct Hanging;

    impl Source for Hanging {
        fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
            pending().boxed()
        }

        fn blocks(&self, _: Vec<Want>) -> Completions {
            futures::stream::pending().boxed()
        }

        fn read(&self, _: ReadRequest, _: Region) -> BoxFuture<'static, Result<()>> {
            pending().boxed()
        }
    }

    #[tokio::test]
    async fn an_export_that_hangs_holds_up_nobody_who_reads_others() {
        let folder = tempfile::tempdir().unwrap();
        let context = Context::new(Places::below(folder.path()), Budget::viewing(64 << 20), None);
        let locations =
            ["synthetic:waves?shape=4,5,6", "synthetic:noise?shape=4,5,6"].map(|l| l.parse().unwrap());
        let exports = Exports::open(&locations, &context).await.unwrap();
        let dataset = exports.find("noise").unwrap().describe().await.unwrap();
        let mut hanging = (*exports.0[0].stack()).clone();
        hanging.source = Arc::new(Hanging);
        *exports.0[0].current.lock() = Arc::new(hanging);
        let place = |generation| BlockPlace { dataset: dataset.id, generation, array: 0, level: 0 };
        assert!(exports.at(&place(dataset.generation)).now_or_never().unwrap().is_ok());
        *exports.0[1].described.lock() = None;
        assert!(exports.at(&place(dataset.generation)).now_or_never().unwrap().is_ok(), "nor what is new");
        assert!(exports.at(&place(Generation(77))).now_or_never().is_none(), "it may be what hangs");
    }

    #[tokio::test]
    async fn what_is_no_data_is_left_out_where_something_is() {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("notes.txt");
        std::fs::write(&notes, "not data").unwrap();
        let context = Context::new(Places::below(folder.path()), Budget::viewing(64 << 20), None);
        let notes = notes.to_string_lossy().into_owned();
        let open = async |locations: &[&str]| {
            let locations: Vec<_> = locations.iter().map(|l| l.parse().expect("a location")).collect();
            Exports::open(&locations, &context).await.map(|exports| exports.all().len())
        };
        assert_eq!(open(&[&notes, "synthetic:waves?shape=4,5,6"]).await.unwrap(), 1);
        assert_eq!(open(&[&notes, &notes]).await.unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(open(&[&notes]).await.unwrap_err().kind(), ErrorKind::Unsupported);
        let absent = open(&["synthetic:waves?shape=4,5,6", "/absent/data.h5"]).await;
        assert_eq!(absent.unwrap_err().kind(), ErrorKind::NotFound, "a name that is wrong is told");
    }

    #[test]
    fn a_text_is_made_once_for_each_state() {
        let said = Said::default();
        let mut dataset = Dataset {
            id: DatasetId(1),
            generation: Generation(0),
            name: "u".into(),
            format: "test".into(),
            arrays: Vec::new(),
            attributes: array::Attributes::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
        };
        let mut made = 0;
        for (generation, expect) in [(0, 1), (0, 1), (1, 2), (1, 2), (0, 3)] {
            dataset.generation = Generation(generation);
            said.of(&dataset, |_| {
                made += 1;
                Ok(Bytes::new())
            })
            .unwrap();
            assert_eq!(made, expect);
        }
    }
}
