//! Frames: encoding and decoding of the messages between two peers.
//!
//! The order of frames is checked by [`Client`](crate::Client) and [`Server`](crate::Server).

use std::fmt;

use array::{Error, Priority, Result};
use bytes::Bytes;

use crate::frames::batch::{self, RequestBatch, SmallAnswer};
use crate::frames::codec::{ByteReader, ByteWriter};
use crate::frames::part;
use crate::limits::{
    MAGIC, MAX_ADDED_BYTES, MAX_BODY_BYTES, MAX_CAPABILITIES, MAX_CHUNK_BYTES, MAX_FRAME_BYTES,
    MAX_NAME_BYTES, MAX_TOKEN_BYTES,
};

/// Number of an operation: chosen by the client, counting up, never reused in a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(pub u32);

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Message between two peers.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// First frame of the client.
    Hello(Hello),
    /// Starts an operation.
    Request(OperationRequest),
    /// Starts several operations that differ only in their parameters.
    Requests(RequestBatch),
    /// Changes the urgency of an operation.
    Adjust {
        /// Number of the operation.
        op: OpId,
        /// New priority.
        priority: Priority,
        /// New deadline from now, milliseconds; 0 for none.
        deadline_ms: u32,
    },
    /// Withdraws an operation.
    Cancel {
        /// Number of the operation.
        op: OpId,
    },
    /// Grants credit: the server may send more bulk bytes.
    Credit {
        /// Additional bytes.
        bytes: u64,
    },
    /// Message to a running operation.
    Note {
        /// Number of the operation.
        op: OpId,
        /// Contents of the message.
        body: Bytes,
    },
    /// Requests a pong.
    Ping {
        /// Number that the pong repeats.
        nonce: u64,
    },
    /// Answer to the newest ping.
    Pong {
        /// Number of the ping.
        nonce: u64,
    },
    /// Last frame of a connection.
    Close {
        /// Reason of the end.
        error: Error,
    },
    /// First frame of the server: the client is admitted.
    Welcome(Welcome),
    /// First and last frame of the server: the client is refused.
    Refused {
        /// Reason of the refusal.
        error: Error,
    },
    /// Part of an answer; its bulk follows in chunks.
    Item(ItemHead),
    /// Part of an item's bulk.
    Chunk(Chunk),
    /// Small items and ends of several operations, at least one.
    Answers(Vec<SmallAnswer>),
    /// Successful end of an operation.
    Done {
        /// Number of the operation.
        op: OpId,
    },
    /// Failure of an operation.
    Failed {
        /// Number of the operation.
        op: OpId,
        /// Reason of the failure.
        error: Error,
    },
}

/// First message of a client.
#[derive(Clone, PartialEq)]
pub struct Hello {
    /// Lowest supported protocol version.
    pub lowest_version: u16,
    /// Highest supported protocol version.
    pub highest_version: u16,
    /// Capabilities of the client beyond the version.
    pub capabilities: Vec<String>,
    /// Access token; empty where none is needed. Never printed.
    pub token: String,
    /// Bulk bytes that the server may send before the first credit frame.
    pub credit_bytes: u64,
    /// Displayed name and version of the program.
    pub program: String,
}

impl fmt::Debug for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hello({}, versions {} to {})", self.program, self.lowest_version, self.highest_version)
    }
}

/// First message of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Protocol version of the connection.
    pub version: u16,
    /// Capabilities of the server beyond the version.
    pub capabilities: Vec<String>,
    /// Displayed name and version of the program.
    pub program: String,
    /// Most operations that the server keeps in flight for this client.
    pub most_operations: u32,
}

/// Start of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationRequest {
    /// Number of the operation.
    pub op: OpId,
    /// Registered name of the operation.
    pub name: String,
    /// Priority of the operation.
    pub priority: Priority,
    /// Deadline from now, milliseconds; 0 for none.
    pub deadline_ms: u32,
    /// Parameters, encoded as the operation defines; see [`ops`](crate::ops).
    pub parameters: Bytes,
}

/// Head of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemHead {
    /// Operation that the item answers.
    pub op: OpId,
    /// Number of the item, counting from 0 in each operation.
    pub item: u32,
    /// Small part of the item.
    pub body: Bytes,
    /// Size of the bulk that follows in chunks.
    pub bulk_bytes: u64,
    /// CRC-32C of the bulk.
    pub bulk_crc32c: u32,
}

/// Item and offset of a chunk's bulk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHead {
    /// Operation that the item answers.
    pub op: OpId,
    /// Number of the item in the operation.
    pub item: u32,
    /// Offset of the bytes in the item's bulk.
    pub offset: u64,
}

impl ChunkHead {
    /// Bytes of a chunk's frame before its bulk: the kind and these fields.
    pub(crate) const FRAME_BYTES: usize = 17;

