//! Content that all participants share: the chat, notes pinned to places, and bookmarks. It is a function of the
//! ordered changes, so that everybody who applies them has the same.

use array::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ParticipantId;
use crate::together::edit::{SharedEdit, SharedId};

/// Most lines of the chat that are kept; older ones are dropped.
pub const MAX_CHAT_LINES: usize = 200;
/// Most pinned notes of a session; with their views they take at most 3 MiB.
pub const MAX_PINNED_NOTES: usize = 256;
/// Most bookmarks of a session; with thumbnails and views they take at most 1.6 MiB.
pub const MAX_BOOKMARKS: usize = 64;

/// Author of a change, as at that time: authors may leave or be renamed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeAuthor {
    /// Number of the participant.
    pub id: ParticipantId,
    /// Name at that time.
    pub name: String,
    /// Color, `#rrggbb`.
    pub color: String,
}

/// Accepted edit, in the order of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedChange {
    /// Number of the change; rises by one.
    pub rev: u64,
    /// Author of the change.
    pub author: ChangeAuthor,
    /// Number of the edit, counted by its author.
    pub seq: u64,
    /// Time, milliseconds since 1970 UTC.
    pub at_millis: u64,
    /// Edit.
    pub edit: SharedEdit,
}

/// Line of the chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatLine {
    /// Number of the line.
    pub id: SharedId,
    /// Author of the line.
    pub author: ChangeAuthor,
    /// Time, milliseconds since 1970 UTC.
    pub at_millis: u64,
    /// Text of the line.
    pub text: String,
}

/// Note pinned to a place and a view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PinnedNote {
    /// Number of the note.
    pub id: SharedId,
    /// Author of the note.
    pub author: ChangeAuthor,
    /// Time of the last change, milliseconds since 1970 UTC.
    pub at_millis: u64,
    /// Text of the note.
    pub text: String,
    /// Point `[x, y, z]` in world space.
    pub place: Option<[f64; 3]>,
    /// View in which it was pinned, with array and time.
    pub view: Map<String, Value>,
}

/// Saved view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bookmark {
    /// Number of the bookmark.
    pub id: SharedId,
    /// Author of the bookmark.
    pub author: ChangeAuthor,
    /// Name of the bookmark.
    pub name: String,
    /// JPEG as a `data:` URL; empty if there is none.
    pub thumbnail: String,
    /// View that it leads to.
    pub view: Map<String, Value>,
}

/// Shared content of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SharedContent {
    /// Newest lines of the chat, the oldest first.
    pub chat: Vec<ChatLine>,
    /// Notes in order of creation.
    pub notes: Vec<PinnedNote>,
    /// Bookmarks in their order.
    pub bookmarks: Vec<Bookmark>,
}

impl SharedContent {
    /// Applies a change. The text of the edit was checked when it was accepted.
    ///
    /// # Errors
    /// `NotFound` for something that was deleted, `TooLarge` if there is too much; nothing changes then.
    pub fn apply(&mut self, change: &SharedChange) -> Result<()> {
        let (author, at_millis) = (change.author.clone(), change.at_millis);
        let id = SharedId { author: author.id, seq: change.seq };
        match change.edit.clone() {
            SharedEdit::Say { text } => {
                self.chat.push(ChatLine { id, author, at_millis, text });
                let surplus = self.chat.len().saturating_sub(MAX_CHAT_LINES);
                self.chat.drain(..surplus);
            }
            SharedEdit::AddNote { text, place, view } => {
                room_for(self.notes.len(), MAX_PINNED_NOTES, "notes")?;
                self.notes.push(PinnedNote { id, author, at_millis, text, place, view });
            }
            SharedEdit::EditNote { id, text } => {
                let at = self.note_at(id)?;
                self.notes[at].text = text;
                self.notes[at].at_millis = at_millis;
            }
            SharedEdit::DeleteNote { id } => {
                let at = self.note_at(id)?;
                self.notes.remove(at);
            }
            SharedEdit::AddBookmark { name, thumbnail, view } => {
                room_for(self.bookmarks.len(), MAX_BOOKMARKS, "bookmarks")?;
                self.bookmarks.push(Bookmark { id, author, name, thumbnail, view });
            }
            SharedEdit::RenameBookmark { id, name } => {
                let at = self.bookmark_at(id)?;
                self.bookmarks[at].name = name;
            }
            SharedEdit::MoveBookmark { id, before } => {
                let at = self.bookmark_at(id)?;
                if before != Some(id) {
                    let moved = self.bookmarks.remove(at);
                    // A bookmark before which it should be placed may have been deleted meanwhile.
                    let to = self.bookmarks.iter().position(|b| Some(b.id) == before);
                    self.bookmarks.insert(to.unwrap_or(self.bookmarks.len()), moved);
                }
            }
            SharedEdit::DeleteBookmark { id } => {
                let at = self.bookmark_at(id)?;
                self.bookmarks.remove(at);
            }
        }
        Ok(())
    }

    /// Returns the author of what an edit changes; `None` for an edit that adds something or changes the order.
    pub(crate) fn author_of_target(&self, edit: &SharedEdit) -> Option<ParticipantId> {
        match edit {
            SharedEdit::EditNote { id, .. } | SharedEdit::DeleteNote { id } => {
                self.notes.iter().find(|note| note.id == *id).map(|note| note.author.id)
            }
            SharedEdit::RenameBookmark { id, .. } | SharedEdit::DeleteBookmark { id } => {
                self.bookmarks.iter().find(|bookmark| bookmark.id == *id).map(|bookmark| bookmark.author.id)
            }
            _ => None,
        }
    }

    fn note_at(&self, id: SharedId) -> Result<usize> {
        let gone = || Error::not_found("this note was deleted meanwhile");
        self.notes.iter().position(|note| note.id == id).ok_or_else(gone)
    }

    fn bookmark_at(&self, id: SharedId) -> Result<usize> {
        let gone = || Error::not_found("this bookmark was deleted meanwhile");
        self.bookmarks.iter().position(|bookmark| bookmark.id == id).ok_or_else(gone)
    }
}

fn room_for(count: usize, most: usize, what: &str) -> Result<()> {
    if count < most {
        return Ok(());
    }
    Err(Error::new(ErrorKind::TooLarge, format!("a session has at most {most} {what}; delete one first")))
}
