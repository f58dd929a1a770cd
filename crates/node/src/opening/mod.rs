//! Opening of further data sets from the page of a viewing node: operation `open` makes a room of its own for a location, operation
//! `places` lists what can be opened. Both are for owners of the session only.
//!
//! An owner who uses this machine, by a loopback address and with a token, may open what the process may: files, and any server. Over the
//! network only the data sets of the servers that the node reads from anyway can be opened.

mod places;

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use bytes::Bytes;
use client::url::{Location, Url};
use serde::Deserialize;
use serde_json::json;
use server::connection::Service;
use server::http::uploads::{MAX_UPLOADED_BYTES, Uploads};
use server::ops::{BeginOutcome, Handler, OperationCall, OperationRegistry};
use server::peers::check_chain;
use server::rooms::{OpenRoom, Rooms};
use server::token::Right;
use stream::DrawDevice;
use view::View;
use wire::ops::{self, encode_json};

use crate::memory::MemoryBudget;
use crate::node::{FurtherData, ServerOptions};
use crate::opening::places::Roots;
use crate::viewed::prepare;

/// Part of `--memory` that each room gets in addition to the first data set, as a divisor.
const ROOM_SHARE: u64 = 8;
/// Maximum length of a location, bytes.
const MAX_LOCATION_BYTES: usize = 8192;
/// Timeout for opening a data set.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);
/// Folder below the user's caches for files that are dropped on the page.
const UPLOADS: &str = "uploads";

/// Further data sets of a viewing node.
pub(crate) struct Opening {
    /// Options of the first data set.
    options: ServerOptions,
    device: DrawDevice,
    rooms: Arc<Rooms>,
    /// Present if owners may open files.
    uploads: Option<Arc<Uploads>>,
    /// Locked while a data set is opened.
    one_at_a_time: tokio::sync::Mutex<()>,
}

impl Opening {
    /// Prepares opening beside the data set of `options`.
    ///
    /// # Errors
    /// `Io` if the system has no source of randomness.
    pub(crate) fn new(options: &ServerOptions, device: DrawDevice) -> Result<Arc<Self>> {
        let folder = options.context.directories.cache.join(UPLOADS);
        let uploads = options
            .is_local()
            .then(|| Uploads::below(&folder, options.admission.clone()).map(Arc::new))
            .transpose()?;
        Ok(Arc::new(Self {
            options: options.clone(),
            device,
            rooms: Arc::default(),
            uploads,
            one_at_a_time: tokio::sync::Mutex::default(),
        }))
    }

    /// Adds the operations to the registry of the first data set, which keeps this alive; returns what the port serves.
    pub(crate) fn register_first(self: Arc<Self>, registry: &mut OperationRegistry) -> FurtherData {
        let further = FurtherData { rooms: Arc::clone(&self.rooms), uploads: self.uploads.clone() };
        register(registry, &HeldOpening::First(self), "");
        further
    }

    fn may_open_files(&self) -> bool {
        self.uploads.is_some()
    }

    /// Returns the servers that the first data set is read from.
    fn known_servers(&self) -> Vec<Url> {
        let urls = self.options.locations.iter().filter_map(|location| match location {
            Location::Remote(url) => Some(url.servers()),
            _ => None,
        });
        urls.flatten().map(|url| Url { dataset: String::new(), array: String::new(), ..url }).collect()
    }

    /// Returns where the lists of a page begin.
    fn roots<'a>(&'a self, to_first: &'a str) -> Roots<'a> {
        let runtime = self.options.context.directories.runtime.as_path();
        Roots {
            locations: &self.options.locations,
            to_first,
            rooms: self.rooms.list(),
            servers: self.known_servers(),
            records: self.may_open_files().then_some(runtime),
        }
    }

