//! Removal of a participant by an owner.

use array::{Error, ErrorKind, Result};

use crate::{Item, ParticipantId, Role, Room, RoomEvent};

/// Participant who was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedMember {
    /// Name, as shown to the others.
    pub name: String,
    /// Secret by which they could have come back; it is not valid any more. Empty if they had none.
    pub secret: String,
    /// Number of the connection by which they took part; 0 if it is not known.
    pub connection: u64,
}

impl Room {
    /// Removes a participant on behalf of an owner. The participant is told in a last item, and their secret does not let
    /// them come back.
    ///
    /// # Errors
    /// `Denied` for all but owners, `NotFound` for somebody who left, `Invalid` for oneself.
    pub fn remove(&mut self, from: ParticipantId, who: ParticipantId) -> Result<RemovedMember> {
        let owner = self.find(from)?;
        if owner.role != Role::Own {
            return Err(Error::new(ErrorKind::Denied, "only owners can remove somebody from the session"));
        }
        let by = owner.name.clone();
        if from == who {
            return Err(Error::invalid("nobody can remove themselves; close the page to leave"));
        }
        let member = self.find(who)?;
        let removed = RemovedMember {
            name: member.name.clone(),
            secret: std::mem::take(&mut member.secret),
            connection: member.connection,
        };
        for gone in self.panes_of(who).into_iter().chain([who]) {
            self.leave(gone);
            self.push(RoomEvent::Tell(gone, Item::Removed { by: by.clone() }));
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use view::View;

    use super::*;
    use crate::RoomEntry;

    fn enter(room: &mut Room, name: &str, role: Role) -> ParticipantId {
        let secret = format!("secret of {name}");
        room.enter(&RoomEntry { name, secret, ..RoomEntry::default() }, role).unwrap()
    }

    #[test]
    fn nobody_is_in_a_session_unseen_and_pictures_of_a_page_go_with_it() {
        let mut room = Room::new("tooth", View::default());
        let ada = enter(&mut room, "Ada", Role::Own);
        let by = |connection| RoomEntry { connection, ..RoomEntry::default() };
        let [page, pane, other] =
            [7, 7, 8].map(|connection| room.enter(&by(connection), Role::Watch).unwrap());
        room.set_pane(pane).unwrap();
        for hidden in [page, other] {
            assert_eq!(room.set_pane(hidden).unwrap_err().kind(), ErrorKind::Denied);
        }
        let listed = |room: &Room| {
            let listed = room.participants.iter().filter(|(_, member)| !member.is_pane);
            listed.map(|(&id, _)| id).collect::<Vec<_>>()
        };
        assert_eq!(listed(&room), [ada, page, other]);
        room.remove(ada, page).unwrap();
        assert_eq!(listed(&room), [ada, other]);
        assert!(room.view(pane).is_none());

        let second = room.enter(&by(8), Role::Watch).unwrap();
        room.set_pane(second).unwrap();
        room.leave(other);
        assert_eq!(listed(&room), [ada, second], "without its main picture");
    }

    #[test]
    fn an_owner_removes_a_participant_who_is_told_and_cannot_come_back() {
        let mut room = Room::new("tooth", View::default());
        let ada = enter(&mut room, "Ada", Role::Own);
        let bob = enter(&mut room, "Bob", Role::Steer);
        let eve = enter(&mut room, "Eve", Role::Watch);
        room.present(bob, Some(bob)).unwrap();
        while room.poll_event().is_some() {}

        assert_eq!(room.remove(bob, eve).unwrap_err().kind(), ErrorKind::Denied);
        assert_eq!(room.remove(ada, ada).unwrap_err().kind(), ErrorKind::Invalid);
        let removed = room.remove(ada, bob).unwrap();
        assert_eq!((removed.name.as_str(), removed.secret.as_str()), ("Bob", "secret of Bob"));
        assert_eq!(room.remove(ada, bob).unwrap_err().kind(), ErrorKind::NotFound);

        let events: Vec<RoomEvent> = std::iter::from_fn(|| room.poll_event()).collect();
        let for_bob: Vec<&RoomEvent> =
            events.iter().filter(|event| matches!(event, RoomEvent::Tell(to, _) if *to == bob)).collect();
        assert_eq!(for_bob, [&RoomEvent::Tell(bob, Item::Removed { by: "Ada".into() })]);
        let people = room.participants();
        assert!(people.iter().all(|person| person.id != bob && !person.presents && person.follows.is_none()));
        let entry =
            RoomEntry { name: "Bob", resume: "secret of Bob", secret: "another".into(), connection: 0 };
        assert_ne!(room.enter(&entry, Role::Steer).unwrap(), bob);
    }

    #[test]
    fn somebody_who_is_away_can_be_removed() {
        let mut room = Room::new("tooth", View::default());
        let ada = enter(&mut room, "Ada", Role::Own);
        let bob = enter(&mut room, "Bob", Role::Steer);
        room.disconnect(bob, std::time::Duration::from_secs(1));
        assert_eq!(room.remove(ada, bob).unwrap().secret, "secret of Bob");
        assert_eq!(room.participants().len(), 1);
    }
}
