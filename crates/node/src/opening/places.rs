//! Operation `places`: what can be opened from the page of a viewing node: data sets that are open, folders, and the data sets of servers.

use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::{Duration, Instant};

use array::{Error, ErrorKind, Result};
use bytes::Bytes;
use client::running_servers;
use client::url::{Location, Url};
use serde::{Deserialize, Serialize};
use server::http::uploads::MAX_UPLOADED_BYTES;
use server::ops::{BeginOutcome, Handler, OperationCall};
use wire::ops::{self, encode_json};

use super::{Opening, check_owner, only_known, parse, upgrade};
use crate::assemble;

/// Maximum number of entries of a list; more are counted only.
const MAX_LISTED: usize = 2000;
/// Maximum number of files and folders that are looked at for a list.
const MAX_LOOKED_AT: usize = 20_000;
/// Time for looking into the files of a folder; files after it are listed unseen.
const LOOK_TIMEOUT: Duration = Duration::from_secs(4);
/// Timeout for the list of a server.
const SERVER_TIMEOUT: Duration = Duration::from_secs(15);

/// Answers `places`.
pub(crate) struct PlacesHandler {
    pub(super) opening: Weak<Opening>,
    pub(super) to_first: &'static str,
}

/// Parameters of `places`: a folder or server; empty for the list of them.
#[derive(Deserialize)]
pub(crate) struct PlacesParameters {
    #[serde(default)]
    place: String,
}

/// Something in a list.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct ListedPlace {
    name: String,
    kind: PlaceKind,
    /// Location to open, or place to list; of an open data set the path of its page.
    location: String,
    about: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum PlaceKind {
    Open,
    Folder,
    Server,
    Data,
}

/// Answer of `places`.
#[derive(Debug, Default, Serialize)]
struct PlaceList {
    place: String,
    /// Folder above it; empty for the list of places.
    parent: String,
    entries: Vec<ListedPlace>,
    /// Number of entries that are not listed: more than the limit.
    further: usize,
    /// Number of files that are no data.
    left_out: usize,
    may_open_files: bool,
    max_upload_bytes: u64,
}

impl Handler for PlacesHandler {
    type Work = PlacesParameters;

    fn name(&self) -> &'static str {
        ops::PLACES
    }

    fn only_reads(&self) -> bool {
        true
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
        let opening = upgrade(&self.opening)?;
        let mut list = match request.place.as_str() {
            "" => roots(&opening, self.to_first),
            place => match parse(place)? {
                Location::Path(path) if opening.may_open_files() => folder(path).await?,
                Location::Remote(url) => server(&opening, url).await?,
                _ => return Err(only_known(&opening.known_servers())),
            },
        };
        list.may_open_files = opening.may_open_files();
        list.max_upload_bytes = if list.may_open_files { MAX_UPLOADED_BYTES } else { 0 };
        call.operation.item(encode_json(&list)?, Bytes::new()).await
    }
}

/// Lists where to begin: open data sets, the folder of the first one, the home folder, and servers.
fn roots(opening: &Opening, to_first: &str) -> PlaceList {
    let mut entries = vec![ListedPlace {
        name: opening.options.locations.first().map_or_else(String::new, name_of),
        kind: PlaceKind::Open,
        location: if to_first.is_empty() { "./".into() } else { to_first.to_owned() },
        about: "the first data set of this node".into(),
    }];
    entries.extend(opening.rooms.list().into_iter().rev().map(|room| ListedPlace {
        name: room.name,
        kind: PlaceKind::Open,
        location: format!("{to_first}{}", room.path),
        about: "open".into(),
    }));
    if opening.may_open_files() {
        let folders = opening.options.locations.iter().filter_map(|location| match location {
            Location::Path(path) => Some(std::path::absolute(path).ok()?.parent()?.to_owned()),
            _ => None,
        });
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_dir());
        let mut seen: Vec<PathBuf> = Vec::new();
        for (folder, about) in
            folders.map(|folder| (folder, "beside the data")).chain(home.map(|home| (home, "home folder")))
        {
            if let Some(text) = folder.to_str().filter(|_| !seen.contains(&folder)) {
                entries.push(ListedPlace {
                    name: text.to_owned(),
                    kind: PlaceKind::Folder,
                    location: text.to_owned(),
                    about: about.into(),
                });
                seen.push(folder);
            }
        }
    }
    let mut servers = opening.known_servers();
    let own = servers.len();
    if opening.may_open_files() {
        servers.extend(running_servers::others(&opening.options.context.directories.runtime));
    }
    for (number, url) in servers.iter().enumerate() {
        let is_known = servers.iter().take(number).any(|other| other.authority() == url.authority());
        if !is_known {
            let about =
                if number < own { "server of this data set" } else { "server of yours on this machine" };
            entries.push(ListedPlace {
                name: url.authority(),
                kind: PlaceKind::Server,
                location: url.public(),
                about: about.into(),
            });
        }
    }
    PlaceList { entries, ..PlaceList::default() }
}