    /// Checks that an owner may open a location; completes it with the token of a server that the node knows.
    fn allowed(&self, location: Location) -> Result<Location> {
        match location {
            Location::Awaited(_) => Err(Error::unsupported(
                "waiting for a server needs the command line: `corridor view await://...`",
            )),
            Location::Synthetic(_) => Ok(location),
            Location::Remote(mut url) => {
                let known = self.known_servers();
                let is_known = |url: &Url| known.iter().any(|known| known.authority() == url.authority());
                if !url.servers().iter().all(is_known) && !self.may_open_files() {
                    return Err(only_known(&known));
                }
                if let Some(known) = known.iter().find(|known| known.authority() == url.authority()) {
                    url.token = url.token.or_else(|| known.token.clone());
                    url.fingerprint = url.fingerprint.or_else(|| known.fingerprint.clone());
                }
                Ok(Location::Remote(url))
            }
            Location::Path(_) | Location::Ssh(_) if self.may_open_files() => Ok(location),
            Location::Path(_) | Location::Ssh(_) => Err(only_known(&self.known_servers())),
        }
    }

    /// Opens a location in a room of its own, or returns its room if it is open. Other requests wait meanwhile.
    async fn open(self: &Arc<Self>, text: &str, server_name: Option<&String>) -> Result<OpenRoom> {
        let (location, array) = self.allowed(parse(text)?)?.split_array();
        let _one_at_a_time = self.one_at_a_time.lock().await;
        if let Some(room) = self.rooms.find(text) {
            return Ok(room);
        }
        self.rooms.check_place()?;
        let opened = tokio::time::timeout(OPEN_TIMEOUT, self.service(location, array, server_name)).await;
        let slow = || {
            let secs = OPEN_TIMEOUT.as_secs();
            Error::new(ErrorKind::TimedOut, format!("opening took longer than {secs} s; try again later"))
        };
        let (name, service) = opened.map_err(|_| slow())??;
        self.rooms.add(text, &name, service)
    }

    async fn service(
        self: &Arc<Self>,
        location: Location,
        array: String,
        server_name: Option<&String>,
    ) -> Result<(String, Service)> {
        let common = &self.options.context;
        let budget = MemoryBudget::viewing(common.budget.whole / ROOM_SHARE);
        let options = ServerOptions {
            locations: vec![location],
            explores_folders: false,
            peers: Vec::new(),
            waiting_clients: Vec::new(),
            context: common.within(budget).meaning(None).without_await(),
            ..self.options.clone()
        };
        let first_view = (!array.is_empty()).then(|| View { array, ..View::default() });
        let (shared, mut registry) =
            prepare(&options, &options.context, first_view, self.device, None).await?;
        let export = shared.exports.find("").await?;
        if let Some(name) = server_name {
            check_chain(&export, name).await?;
            // The node is new: its name is not set.
            drop(shared.name.set(name.clone()));
        }
        register(&mut registry, &HeldOpening::Room(Arc::downgrade(self)), "../../");
        let name = export.describe().await?.name.clone();
        Ok((name, Service::new(options.admission.clone(), registry, shared)))
    }
}

fn only_known(known: &[Url]) -> Error {
    let names: Vec<String> = known.iter().map(Url::authority).collect();
    let servers = match &names[..] {
        [] => String::new(),
        names => format!("; here: data sets of {}", names.join(", ")),
    };
    Error::new(
        ErrorKind::Denied,
        format!(
            "over the network only data sets of the servers that this node reads from can be opened{servers}; start `corridor view` for \
             the other data, or use it on its own machine (by ssh with `-L`)"
        ),
    )
}

/// Parses a location as people write it: without spaces and quotes around it; `~` is the home folder.
fn parse(text: &str) -> Result<Location> {
    let text = text.trim().trim_matches(['"', '\'']);
    if text.len() > MAX_LOCATION_BYTES {
        return Err(Error::too_large(format!(
            "expected a path or URL of at most {MAX_LOCATION_BYTES} bytes"
        )));
    }
    let home = || std::env::var("HOME").ok().filter(|home| !home.is_empty());
    let path = text.strip_prefix("file://").unwrap_or(text);
    match (path.strip_prefix("~/"), home()) {
        (Some(rest), Some(home)) => Ok(Location::Path(Path::new(&home).join(rest))),
        _ => path.parse(),
    }
}

