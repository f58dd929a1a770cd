//! Bounds of the wire, as `docs/wire.md` states them, and those that this side adds. All data from the network are checked
//! against them.
//!
//! Places where something can wait on the side of the browser, and their bounds:
//!
//! | place                                   | bound                                                             |
//! | --------------------------------------- | ----------------------------------------------------------------- |
//! | operations under way (`WireClient`)     | `MAX_OPERATIONS`; one more is an error                            |
//! | requests to describe (`Connection`)     | one under way and one that waits                                  |
//! | requests of statistics (`Connection`)   | one under way and one that waits; the newest wins                 |
//! | notes (`NoteQueue`)                     | one of each kind; the newest wins, of the view field by field     |
//! | frames to send (`WireClient`)           | `MAX_OUTGOING_BYTES`; one more request is an error, one more      |
//! |                                         | answer of this side ends the connection                           |
//! | buffer of the socket (`Connection`)     | `MAX_SEND_BUFFER_BYTES` and a frame; then frames and notes wait   |
//! | unfinished items (`WireClient`)         | `MAX_ASSEMBLING_ITEMS`, `MAX_ASSEMBLING_BYTES`                    |
//! | bulk bytes in flight                    | `INITIAL_CREDIT_BYTES`                                            |
//! | frames to decode (`FrameDecoder`)       | one besides the one being decoded; the newest wins                |
//! | decoded frames (`Picture`)              | the newest one; the node sends few before it gets `shown`         |
//! | changes of the view (`ViewSync`)        | one note; later changes are merged into it                        |

const KIB = 1024;
const MIB = 1024 * KIB;

/** Largest frame, bytes. */
export const MAX_FRAME_BYTES = MIB + 64 * KIB;
/** Maximum number of bulk bytes in one chunk. */
export const MAX_CHUNK_BYTES = 256 * KIB;
/** Maximum number of bulk bytes of one item. */
export const MAX_ITEM_BULK_BYTES = 64 * MIB;
/** Largest body of an item, parameters of a request, or note, bytes. */
export const MAX_BODY_BYTES = MIB;
/** Longest name (of an operation, a capability, a program), bytes of UTF-8. */
export const MAX_NAME_BYTES = 64;
/** Longest token, bytes of UTF-8. */
export const MAX_TOKEN_BYTES = 512;
/** Maximum number of capabilities in a hello or welcome. */
export const MAX_CAPABILITIES = 64;
/** Maximum number of operations, or of answers, in one batch. */
export const MAX_BATCH_OPERATIONS = 4096;
/** Parameters of all operations of one batch, written out, bytes. */
export const MAX_BATCH_PARAMETER_BYTES = 512 * KIB;
/** Maximum number of items of a connection whose last chunk is missing. */
export const MAX_ASSEMBLING_ITEMS = 4096;
/** Silence after which the page sends a ping; `docs/wire.md` requires one after 10 s, which is too late for a waiting user. */
export const PING_AFTER_MILLIS = 3000;
/** Silence after which the page shows that the server does not respond. */
export const SILENT_AFTER_MILLIS = 8000;
/** Silence after which the page connects again; `docs/wire.md` allows a peer 40 s, but nobody loses work by it here. */
export const GONE_AFTER_MILLIS = 20_000;
/** Longest wait for the welcome, from the beginning of the connection. */
export const GREETING_LIMIT_MILLIS = 10_000;
/** Maximum number of axes in a selection. */
export const MAX_AXES = 16;

/** Maximum number of rows of a compressed piece of a `read`. */
export const MAX_PIECE_ROWS = 16_384;

/** Maximum number of bulk bytes that this client holds in unfinished items: two of the largest items. */
export const MAX_ASSEMBLING_BYTES = 2 * MAX_ITEM_BULK_BYTES;
/** Maximum number of operations in progress; a page needs only a few. */
export const MAX_OPERATIONS = 256;
/** Maximum number of bytes of frames that wait for room in the socket's buffer. */
export const MAX_OUTGOING_BYTES = 4 * MIB;
/** Bytes in the socket's buffer from which on frames wait: some hundred notes, so that the newest view is not far behind. */
export const MAX_SEND_BUFFER_BYTES = 64 * KIB;
/** Bulk bytes that the server may send before it must wait for credit: a few exact pictures. */
export const INITIAL_CREDIT_BYTES = 16 * MIB;
/** Credit is returned in steps of at least this many bytes, so that it costs few frames. */
export const CREDIT_STEP_BYTES = 256 * KIB;
