//! Checks that the table of limits in `docs/wire.md` agrees with the constants.

use corridor_wire::limits;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

#[test]
fn the_limits_in_the_document_are_those_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/wire.md");
    let text = std::fs::read_to_string(path).unwrap();
    let table = text.split("## Limits").nth(1).unwrap().split("\n## ").next().unwrap();
    let row = |name: &str, value: String| {
        let found = table.lines().find(|line| line.starts_with(&format!("| {name}"))).unwrap_or_default();
        assert!(found.contains(&value), "expected `{value}` for `{name}`, found `{found}`");
    };
    let thousands = |n: usize| format!("{},{:03}", n / 1000, n % 1000);
    row("frame", format!("1 MiB + {} KiB", (limits::MAX_FRAME_BYTES - MIB) / KIB));
    row("frame", format!("hello {} KiB", limits::MAX_FIRST_FRAME_BYTES / KIB));
    row("chunk", format!("{} KiB", limits::MAX_CHUNK_BYTES / KIB));
    row("bulk bytes of one item", format!("{} MiB", limits::MAX_ITEM_BULK_BYTES >> 20));
    row("body of one item", format!("{} MiB", limits::MAX_BODY_BYTES / MIB));
    row("operations in flight", thousands(limits::MAX_OPERATIONS as usize));
    row("operations, or answers, in one batch", thousands(limits::MAX_BATCH_OPERATIONS));
    row("parameters of one batch", format!("{} KiB", limits::MAX_BATCH_PARAMETER_BYTES / KIB));
    row("an item that travels with others", format!("{} KiB of bulk", limits::MAX_SMALL_BULK_BYTES / KIB));
    row("an item that travels with others", format!("{} KiB of body", limits::MAX_SMALL_BODY_BYTES / KIB));
    row("bodies and bulk of one batch", format!("{} KiB", limits::MAX_ANSWERS_BYTES / KIB));
    row("bytes of items queued", format!("{} MiB for background", limits::QUEUE_BYTES / MIB));
    row("bytes of items queued", format!("{} MiB more for each tier", limits::QUEUE_BYTES_PER_TIER / MIB));
    row("bytes of items queued", format!("up to {}", limits::HIGHEST_TIER));
    row("items queued", thousands(limits::MAX_QUEUED_ITEMS));
    row("items of a connection", thousands(limits::MAX_OPEN_ITEMS));
    row("where bulk comes by datagrams or several streams", thousands(limits::MAX_AHEAD));
    row("rows of a compressed piece", thousands(usize::try_from(limits::MAX_PIECE_ROWS).unwrap()));
    row("bins", thousands(usize::from(corridor_wire::ops::MAX_BINS)));
    row("from the connection", format!("{} s", limits::HANDSHAKE_TIMEOUT.as_secs()));
    row("strings", format!("{} bytes", thousands(limits::MAX_STR_BYTES)));
    row("strings", format!("{}, a token {}", limits::MAX_NAME_BYTES, limits::MAX_TOKEN_BYTES));
    row("capabilities", limits::MAX_CAPABILITIES.to_string());
    row("axes", array::MAX_AXES.to_string());
}