/// Checks that a caller owns the session.
fn check_owner(call: &OperationCall) -> Result<()> {
    match call.right {
        Right::Everything => Ok(()),
        _ => Err(Error::new(ErrorKind::Denied, "only owners of the session may open other data")),
    }
}

/// Adds the operations to a registry. `to_first` is the path from its page to the first one.
fn register(registry: &mut OperationRegistry, opening: &HeldOpening, to_first: &'static str) {
    registry.add(OpenHandler { opening: opening.clone(), to_first });
    registry.add(PlacesHandler { opening: opening.clone(), to_first });
}

/// Access of a handler to the further data sets. Rooms do not keep alive what holds them.
#[derive(Clone)]
enum HeldOpening {
    First(Arc<Opening>),
    Room(Weak<Opening>),
}

impl HeldOpening {
    fn get(&self) -> Result<Arc<Opening>> {
        match self {
            Self::First(opening) => Ok(Arc::clone(opening)),
            Self::Room(opening) => opening
                .upgrade()
                .ok_or_else(|| Error::new(ErrorKind::Unreachable, "the node is about to stop")),
        }
    }
}

/// Answers `open`: the path of a page for another location.
pub(crate) struct OpenHandler {
    opening: HeldOpening,
    to_first: &'static str,
}

/// Parameters of `open`.
#[derive(Deserialize)]
pub(crate) struct OpenParameters {
    location: String,
}

impl Handler for OpenHandler {
    type Work = OpenParameters;

    fn name(&self) -> &'static str {
        ops::OPEN
    }

    fn is_forwarded(&self) -> bool {
        false
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<OpenParameters>> {
        let parameters = serde_json::from_slice(&parameters)
            .map_err(|e| Error::invalid(format!("expected parameters of `open` in JSON: {e}")))?;
        Ok(BeginOutcome::Work(parameters))
    }

    async fn run(&self, request: OpenParameters, call: &OperationCall) -> Result<()> {
        check_owner(call)?;
        let opening = self.opening.get()?;
        let room = opening.open(&request.location, call.node.name.get()).await?;
        let answer = json!({"path": format!("{}{}", self.to_first, room.path), "name": room.name});
        call.operation.item(encode_json(&answer)?, Bytes::new()).await
    }
}

/// Answers `places`.
pub(crate) struct PlacesHandler {
    opening: HeldOpening,
    to_first: &'static str,
}

/// Parameters of `places`: a folder or server; empty for the list of them.
#[derive(Deserialize)]
pub(crate) struct PlacesParameters {
    #[serde(default)]
    place: String,
}

impl Handler for PlacesHandler {
    type Work = PlacesParameters;

    fn name(&self) -> &'static str {
        ops::PLACES
    }

    fn is_forwarded(&self) -> bool {
        false
    }

    fn begin(&self, parameters: Bytes) -> Result<BeginOutcome<PlacesParameters>> {
        let parameters = serde_json::from_slice(&parameters)
            .map_err(|e| Error::invalid(format!("expected parameters of `places` in JSON: {e}")))?;
        Ok(BeginOutcome::Work(parameters))
    }

    async fn run(&self, request: PlacesParameters, call: &OperationCall) -> Result<()> {
        check_owner(call)?;
        let opening = self.opening.get()?;
        let mut list = match request.place.as_str() {
            "" => places::roots(opening.roots(self.to_first)),
            place => match opening.allowed(parse(place)?)? {
                Location::Path(path) => places::folder(path).await?,
                Location::Remote(url) => places::server(url, &opening.options.context).await?,
                _ => return Err(only_known(&opening.known_servers())),
            },
        };
        list.may_open_files = opening.may_open_files();
        list.max_upload_bytes = if list.may_open_files { MAX_UPLOADED_BYTES } else { 0 };
        call.operation.item(encode_json(&list)?, Bytes::new()).await
    }
}
