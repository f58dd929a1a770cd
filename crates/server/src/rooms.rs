//! Rooms: further data sets of a viewing node, opened by people in its page. Each has a service of its own, with its own session, below
//! `/room/NUMBER/` of the same port.

use std::sync::Arc;

use array::{Error, ErrorKind, Result};
use axum::http::Uri;
use parking_lot::Mutex;

use crate::connection::Service;

/// Maximum number of rooms: each has a cache and a renderer of its own.
pub const MAX_ROOMS: usize = 4;
/// First parts of paths that rooms do not have.
const NOT_IN_ROOMS: [&str; 3] = ["zarr", "metrics", "path"];
/// Beginning of the paths of rooms.
const PREFIX: &str = "/room/";

/// Rooms of a node, each with a service.
pub struct Rooms<S = Service>(Mutex<RoomList<S>>);

struct RoomList<S> {
    /// The most recently opened one last.
    rooms: Vec<NumberedRoom<S>>,
    /// Number of the newest room; numbers are not used again.
    newest: u32,
}

struct NumberedRoom<S> {
    number: u32,
    location: String,
    name: String,
    service: Arc<S>,
}

impl<S> Default for Rooms<S> {
    fn default() -> Self {
        Self(Mutex::new(RoomList { rooms: Vec::new(), newest: 0 }))
    }
}

/// Meaning of a path below [`PREFIX`].
pub(crate) enum RoomPath<S = Service> {
    /// A room that is open, and the path in it.
    Open(Arc<S>, Uri),
    /// Path without its last slash, as a relative redirection.
    Slash(String),
    /// No room of this number is open.
    Gone,
}

/// Room in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRoom {
    /// Path of its page, relative to the first page of the node: `room/NUMBER/`.
    pub path: String,
    /// Name of its data set.
    pub name: String,
}

impl<S> Rooms<S> {
    /// Returns the room of a location, if it is open, as the newest one.
    pub fn find(&self, location: &str) -> Option<OpenRoom> {
        let mut list = self.0.lock();
        let at = list.rooms.iter().position(|room| room.location == location)?;
        let room = list.rooms.remove(at);
        let found = room.listed();
        list.rooms.push(room);
        Some(found)
    }

    /// Checks that a room can be added, and closes none for it.
    ///
    /// # Errors
    /// `Busy` if all are used.
    pub fn check_place(&self) -> Result<()> {
        let list = self.0.lock();
        let is_free = |room: &NumberedRoom<S>| Arc::strong_count(&room.service) == 1;
        if list.rooms.len() < MAX_ROOMS || list.rooms.iter().any(is_free) { Ok(()) } else { Err(busy()) }
    }

    /// Closes the rooms that nobody uses until there is a place for one more, the oldest one first.
    ///
    /// # Errors
    /// `Busy` if all are used.
    fn make_place(&self) -> Result<()> {
        let mut list = self.0.lock();
        while list.rooms.len() >= MAX_ROOMS {
            // A connection to a room holds its service.
            let unused = list.rooms.iter().position(|room| Arc::strong_count(&room.service) == 1);
            list.rooms.remove(unused.ok_or_else(busy)?);
        }
        Ok(())
    }

    /// Adds a room. Closes one that nobody uses if there is no place, with what its session holds.
    ///
    /// # Errors
    /// `Busy` if all are used.
    pub fn add(&self, location: &str, name: &str, service: S) -> Result<OpenRoom> {
        self.make_place()?;
        let mut list = self.0.lock();
        list.newest += 1;
        let room = NumberedRoom {
            number: list.newest,
            location: location.to_owned(),
            name: name.to_owned(),
            service: Arc::new(service),
        };
        let added = room.listed();
        list.rooms.push(room);
        Ok(added)
    }

    /// Returns the rooms that are open, the newest one last.
    pub fn list(&self) -> Vec<OpenRoom> {
        self.0.lock().rooms.iter().map(NumberedRoom::listed).collect()
    }

    /// Returns the meaning of a path; `None` for paths outside of rooms.
    pub(crate) fn at(&self, uri: &Uri) -> Option<RoomPath<S>> {
        let rest = uri.path().strip_prefix(PREFIX)?;
        let Some((number, path)) = rest.split_once('/') else {
            // Nothing but a number, so that the redirection leads to no other site.
            return Some(
                rest.parse().map_or(RoomPath::Gone, |number: u32| RoomPath::Slash(format!("{number}/"))),
            );
        };
        // These are for the first data set only.
        if NOT_IN_ROOMS.iter().any(|first| path.split('/').next() == Some(first)) {
            return Some(RoomPath::Gone);
        }
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let service = {
            let list = self.0.lock();
            let room = list.rooms.iter().find(|room| room.number.to_string() == number);
            room.map(|room| Arc::clone(&room.service))
        };
        Some(match (service, format!("/{path}{query}").parse()) {
            (Some(service), Ok(uri)) => RoomPath::Open(service, uri),
            _ => RoomPath::Gone,
        })
    }
}

fn busy() -> Error {
    Error::new(
        ErrorKind::Busy,
        format!(
            "{MAX_ROOMS} data sets are open and in use besides the first one; close the pages of one of them"
        ),
    )
}

impl<S> NumberedRoom<S> {
    fn listed(&self) -> OpenRoom {
        let path = format!("{}{}/", PREFIX.trim_start_matches('/'), self.number);
        OpenRoom { path, name: self.name.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_in_use_stay_open_and_others_give_way() {
        let rooms = Rooms::<()>::default();
        let path = |text: &str| rooms.at(&text.parse().unwrap());
        assert!(path("/wire").is_none() && matches!(path("/room/1/"), Some(RoomPath::Gone)));
        for number in 1..=MAX_ROOMS {
            let added = rooms.add(&format!("at {number}"), "a", ()).unwrap();
            assert_eq!(added.path, format!("room/{number}/"));
        }
        let Some(RoomPath::Open(used, uri)) = path("/room/1/wire?x=1") else {
            panic!("expected an open room")
        };
        assert_eq!(uri, "/wire?x=1");
        assert!(matches!(path("/room/1"), Some(RoomPath::Slash(to)) if to == "1/"));
        for gone in ["/room/https:evil.example", "/room/1/zarr/a", "/room/1/metrics"] {
            assert!(matches!(path(gone), Some(RoomPath::Gone)), "{gone}");
        }
        assert_eq!(rooms.find("at 3").unwrap().path, "room/3/");
        assert!(rooms.find("elsewhere").is_none());
        // The second is the oldest one that is not used.
        rooms.add("at 5", "a", ()).unwrap();
        assert!(matches!(path("/room/2/"), Some(RoomPath::Gone)));
        let held: Vec<_> = ["/room/3/", "/room/4/", "/room/5/"].map(path).into_iter().collect();
        assert_eq!(rooms.check_place().unwrap_err().kind(), ErrorKind::Busy);
        drop((used, held));
        assert!(rooms.check_place().is_ok() && rooms.list().len() == MAX_ROOMS);
        assert!(rooms.make_place().is_ok() && rooms.list().len() < MAX_ROOMS);
    }
}
