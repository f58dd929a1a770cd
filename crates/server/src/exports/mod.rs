//! The data sets that a node serves, by name. No other data can be reached from outside.
//!
//! Data sets named one by one are open as long as the node runs. Data sets of a folder follow its files
//! (`folder_scan`): each is opened on demand, and at most [`MAX_OPEN`] are open at a time.

mod folder_scan;
mod geometry;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use array::{Dataset, DatasetId, Error, ErrorKind, Generation, Meaning, Result};
use bytes::Bytes;
use client::url::{self, Location};
use futures::future::BoxFuture;
use futures::stream::{self, FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wire::ops::{self, BlockPlace, ListEntry};

use crate::exports::folder_scan::{FileState, ScanResult, ScannedDataset, ScannedFolder};
use crate::peers;
use crate::stack::Stack;

/// Minimum interval between checks of a file for changes, and between scans of a folder for new files.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Pause between two scans of a folder, as a multiple of the duration of a scan.
const SCAN_PAUSE_FACTOR: u32 = 10;
/// Minimum interval between requests to other servers for their data sets and peers.
pub const ASK_AGAIN_AFTER: Duration = Duration::from_secs(30);
/// Maximum number of open data sets of folders; the least recently used one is closed.
pub const MAX_OPEN: usize = 16;
/// Number of data sets of folders that are opened when the server starts, so that corrupt ones are reported then; the
/// others are opened on first use.
const OPENED_AT_START: usize = 128;
/// Timeout for opening them.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of data sets that are opened concurrently at the start.
const MAX_CONCURRENT_OPENS: usize = 4;
/// Most names of data sets in an error.
const MAX_SHOWN_NAMES: usize = 20;

/// Opens data sets, with the settings and the memory that they share.
pub trait Opener: Send + Sync {
    /// Opens a location, with its values interpreted as `meaning`; `None`: as the file and its names state. Reads
    /// headers only; of a server, the description.
    fn open(&self, location: Location, meaning: Option<Meaning>) -> BoxFuture<'static, Result<Stack>>;

    /// Meaning of the arrays of files, as given by the user.
    fn default_meaning(&self) -> Option<Meaning>;

    /// Minimum interval between requests to other servers for their data sets and peers.
    fn asks_again_after(&self) -> Duration;

    /// Returns this opener for one of `count` data sets that share the memory.
    fn for_one_of(&self, count: usize) -> Arc<dyn Opener>;

    /// Returns this opener for files in an exported folder, which may refer to one another.
    fn for_folder(&self, folder: PathBuf) -> Arc<dyn Opener>;
}

/// One data set under its name.
pub struct Export {
    /// Name of the data set, unique in the node.
    pub name: String,
    location: Location,
    opener: Arc<dyn Opener>,
    /// Meaning of its values as given by the user; `None`: as the file and its names state.
    meaning: Mutex<Option<Meaning>>,
    /// Open stack; `None` while a data set of a folder is closed.
    current: Arc<Mutex<Option<Arc<Stack>>>>,
    /// Present for a data set of a folder, which is opened on demand.
    lazy: Option<LazyExport>,
    /// Locked while the data set is opened.
    opening: tokio::sync::Mutex<()>,
    /// Identity and generation of the last description, so that a search by identity begins with the likely data set.
    described: Mutex<Option<(DatasetId, Generation)>>,
    /// Time of the last check for changes.
    checked_at: Mutex<Instant>,
    /// Tasks with requests to other servers; they end with this value.
    asking: Mutex<JoinSet<()>>,
    /// Name of this server among other servers; set once it listens.
    pub(crate) server_name: OnceLock<String>,
    /// The encoded description.
    encoded: CachedDocument,
    /// The description as the document of a Zarr group.
    zarr: CachedDocument,
    /// The servers that the data come through, according to their last response.
    pub(crate) chain: Mutex<Vec<String>>,
    /// Time of that response; locked during a request, so that one request is in flight at a time.
    pub(crate) chain_heard: tokio::sync::Mutex<Option<Instant>>,
}

/// Facts about a data set of a folder before it is opened, and the list of the open ones.
struct LazyExport {
    format: &'static str,
    arrays: Mutex<Option<usize>>,
    /// Folder that is served, with its files of geometry.
    root: PathBuf,
    open: Arc<Mutex<Vec<Arc<Export>>>>,
}

/// A document about a data set, created once for each of its states, so that all responses share the memory.
#[derive(Default)]
struct CachedDocument(Mutex<Option<(DatasetId, Generation, Bytes)>>);

impl CachedDocument {
    /// Returns the document for the state of `dataset`; creates it with `make` if needed. Other callers wait meanwhile.
    fn of(&self, dataset: &Dataset, make: impl FnOnce(&Dataset) -> Result<Bytes>) -> Result<Bytes> {
        let mut cached = self.0.lock();
        if let Some((id, generation, text)) = &*cached
            && (*id, *generation) == (dataset.id, dataset.generation)
        {
            return Ok(text.clone());
        }
        let text = make(dataset)?;
        *cached = Some((dataset.id, dataset.generation, text.clone()));
        Ok(text)
    }
}

impl Export {
    fn new(name: String, location: Location, opener: Arc<dyn Opener>, lazy: Option<LazyExport>) -> Self {
        Self {
            name,
            location,
            meaning: Mutex::new(opener.default_meaning()),
            opener,
            current: Arc::default(),
            lazy,
            opening: tokio::sync::Mutex::default(),
            described: Mutex::default(),
            checked_at: Mutex::new(Instant::now()),
            asking: Mutex::default(),
            server_name: OnceLock::new(),
            encoded: CachedDocument::default(),
            zarr: CachedDocument::default(),
            chain: Mutex::default(),
            chain_heard: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the stack if it is open, which is always so for a data set named by itself. If the data are on other
    /// servers, these are asked for changes periodically in the background.
    #[must_use]
    pub fn open_stack(&self) -> Option<Arc<Stack>> {
        if matches!(self.location, Location::Remote(_)) && self.is_time(self.opener.asks_again_after()) {
            self.refresh();
        }
        self.current.lock().clone()
    }

    /// Returns the stack; opens it if it is closed.
    ///
    /// # Errors
    /// The errors of opening.
    ///
    /// # Cancel safety
    /// Safe: the next caller opens it.
    pub async fn stack(self: &Arc<Self>) -> Result<Arc<Stack>> {
        if let Some(stack) = self.open_stack() {
            self.mark_used();
            return Ok(stack);
        }
        let _one_at_a_time = self.opening.lock().await;
        if let Some(stack) = self.open_stack() {
            return Ok(stack);
        }
        let stack = Arc::new(self.open().await?);
        *self.checked_at.lock() = Instant::now();
        *self.current.lock() = Some(Arc::clone(&stack));
        self.mark_used();
        Ok(stack)
    }

    /// Returns the file or folder that it is read from, if that is on this machine.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.location {
            Location::Path(path) => Some(path),
            _ => None,
        }
    }

    /// Opens the current state of the data, with the meaning set last.
    fn open(&self) -> BoxFuture<'static, Result<Stack>> {
        self.opener.open(self.location.clone(), *self.meaning.lock())
    }

    /// Interprets the values of a file with this meaning from now on; `None`: as the file and its names state. Returns
    /// true if identity or generation of the data differ with it.
    ///
    /// # Errors
    /// `Unsupported` for the data of other servers; the errors of opening and describing, which leave the former
    /// meaning in force.
    ///
    /// # Cancel safety
    /// Safe: the next description uses the meaning set last.
    pub async fn interpret(self: &Arc<Self>, meaning: Option<Meaning>) -> Result<bool> {
        if !matches!(self.location, Location::Path(_)) {
            return Err(Error::unsupported(
                "expected a file on this machine; the meaning of a server's data is set on the server, with \
                 `corridor serve --meaning labels`",
            ));
        }
        let before = self.stack().await?.source.describe().await?;
        let former = std::mem::replace(&mut *self.meaning.lock(), meaning);
        self.check_next();
        match self.describe().await {
            Ok(now) => Ok((before.id, before.generation) != (now.id, now.generation)),
            Err(error) => {
                *self.meaning.lock() = former;
                self.check_next();
                Err(error)
            }
        }
    }

    /// Marks a data set of a folder as used; may close the least recently used one. Its reads in flight continue.
    fn mark_used(self: &Arc<Self>) {
        let Some(lazy) = &self.lazy else { return };
        let mut open = lazy.open.lock();
        if open.last().is_some_and(|last| Arc::ptr_eq(last, self)) {
            return;
        }
        open.retain(|other| !Arc::ptr_eq(other, self));
        if open.len() >= MAX_OPEN {
            let closed = open.remove(0);
            closed.current.lock().take();
        }
        open.push(Arc::clone(self));
    }

    /// Opens the data set again if other servers have other data sets now, or name other peers.
    fn refresh(&self) {
        let mut asking = self.asking.lock();
        while asking.try_join_next().is_some() {}
        // One request at a time; none without a runtime, as on a rendering thread.
        let (true, Ok(runtime)) = (asking.is_empty(), Handle::try_current()) else { return };
        let (name, location, opener) = (self.name.clone(), self.location.clone(), Arc::clone(&self.opener));
        let (current, server_name) = (Arc::clone(&self.current), self.server_name.get().cloned());
        let again = async move {
            let Some(known) = current.lock().clone() else { return };
            if !known.upstream.has_changed().await {
                return;
            }
            match open_checked(location, &*opener, server_name.as_deref()).await {
                Ok(stack) => *current.lock() = Some(Arc::new(stack)),
                Err(error) => tracing::warn!(%error, "`{name}` has changed and cannot be opened again"),
            }
        };
        asking.spawn_on(again, &runtime);
    }

    /// Describes the data set; opens it again if the data have changed since it was opened.
    ///
    /// # Errors
    /// The errors of opening and describing.
    pub async fn describe(self: &Arc<Self>) -> Result<Arc<Dataset>> {
        let stack = self.stack().await?;
        if matches!(self.location, Location::Path(_)) && self.is_time(CHECK_INTERVAL) {
            let fresh = self.open().await?;
            let (old, new) = (stack.source.describe().await?, fresh.source.describe().await?);
            if (old.id, old.generation) != (new.id, new.generation) {
                *self.current.lock() = Some(Arc::new(fresh));
            }
        }
        let dataset = self.stack().await?.source.describe().await?;
        *self.described.lock() = Some((dataset.id, dataset.generation));
        if let Some(lazy) = &self.lazy {
            *lazy.arrays.lock() = Some(dataset.arrays.len());
        }
        Ok(dataset)
    }

    /// Makes the next description check for changes: a reader found that the data have changed.
    pub(crate) fn check_next(&self) {
        let mut checked_at = self.checked_at.lock();
        *checked_at = checked_at.checked_sub(CHECK_INTERVAL).unwrap_or(*checked_at);
    }

    /// Returns the encoded description.
    ///
    /// # Errors
    /// The errors of [`describe`](Self::describe).
    pub async fn encoded(self: &Arc<Self>) -> Result<Bytes> {
        let dataset = self.describe().await?;
        self.encoded.of(&dataset, ops::encode_dataset)
    }

    /// Returns the document of its Zarr group, with all arrays, for the state that `dataset` describes.
    pub(crate) fn zarr_root(&self, dataset: &Dataset) -> Result<Bytes> {
        self.zarr.of(dataset, |dataset| Ok(crate::zarr::root_document(dataset).into()))
    }

    /// Returns the stack with its description, if the data have this identity and generation; otherwise `None`.
    async fn find_state(
        self: &Arc<Self>,
        id: DatasetId,
        generation: Generation,
    ) -> Option<(Arc<Stack>, Arc<Dataset>)> {
        let stack = self.stack().await.ok()?;
        let dataset = stack.source.describe().await.ok()?;
        let found = (dataset.id, dataset.generation);
        *self.described.lock() = Some(found);
        (found == (id, generation)).then_some((stack, dataset))
    }

    /// Returns whether a check is due because the last one is at least `pause` ago; if so, records this one.
    fn is_time(&self, pause: Duration) -> bool {
        let now = Instant::now();
        let mut checked_at = self.checked_at.lock();
        let is_time = now.duration_since(*checked_at) >= pause;
        if is_time {
            *checked_at = now;
        }
        is_time
    }

    /// Returns the entry for the operation `list`. If the data set cannot be described now, the entry contains the
    /// reason instead of the format.
    async fn entry(self: &Arc<Self>) -> ListEntry {
        let name = self.name.clone();
        let stack = match (self.open_stack(), &self.lazy) {
            (Some(stack), _) => stack,
            // The known facts only: opening thousands of files to list them would take minutes.
            (None, Some(lazy)) => {
                let arrays = lazy.arrays.lock().unwrap_or(0);
                return ListEntry { name, format: lazy.format.to_owned(), arrays };
            }
            (None, None) => return ListEntry { name, format: "not available".to_owned(), arrays: 0 },
        };
        let (format, arrays) = match stack.source.describe().await {
            Ok(dataset) => (dataset.format.clone(), dataset.arrays.len()),
            Err(error) => (format!("not available: {error}"), 0),
        };
        ListEntry { name, format, arrays }
    }
}

