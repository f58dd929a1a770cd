//! All limits of the protocol, with their reasons. `docs/wire.md` lists the same numbers.

use std::time::Duration;

/// Magic number, the first field of a hello: `CODR`, little-endian.
pub const MAGIC: u32 = 0x5244_4F43;

/// Lowest supported protocol version.
pub const LOWEST_VERSION: u16 = 1;
/// Highest supported protocol version.
pub const HIGHEST_VERSION: u16 = 1;

/// Capability of a side that can read batches: of requests on a server, of answers on a client.
pub const BATCH: &str = "batch";

/// Largest frame, bytes: one full body or chunk and its header.
pub const MAX_FRAME_BYTES: usize = (1 << 20) + (64 << 10);
/// Largest first frame of a peer that has not presented a token yet, bytes; a full hello takes less than 6
/// KiB.
pub const MAX_FIRST_FRAME_BYTES: usize = 8 << 10;
/// Most bulk bytes of one chunk: small enough that urgent data waits only milliseconds.
pub const MAX_CHUNK_BYTES: usize = 256 << 10;
/// Most bulk bytes of one item: the largest block.
pub const MAX_ITEM_BULK_BYTES: u64 = 64 << 20;
/// Largest body of an item, parameters of a request, or note, bytes.
pub const MAX_BODY_BYTES: usize = 1 << 20;
/// Most bytes after the known fields of a frame: fields of later versions.
pub const MAX_ADDED_BYTES: usize = 4 << 10;
/// Most operations in flight on one connection: a million small ones per second over a round trip of 150 ms
/// are 150,000.
pub const MAX_OPERATIONS: u32 = 262_144;
/// Most operations, or answers, in one batch.
pub const MAX_BATCH_OPERATIONS: usize = 4_096;
/// Most parameters of one batch after expansion, bytes. A request with more is sent by itself.
pub const MAX_BATCH_PARAMETER_BYTES: usize = 512 << 10;
/// Most bulk of an item in a batch, bytes; an item with more is sent by itself, in chunks.
pub const MAX_SMALL_BULK_BYTES: usize = 16 << 10;
/// Largest body of an item in a batch, bytes.
pub const MAX_SMALL_BODY_BYTES: usize = 4 << 10;
/// Most bodies and bulk of one batch of answers, bytes: urgent data waits for no more than this.
pub const MAX_ANSWERS_BYTES: usize = 64 << 10;
/// Most incomplete items of a client, over all operations: the head has arrived, the last chunk has not.
pub const MAX_OPEN_ITEMS: usize = 4_096;
/// Most incomplete items and early pieces of bulk of a client, over all operations, where bulk arrives
/// outside the frames. A tenth of the packets that 1 GiB takes may be missing.
pub const MAX_AHEAD: usize = 131_072;
/// Largest body of an item whose bulk is sent outside the frames, bytes, because each piece repeats it; those
/// of reads and blocks are smaller.
pub const MAX_PART_BODY_BYTES: usize = 96;
/// Most rows of the result in one compressed piece of a read.
pub const MAX_PIECE_ROWS: u64 = 16_384;
/// Longest string, bytes: its length is a `u16`.
pub const MAX_STR_BYTES: usize = 65_535;
/// Longest name of an operation, a capability or a program, bytes.
pub const MAX_NAME_BYTES: usize = 64;
/// Longest token, bytes.
pub const MAX_TOKEN_BYTES: usize = 512;
/// Most capabilities in a hello or a welcome.
pub const MAX_CAPABILITIES: usize = 64;

/// Bytes of items that a server queues for background operations, besides the item being sent.
pub const QUEUE_BYTES: usize = 8 << 20;
/// Bytes that each tier above background may queue in addition, so that urgent answers find room when lower
/// tiers have filled theirs.
pub const QUEUE_BYTES_PER_TIER: usize = 2 << 20;
/// Highest tier with room of its own; higher ones share it.
pub const HIGHEST_TIER: u8 = 4;
/// Most items that a server queues on one connection, whatever their size.
pub const MAX_QUEUED_ITEMS: usize = 65_536;
/// Most control frames waiting for the carrier; beyond it a server reads no requests.
pub const MAX_QUEUED_CONTROL: usize = 1_024;
/// Most bytes of background requests and notes that a client queues; beyond it callers wait.
pub const MAX_OUTGOING_BYTES: usize = 4 << 20;
/// Bytes that each tier above background may queue in addition.
pub const MAX_OUTGOING_BYTES_PER_TIER: usize = 256 << 10;
/// Divisor: each tier above background has this part of the operations in flight for itself and higher tiers.
pub const OPERATIONS_PER_TIER: usize = 16;

/// Bulk bytes that a server may send ahead at most, unless the client's configuration sets another limit.
pub const DEFAULT_WINDOW_BYTES: u64 = 64 << 20;
/// Smallest window, and the window until the path is known: bulk bytes that the server may send ahead.
pub const FIRST_WINDOW_BYTES: u64 = 4 << 20;
/// Divisor: a client returns credit when it owes this part of the window, so that credit frames are few and a
/// server hardly ever waits for them, even with a window little larger than the path needs.
pub const CREDIT_FRACTION: u64 = 16;
/// Divisor: a client measures the round trip when this part of the window has arrived.
pub const PING_FRACTION: u64 = 4;
/// Time that bulk may wait in the path, beyond an eighth of the round trip; urgent data waits behind it. A
/// busy machine may take as long to serve a connection.
pub const QUEUE_WITHIN: Duration = Duration::from_millis(15);
/// Age of the minimum round trip after which it is measured anew.
pub const RTT_PROBE_AFTER: Duration = Duration::from_secs(10);
/// Consecutive rounds of a falling window without the minimum round trip, after which it is measured anew:
/// then the window does not cause the delay.
pub const RTT_PROBE_AFTER_ROUNDS: u32 = 4;

/// Time limit of the handshake, from the first byte to hello, and from hello to welcome.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Silence after which a side sends a ping.
pub const PING_AFTER: Duration = Duration::from_secs(10);
/// Silence during a transfer after which a side sends a ping. A peer that only receives is found at a new
/// address by the packets it sends, and the sender learns that the path works again.
pub const PING_AFTER_IN_TRANSFER: Duration = Duration::from_millis(500);
/// Number of pings sent during such silence: together they fill a packet. A QUIC server may send three times
/// the received bytes to an address that is not validated (RFC 9000, section 8.2.1), and its validation takes
/// a packet.
pub const PINGS_IN_TRANSFER: u32 = 100;
/// Silence after which the peer counts as gone. Longer than a full socket buffer takes on a slow line.
pub const DEAD_AFTER: Duration = Duration::from_secs(40);
