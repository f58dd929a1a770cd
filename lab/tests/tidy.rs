//! Rules of the repository that a compiler does not check: which crate may use which, how long files may grow,
//! that pure crates stay pure, that licences are allowed, that no words of the build place leak in. Rules that are not
//! kept everywhere yet stand in `tidy/`, each with a table of its exceptions, which only shrinks.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

#[path = "tidy/cycles.rs"]
mod cycles;
#[path = "tidy/folders.rs"]
mod folders;
#[path = "tidy/headlines.rs"]
mod headlines;
#[path = "tidy/items.rs"]
mod items;
#[path = "tidy/limits.rs"]
mod limits;
#[path = "tidy/map.rs"]
mod map;
#[path = "tidy/modules.rs"]
mod modules;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/pages.rs"]
mod pages;
#[path = "tidy/prose.rs"]
mod prose;
#[path = "tidy/queues.rs"]
mod queues;
#[path = "tidy/ratchet.rs"]
mod ratchet;
#[path = "tidy/reexports.rs"]
mod reexports;
#[path = "tidy/sources.rs"]
mod sources;
#[path = "tidy/tokens.rs"]
mod tokens;
#[path = "tidy/use_paths.rs"]
mod use_paths;

use sources::{assert_none, lines_without_tests, read, relative, root, tracked, with_extension};

/// Lines of a file without the tests in it.
const MAX_FILE_LINES: usize = 800;
/// Largest file kept in the repository, bytes; the bundled sample volume is the largest.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The dependency rule: a crate uses these and no others of the workspace; `corridor` is the binary.
const EDGES: &[(&str, &[&str])] = &[
    ("array", &[]),
    ("store", &["array"]),
    ("cache", &["array"]),
    ("wire", &["array"]),
    ("control", &[]),
    ("link", &["wire", "control"]),
    ("plan", &[]),
    ("view", &["array"]),
    ("render", &["view", "array"]),
    ("session", &["view", "array"]),
    ("compose", &["render", "view", "array"]),
    ("mpi", &["compose", "array"]),
    ("gpu", &["render", "view", "array"]),
    ("stream", &["render", "compose", "gpu", "session", "view", "array"]),
    ("export", &["stream", "session", "view", "render", "store", "wire", "array"]),
    ("client", &["plan", "link", "control", "wire", "store", "array"]),
    ("server", &["client", "export", "plan", "link", "control", "wire", "render", "cache", "store", "array"]),
    ("node", &["server", "client", "stream", "session", "view", "link", "wire", "cache", "store", "array"]),
    (
        "python",
        &[
            "array", "store", "wire", "view", "render", "session", "stream", "export", "client", "server",
            "node",
        ],
    ),
    ("example-operations", &["array", "export", "client", "server", "node"]),
    (
        "lab",
        &[
            "array", "wire", "control", "compose", "link", "render", "view", "session", "stream", "client",
            "server", "node",
        ],
    ),
    ("fuzz-targets", &["array", "store", "wire", "link", "view", "render", "session", "export", "client"]),
    (
        "corridor",
        &[
            "array", "store", "link", "view", "render", "stream", "export", "client", "server", "node",
            "mpi", "lab",
        ],
    ),
];

/// Crates, or folders of them, without sockets, files, clocks, threads and randomness.
const PURE: &[&str] = &[
    "crates/array/src",
    "crates/wire/src",
    "crates/control/src",
    "crates/plan/src",
    "crates/view/src",
    "crates/session/src",
    "crates/cache/src/table.rs",
];

/// Words that must not occur in a pure crate.
const IMPURE_WORDS: &[&str] = &[
    "Instant::now",
    "SystemTime::now",
    "std::net",
    "std::fs",
    "std::thread",
    "tokio::",
    "rand::",
    "thread::sleep",
];

fn metadata() -> Value {
    // Only what this platform builds: the rest may never have been downloaded.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--filter-platform", &platform])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    serde_json::from_slice(&out.stdout).expect("cargo metadata is JSON")
}

/// Short name of a package in the rule: `store` for `corridor-store`, `corridor` for the binary; `None` for others.
fn short_name(name: &Value) -> Option<&str> {
    let name = name.as_str()?;
    if name == "corridor" { Some(name) } else { name.strip_prefix("corridor-") }
}

#[test]
fn crates_use_what_the_rule_allows_and_nothing_else() {
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        EDGES.iter().map(|(name, uses)| (*name, uses.iter().copied().collect())).collect();
    let metadata = metadata();
    let mut used: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let Some(name) = short_name(&package["name"]) else { continue };
        let dependencies = package["dependencies"].as_array().expect("dependencies");
        let uses = dependencies.iter().filter(|d| d["kind"] != "dev").filter_map(|d| short_name(&d["name"]));
        used.entry(name).or_default().extend(uses);
    }
    let mut problems = Vec::new();
    for (name, uses) in &used {
        match allowed.get(name) {
            Some(may) => problems.extend(uses.difference(may).map(|other| format!("{name} -> {other}"))),
            None => problems.push(format!("{name} is in the workspace but not in the rule")),
        }
    }
    for (name, may) in &allowed {
        match used.get(name) {
            Some(uses) => problems.extend(
                may.difference(uses).map(|other| format!("{name} -> {other} is allowed, not needed")),
            ),
            None => problems.push(format!("{name} is in the rule but not in the workspace")),
        }
    }
    assert_none(problems, "edges that are not those of the dependency rule");
}

