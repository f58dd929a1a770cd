//! Page of all places where something can wait, compared with the code: every queue is on it, no channel is unbounded, and the
//! modules and constants that it names exist, with the values that it states.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Modules, crate_roots};
use super::pages::quoted;
use super::sources::{assert_none, read, relative, root, rust_texts, with_extension};
use super::tokens::{group, tokens, without_tests};

/// Path of the page.
const PAGE: &str = "docs/queues.md";
/// Heading above its table of modules and constructs.
const TABLE: &str = "## Queues in the code";

/// Constructs that need a row in the table. A channel for one answer (`oneshot`) needs none: the waiting request is listed at its
/// own place.
const CONSTRUCTS: &[&str] = &[
    "BinaryHeap",
    "Condvar",
    "Notify",
    "Semaphore",
    "VecDeque",
    "broadcast::channel",
    "buffer_unordered",
    "mpsc::channel",
    "sync_channel",
    "watch",
];
/// Name of a channel that takes any number of messages.
const UNBOUNDED: &str = "unbounded channel";

/// One module outside of tests.
struct Source<'a> {
    crate_name: String,
    /// Path of its file from the root of the repository.
    file: &'a str,
    /// Names from the root of the crate on.
    path: Vec<&'a str>,
    tokens: Vec<&'a str>,
}

impl Source<'_> {
    /// Returns whether a name on the page means this module: its crate and the last parts of its path.
    fn is_meant_by(&self, name: &str) -> bool {
        let mut parts = name.split("::");
        parts.next() == Some(self.crate_name.as_str()) && self.path.ends_with(&parts.collect::<Vec<_>>())
    }

    fn name(&self) -> String {
        [&[self.crate_name.as_str()], self.path.as_slice()].concat().join("::")
    }
}

/// Modules of the crates, of the binary and of the Python module.
fn sources(texts: &BTreeMap<String, String>) -> Vec<Source<'_>> {
    let mut sources = Vec::new();
    for (crate_name, root) in crate_roots(texts) {
        if !root.starts_with("crates/") && !["src/main.rs", "python/src/lib.rs"].contains(&root) {
            continue;
        }
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        let modules = Modules::of(root, texts);
        let files: BTreeSet<&str> = modules.iter().map(|module| module.file).collect();
        for file in files {
            let inner = file.strip_prefix(folder).and_then(|inner| inner.strip_suffix(".rs"));
            let names = inner.unwrap_or_default().split('/');
            let path = names.filter(|name| !["", "lib", "main", "mod"].contains(name)).collect();
            let tokens = without_tests(&tokens(&texts[file]));
            sources.push(Source { crate_name: crate_name.clone(), file, path, tokens });
        }
    }
    sources
}

/// Constructs in the tokens of a module.
fn constructs(tokens: &[&str]) -> BTreeSet<&'static str> {
    let renamed = renamed(tokens);
    let code = without_imports(tokens);
    (0..code.len()).filter_map(|at| construct(&code, at, &renamed)).collect()
}

/// Modules of channels that are imported under another name, by that name.
fn renamed<'a>(tokens: &[&'a str]) -> BTreeMap<&'a str, &'a str> {
    let renaming = |three: &[&'a str]| match *three {
        [module @ ("mpsc" | "broadcast" | "watch"), "as", name] => Some((name, module)),
        _ => None,
    };
    tokens.windows(3).filter_map(renaming).collect()
}

fn without_imports<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_import = tokens[at] == "use" && !tokens[at + 1..].starts_with(&["<"]);
        if is_import {
            at += tokens[at..].iter().position(|token| *token == ";").unwrap_or(tokens.len() - at);
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

/// Returns the construct that a token stands for, if any. A queue that is borrowed from the caller belongs to the caller.
fn construct(code: &[&str], at: usize, renamed: &BTreeMap<&str, &str>) -> Option<&'static str> {
    let before = |count: usize| at.checked_sub(count).map_or("", |at| code[at]);
    let is_new = code[at + 1..].starts_with(&["::", "new"]);
    let arguments = behind_types(code, at + 1);
    let is_called = code.get(arguments) == Some(&"(") && !matches!(before(1), "." | "fn");
    let module = if before(1) == "::" { before(2) } else { "mpsc" };
    let module = renamed.get(module).copied().unwrap_or(module);
    match code[at] {
        "channel" if is_called => match module {
            "mpsc" if code.get(arguments + 1) == Some(&")") => Some(UNBOUNDED),
            "mpsc" => Some("mpsc::channel"),
            "broadcast" => Some("broadcast::channel"),
            "watch" => Some("watch"),
            _ => None,
        },
        "Sender" if module == "watch" && is_new => Some("watch"),
        "unbounded" | "unbounded_channel" if is_called => Some(UNBOUNDED),
        "sync_channel" if is_called => Some("sync_channel"),
        "Semaphore" if is_new => Some("Semaphore"),
        "Condvar" => Some("Condvar"),
        "Notify" => Some("Notify"),
        "VecDeque" | "BinaryHeap" if before(1) == "&" || (before(2), before(1)) == ("&", "mut") => None,
        "VecDeque" => Some("VecDeque"),
        "BinaryHeap" => Some("BinaryHeap"),
        "buffered" | "buffer_unordered" if before(1) == "." => Some("buffer_unordered"),
        _ => None,
    }
}

