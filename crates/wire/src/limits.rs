//! Every limit of the wire, with its reason. `docs/wire.md` lists the same numbers for people.

use std::time::Duration;

/// `CODR`, little-endian: the first field of a hello.
pub const MAGIC: u32 = 0x5244_4F43;

/// Lowest version this build speaks.
pub const LOWEST_VERSION: u16 = 1;
/// Highest version this build speaks.
pub const HIGHEST_VERSION: u16 = 1;

/// The capability of a side that can read batches: of requests at a server, of answers at a client.
pub const BATCH: &str = "batch";

/// A whole frame: one full body or chunk and its header.
pub const MAX_FRAME_BYTES: usize = (1 << 20) + (64 << 10);
/// The first frame of a peer that has shown no token yet; a full hello takes less than 6 KiB.
pub const MAX_FIRST_FRAME_BYTES: usize = 8 << 10;
/// Bulk bytes in one chunk: small enough that something urgent waits for milliseconds only.
pub const MAX_CHUNK_BYTES: usize = 256 << 10;
/// Bulk bytes of one item: the largest block.
pub const MAX_ITEM_BULK_BYTES: u64 = 64 << 20;
/// The body of an item, the parameters of a request, a note.
pub const MAX_BODY_BYTES: usize = 1 << 20;
/// After the fields of a frame that are known: those of later versions.
pub const MAX_ADDED_BYTES: usize = 4 << 10;
/// Operations under way in one connection: a million small ones per second over a round trip of 150 ms are 150,000.
pub const MAX_OPERATIONS: u32 = 262_144;
/// Operations, or answers, in one batch.
pub const MAX_BATCH_OPERATIONS: usize = 4_096;
/// Parameters of all operations of one batch, written out: what a few bytes may grow into.
/// A request with more travels by itself.
pub const MAX_BATCH_PARAMETER_BYTES: usize = 512 << 10;
/// An item with more bulk than this travels by itself, in chunks.
pub const MAX_SMALL_BULK_BYTES: usize = 16 << 10;
/// Body of an item that may still travel with others.
pub const MAX_SMALL_BODY_BYTES: usize = 4 << 10;
/// Bodies and bulk of one batch of answers: something urgent waits for no more than this.
pub const MAX_ANSWERS_BYTES: usize = 64 << 10;
/// Items of which a client has seen the head but not yet the last chunk, over all operations.
pub const MAX_OPEN_ITEMS: usize = 4_096;
/// Most items under way, and pieces of bulk before their turn, over all operations, where bulk comes apart from the
/// frames. A tenth of the packets that 1 GiB takes may be missing.
pub const MAX_AHEAD: usize = 131_072;
/// Body of an item whose bulk comes apart, each piece with it: those of reads and blocks are smaller.
pub const MAX_PART_BODY_BYTES: usize = 96;
/// Rows of the result in one compressed piece of a read.
pub const MAX_PIECE_ROWS: u64 = 16_384;
/// A string: its length is a `u16`.
pub const MAX_STR_BYTES: usize = 65_535;
/// Name of an operation, a capability or a program.
pub const MAX_NAME_BYTES: usize = 64;
/// A token.
pub const MAX_TOKEN_BYTES: usize = 512;
/// Capabilities in a hello or a welcome.
pub const MAX_CAPABILITIES: usize = 64;

/// Bytes of items that a server queues for background operations, beyond the item being sent.
pub const QUEUE_BYTES: usize = 8 << 20;
/// Each tier above background may fill the queue this much further, so that what is urgent finds room
/// when the rest has filled theirs.
pub const QUEUE_BYTES_PER_TIER: usize = 2 << 20;
/// The highest tier that has room of its own; higher ones share it.
pub const HIGHEST_TIER: u8 = 4;
/// Items that a server queues in one connection, whatever their size.
pub const MAX_QUEUED_ITEMS: usize = 65_536;
/// Control frames waiting for the carrier, beyond which a server reads no more requests.
pub const MAX_QUEUED_CONTROL: usize = 1_024;
/// Bytes of background requests and notes that a client queues before it asks its callers to wait.
pub const MAX_OUTGOING_BYTES: usize = 4 << 20;
/// Each tier above background may queue this much more.
pub const MAX_OUTGOING_BYTES_PER_TIER: usize = 256 << 10;
/// Each tier above background has this part of the operations under way for itself and those above.
pub const OPERATIONS_PER_TIER: usize = 16;

/// Most bulk bytes that a server may send ahead, where the client's configuration says nothing else.
pub const DEFAULT_WINDOW_BYTES: u64 = 64 << 20;
/// Smallest window, and the window until the path is known: bulk bytes that the server may send ahead.
pub const FIRST_WINDOW_BYTES: u64 = 4 << 20;
/// A client returns credit when it owes this part of the window: few credit frames, and a server that hardly ever waits
/// for them though the window is little larger than the path.
pub const CREDIT_FRACTION: u64 = 16;
/// A client asks how long a round trip takes when this part of the window has arrived.
pub const PING_FRACTION: u64 = 4;
/// How long bulk may wait on the way beyond an eighth of the round trip: something urgent waits behind it. So long may a
/// busy machine take to turn to a connection.
pub const QUEUE_WITHIN: Duration = Duration::from_millis(15);
/// A shortest round trip that was not seen for so long is looked for anew.
pub const RTT_PROBE_AFTER: Duration = Duration::from_secs(10);
/// So is one that was not seen although the window fell in so many rounds: then it is not the window that makes them long.
pub const RTT_PROBE_AFTER_ROUNDS: u32 = 4;

/// From the first byte to hello, and from hello to welcome.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// After this much silence a side asks with a ping.
pub const PING_AFTER: Duration = Duration::from_secs(10);
/// Length of silence in the midst of a transfer after which a side asks with a ping. A peer that only receives is found
/// at a new address by the packets it sends, and the sender learns that the path works again.
pub const PING_AFTER_IN_TRANSFER: Duration = Duration::from_millis(500);
/// So many pings are sent then: together they fill a packet. To an address that is not proven yet a server by QUIC may send
/// three times what came from there (RFC 9000, section 8.2.1), and what proves it takes a packet.
pub const PINGS_IN_TRANSFER: u32 = 100;
/// After this much silence the peer counts as gone. Longer than a full socket buffer takes on a slow line.
pub const DEAD_AFTER: Duration = Duration::from_secs(40);