#[test]
fn files_stay_short() {
    let mut problems = Vec::new();
    for path in with_extension("rs").into_iter().chain(with_extension("ts")).chain(with_extension("py")) {
        let text = read(&path);
        let lines = lines_without_tests(&text).count();
        if lines > MAX_FILE_LINES {
            problems.push(format!("{}: {lines} lines", path.display()));
        }
    }
    assert_none(problems, &format!("files over {MAX_FILE_LINES} lines"));
}

#[test]
fn rust_files_say_what_they_are_for() {
    let problems = with_extension("rs")
        .into_iter()
        .filter(|p| !read(p).starts_with("//!") && !read(p).starts_with("#!["))
        .map(|p| p.display().to_string())
        .collect();
    assert_none(problems, "files without a `//!` at the top");
}

#[test]
fn pure_crates_stay_pure() {
    let mut problems = Vec::new();
    for path in with_extension("rs") {
        let relative = relative(&path);
        if !PURE.iter().any(|p| relative.starts_with(p)) || relative.ends_with("conformance.rs") {
            continue;
        }
        let text = read(&path);
        for (number, line) in lines_without_tests(&text) {
            let is_comment = line.trim_start().starts_with("//");
            if let Some(word) = IMPURE_WORDS.iter().find(|w| !is_comment && line.contains(**w)) {
                problems.push(format!("{relative}:{number}: {word}"));
            }
        }
    }
    assert_none(problems, "impure words in pure crates");
}

#[test]
fn nothing_large_is_kept() {
    let problems = tracked()
        .into_iter()
        .filter_map(|p| p.metadata().ok().map(|m| (p, m.len())))
        .filter(|(_, size)| *size > MAX_FILE_BYTES)
        .map(|(p, size)| format!("{}: {size} bytes", p.display()))
        .collect();
    assert_none(problems, &format!("files over {MAX_FILE_BYTES} bytes"));
}

#[test]
fn unfinished_work_is_not_left_in_comments() {
    let words = ["TODO", "FIXME", "XXX", "unimplemented!", "todo!("];
    let mut problems = Vec::new();
    for path in with_extension("rs").into_iter().chain(with_extension("ts")) {
        if path.ends_with("lab/tests/tidy.rs") {
            continue;
        }
        for (number, line) in read(&path).lines().enumerate() {
            if words.iter().any(|w| line.contains(w)) {
                problems.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    assert_none(problems, "unfinished work; do it, or write it down in docs/");
}

#[test]
fn no_words_of_the_build_place_leak_in() {
    // Spelled in pieces, so that this file does not break its own rule.
    let words =
        [["/wo", "rk/"], ["crates", ".io"], ["pypi", ".org"], ["npm", "js"], ["static.", "rust-lang"]];
    let may_name_shared = |path: &str| path.starts_with(".ci/");
    let mut problems = Vec::new();
    for path in tracked() {
        let relative = relative(&path);
        let is_lock = relative.ends_with("Cargo.lock") || relative.ends_with("package-lock.json");
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for (number, line) in text.lines().enumerate().filter(|_| !is_lock) {
            let shared = line.contains(concat!("..", "/shared")) && !may_name_shared(&relative);
            if shared || words.iter().any(|w| line.contains(&w.concat())) {
                problems.push(format!("{relative}:{}", number + 1));
            }
        }
    }
    assert_none(problems, "words of the build place");
}

#[test]
fn licences_are_allowed() {
    let deny = read(&root().join("deny.toml"));
    let list = deny.split("allow = [").nth(1).and_then(|t| t.split(']').next()).expect("a list of licences");
    let allowed: BTreeSet<&str> = list.split('"').skip(1).step_by(2).collect();
    let mut problems = Vec::new();
    for package in metadata()["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().unwrap_or_default();
        if package["license"].is_null() && deny.contains(&format!("crate = \"{name}\"")) {
            continue; // Its licence is a file; deny.toml says which one it is.
        }
        let expression = package["license"].as_str().unwrap_or("(none)").replace('/', " OR ");
        // One alternative is enough; every part of it must be allowed.
        let one_of = expression.replace(['(', ')'], "");
        let fine = one_of.split(" OR ").any(|a| a.split(" AND ").all(|l| allowed.contains(l.trim())));
        if !fine {
            problems.push(format!("{name}: {expression}"));
        }
    }
    assert_none(problems, "licences outside deny.toml");
}

#[test]
fn every_crate_inherits_the_lints() {
    let problems = with_extension("toml")
        .into_iter()
        .filter(|p| p.ends_with("Cargo.toml") && !p.to_string_lossy().contains("/fuzz/"))
        .filter(|p| read(p).contains("[package]") && !read(p).contains("[lints]\nworkspace = true"))
        .map(|p| p.display().to_string())
        .collect();
    assert_none(problems, "crates without `[lints] workspace = true`");
}