/// Opens a stack, and checks that it can be described and that its data do not come from the server of this name.
async fn open_checked(location: Location, opener: &dyn Opener, server_name: Option<&str>) -> Result<Stack> {
    let stack = opener.open(location, opener.default_meaning()).await?;
    stack.source.describe().await?;
    if let Some(server_name) = server_name {
        peers::check_upstream(&stack, server_name).await?;
    }
    Ok(stack)
}

/// An exported folder, and the result of its last scan.
struct WatchedFolder {
    /// Prefix of the names of its data sets, with a `/`; empty if it is the only location.
    prefix: String,
    folder: Arc<Mutex<ScannedFolder>>,
    state: tokio::sync::Mutex<FolderState>,
}

#[derive(Default)]
struct FolderState {
    checked_at: Option<Instant>,
    took: Duration,
    /// Data sets by their names in the folder.
    exports: BTreeMap<String, (FileState, Arc<Export>)>,
    /// Files that are not data in this state, with the reasons.
    broken: BTreeMap<String, (FileState, String)>,
    left_out: usize,
}

/// All data sets of a node.
pub struct Exports {
    fixed: Vec<Arc<Export>>,
    folders: Vec<WatchedFolder>,
    /// Open data sets of folders, the most recently used one last.
    open: Arc<Mutex<Vec<Arc<Export>>>>,
    /// Opener for a data set of a folder.
    opener: Arc<dyn Opener>,
    all: Mutex<Arc<[Arc<Export>]>>,
}