/// Returns the position after the type arguments of a call (`::<u8>`), if it has any.
fn behind_types(code: &[&str], at: usize) -> usize {
    if !code.get(at..).is_some_and(|rest| rest.starts_with(&["::", "<"])) {
        return at;
    }
    let mut depth = 0;
    for end in at + 1..code.len() {
        match code[end] {
            "<" => depth += 1,
            // Not the end of an arrow.
            ">" if code[end - 1] != "-" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return end + 1;
        }
    }
    code.len()
}

/// Whether a quoted text names a module.
fn is_module_name(text: &str) -> bool {
    // Files of the viewer have names with hyphens.
    let is_web = text.starts_with("web::");
    let is_letter =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || (is_web && c == '-');
    let is_word = |part: &str| part.chars().all(is_letter) && !part.is_empty();
    text.contains("::") && text.split("::").all(is_word) && !CONSTRUCTS.contains(&text)
}

/// Splits a quoted text such as `NAME = value` into name and value.
fn constant(text: &str) -> Option<(&str, &str)> {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    text.split_once(" = ").filter(|(name, _)| is_name(name))
}

/// Whether a module has a constant with this value, as it is written.
fn has_constant(code: &[&str], name: &str, value: &str) -> bool {
    let value = tokens(value);
    let is_it = |at: usize| code[at..].starts_with(&["const", name, ":"]) && value_of(&code[at..]) == value;
    (0..code.len()).any(is_it)
}

/// Value of the constant that starts the tokens.
fn value_of<'t, 'a>(code: &'t [&'a str]) -> &'t [&'a str] {
    let begin = code.iter().position(|token| *token == "=").map_or(code.len(), |at| at + 1);
    let mut end = begin;
    while end < code.len() && code[end] != ";" {
        end += if matches!(code[end], "(" | "[" | "{") { group(&code[end..]) } else { 1 };
    }
    &code[begin..end.min(code.len())]
}

/// Rows of the table: module and construct.
fn rows(page: &str) -> BTreeSet<(&str, &str)> {
    let table = page.split_once(TABLE).map_or("", |(_, table)| table);
    let mut rows = BTreeSet::new();
    for (module, constructs) in table.lines().filter_map(row) {
        rows.extend(quoted(constructs).map(|construct| (module, construct)));
    }
    rows
}

/// Module and constructs of a line, if it is a row.
fn row(line: &str) -> Option<(&str, &str)> {
    let (module, rest) = line.strip_prefix("| [`")?.split_once("`](")?;
    Some((module, rest.split(" | ").nth(1)?))
}

