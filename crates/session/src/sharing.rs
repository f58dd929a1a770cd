//! Edits of the shared content, pointers, and undo and redo of a participant's view.

use array::{Error, ErrorKind, Result};
use view::View;

use crate::room::DueUpdate;
use crate::together::content::{ChangeAuthor, SharedChange, SharedContent};
use crate::together::edit::SharedEdit;
use crate::together::history::HistoryDirection;
use crate::together::log::SharedUpdate;
use crate::together::pointer::{PointerInfo, PointerPlace};
use crate::{Item, ParticipantId, Role, Room, RoomEvent};

impl Room {
    /// Applies edit number `seq` of a participant at `at_millis` since 1970. An edit that is not newer than their last
    /// one is dropped: it was sent again after a reconnection.
    ///
    /// # Errors
    /// `NotFound` for a participant who left, and for something that was deleted; `Denied` for a role or a
    /// participant that may not do this; `Invalid` and `TooLarge` for an edit beyond its bounds. The number then
    /// counts as answered.
    pub fn edit(&mut self, from: ParticipantId, seq: u64, edit: SharedEdit, at_millis: u64) -> Result<()> {
        let member = self.find(from)?;
        if seq <= member.edits_heard {
            return Ok(());
        }
        member.edits_heard = seq;
        self.push(RoomEvent::Due(from, DueUpdate::Content));
        self.check_rights(from, &edit)?;
        let author = self.author(from)?;
        self.content.append(SharedChange { rev: 0, author, seq, at_millis, edit: edit.checked()? })?;
        let all: Vec<ParticipantId> = self.participants.keys().copied().collect();
        for id in all {
            self.push(RoomEvent::Due(id, DueUpdate::Content));
        }
        Ok(())
    }

    /// Returns the item that brings a participant up to date, and its bulk; `None` if they are.
    pub fn shared_update(&mut self, to: ParticipantId) -> Option<(Item, SharedUpdate)> {
        let rev = self.content.rev();
        let member = self.participants.get_mut(&to)?;
        let heard = member.edits_heard;
        let sent = member.content_sent.replace((rev, heard));
        if sent == Some((rev, heard)) {
            return None;
        }
        Some((Item::Shared { rev, heard }, self.content.since(sent.map(|(rev, _)| rev))))
    }

    /// Makes the next [`shared_update`](Self::shared_update) of a participant bring the whole content again.
    pub fn resend(&mut self, to: ParticipantId) {
        if let Some(member) = self.participants.get_mut(&to) {
            member.content_sent = None;
            self.push(RoomEvent::Due(to, DueUpdate::Content));
        }
    }

    /// Returns the shared content.
    #[must_use]
    pub fn content(&self) -> &SharedContent {
        self.content.content()
    }

    /// Moves the pointer of a participant; `None` hides it.
    ///
    /// # Errors
    /// `NotFound` for a participant who left, `Invalid` for a place that is not finite or outside of the picture.
    pub fn point(&mut self, who: ParticipantId, at: Option<PointerPlace>, laser: bool) -> Result<()> {
        at.map_or(Ok(()), PointerPlace::check)?;
        let member = self.find(who)?;
        let pointer = at.map(|at| (at, laser));
        if member.pointer != pointer {
            member.pointer = pointer;
            self.pointers_changed(who);
        }
        Ok(())
    }

    /// Returns the pointers of all others.
    #[must_use]
    pub fn pointers(&self, to: ParticipantId) -> Vec<PointerInfo> {
        let others = self.participants.iter().filter(|(id, _)| **id != to);
        others
            .filter_map(|(&id, member)| member.pointer.map(|(at, laser)| PointerInfo { id, at, laser }))
            .collect()
    }

    /// Undoes the last step of a participant's view. `check` checks the view against the data. Ends following.
    ///
    /// # Errors
    /// `NotFound` for a participant who left, `Denied` for a role that may not change views, and those of `check`: a
    /// step that does not fit the data is dropped.
    pub fn undo(&mut self, who: ParticipantId, check: impl FnOnce(&View) -> Result<()>) -> Result<()> {
        self.step(who, HistoryDirection::Undo, check)
    }

    /// Repeats the step that was undone last, as [`undo`](Self::undo).
    ///
    /// # Errors
    /// As [`undo`](Self::undo).
    pub fn redo(&mut self, who: ParticipantId, check: impl FnOnce(&View) -> Result<()>) -> Result<()> {
        self.step(who, HistoryDirection::Redo, check)
    }

    fn step(
        &mut self,
        who: ParticipantId,
        direction: HistoryDirection,
        check: impl FnOnce(&View) -> Result<()>,
    ) -> Result<()> {
        let member = self.find(who)?;
        if !member.role.may_steer() {
            return Err(Error::new(ErrorKind::Denied, "you are watching: only others can change the view"));
        }
        let Some(fields) = member.history.take(direction) else { return Ok(()) };
        let moved = member.view.merged(&fields).and_then(|view| check(&view).map(|()| view));
        if let Ok(view) = &moved {
            let before = member.view.clone();
            member.history.moved(direction, &before, view);
            member.moving = false;
            let has_followed = member.follows.is_some();
            self.put_view(who, view.clone());
            if has_followed {
                self.stop_following(who, "because you changed the view");
                self.tell_participants();
            }
            self.lead(who);
        }
        self.tell_history(who);
        moved.map(|_| ()).map_err(|error| error.context("this step does not fit the data any more"))
    }

    /// Tells a participant how many steps can be undone and redone.
    pub(crate) fn tell_history(&mut self, who: ParticipantId) {
        let Some(member) = self.participants.get(&who) else { return };
        let (undo, redo) = member.history.counts();
        self.push(RoomEvent::Tell(who, Item::History { undo, redo }));
    }

    /// Reports to all others that the pointer of a participant changed.
    pub(crate) fn pointers_changed(&mut self, of: ParticipantId) {
        let others: Vec<ParticipantId> = self.participants.keys().copied().filter(|&id| id != of).collect();
        for id in others {
            self.push(RoomEvent::Due(id, DueUpdate::Pointers));
        }
    }

    fn check_rights(&mut self, from: ParticipantId, edit: &SharedEdit) -> Result<()> {
        let target = self.content.content().author_of_target(edit);
        let role = self.find(from)?.role;
        let denied = |why: &str| Err(Error::new(ErrorKind::Denied, why));
        if !role.may_steer() && !edit.is_for_watchers() {
            return denied(
                "you are watching: you can chat and point; ask an owner for the role `steer` to do more",
            );
        }
        if role != Role::Own && target.is_some_and(|author| author != from) {
            return denied("only its author and owners can change this");
        }
        Ok(())
    }

    fn author(&self, id: ParticipantId) -> Result<ChangeAuthor> {
        let info = self.participants().into_iter().find(|info| info.id == id);
        let info = info.ok_or_else(|| Error::not_found(format!("participant {} has left", id.0)))?;
        Ok(ChangeAuthor { id, name: info.name, color: info.color })
    }
}
