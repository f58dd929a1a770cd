//! Edits of the shared content, as participants send them, with the bounds of their texts.

use std::fmt;
use std::str::FromStr;

use array::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use view::View;

use crate::ParticipantId;

/// Longest line of the chat, bytes: a long paragraph.
pub const MAX_CHAT_LINE_BYTES: usize = 2_000;
/// Longest text of a pinned note, bytes: about a page.
pub const MAX_PINNED_TEXT_BYTES: usize = 4_000;
/// Longest name of a bookmark, bytes.
pub const MAX_BOOKMARK_NAME_BYTES: usize = 120;
/// Longest thumbnail of a bookmark, bytes of its `data:` URL: a JPEG of 160 by 100 pixels takes about 6 KiB.
pub const MAX_THUMBNAIL_BYTES: usize = 16 << 10;
/// Largest view of a note or bookmark, bytes of JSON: a view of 20 surfaces and 16 slices takes about 3 KiB.
pub const MAX_SAVED_VIEW_BYTES: usize = 8 << 10;
/// Beginning of every thumbnail; browsers execute nothing in it.
const THUMBNAIL_PREFIX: &str = "data:image/jpeg;base64,";
/// Largest coordinate of a pointer or a place in the world: the limit of cameras.
pub(super) const MAX_COORDINATE: f64 = 1e15;

/// Number of a note or bookmark: its author and the number of the author's edit that added it. Pages know it before
/// the server has answered. Written `3-17`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SharedId {
    /// Participant that added it.
    pub author: ParticipantId,
    /// Number of the edit that added it.
    pub seq: u64,
}

impl fmt::Display for SharedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.author.0, self.seq)
    }
}

impl From<SharedId> for String {
    fn from(id: SharedId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for SharedId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl FromStr for SharedId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts =
            text.split_once('-').and_then(|(author, seq)| Some((author.parse().ok()?, seq.parse().ok()?)));
        let Some((author, seq)) = parts else {
            return Err(Error::invalid(format!("expected a number such as `3-17`, found `{text}`")));
        };
        Ok(Self { author: ParticipantId(author), seq })
    }
}

/// Edit of the shared content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum SharedEdit {
    /// Adds a line to the chat.
    Say {
        /// Text of the line.
        text: String,
    },
    /// Pins a note.
    AddNote {
        /// Text of the note.
        text: String,
        /// Point `[x, y, z]` in world space; `None` for a note on the whole view.
        #[serde(default)]
        place: Option<[f64; 3]>,
        /// View in which it was pinned, with array and time.
        view: Map<String, Value>,
    },
    /// Changes the text of a note.
    EditNote {
        /// Number of the note.
        id: SharedId,
        /// New text.
        text: String,
    },
    /// Deletes a note.
    DeleteNote {
        /// Number of the note.
        id: SharedId,
    },
    /// Adds a bookmark at the end.
    AddBookmark {
        /// Name of the bookmark.
        name: String,
        /// JPEG as a `data:` URL; empty if there is none.
        #[serde(default)]
        thumbnail: String,
        /// View that it leads to.
        view: Map<String, Value>,
    },
    /// Renames a bookmark.
    RenameBookmark {
        /// Number of the bookmark.
        id: SharedId,
        /// New name.
        name: String,
    },
    /// Moves a bookmark to the place before another one.
    MoveBookmark {
        /// Number of the bookmark.
        id: SharedId,
        /// Bookmark that follows it then; `None` for the end.
        before: Option<SharedId>,
    },
    /// Deletes a bookmark.
    DeleteBookmark {
        /// Number of the bookmark.
        id: SharedId,
    },
}

impl SharedEdit {
    /// Returns the edit with clean texts.
    ///
    /// # Errors
    /// `Invalid` for an empty text, an invalid view, place or thumbnail; `TooLarge` for one that is too long.
    pub(crate) fn checked(self) -> Result<Self> {
        Ok(match self {
            Self::Say { text } => {
                Self::Say { text: clean(&text, "a line of the chat", MAX_CHAT_LINE_BYTES)? }
            }
            Self::AddNote { text, place, view } => {
                let text = clean(&text, "a note", MAX_PINNED_TEXT_BYTES)?;
                check_saved(&view)?;
                if place.iter().flatten().any(|x| x.is_nan() || x.abs() > MAX_COORDINATE) {
                    return Err(Error::invalid("expected a place of three finite numbers"));
                }
                Self::AddNote { text, place, view }
            }
            Self::EditNote { id, text } => {
                Self::EditNote { id, text: clean(&text, "a note", MAX_PINNED_TEXT_BYTES)? }
            }
            Self::AddBookmark { name, thumbnail, view } => {
                let name = clean(&name, "the name of a bookmark", MAX_BOOKMARK_NAME_BYTES)?;
                check_saved(&view)?;
                check_thumbnail(&thumbnail)?;
                Self::AddBookmark { name, thumbnail, view }
            }
            Self::RenameBookmark { id, name } => Self::RenameBookmark {
                id,
                name: clean(&name, "the name of a bookmark", MAX_BOOKMARK_NAME_BYTES)?,
            },
            Self::DeleteNote { .. } | Self::MoveBookmark { .. } | Self::DeleteBookmark { .. } => self,
        })
    }