/// Differences between the constructs found, by module, and the rows of the table.
fn differences(found: &[(&Source<'_>, &str)], rows: &BTreeSet<(&str, &str)>) -> Vec<String> {
    let mut problems = Vec::new();
    for &(source, construct) in found {
        let name = source.name();
        if construct == UNBOUNDED {
            problems.push(format!("`{name}` has an {UNBOUNDED}: give it a bound"));
        } else if !rows.iter().any(|(module, known)| *known == construct && source.is_meant_by(module)) {
            problems.push(format!(
                "`{name}` has a `{construct}` that is not on the page: say there what waits, its bound, and what happens at the \
                 bound, and add a row to the last table (or to the row of this module)"
            ));
        }
    }
    for &(module, construct) in rows {
        let meant = found.iter().filter(|(source, known)| *known == construct && source.is_meant_by(module));
        let meant: Vec<String> = meant.map(|(source, _)| source.name()).collect();
        match meant.len() {
            0 => problems
                .push(format!("`{module}` has no `{construct}` in the code: it was renamed or removed")),
            1 => {}
            _ => problems.push(format!(
                "`{module}` with a `{construct}` means {}: name the module above it too",
                meant.join(", ")
            )),
        }
    }
    problems
}

#[test]
fn every_queue_is_on_the_page_of_queues() {
    let texts = rust_texts();
    let sources = sources(&texts);
    let mut found = Vec::new();
    for source in &sources {
        found.extend(constructs(&source.tokens).into_iter().map(|construct| (source, construct)));
    }
    let page = read(&root().join(PAGE));
    assert_none(differences(&found, &rows(&page)), &format!("queues in the code and on {PAGE}"));
}

#[test]
fn modules_and_constants_on_the_page_of_queues_exist() {
    let texts = rust_texts();
    let sources = sources(&texts);
    let in_web: Vec<_> =
        with_extension("ts").into_iter().filter(|path| relative(path).starts_with("web/src/")).collect();
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(read(&root().join(PAGE)).lines()) {
        let (mut rust, mut web) = (Vec::new(), Vec::new());
        for module in quoted(line).filter(|text| is_module_name(text)) {
            let file = module.strip_prefix("web::").map(|name| format!("/{name}.ts"));
            let before = rust.len() + web.len();
            rust.extend(sources.iter().filter(|source| source.is_meant_by(module)));
            web.extend(
                file.as_ref()
                    .and_then(|file| in_web.iter().find(|path| relative(path).ends_with(file.as_str()))),
            );
            if rust.len() + web.len() == before {
                problems.push(format!("{PAGE}:{number}: there is no module `{module}`"));
                continue;
            }
            let found = rust.last().filter(|_| file.is_none()).map(|source| source.file.to_owned());
            let found = found.or_else(|| web.last().map(|path| relative(path))).unwrap_or_default();
            if line.starts_with('|') && !line.contains(&format!("[`{module}`](../{found})")) {
                problems.push(format!("{PAGE}:{number}: `{module}` must be a link to ../{found}"));
            }
        }
        for (name, value) in quoted(line).filter_map(constant) {
            let declared = [format!("const {name} = {value};"), format!("export const {name} = {value};")];
            let in_rust = rust.iter().any(|source| has_constant(&source.tokens, name, value));
            let in_web =
                || web.iter().any(|path| read(path).lines().any(|l| declared.iter().any(|d| d == l)));
            if !in_rust && !in_web() {
                problems.push(format!("{PAGE}:{number}: no module of this line has `{name} = {value}`"));
            }
        }
    }
    assert_none(problems, &format!("modules and constants on {PAGE}"));
}

#[test]
fn constructs_are_distinguished_from_similar_code() {
    let of = |text: &str| constructs(&tokens(text)).into_iter().collect::<Vec<_>>();
    assert_eq!(of("use a::{VecDeque, Notify}; fn f(q: &mut VecDeque<u8>, r: &VecDeque<u8>) {}"), [""; 0]);
    assert_eq!(of("struct S { q: Mutex<VecDeque<u8>>, n: Notify }"), ["Notify", "VecDeque"]);
    assert_eq!(
        of("use tokio::sync::watch as w; fn f() { w::Sender::new(0); sync_channel::<()>(0); }"),
        ["sync_channel", "watch"]
    );
    assert_eq!(of("fn f() { oneshot::channel::<u8>(); a.channel(1); mpsc::Sender::new(1) }"), [""; 0]);
    assert_eq!(
        of("fn f() { mpsc::channel::<Box<dyn Fn() -> u8>>(1); s.buffered(2) }"),
        ["buffer_unordered", "mpsc::channel"]
    );
    for text in ["mpsc::channel::<()>()", "unbounded::<u8>()", "mpsc::unbounded_channel()", "channel()"] {
        assert_eq!(of(text), [UNBOUNDED], "{text}");
    }
    let code = tokens("const A: [u8; 2] = [0; 2]; const B: u64 = 64 << 20; const C: Duration = f(1);");
    assert!(has_constant(&code, "A", "[0; 2]") && has_constant(&code, "B", "64 << 20"));
    assert!(has_constant(&code, "C", "f(1)") && !has_constant(&code, "B", "64"));
}

#[test]
fn a_queue_without_a_row_and_a_row_without_a_queue_are_reported() {
    let source = |path: &[&'static str]| Source {
        crate_name: "a".to_owned(),
        file: "",
        path: path.to_vec(),
        tokens: Vec::new(),
    };
    let (first, second, third) = (source(&["b", "c"]), source(&["d", "c"]), source(&["e"]));
    let page = format!(
        "{TABLE}\n\n| module | construct |\n|---|---|\n| [`a::c`](c.rs) | `Notify`, `watch` | x |\n| [`a::f`](f.rs) | `watch` | y |\n"
    );
    let rows = rows(&page);
    assert!(rows.iter().eq(&[("a::c", "Notify"), ("a::c", "watch"), ("a::f", "watch")]));
    let found = [(&first, "Notify"), (&second, "Notify"), (&first, "watch"), (&third, "VecDeque")];
    let problems = differences(&found, &rows);
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems[0].starts_with("`a::e` has a `VecDeque` that is not on the page"));
    assert!(problems[1].starts_with("`a::c` with a `Notify` means a::b::c, a::d::c"));
    assert!(problems[2].starts_with("`a::f` has no `watch`"));
}