/// Opens and describes a location, so that errors show at the start.
async fn described(location: &Location, opener: &dyn Opener) -> Result<(Stack, Arc<Dataset>)> {
    let stack = opener.open(location.clone(), opener.default_meaning()).await?;
    let dataset = stack.source.describe().await?;
    Ok((stack, dataset))
}

/// Returns whether an error means that a file is not supported data, or corrupt.
fn is_data_error(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Corrupt)
}

/// Returns the path of a folder that is not a data set itself.
async fn as_folder(location: &Location) -> Option<PathBuf> {
    let Location::Path(path) = location else { return None };
    let path = path.clone();
    let look = move || {
        let is_plain =
            path.is_dir() && !matches!(store::recognize(&path, &store::OpenOptions::default()), Ok(Some(_)));
        is_plain.then_some(path)
    };
    tokio::task::spawn_blocking(look).await.ok().flatten()
}

impl Exports {
    /// Opens every location. Names are those of the files; a second one of the same name gets `-2`. If there are
    /// several locations, those that are not data or are corrupt are left out with a warning, as a shell's `FOLDER/*`
    /// names all files. With `scans_folders`, all data sets in a folder that is not a data set itself are served, at
    /// any depth, by their paths in it, including those that are created later.
    ///
    /// # Errors
    /// The error of the first location that cannot be opened for another reason, or of a location if none is left.
    pub async fn open(locations: &[Location], opener: &dyn Opener, scans_folders: bool) -> Result<Self> {
        let mut folders = Vec::new();
        let mut files = Vec::new();
        for location in locations {
            match as_folder(location).await.filter(|_| scans_folders) {
                Some(path) => folders.push(path),
                None => files.push(location),
            }
        }
        let shares = files.len() + if folders.is_empty() { 0 } else { MAX_OPEN };
        let opener = opener.for_one_of(shares);
        let mut fixed: Vec<Arc<Export>> = Vec::with_capacity(files.len());
        let mut names = BTreeSet::new();
        let mut left_out = Vec::new();
        for location in files {
            let (stack, dataset) = match described(location, &*opener).await {
                Err(error) if is_data_error(&error) && locations.len() > 1 => {
                    left_out.push(error);
                    continue;
                }
                opened => opened?,
            };
            let name = unique_name(&stack.name, &names);
            if name != stack.name {
                tracing::warn!("served as `{name}`: another one has the name `{}`", stack.name);
            }
            names.insert(name.clone());
            let export = Export::new(name, location.clone(), Arc::clone(&opener), None);
            *export.described.lock() = Some((dataset.id, dataset.generation));
            *export.current.lock() = Some(Arc::new(stack));
            fixed.push(Arc::new(export));
        }
        warn_left_out(left_out.iter().map(|error| error.to_string()));
        let is_only = locations.len() == 1;
        let mut prefixes = BTreeSet::new();
        let watched = |path: PathBuf| {
            let own = path.file_name().filter(|_| !is_only);
            let own = own.map(|name| unique_name(&name.to_string_lossy(), &prefixes));
            prefixes.extend(own.clone());
            let prefix = own.map_or_else(String::new, |own| format!("{own}/"));
            let folder = Arc::new(Mutex::new(ScannedFolder::new(&path)?));
            Ok(WatchedFolder { prefix, folder, state: tokio::sync::Mutex::default() })
        };
        let folders = folders.into_iter().map(watched).collect::<Result<Vec<_>>>()?;
        match left_out.into_iter().next() {
            Some(error) if fixed.is_empty() && folders.is_empty() => return Err(error),
            _ => {}
        }
        let this =
            Self { all: Mutex::new(fixed.clone().into()), fixed, folders, open: Arc::default(), opener };
        for watched in &this.folders {
            this.scan_folder(watched).await;
        }
        this.update_list().await;
        this.open_first().await;
        Ok(this)
    }