    /// Decodes the fields after the kind.
    pub(crate) fn decode(fields: Bytes) -> Result<Self> {
        let mut r = ByteReader::new(fields);
        Ok(Self { op: op(&mut r)?, item: r.u32("item")?, offset: r.u64("offset")? })
    }
}

pub(crate) fn is_chunk(kind: u8) -> bool {
    kind == kind::CHUNK
}

/// Part of an item's bulk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Operation that the item answers.
    pub op: OpId,
    /// Number of the item in the operation.
    pub item: u32,
    /// Offset of the bytes in the item's bulk.
    pub offset: u64,
    /// Bytes, sharing memory with their source.
    pub bytes: Bytes,
}

/// Content of a message about an answer, or of a cancellation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageContent {
    /// Head of an item.
    Item(ItemHead),
    /// Part of an item's bulk.
    Chunk(Chunk),
    /// Failure of the operation: its earlier data is of no use any more.
    Failed(OpId),
    /// Withdrawal of the operation.
    Cancelled(OpId),
}

mod kind {
    pub(crate) const HELLO: u8 = 0x01;
    pub(crate) const REQUEST: u8 = 0x02;
    pub(crate) const ADJUST: u8 = 0x03;
    pub(crate) const CANCEL: u8 = 0x04;
    pub(crate) const CREDIT: u8 = 0x05;
    pub(crate) const NOTE: u8 = 0x06;
    pub(crate) const PING: u8 = 0x07;
    pub(crate) const PONG: u8 = 0x08;
    pub(crate) const REQUESTS: u8 = 0x09;
    pub(crate) const CLOSE: u8 = 0x0F;
    pub(crate) const WELCOME: u8 = 0x81;
    pub(crate) const REFUSED: u8 = 0x82;
    pub(crate) const ITEM: u8 = 0x83;
    pub(crate) const CHUNK: u8 = 0x84;
    pub(crate) const DONE: u8 = 0x85;
    pub(crate) const FAILED: u8 = 0x86;
    pub(crate) const ANSWERS: u8 = 0x87;
}

/// Encoded frame: a head and bulk bytes that were not copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Length of the frame (`u32`), then the frame up to its bulk.
    framed_head: Bytes,
    bulk: Vec<Bytes>,
}

impl Message {
    pub(crate) const PREFIX_BYTES: usize = 4;

    pub(crate) fn new(head: ByteWriter, bulk: Vec<Bytes>) -> Self {
        let size_bytes = head.len() - Self::PREFIX_BYTES + bulk.iter().map(Bytes::len).sum::<usize>();
        let prefix = u32::try_from(size_bytes).unwrap_or(u32::MAX).to_le_bytes();
        Self { framed_head: head.finish_with_prefix(prefix), bulk }
    }

    /// Size of the frame without its length, bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.framed_head.len() - Self::PREFIX_BYTES + self.bulk.iter().map(Bytes::len).sum::<usize>()
    }

    /// Operation that the frame belongs to; `None` for frames about the connection or several operations.
    /// Carriers of several streams keep the order of the frames of one operation only. A batch of answers
    /// contains whole answers, of which there are no other frames.
    #[must_use]
    pub fn op(&self) -> Option<OpId> {
        let (kind, rest) = self.framed_head.get(Self::PREFIX_BYTES..)?.split_first()?;
        match *kind {
            kind::REQUEST
            | kind::ADJUST
            | kind::CANCEL
            | kind::NOTE
            | kind::ITEM
            | kind::CHUNK
            | part::KIND
            | kind::DONE
            | kind::FAILED => rest.first_chunk().map(|op| OpId(u32::from_le_bytes(*op))),
            _ => None,
        }
    }

    /// Content of the message, if it is about an answer or a cancellation; for carriers that send bulk outside
    /// the frames.
    #[must_use]
    pub fn content(&self) -> Option<MessageContent> {
        let mut r = ByteReader::new(self.framed_head.slice(Self::PREFIX_BYTES..));
        match r.u8("frame kind").ok()? {
            kind::ITEM => ItemHead::decode(&mut r).ok().map(MessageContent::Item),
            kind::CHUNK => {
                let ChunkHead { op, item, offset } = ChunkHead::decode(r.rest()).ok()?;
                self.bulk
                    .first()
                    .map(|bytes| MessageContent::Chunk(Chunk { op, item, offset, bytes: bytes.clone() }))
            }
            kind::FAILED => op(&mut r).ok().map(MessageContent::Failed),
            kind::CANCEL => op(&mut r).ok().map(MessageContent::Cancelled),
            _ => None,
        }
    }

    /// Parts for byte streams: the length and the head, then the bulk, to be written one after the other.
    /// None is empty.
    pub fn into_stream_parts(self) -> impl Iterator<Item = Bytes> {
        std::iter::once(self.framed_head).chain(self.bulk)
    }

    /// Message for carriers that keep message boundaries: head and bulk in one buffer, without the length.
    /// Copies the bulk if there is some.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        let head = self.framed_head.slice(Self::PREFIX_BYTES..);
        if self.bulk.is_empty() {
            return head;
        }
        std::iter::once(head).chain(self.bulk).collect::<Vec<_>>().concat().into()
    }
}

