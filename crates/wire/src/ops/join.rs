//! The operation `join`: taking part in a session, with notes towards the node and items back.

use array::Result;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{decode_json, encode_json};

/// Parameters of `join`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// Which session.
    pub session: String,
    /// What the participant is called.
    pub name: String,
    /// Width of the picture, pixels.
    pub width: u32,
    /// Height of the picture, pixels.
    pub height: u32,
}

/// What a participant may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything.
    Own,
    /// Change the view.
    Steer,
    /// Look.
    Watch,
}

/// One of those who take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    /// Number in the session.
    pub id: u32,
    /// What it is called.
    pub name: String,
    /// What it may do.
    pub role: Role,
}

/// How much a message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something is not as wanted.
    Warning,
    /// Something failed.
    Error,
}

/// The body of an item of `join`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum JoinItem {
    /// The first item.
    Joined {
        /// The asker's number.
        you: u32,
        /// What it may do.
        role: Role,
        /// Name of the data set.
        dataset: String,
        /// The view as it is.
        view: Value,
    },
    /// Somebody came, left or changed.
    Participants {
        /// All of them.
        list: Vec<Participant>,
    },
    /// The view was changed by somebody else, or completed by the node.
    View {
        /// Its number.
        seq: u64,
        /// The view.
        view: Value,
    },
    /// A picture; the encoded image is the bulk.
    Frame {
        /// Its number, to be given back when it is shown.
        id: u64,
        /// The view it shows.
        seq: u64,
        /// Width, pixels.
        width: u32,
        /// Height, pixels.
        height: u32,
        /// `jpeg` or `png`.
        codec: String,
        /// What the picture is worth.
        truth: Value,
    },
    /// The facts changed without a new picture.
    Truth {
        /// The facts.
        truth: Value,
    },
    /// Something for people.
    Message {
        /// How much it matters.
        severity: Severity,
        /// One sentence.
        text: String,
    },
}

/// A note to a running `join`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum JoinNote {
    /// The participant changes the view.
    View {
        /// Counts up.
        seq: u64,
        /// The fields that changed.
        view: Value,
        /// A movement is under way: speed before quality.
        #[serde(default)]
        moving: bool,
    },
    /// The picture's size changes.
    Resize {
        /// Width, pixels.
        width: u32,
        /// Height, pixels.
        height: u32,
    },
    /// A picture was shown.
    Shown {
        /// Its number.
        frame: u64,
    },
    /// Asks for an exact picture of what is shown.
    Still,
}

macro_rules! json {
    ($($type:ty: $what:literal;)*) => {$(
        impl $type {
            /// As bytes for the wire.
            ///
            /// # Errors
            /// `Internal` when it cannot be said in JSON.
            pub fn encode(&self) -> Result<Bytes> {
                encode_json(self)
            }

            /// From bytes of the wire.
            ///
            /// # Errors
            /// `Corrupt` when it is something else.
            pub fn decode(bytes: &[u8]) -> Result<Self> {
                decode_json(bytes, $what)
            }
        }
    )*};
}

json! {
    Join: "the parameters of `join`";
    JoinItem: "an item of `join`";
    JoinNote: "a note to `join`";
}