    /// Opens the first data sets of the folders, so that corrupt ones are left out and reported at the start.
    async fn open_first(&self) {
        let is_lazy = |export: &&Arc<Export>| export.lazy.is_some();
        let first: Vec<_> = self.all().iter().filter(is_lazy).take(OPENED_AT_START).cloned().collect();
        let tried = first.into_iter().map(|export| async move {
            let described = export.describe().await;
            (export, described)
        });
        let deadline = Box::pin(tokio::time::sleep(OPEN_TIMEOUT));
        let mut tried = stream::iter(tried).buffer_unordered(MAX_CONCURRENT_OPENS).take_until(deadline);
        let mut broken = BTreeMap::new();
        while let Some((export, described)) = tried.next().await {
            match described {
                Err(error) if is_data_error(&error) => {
                    broken.insert(export.name.clone(), error.to_string());
                }
                // It is opened again on request: a missing part or permission may be added later.
                Err(error) => tracing::warn!("`{}` cannot be opened now: {error}", export.name),
                Ok(_) => {}
            }
        }
        warn_left_out(broken.iter().map(|(name, why)| format!("`{name}`: {why}")));
        for watched in &self.folders {
            let mut state = watched.state.lock().await;
            let FolderState { exports, broken: known, .. } = &mut *state;
            exports.retain(|name, (at, export)| {
                let why = broken.get(&export.name);
                why.into_iter().for_each(|why| drop(known.insert(name.clone(), (*at, why.clone()))));
                why.is_none()
            });
        }
        self.update_list().await;
    }

