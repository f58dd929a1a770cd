//! Following and presenting: whose view a participant shows.
//!
//! A participant shows their own view, or follows another one; a follower may be followed in turn, without cycles.
//! While somebody presents, all others follow them unless they opted out. Any own change of the view ends following.

use std::collections::VecDeque;

use array::{Error, ErrorKind, Result};
use view::View;

use crate::{Item, ParticipantId, Role, Room};

impl Room {
    /// Makes a participant follow another one, or nobody (`None`), which also opts out of a presentation.
    ///
    /// # Errors
    /// `NotFound` for somebody who left; `Invalid` for oneself, while presenting, or if it would close a circle.
    pub fn follow(&mut self, who: ParticipantId, leader: Option<ParticipantId>) -> Result<()> {
        self.find(who)?;
        let Some(leader) = leader else {
            self.stop_following(who, "");
            self.tell_participants();
            return Ok(());
        };
        let name = self.find(leader)?.name.clone();
        if self.presenter == Some(who) {
            return Err(Error::invalid(
                "you are presenting: end it or hand it over before you follow somebody",
            ));
        }
        if self.leaders_of(leader).contains(&who) {
            return Err(Error::invalid(if leader == who {
                "nobody can follow themselves".to_owned()
            } else {
                format!("{name} follows you already")
            }));
        }
        self.begin_following(who, leader);
        self.tell_participants();
        Ok(())
    }

    /// Makes `presenter` present to all: the participant themselves, or, by the presenter or an owner, somebody else.
    /// `None` ends the presentation.
    ///
    /// # Errors
    /// `NotFound` for somebody who left, `Denied` for roles that may not present, and for anybody but the presenter
    /// and owners while somebody presents.
    pub fn present(&mut self, from: ParticipantId, presenter: Option<ParticipantId>) -> Result<()> {
        let member = self.find(from)?;
        let (role, name) = (member.role, member.name.clone());
        let may_decide = role == Role::Own || self.presenter == Some(from);
        let Some(next) = presenter else {
            if self.presenter.is_some() && !may_decide {
                return Err(denied(
                    "only the presenter and owners can end the presentation; you can stop following",
                ));
            }
            self.end_presentation(&format!("{name} ended the presentation"));
            self.tell_participants();
            return Ok(());
        };
        let follower = self.find(next)?;
        if !role.may_steer() || !follower.role.may_steer() {
            return Err(denied(
                "participants who only watch cannot present; ask an owner for the role `steer`",
            ));
        }
        if follower.away_since.is_some() {
            return Err(Error::invalid(format!("{} is not connected at present", follower.name)));
        }
        if !may_decide && (self.presenter.is_some() || next != from) {
            return Err(denied("somebody else presents; ask them to hand over"));
        }
        let is_new = self.presenter.is_none();
        self.stop_following(next, "because you present");
        self.presenter = Some(next);
        let others: Vec<ParticipantId> = self.participants.keys().copied().filter(|&id| id != next).collect();
        if let Some(member) = self.participants.get_mut(&next) {
            member.opted_out = false;
        }
        for id in others {
            let Some(member) = self.participants.get_mut(&id).filter(|member| !member.is_pane) else {
                continue;
            };
            member.opted_out &= !is_new;
            if !member.opted_out {
                self.begin_following(id, next);
            }
        }
        self.tell_participants();
        Ok(())
    }

    /// Changes the role of a participant.
    ///
    /// # Errors
    /// `Denied` for all but owners, `NotFound` for somebody who left, `Invalid` for the only owner's own role.
    pub fn set_role(&mut self, from: ParticipantId, who: ParticipantId, role: Role) -> Result<()> {
        if self.find(from)?.role != Role::Own {
            return Err(denied("only owners can change roles"));
        }
        self.find(who)?;
        let has_other_owner = self.participants.iter().any(|(&id, p)| id != who && p.role == Role::Own);
        if who == from && role != Role::Own && !has_other_owner {
            return Err(Error::invalid("you are the only owner; make somebody else an owner first"));
        }
        self.find(who)?.role = role;
        if !role.may_steer() && self.presenter == Some(who) {
            self.end_presentation("The presenter only watches now");
        }
        self.tell_participants();
        Ok(())
    }

    /// Changes the name of a participant.
    ///
    /// # Errors
    /// `NotFound` for somebody who left, `Invalid` for a name without printable characters.
    pub fn rename(&mut self, who: ParticipantId, name: &str) -> Result<()> {
        let name = crate::room::legal_name(name)
            .ok_or_else(|| Error::invalid("expected a name with at least one printable character"))?;
        self.find(who)?.name = name;
        self.tell_participants();
        Ok(())
    }