impl Frame {
    /// Name of the frame in errors about unexpected frames.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "Hello",
            Self::Request(_) => "Request",
            Self::Requests(_) => "Requests",
            Self::Adjust { .. } => "Adjust",
            Self::Cancel { .. } => "Cancel",
            Self::Credit { .. } => "Credit",
            Self::Note { .. } => "Note",
            Self::Ping { .. } => "Ping",
            Self::Pong { .. } => "Pong",
            Self::Close { .. } => "Close",
            Self::Welcome(_) => "Welcome",
            Self::Refused { .. } => "Refused",
            Self::Item(_) => "Item",
            Self::Chunk(_) => "Chunk",
            Self::Answers(_) => "Answers",
            Self::Done { .. } => "Done",
            Self::Failed { .. } => "Failed",
        }
    }

    /// Encodes the frame. Bulk is not copied.
    #[must_use]
    pub fn encode(&self) -> Message {
        let mut w = ByteWriter::new();
        w.raw(&[0; Message::PREFIX_BYTES]);
        let mut bulk = Vec::new();
        match self {
            Self::Hello(hello) => hello.encode(w.u8(kind::HELLO)),
            Self::Request(request) => {
                w.u8(kind::REQUEST).u32(request.op.0).str(&request.name);
                w.priority(request.priority).u32(request.deadline_ms).bytes(&request.parameters);
            }
            Self::Requests(requests) => requests.encode(w.u8(kind::REQUESTS)),
            Self::Adjust { op, priority, deadline_ms } => {
                w.u8(kind::ADJUST).u32(op.0).priority(*priority).u32(*deadline_ms);
            }
            Self::Cancel { op } => {
                w.u8(kind::CANCEL).u32(op.0);
            }
            Self::Credit { bytes } => {
                w.u8(kind::CREDIT).u64(*bytes);
            }
            Self::Note { op, body } => {
                w.u8(kind::NOTE).u32(op.0).bytes(body);
            }
            Self::Ping { nonce } => {
                w.u8(kind::PING).u64(*nonce);
            }
            Self::Pong { nonce } => {
                w.u8(kind::PONG).u64(*nonce);
            }
            Self::Close { error } => {
                w.u8(kind::CLOSE).error(error);
            }
            Self::Welcome(welcome) => welcome.encode(w.u8(kind::WELCOME)),
            Self::Refused { error } => {
                w.u8(kind::REFUSED).error(error);
            }
            Self::Item(head) => {
                w.u8(kind::ITEM).u32(head.op.0).u32(head.item).bytes(&head.body);
                w.u64(head.bulk_bytes).u32(head.bulk_crc32c);
            }
            Self::Chunk(chunk) => {
                w.u8(kind::CHUNK).u32(chunk.op.0).u32(chunk.item).u64(chunk.offset);
                bulk.push(chunk.bytes.clone());
            }
            Self::Answers(answers) => bulk = batch::encode_answers(answers, w.u8(kind::ANSWERS)),
            Self::Done { op } => {
                w.u8(kind::DONE).u32(op.0);
            }
            Self::Failed { op, error } => {
                w.u8(kind::FAILED).u32(op.0).error(error);
            }
        }
        Message::new(w, bulk)
    }

    /// Decodes one frame (without its length). Bulk and bodies share the memory of `frame`.
    ///
    /// # Errors
    /// `Corrupt` when it is truncated, too long, of an unknown kind, or a field exceeds its limit.
    pub fn decode(frame: Bytes) -> Result<Self> {
        if frame.len() > MAX_FRAME_BYTES {
            return Err(Error::corrupt(format!(
                "expected a frame of at most {MAX_FRAME_BYTES} bytes, found {}",
                frame.len()
            )));
        }
        let mut r = ByteReader::new(frame);
        let kind = r.u8("frame kind")?;
        Self::decode_fields(kind, &mut r)
            .and_then(|frame| check_added(r.rest().len()).map(|()| frame))
            .map_err(|e| e.context(format!("frame of kind {kind:#04x}")))
    }

    fn decode_fields(kind: u8, r: &mut ByteReader) -> Result<Self> {
        Ok(match kind {
            kind::HELLO => Self::Hello(Hello::decode(r)?),
            kind::REQUEST => Self::Request(OperationRequest::decode(r)?),
            kind::REQUESTS => Self::Requests(RequestBatch::decode(r)?),
            kind::ADJUST => {
                Self::Adjust { op: op(r)?, priority: r.priority()?, deadline_ms: r.u32("deadline")? }
            }
            kind::CANCEL => Self::Cancel { op: op(r)? },
            kind::CREDIT => Self::Credit { bytes: r.u64("credit")? },
            kind::NOTE => Self::Note { op: op(r)?, body: r.bytes("note", MAX_BODY_BYTES)? },
            kind::PING => Self::Ping { nonce: r.u64("nonce")? },
            kind::PONG => Self::Pong { nonce: r.u64("nonce")? },
            kind::CLOSE => Self::Close { error: r.error()? },
            kind::WELCOME => Self::Welcome(Welcome::decode(r)?),
            kind::REFUSED => Self::Refused { error: r.error()? },
            kind::ITEM => Self::Item(ItemHead::decode(r)?),
            kind::CHUNK => Self::Chunk(Chunk::decode(r)?),
            kind::ANSWERS => Self::Answers(batch::decode_answers(r)?),
            kind::DONE => Self::Done { op: op(r)? },
            kind::FAILED => Self::Failed { op: op(r)?, error: r.error()? },
            other => return Err(Error::corrupt(format!("expected a known frame kind, found {other:#04x}"))),
        })
    }
}