    /// Scans a folder, and keeps the data sets that have not changed.
    async fn scan_folder(&self, watched: &WatchedFolder) {
        let mut state = watched.state.lock().await;
        let pause = CHECK_INTERVAL.max(state.took * SCAN_PAUSE_FACTOR);
        if state.checked_at.is_some_and(|at| at.elapsed() < pause) {
            return;
        }
        let (began, folder) = (Instant::now(), Arc::clone(&watched.folder));
        let Ok(scan) = tokio::task::spawn_blocking(move || folder.lock().scan()).await else { return };
        let ScanResult { found, left_out, incomplete } = scan;
        if state.left_out != left_out.len() {
            warn_left_out(left_out.iter().map(|(name, why)| format!("`{name}`: {why}")));
            state.left_out = left_out.len();
        }
        if state.checked_at.is_none()
            && let Some(why) = incomplete
        {
            tracing::warn!("not all of the folder is served: {why}");
        }
        let root = watched.folder.lock().root().to_owned();
        let mut before = std::mem::take(&mut state.exports);
        let mut now = BTreeMap::new();
        state
            .broken
            .retain(|name, (at, _)| found.iter().any(|found| found.name == *name && found.state == *at));
        for found in found.into_iter().filter(|found| !state.broken.contains_key(&found.name)) {
            let ScannedDataset { name, path, format, state: at } = found;
            // A file that changed stays the same export: it is opened again on request.
            let export = match before.remove(&name) {
                Some((then, export)) => {
                    if then != at {
                        export.check_next();
                    }
                    export
                }
                None => {
                    if state.checked_at.is_some() {
                        tracing::info!("`{name}` was added");
                    }
                    let (arrays, open) = (Mutex::default(), Arc::clone(&self.open));
                    let lazy = LazyExport { format, arrays, root: root.clone(), open };
                    let own = format!("{}{name}", watched.prefix);
                    // Files of the folder may refer to one another.
                    let opener = self.opener.for_folder(root.clone());
                    Arc::new(Export::new(own, Location::Path(path), opener, Some(lazy)))
                }
            };
            now.insert(name, (at, export));
        }
        for (name, (_, export)) in before {
            tracing::info!("`{name}` was removed");
            self.open.lock().retain(|other| !Arc::ptr_eq(other, &export));
        }
        (state.exports, state.checked_at, state.took) = (now, Some(Instant::now()), began.elapsed());
    }