    /// Returns true for edits that watching participants may make.
    pub(crate) fn is_for_watchers(&self) -> bool {
        matches!(self, Self::Say { .. })
    }
}

/// Removes control characters except line breaks, and white space at both ends; `what` names the text in errors.
fn clean(text: &str, what: &str, most_bytes: usize) -> Result<String> {
    let legal: String = text.trim().chars().filter(|&c| c == '\n' || !c.is_control()).collect();
    if legal.is_empty() {
        return Err(Error::invalid(format!("{what} is empty; write something")));
    }
    if legal.len() > most_bytes {
        let found = legal.len();
        return Err(Error::too_large(format!(
            "{what} may have {most_bytes} bytes, found {found}; shorten it"
        )));
    }
    Ok(legal)
}

fn check_saved(view: &Map<String, Value>) -> Result<()> {
    View::default().merged(view)?;
    let length = serde_json::to_string(view).map_or(usize::MAX, |text| text.len());
    if length > MAX_SAVED_VIEW_BYTES {
        return Err(Error::too_large(format!(
            "a saved view may have {MAX_SAVED_VIEW_BYTES} bytes of JSON, found {length}; use fewer surfaces or slices"
        )));
    }
    Ok(())
}

fn check_thumbnail(thumbnail: &str) -> Result<()> {
    if thumbnail.len() > MAX_THUMBNAIL_BYTES {
        let found = thumbnail.len();
        return Err(Error::too_large(format!(
            "a thumbnail may have {MAX_THUMBNAIL_BYTES} bytes, found {found}; make it smaller"
        )));
    }
    let is_base64 = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
    if thumbnail.is_empty() || thumbnail.strip_prefix(THUMBNAIL_PREFIX).is_some_and(is_base64) {
        return Ok(());
    }
    Err(Error::invalid(format!("expected a thumbnail that begins with `{THUMBNAIL_PREFIX}`")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_cleaned_and_bounded() {
        let say = |text: &str| SharedEdit::Say { text: text.into() }.checked();
        assert_eq!(say(" a\u{7}b\nc ").unwrap(), SharedEdit::Say { text: "ab\nc".into() });
        assert!(say(" \u{7}").is_err() && say(&"é".repeat(1001)).is_err() && say(&"é".repeat(1000)).is_ok());
    }

    #[test]
    fn bookmarks_hold_only_jpeg_thumbnails_and_legal_views() {
        let mark = |thumbnail: &str, view: Value| {
            let view = view.as_object().unwrap().clone();
            SharedEdit::AddBookmark { name: "a".into(), thumbnail: thumbnail.into(), view }.checked()
        };
        assert!(
            mark("", json!({})).is_ok()
                && mark("data:image/jpeg;base64,/9j/4A==", json!({"time": 3})).is_ok()
        );
        for bad in ["data:image/svg+xml,<svg onload=x>", "data:image/jpeg;base64,\"><script>", "javascript:x"]
        {
            assert!(mark(bad, json!({})).is_err(), "{bad}");
        }
        assert!(mark("", json!({"time": -3})).is_err());
        assert!(mark("", json!({"later": "x".repeat(MAX_SAVED_VIEW_BYTES)})).is_err());
    }

    #[test]
    fn edits_have_the_documented_shapes() {
        for shape in [
            json!({"op": "say", "text": "hello"}),
            json!({"op": "add_note", "text": "here", "place": [1.0, 2.0, 3.0], "view": {"time": 2}}),
            json!({"op": "edit_note", "id": "3-17", "text": "there"}),
            json!({"op": "move_bookmark", "id": "3-17", "before": null}),
        ] {
            let edit: SharedEdit = serde_json::from_value(shape.clone()).unwrap();
            assert_eq!(serde_json::to_value(&edit).unwrap(), shape);
        }
        for id in ["", "3", "3-", "-3", "a-b", "3-17-2", "99999999999-1"] {
            assert!(id.parse::<SharedId>().is_err(), "{id}");
        }
    }
}