/// Checks the size of the fields of later versions: they are ignored, but stay in memory as long as a part of
/// the frame does.
fn check_added(bytes: usize) -> Result<()> {
    if bytes <= MAX_ADDED_BYTES {
        return Ok(());
    }
    let what = format!("expected at most {MAX_ADDED_BYTES} bytes after the known fields, found {bytes}");
    Err(Error::corrupt(what))
}

fn op(r: &mut ByteReader) -> Result<OpId> {
    r.u32("op").map(OpId)
}

impl Hello {
    fn encode(&self, w: &mut ByteWriter) {
        w.u32(MAGIC).u16(self.lowest_version).u16(self.highest_version).list(&self.capabilities);
        w.str(&self.token).u64(self.credit_bytes).str(&self.program);
    }

    fn decode(r: &mut ByteReader) -> Result<Self> {
        let magic = r.u32("magic")?;
        if magic != MAGIC {
            return Err(Error::corrupt(format!("expected the magic {MAGIC:#010x}, found {magic:#010x}")));
        }
        Ok(Self {
            lowest_version: r.u16("lowest version")?,
            highest_version: r.u16("highest version")?,
            capabilities: r.list("capabilities", MAX_CAPABILITIES, MAX_NAME_BYTES)?,
            token: r.str("token", MAX_TOKEN_BYTES)?,
            credit_bytes: r.u64("credit")?,
            program: r.str("program", MAX_NAME_BYTES)?,
        })
    }
}

impl Welcome {
    fn encode(&self, w: &mut ByteWriter) {
        w.u16(self.version).list(&self.capabilities).str(&self.program).u32(self.most_operations);
    }

    fn decode(r: &mut ByteReader) -> Result<Self> {
        Ok(Self {
            version: r.u16("version")?,
            capabilities: r.list("capabilities", MAX_CAPABILITIES, MAX_NAME_BYTES)?,
            program: r.str("program", MAX_NAME_BYTES)?,
            most_operations: r.u32("most operations")?,
        })
    }
}

impl OperationRequest {
    fn decode(r: &mut ByteReader) -> Result<Self> {
        Ok(Self {
            op: op(r)?,
            name: r.str("name", MAX_NAME_BYTES)?,
            priority: r.priority()?,
            deadline_ms: r.u32("deadline")?,
            parameters: r.bytes("parameters", MAX_BODY_BYTES)?,
        })
    }
}

impl ItemHead {
    fn decode(r: &mut ByteReader) -> Result<Self> {
        Ok(Self {
            op: op(r)?,
            item: r.u32("item")?,
            body: r.bytes("body", MAX_BODY_BYTES)?,
            bulk_bytes: r.u64("bulk length")?,
            bulk_crc32c: r.u32("checksum")?,
        })
    }
}

impl Chunk {
    fn decode(r: &mut ByteReader) -> Result<Self> {
        let (op, item, offset) = (op(r)?, r.u32("item")?, r.u64("offset")?);
        let bytes = std::mem::replace(r, ByteReader::new(Bytes::new())).rest();
        if bytes.is_empty() || bytes.len() > MAX_CHUNK_BYTES {
            return Err(Error::corrupt(format!(
                "expected a chunk of 1 to {MAX_CHUNK_BYTES} bytes, found {}",
                bytes.len()
            )));
        }
        Ok(Self { op, item, offset, bytes })
    }
}
