//! Places that can be opened from the page of a viewing node: data sets that are open, folders, and the data sets of servers.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use array::{Error, ErrorKind, Result};
use client::running_servers;
use client::url::{Location, Url};
use serde::Serialize;
use server::rooms::OpenRoom;
use wire::ops;

use crate::assemble::{self, Context};

/// Maximum number of entries of a list; more are counted only.
const MAX_LISTED: usize = 2000;
/// Maximum number of files and folders that are looked at for a list.
const MAX_LOOKED_AT: usize = 20_000;
/// Time for looking into the files of a folder; files after it are listed unseen.
const LOOK_TIMEOUT: Duration = Duration::from_secs(4);
/// Timeout for the list of a server.
const SERVER_TIMEOUT: Duration = Duration::from_secs(15);

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
pub(super) struct PlaceList {
    place: String,
    /// Folder above it; empty for the list of places.
    parent: String,
    entries: Vec<ListedPlace>,
    /// Number of entries that are not listed: more than the limit.
    further: usize,
    /// Number of files that are no data.
    left_out: usize,
    pub(super) may_open_files: bool,
    pub(super) max_upload_bytes: u64,
}

/// Places at which lists begin.
pub(super) struct Roots<'a> {
    /// Locations of the first data set.
    pub(super) locations: &'a [Location],
    /// Path from the page to that of the first data set; empty on that page.
    pub(super) to_first: &'a str,
    pub(super) rooms: Vec<OpenRoom>,
    /// Servers that the first data set is read from.
    pub(super) servers: Vec<Url>,
    /// Folder of the records of running servers; present if files and any servers may be opened.
    pub(super) records: Option<&'a Path>,
}

/// Lists where to begin: open data sets, the folder of the first one, the home folder, and servers.
pub(super) fn roots(roots: Roots<'_>) -> PlaceList {
    let Roots { locations, to_first, rooms, mut servers, records } = roots;
    let mut entries = vec![ListedPlace {
        name: locations.first().map_or_else(String::new, name_of),
        kind: PlaceKind::Open,
        location: if to_first.is_empty() { "./".into() } else { to_first.to_owned() },
        about: "the first data set of this node".into(),
    }];
    entries.extend(rooms.into_iter().rev().map(|room| ListedPlace {
        name: room.name,
        kind: PlaceKind::Open,
        location: format!("{to_first}{}", room.path),
        about: "open".into(),
    }));
    if records.is_some() {
        let folders = locations.iter().filter_map(|location| match location {
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
    let own = servers.len();
    servers.extend(records.into_iter().flat_map(running_servers::others));
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

/// Lists the folders and data sets in a folder.
///
/// # Errors
/// `NotFound` and others of reading it, `Unsupported` for a path that is not UTF-8.
pub(super) async fn folder(path: PathBuf) -> Result<PlaceList> {
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
///
/// # Errors
/// `TimedOut`, and those of the connection.
pub(super) async fn server(url: Url, context: &Context) -> Result<PlaceList> {
    let url = Url { dataset: String::new(), array: String::new(), ..url };
    let listed = tokio::time::timeout(SERVER_TIMEOUT, assemble::exports(&url, context)).await;
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