    /// Updates the list of all data sets.
    async fn update_list(&self) {
        let mut all = self.fixed.clone();
        let mut names: BTreeSet<String> = all.iter().map(|export| export.name.clone()).collect();
        for watched in &self.folders {
            for (_, export) in watched.state.lock().await.exports.values() {
                // Of several data sets with the same name, the first one is served.
                if names.insert(export.name.clone()) {
                    all.push(Arc::clone(export));
                }
            }
        }
        *self.all.lock() = all.into();
    }

    /// Scans the folders again, unless they have just been scanned.
    async fn rescan(&self) {
        if self.folders.is_empty() {
            return;
        }
        for watched in &self.folders {
            self.scan_folder(watched).await;
        }
        self.update_list().await;
    }

    /// Returns the data sets in the order in which they were given; those of folders by name.
    #[must_use]
    pub fn all(&self) -> Arc<[Arc<Export>]> {
        Arc::clone(&self.all.lock())
    }

    fn known(&self, name: &str) -> Result<Arc<Export>> {
        let all = self.all();
        match (name, &*all) {
            ("", [only]) => Ok(Arc::clone(only)),
            _ => all.iter().find(|e| e.name == name).cloned().ok_or_else(|| {
                let names: Vec<&str> = all.iter().take(MAX_SHOWN_NAMES).map(|e| e.name.as_str()).collect();
                // In a URL, a `/` separates the data set from the array: the name may be the beginning of a longer one.
                let is_longer = |export: &Arc<Export>| {
                    export.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
                };
                let advice = match all.iter().find(|export| is_longer(export)) {
                    Some(export) => {
                        let written = url::encode(&export.name).replace('/', "%2F");
                        format!("; in a URL a slash within a name is `%2F`: `{written}`")
                    }
                    None => String::new(),
                };
                Error::not_found(format!("expected one of the data sets {names:?}, found `{name}`{advice}"))
            }),
        }
    }

    /// Finds a data set by name; the empty name means the only one. Folders are scanned for an unknown name.
    ///
    /// # Errors
    /// `NotFound`, with the existing names.
    pub async fn find(&self, name: &str) -> Result<Arc<Export>> {
        if let Ok(export) = self.known(name) {
            return Ok(export);
        }
        self.rescan().await;
        self.known(name)
    }

