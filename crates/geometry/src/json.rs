//! JSON of foreign files. Its tree takes much more memory than its text, so that the tree is measured before it is built.

use std::fmt::{self, Write as _};
use std::slice::Iter;

use array::{Error, Result};
use serde_json::Value;

use crate::model::excerpt;
use crate::{MAX_JSON_BYTES, MAX_JSON_TREE_BYTES};

/// Bytes of an allocation besides its content, rounded up.
const ALLOCATION_BYTES: usize = 32;
/// Bytes of an entry of an object: key, value, hash, and their share of the hash table.
const ENTRY_BYTES: usize = size_of::<String>() + size_of::<Value>() + 40;

/// List or object of a JSON text, up to the entry that is being read.
struct JsonContainer {
    entries: usize,
    /// Entries that fit into the reserved memory.
    capacity: usize,
    entry_bytes: usize,
}

impl JsonContainer {
    /// Begins a list, with the capacity that `Vec` reserves for its first entry.
    fn list() -> Self {
        Self { entries: 1, capacity: 4, entry_bytes: size_of::<Value>() }
    }

    /// Begins an object, with the capacity that `IndexMap` reserves for its first entry.
    fn object() -> Self {
        Self { entries: 1, capacity: 3, entry_bytes: ENTRY_BYTES }
    }

    /// Begins the next entry; returns the bytes that are reserved for it.
    fn next_entry(&mut self) -> usize {
        self.entries += 1;
        if self.entries <= self.capacity {
            return 0;
        }
        let more = self.capacity * self.entry_bytes;
        self.capacity *= 2;
        more
    }
}

/// Parses JSON of a bounded size.
pub(crate) fn parse_json(text: &[u8], format: &str) -> Result<Value> {
    const ADVICE: &str = "simplify the geometry, or save it in another format, such as PLY";
    if text.len() > MAX_JSON_BYTES {
        return Err(Error::too_large(format!(
            "expected at most {MAX_JSON_BYTES} bytes of JSON in {format}, found {}; {ADVICE}",
            text.len()
        )));
    }
    if let Err(end) = check_tree(text, MAX_JSON_TREE_BYTES) {
        return Err(Error::too_large(format!(
            "expected JSON that takes at most {MAX_JSON_TREE_BYTES} bytes of memory in {format}, found more in the first {end} of \
             its {} bytes; {ADVICE}",
            text.len()
        )));
    }
    serde_json::from_slice(text)
        .map_err(|e| Error::corrupt(format!("expected {format}, found a mistake in its JSON: {e}")))
}

/// Checks that the tree of a JSON text takes at most `most` bytes; returns the end of the part that takes more as the error.
/// Behind a mistake in the text the measure means nothing, but the parser builds nothing of that part.
fn check_tree(text: &[u8], most: usize) -> std::result::Result<(), usize> {
    let mut open = Vec::<JsonContainer>::new();
    let mut tree_bytes = size_of::<Value>();
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        tree_bytes += match byte {
            b'"' => ALLOCATION_BYTES + skip_string(&mut bytes),
            b'[' => begin(JsonContainer::list(), &mut open),
            b'{' => begin(JsonContainer::object(), &mut open),
            b',' => open.last_mut().map_or(0, JsonContainer::next_entry),
            b']' | b'}' => {
                open.pop();
                0
            }
            _ => 0,
        };
        if tree_bytes > most {
            return Err(text.len() - bytes.len());
        }
    }
    Ok(())
}

/// Adds a container to those that are open; returns the bytes that are reserved for it.
fn begin(container: JsonContainer, open: &mut Vec<JsonContainer>) -> usize {
    let bytes = ALLOCATION_BYTES + container.capacity * container.entry_bytes;
    open.push(container);
    bytes
}

/// Skips a string behind its first quotation mark; returns its length.
fn skip_string(bytes: &mut Iter<'_, u8>) -> usize {
    let before = bytes.len();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => break,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
    before - bytes.len()
}

/// Beginning of a text that is being written.
struct Beginning(String);

/// Most bytes of a [`Beginning`]: more than an excerpt has.
const BEGINNING_BYTES: usize = 1_024;

impl fmt::Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = BEGINNING_BYTES - self.0.len().min(BEGINNING_BYTES);
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        // Ends the writing.
        if text.len() > room { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Returns the beginning of a value, for an error, without writing all of it.
pub(crate) fn excerpt_of_json(value: &Value) -> String {
    let mut beginning = Beginning(String::new());
    // An error only says that there is more.
    write!(beginning, "{value}").ok();
    excerpt(&beginning.0)
}
