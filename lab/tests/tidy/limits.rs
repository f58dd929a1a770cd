//! The page of limits, `docs/limits.md`: rendered from the constants in the source code and their comments.

use std::collections::{BTreeMap, BTreeSet};

use super::pages::assert_page;
use super::sources::{lines_without_tests, read, relative, root, tracked};

/// Crates in order of the data path; others follow by name.
const ORDER: &[&str] = &[
    "array", "view", "store", "cache", "wire", "control", "link", "plan", "render", "gpu", "compose", "mpi",
    "session", "stream", "client", "server", "export", "node",
];

/// Beginnings of the names of constants that are limits.
const PREFIXES: &[&str] = &["MAX_", "MIN_", "MOST_", "LONGEST_", "LEAST_"];

/// Names of other constants that are limits.
const LISTED: &[&str] = &[
    "ALL_BYTES_PER_HOUR",
    "ASK_AGAIN_AFTER",
    "CONNECT_TIMEOUT",
    "DEAD_AFTER",
    "DEFAULT_SCRATCH_BYTES",
    "DEFAULT_WINDOW_BYTES",
    "EVENTS_KEPT",
    "FIRST_ATLAS_BYTES",
    "GONE_AFTER_MILLIS",
    "GREETING_LIMIT_MILLIS",
    "HALF_LIFE",
    "HANDSHAKE_TIMEOUT",
    "JOIN_WITHIN",
    "OPENED_AT_START",
    "OWN_BODY_BYTES",
    "OWN_BYTES",
    "OWN_REPLIES",
    "OWN_WAITING_OPERATIONS",
    "PATH_BYTES_PER_HOUR",
    "QUEUE_BYTES",
    "QUEUE_BYTES_PER_TIER",
    "REGIONS_PER_PASS",
    "RUNNING_PER_TIER",
    "SIDE_CACHE_BYTES",
    "SPARE_BYTES",
    "STRETCH_BYTES",
    "UPLOAD_BYTES_PER_PASS",
];

/// Limits of the viewer's side of the wire.
const WEB_LIMITS: &str = "web/src/wire/limits.ts";

/// Beginning of the page.
const HEAD: &str = "# Limits

Named constants of the code that bound memory, queues, sizes and times. This page is generated from the source code and its comments;
a test compares the two, and `CORRIDOR_BLESS=1 cargo test -p corridor-lab --test tidy` writes it again. A value that is not a plain number
is shown as in the source code. The second column is the module in the crate. `docs/wire.md` explains the limits of the protocol.
";

/// Constant that is a limit.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LimitRow {
    name: String,
    /// Module in its crate, as in `cpu::work`.
    module: String,
    value: String,
    /// First sentence of its comment.
    sentence: String,
}

/// Heading under which the limits of a source file stand: its crate, or `web`.
fn heading(path: &str) -> Option<&str> {
    if path == WEB_LIMITS {
        return Some("web");
    }
    let (krate, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let is_for_tests = file.split('/').any(|part| part == "tests" || part == "tests.rs");
    (!krate.contains('/') && file.ends_with(".rs") && !is_for_tests).then_some(krate)
}

/// Name of the constant that a line begins to define.
fn constant(line: &str) -> Option<&str> {
    let (visibility, rest) = line.split_at(line.find("const ")?);
    let is_visibility = matches!(visibility, "" | "pub " | "export ")
        || (visibility.starts_with("pub(") && visibility.ends_with(") "));
    let rest = rest.strip_prefix("const ").filter(|_| is_visibility)?;
    let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))?;
    (end > 0 && rest[end..].starts_with([':', ' '])).then_some(&rest[..end])
}

/// Returns whether a name is that of a limit.
fn is_limit(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || LISTED.contains(&name)
}

/// Module of a source file in its crate.
fn module(path: &str) -> String {
    let file = path.split_once("/src/").map_or(path, |(_, file)| file);
    let file = file.trim_end_matches(".rs").trim_end_matches(".ts");
    file.trim_end_matches("/mod").replace('/', "::")
}