    /// Returns the leader of somebody who joins now, and the leader's view: the presenter, or for a participant who
    /// only watches, the first one who may change the view.
    pub(crate) fn first_leader(&self, role: Role) -> Option<(ParticipantId, View)> {
        let may_lead = |id: &ParticipantId| self.participants.get(id).is_some_and(|p| p.role.may_steer());
        let first = || self.participants.keys().copied().find(|id| role == Role::Watch && may_lead(id));
        let leader = self.presenter.or_else(first)?;
        Some((leader, self.participants.get(&leader)?.view.clone()))
    }

    /// Gives the view of a participant to all who follow them.
    pub(crate) fn lead(&mut self, leader: ParticipantId) {
        // At most one entry for each participant: there are no circles.
        let mut leaders = VecDeque::from([leader]);
        while let Some(leader) = leaders.pop_front() {
            let Some(member) = self.participants.get(&leader) else { continue };
            let (view, moving) = (member.view.clone(), member.moving);
            let followers: Vec<ParticipantId> = self
                .participants
                .iter()
                .filter(|(_, p)| p.follows == Some(leader))
                .map(|(&id, _)| id)
                .collect();
            for id in followers {
                if let Some(follower) = self.participants.get_mut(&id) {
                    follower.moving = moving;
                }
                self.put_view(id, view.clone());
                leaders.push_back(id);
            }
        }
    }

    /// Ends what a participant leads who leaves.
    pub(crate) fn end_leading(&mut self, who: ParticipantId, name: &str) {
        let why = format!("{name} left");
        if self.presenter == Some(who) {
            self.end_presentation(&why);
        }
        self.release_followers(who, &why);
    }

    /// Makes a participant show their own view; `why` completes the sentence, and is empty if it was their wish.
    pub(crate) fn stop_following(&mut self, who: ParticipantId, why: &str) {
        let presenter = self.presenter;
        let Some(member) = self.participants.get_mut(&who) else { return };
        let Some(leader) = member.follows.take() else { return };
        member.opted_out |= presenter == Some(leader);
        member.moving = false;
        let name = self.participants.get(&leader).map_or_else(|| "them".to_owned(), |p| p.name.clone());
        let space = if why.is_empty() { "" } else { " " };
        self.tell_following(who, format!("You no longer follow {name}{space}{why}."));
    }

    /// Tells a participant whom they follow, and why that changed.
    pub(crate) fn tell_following(&mut self, who: ParticipantId, text: String) {
        let Some(member) = self.participants.get(&who) else { return };
        let leader = member.follows;
        self.push(crate::RoomEvent::Tell(who, Item::Following { leader, text }));
    }

    fn begin_following(&mut self, who: ParticipantId, leader: ParticipantId) {
        let Some(view) = self.participants.get(&leader).map(|p| p.view.clone()) else { return };
        let is_presenter = self.presenter == Some(leader);
        let Some(member) = self.participants.get_mut(&who) else { return };
        let was_own = member.follows.is_none();
        member.follows = Some(leader);
        if is_presenter {
            member.opted_out = false;
        }
        if was_own && member.view != view {
            let before = member.view.clone();
            member.history.replaced(&before);
        }
        self.put_view(who, view);
        self.lead(who);
        self.tell_following(who, String::new());
        self.tell_history(who);
    }

    fn end_presentation(&mut self, why: &str) {
        let Some(presenter) = self.presenter.take() else { return };
        self.release_followers(presenter, why);
        for member in self.participants.values_mut() {
            member.opted_out = false;
        }
    }

    fn release_followers(&mut self, leader: ParticipantId, why: &str) {
        let is_follower = |(_, p): &(&ParticipantId, &crate::room::RoomMember)| p.follows == Some(leader);
        let released: Vec<ParticipantId> =
            self.participants.iter().filter(is_follower).map(|(&id, _)| id).collect();
        for id in released {
            if let Some(member) = self.participants.get_mut(&id) {
                member.follows = None;
                member.moving = false;
            }
            self.tell_following(id, format!("{why}: you have your own view again."));
        }
    }

    /// Returns a participant and all whom they follow, directly or not.
    pub(crate) fn leaders_of(&self, who: ParticipantId) -> Vec<ParticipantId> {
        let mut chain = vec![who];
        let mut at = who;
        while let Some(next) = self.participants.get(&at).and_then(|p| p.follows)
            && !chain.contains(&next)
        {
            chain.push(next);
            at = next;
        }
        chain
    }
}

fn denied(why: &str) -> Error {
    Error::new(ErrorKind::Denied, why)
}