    /// Finds the data set whose name a path begins with, and the rest of the path: names may contain slashes.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub(crate) async fn find_at<'a>(&self, path: &'a str) -> Result<(Arc<Export>, &'a str)> {
        let is_named = |export: &&Arc<Export>| {
            path.strip_prefix(&export.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        for is_retry in [false, true] {
            if is_retry {
                self.rescan().await;
            }
            let all = self.all();
            // The longest name: a data set may have the name of the folder that contains another one.
            if let Some(export) = all.iter().filter(is_named).max_by_key(|export| export.name.len()) {
                return Ok((Arc::clone(export), path.get(export.name.len() + 1..).unwrap_or_default()));
            }
        }
        self.known(path).map(|export| (export, ""))
    }

    /// Returns the stack that has the data of a place, with the description that the place belongs to.
    ///
    /// # Errors
    /// `Stale` if no data set has this identity and generation now.
    pub async fn at(&self, place: &BlockPlace) -> Result<(Arc<Stack>, Arc<Dataset>)> {
        self.by_identity(place.dataset, place.generation).await
    }

    async fn by_identity(&self, id: DatasetId, generation: Generation) -> Result<(Arc<Stack>, Arc<Dataset>)> {
        let all = self.all();
        let is_likely = |export: &&Arc<Export>| *export.described.lock() == Some((id, generation));
        for export in all.iter().filter(is_likely) {
            if let Some(found) = export.find_state(id, generation).await {
                return Ok(found);
            }
        }
        // A data set that cannot be described now, such as one on a server that does not respond, does not delay the
        // others. Of folders, only open data sets: no client can have a description of the others from this server.
        let is_open = |export: &&Arc<Export>| export.lazy.is_none() || export.open_stack().is_some();
        let mut asked: FuturesUnordered<_> =
            all.iter().filter(is_open).map(|export| export.find_state(id, generation)).collect();
        while let Some(answer) = asked.next().await {
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

    /// Returns the entries for the operation `list`.
    pub async fn list(&self) -> Vec<ListEntry> {
        self.rescan().await;
        let all = self.all();
        let mut entries = Vec::with_capacity(all.len());
        for export in all.iter() {
            entries.push(export.entry().await);
        }
        entries
    }
}

/// Logs one warning for all files that are left out, and each file at the level `info`.
fn warn_left_out(what: impl ExactSizeIterator<Item = String>) {
    let count = what.len();
    for (number, line) in what.enumerate() {
        match (number, count) {
            (0, 1) => tracing::warn!("left out: {line}"),
            (0, _) => {
                tracing::warn!(
                    "left out: {count} files or folders that are not data, or corrupt, such as {line} (`-v` names all)"
                );
                tracing::info!("left out: {line}");
            }
            _ => tracing::info!("left out: {line}"),
        }
    }
}

/// Returns `name`, with a number appended if it is taken.
fn unique_name(name: &str, taken: &BTreeSet<String>) -> String {
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
    use array::{Completions, LongWork, ReadRequest, Region, Source, Want};
    use cache::Cached;
    use futures::FutureExt;
    use futures::future::pending;

    use super::*;
    use client::upstream::Upstream;

    use crate::geometry_origin::GeometryOrigin;

    /// Opener of files and synthetic fields, each with a cache of its own.
    struct LocalOpener;

    impl Opener for LocalOpener {
        fn open(&self, location: Location, _: Option<Meaning>) -> BoxFuture<'static, Result<Stack>> {
            let text = match location {
                Location::Path(path) => path.to_string_lossy().into_owned(),
                Location::Synthetic(text) => text,
                other => panic!("expected a file or a synthetic field, found {other:?}"),
            };
            async move {
                let cached = Cached::new(store::open(&text, &store::OpenOptions::default())?, 1 << 20);
                let name =
                    text.trim_start_matches("synthetic:").split('?').next().unwrap_or(&text).to_owned();
                let (source, upstream) = (Arc::new(cached.clone()), Upstream::Here);
                let (work, array) = (LongWork::default(), String::new());
                let geometry = GeometryOrigin {
                    folder: None,
                    upstream: upstream.clone(),
                    source: Arc::<Cached>::clone(&source),
                };
                Ok(Stack { name, source, cached, work, array, upstream, geometry })
            }
            .boxed()
        }

        fn default_meaning(&self) -> Option<Meaning> {
            None
        }

        fn asks_again_after(&self) -> Duration {
            ASK_AGAIN_AFTER
        }

        fn for_one_of(&self, _: usize) -> Arc<dyn Opener> {
            Arc::new(Self)
        }

        fn for_folder(&self, _: PathBuf) -> Arc<dyn Opener> {
            Arc::new(Self)
        }
    }

    /// Source that never answers.
    struct HangingSource;

    impl Source for HangingSource {
        fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
            pending().boxed()
        }

        fn blocks(&self, _: Vec<Want>) -> Completions {
            stream::pending().boxed()
        }

        fn read(&self, _: ReadRequest, _: Region) -> BoxFuture<'static, Result<()>> {
            pending().boxed()
        }
    }