/// Limits of a source file, and the names of those that have no comment of their own. Constants within functions do
/// not count.
fn limits(path: &str, text: &str) -> (Vec<LimitRow>, Vec<String>) {
    let (mut limits, mut without_comment) = (Vec::new(), Vec::new());
    let mut comment: Vec<&str> = Vec::new();
    let mut was_comment = false;
    let mut lines = lines_without_tests(text).map(|(_, line)| (line.starts_with("    "), line.trim()));
    while let Some((is_inner, line)) = lines.next() {
        let typescript = line.strip_prefix("/** ").and_then(|rest| rest.strip_suffix(" */"));
        if let Some(sentence) = line.strip_prefix("///").or(typescript) {
            if !was_comment || typescript.is_some() {
                comment.clear();
            }
            comment.push(sentence.trim());
            was_comment = true;
            continue;
        }
        was_comment = false;
        if line.starts_with("#[") {
            continue;
        }
        let Some(name) = constant(line) else {
            comment.clear();
            continue;
        };
        let mut statement = line.to_owned();
        while !statement.ends_with(';') {
            let Some((_, next)) = lines.next() else { break };
            statement.push(' ');
            statement.push_str(next);
        }
        let source = statement.split_once(" = ").map(|(_, source)| source.trim_end_matches(';').trim());
        let comment = std::mem::take(&mut comment);
        let Some(source) = source.filter(|_| is_limit(name)) else { continue };
        if !comment.is_empty() {
            let sentence = first_sentence(&comment.join(" "));
            let (name, module) = (name.to_owned(), module(path));
            limits.push(LimitRow { value: value(&name, source), name, module, sentence });
        } else if !is_inner {
            without_comment.push(format!("{path}: {name}"));
        }
    }
    (limits, without_comment)
}

/// First sentence of a comment, for a cell of a table.
fn first_sentence(comment: &str) -> String {
    let sentence = comment.split_once(". ").map_or(comment, |(first, _)| first);
    let sentence = sentence.trim_end_matches('.').replace("[`", "`").replace("`]", "`");
    sentence.replace('|', "\\|")
}

/// Formats the value of a constant: integers, sizes and times are written out, others stay as in the source.
fn value(name: &str, source: &str) -> String {
    whole(source).map(|number| with_unit(name, number)).or_else(|| time(source)).unwrap_or_else(|| {
        let is_number = source.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '_'));
        if is_number { source.replace('_', "") } else { format!("`{source}`") }
    })
}

/// Whole number written as digits, with or without a shift.
fn whole(source: &str) -> Option<u128> {
    let (number, shift) = source.split_once(" << ").unwrap_or((source, "0"));
    let number: u128 = number.replace('_', "").parse().ok()?;
    number.checked_shl(shift.parse().ok()?)
}

/// Time written as a call of `Duration`.
fn time(source: &str) -> Option<String> {
    let (unit, number) = source.strip_prefix("Duration::from_")?.strip_suffix(')')?.split_once('(')?;
    let unit = match unit {
        "secs" => "s",
        "millis" => "ms",
        "micros" => "µs",
        _ => return None,
    };
    Some(format!("{} {unit}", grouped(whole(number)?)))
}