fn name_of(location: &Location) -> String {
    match location {
        Location::Path(path) => {
            path.file_name().map_or_else(|| "data".into(), |name| name.to_string_lossy().into_owned())
        }
        Location::Remote(url) => url.public(),
        Location::Synthetic(text) => text.clone(),
        Location::Ssh(_) | Location::Awaited(_) => "data of another host".into(),
    }
}

async fn folder(path: PathBuf) -> Result<PlaceList> {
    tokio::task::spawn_blocking(move || list_folder(&path))
        .await
        .map_err(|e| Error::internal(format!("the task that lists a folder ended early: {e}")))?
}

/// Lists the folders and data sets in a folder. Blocking.
#[expect(clippy::disallowed_methods, reason = "somebody waits for the list")]
fn list_folder(path: &Path) -> Result<PlaceList> {
    let path = std::path::absolute(path)?;
    let in_words = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .ok_or_else(|| Error::unsupported("expected a path in UTF-8; rename the folder"))
    };
    let place = in_words(&path)?;
    let listed = std::fs::read_dir(&path).map_err(|e| Error::from(e).context(format!("folder `{place}`")))?;
    let parent = path.parent().map(in_words).transpose()?.unwrap_or_default();
    let mut names: Vec<(String, PathBuf)> = listed
        .flatten()
        .take(MAX_LOOKED_AT)
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .filter(|(name, _)| !name.starts_with('.'))
        .collect();
    names.sort();
    let deadline = Instant::now() + LOOK_TIMEOUT;
    let options = store::OpenOptions::default();
    let (mut entries, mut left_out, mut further) = (Vec::new(), 0, 0);
    for (name, path) in names {
        let (true, Some(location)) = (entries.len() < MAX_LISTED, path.to_str()) else {
            further += 1;
            continue;
        };
        let is_folder = path.is_dir();
        let format = match Instant::now() < deadline {
            true => store::recognize(&path, &options).ok().flatten(),
            false => Some("not looked into"),
        };
        let (kind, about) = match format {
            Some(format) if !is_folder || Instant::now() < deadline => (PlaceKind::Data, format),
            _ if is_folder => (PlaceKind::Folder, ""),
            _ => {
                left_out += 1;
                continue;
            }
        };
        entries.push(ListedPlace { name, kind, location: location.to_owned(), about: about.to_owned() });
    }
    entries.sort_by_key(|entry| entry.kind);
    Ok(PlaceList { place, parent, entries, further, left_out, ..PlaceList::default() })
}

/// Lists the data sets of a server.
async fn server(opening: &Opening, url: Url) -> Result<PlaceList> {
    let Location::Remote(url) = opening.allowed(Location::Remote(url))? else {
        return Err(Error::internal("a URL became another location"));
    };
    let url = Url { dataset: String::new(), array: String::new(), ..url };
    let listed =
        tokio::time::timeout(SERVER_TIMEOUT, assemble::exports(&url, &opening.options.context)).await;
    let silent = || {
        Error::new(ErrorKind::TimedOut, format!("`{}` did not answer; check that it runs", url.authority()))
    };
    let all = listed.map_err(|_| silent())??;
    let further = all.len().saturating_sub(MAX_LISTED);
    let entry = |listed: ops::ListEntry| ListedPlace {
        location: Url { dataset: listed.name.clone(), ..url.clone() }.public(),
        name: listed.name,
        kind: PlaceKind::Data,
        about: listed.format,
    };
    let entries = all.into_iter().take(MAX_LISTED).map(entry).collect();
    Ok(PlaceList { place: url.public(), entries, further, ..PlaceList::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_listed_with_its_folders_and_data() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("deeper")).unwrap();
        std::fs::write(at("a.npy"), b"\x93NUMPY\x01\x00").unwrap();
        std::fs::write(at("notes.txt"), "words").unwrap();
        std::fs::write(at(".hidden.npy"), b"\x93NUMPY\x01\x00").unwrap();
        let list = list_folder(folder.path()).unwrap();
        let found: Vec<_> = list.entries.iter().map(|place| (place.name.as_str(), place.kind)).collect();
        assert_eq!(found, [("deeper", PlaceKind::Folder), ("a.npy", PlaceKind::Data)]);
        assert!(list.left_out == 1 && list.further == 0);
        assert_eq!(list.parent, folder.path().parent().unwrap().to_str().unwrap());
        assert_eq!(list_folder(&at("absent")).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