    #[tokio::test]
    async fn an_export_that_hangs_does_not_delay_readers_of_others() {
        let locations =
            ["synthetic:waves?shape=4,5,6", "synthetic:noise?shape=4,5,6"].map(|l| l.parse().unwrap());
        let exports = Exports::open(&locations, &LocalOpener, false).await.unwrap();
        let dataset = exports.find("noise").await.unwrap().describe().await.unwrap();
        let all = exports.all();
        let mut hanging = (*all[0].stack().await.unwrap()).clone();
        hanging.source = Arc::new(HangingSource);
        *all[0].current.lock() = Some(Arc::new(hanging));
        let place = |generation| BlockPlace { dataset: dataset.id, generation, array: 0, level: 0 };
        assert!(exports.at(&place(dataset.generation)).now_or_never().unwrap().is_ok());
        *all[1].described.lock() = None;
        let found = exports.at(&place(dataset.generation)).now_or_never().unwrap();
        assert!(found.is_ok(), "found without a known description");
        assert!(
            exports.at(&place(Generation(77))).now_or_never().is_none(),
            "it may be the export that hangs"
        );
    }

    /// Opener of a synthetic field that refuses to interpret the values as labels.
    struct OpenerWithoutLabels;

    impl Opener for OpenerWithoutLabels {
        fn open(&self, _: Location, meaning: Option<Meaning>) -> BoxFuture<'static, Result<Stack>> {
            if meaning == Some(Meaning::Labels) {
                return async { Err(Error::unsupported("no labels")) }.boxed();
            }
            LocalOpener.open("synthetic:waves?shape=4,5,6".parse().expect("a location"), meaning)
        }

        fn default_meaning(&self) -> Option<Meaning> {
            None
        }

        fn asks_again_after(&self) -> Duration {
            ASK_AGAIN_AFTER
        }

        fn for_one_of(&self, _: usize) -> Arc<dyn Opener> {
            Arc::new(Self)
        }

        fn for_folder(&self, _: PathBuf) -> Arc<dyn Opener> {
            Arc::new(Self)
        }
    }

    #[tokio::test]
    async fn a_meaning_that_cannot_be_used_is_not_kept() {
        let location = Location::Path(PathBuf::from("data.h5"));
        let export = Arc::new(Export::new("data".into(), location, Arc::new(OpenerWithoutLabels), None));
        let refused = export.interpret(Some(Meaning::Labels)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        export.check_next();
        assert!(export.describe().await.is_ok(), "the former meaning is in force again");
    }

    #[tokio::test]
    async fn files_that_are_not_data_are_left_out_if_others_are_data() {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("notes.txt");
        std::fs::write(&notes, "not data").unwrap();
        let notes = notes.to_string_lossy().into_owned();
        let open = async |locations: &[&str]| {
            let locations: Vec<_> = locations.iter().map(|l| l.parse().expect("a location")).collect();
            Exports::open(&locations, &LocalOpener, false).await.map(|exports| exports.all().len())
        };
        assert_eq!(open(&[&notes, "synthetic:waves?shape=4,5,6"]).await.unwrap(), 1);
        assert_eq!(open(&[&notes, &notes]).await.unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(open(&[&notes]).await.unwrap_err().kind(), ErrorKind::Unsupported);
        let absent = open(&["synthetic:waves?shape=4,5,6", "/absent/data.h5"]).await;
        assert_eq!(absent.unwrap_err().kind(), ErrorKind::NotFound, "a missing file is an error");
    }

    #[test]
    fn a_document_is_created_once_for_each_state() {
        let cached = CachedDocument::default();
        let mut dataset = Dataset {
            id: DatasetId(1),
            generation: Generation(0),
            name: "u".into(),
            format: "test".into(),
            arrays: Vec::new(),
            attributes: array::Attributes::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
            groups: Vec::new(),
        };
        let mut made = 0;
        for (generation, expect) in [(0, 1), (0, 1), (1, 2), (1, 2), (0, 3)] {
            dataset.generation = Generation(generation);
            cached
                .of(&dataset, |_| {
                    made += 1;
                    Ok(Bytes::new())
                })
                .unwrap();
            assert_eq!(made, expect);
        }
    }
}