/// Formats a number with its unit, if the name contains one.
fn with_unit(name: &str, number: u128) -> String {
    if !name.contains("BYTES") {
        return grouped(number);
    }
    let units = [("EiB", 60), ("PiB", 50), ("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];
    let fits = |shift: u32| number >= 1_u128 << shift && number.is_multiple_of(1_u128 << shift);
    let (unit, shift) = units.into_iter().find(|(_, shift)| fits(*shift)).unwrap_or(("B", 0));
    let per = if name.ends_with("BYTES_PER_SEC") { "/s" } else { "" };
    format!("{} {unit}{per}", grouped(number >> shift))
}

/// Digits of a number, with a comma after each three.
fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Renders the whole page.
fn page(by_heading: &BTreeMap<String, BTreeSet<LimitRow>>) -> String {
    let others = by_heading.keys().map(String::as_str).filter(|heading| !ORDER.contains(heading));
    let mut page = HEAD.to_owned();
    for heading in ORDER.iter().copied().chain(others) {
        let Some(limits) = by_heading.get(heading).filter(|limits| !limits.is_empty()) else { continue };
        page.push_str(&format!("\n## {heading}\n\n| limit | module | value | bounds |\n|---|---|---|---|\n"));
        for LimitRow { name, module, value, sentence } in limits {
            page.push_str(&format!("| `{name}` | `{module}` | {value} | {sentence} |\n"));
        }
    }
    page
}

#[test]
fn the_page_of_limits_matches_the_constants() {
    let mut by_heading: BTreeMap<String, BTreeSet<LimitRow>> = BTreeMap::new();
    let mut without_comment = Vec::new();
    for path in tracked() {
        let name = relative(&path);
        let Some(heading) = heading(&name) else { continue };
        let (limits, others) = limits(&name, &read(&path));
        by_heading.entry(heading.to_owned()).or_default().extend(limits);
        without_comment.extend(others);
    }
    assert!(
        without_comment.is_empty(),
        "say in a comment above each of these limits what it bounds: {without_comment:#?}"
    );
    assert_page(&root().join("docs/limits.md"), &page(&by_heading));
}

#[test]
fn limits_are_constants_with_a_comment() {
    let text = "/// Largest [`Block`], bytes. More\n/// text.\n#[x]\npub(super) const MAX_BYTES: u64 =\n    1 << 20;\n\
        const MIN_BYTES: u64 = 3 << 9;\n\nconst MAX_BARE: u8 = 1;\n/// Other.\nconst OTHER: u8 = 2;\n\
        /** Longest wait. */\nexport const MAX_WAIT = 2 * TURN;\n#[cfg(test)]\nmod tests {\n    /// No.\n    \
        const MAX_NO: u8 = 1;\n}\n";
    let (found, without_comment) = limits("crates/a/src/b/mod.rs", text);
    let found: Vec<String> =
        found.into_iter().map(|l| format!("{} {} {} {}", l.name, l.module, l.value, l.sentence)).collect();
    assert_eq!(found, ["MAX_BYTES b 1 MiB Largest `Block`, bytes", "MAX_WAIT b `2 * TURN` Longest wait"]);
    assert_eq!(
        without_comment,
        ["MIN_BYTES", "MAX_BARE"].map(|name| format!("crates/a/src/b/mod.rs: {name}"))
    );
    assert_eq!(module("crates/a/src/b/c.rs"), "b::c");
    assert_eq!(heading("crates/a/src/b/c.rs"), Some("a"));
    assert_eq!(heading(WEB_LIMITS), Some("web"));
    assert!(
        ["crates/a/tests/b.rs", "crates/a/src/tests.rs", "crates/a/src/tests/b.rs", "src/a.rs"]
            .into_iter()
            .all(|path| heading(path).is_none())
    );
}

#[test]
fn values_are_formatted_with_units() {
    let cases = [
        ("MAX_ROWS", "16_384", "16,384"),
        ("MAX_RATE", "1_500.0", "1500.0"),
        ("MAX_WAIT", "Duration::from_millis(1_500)", "1,500 ms"),
        ("MAX_TOLD_BYTES_PER_SEC", "2 << 30", "2 GiB/s"),
        ("MAX_LEVEL_BYTES", "1 << 62", "4 EiB"),
        ("MAX_NO_BYTES", "0", "0 B"),
        ("MAX_FRAME_BYTES", "(1 << 20) + 1", "`(1 << 20) + 1`"),
    ];
    for (name, source, expected) in cases {
        assert_eq!(value(name, source), expected, "{name} = {source}");
    }
}
