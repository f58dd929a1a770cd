//! Crates without sockets, files, clocks, threads and randomness: time and chance are arguments there.

use std::collections::BTreeSet;

use super::items::Items;
use super::sources::{assert_none, rust_texts};
use super::tokens::{tokens, without_tests};

/// Beginnings of the paths of pure sources.
const PURE: &[&str] = &[
    "crates/array/src/",
    "crates/wire/src/",
    "crates/control/src/",
    "crates/plan/src/",
    "crates/view/src/",
    "crates/geometry/src/",
    "crates/session/src/",
    "crates/cache/src/table",
];

/// Beginnings or ends of paths that a pure source must not use.
const IMPURE: &[&str] = &[
    "Instant::now",
    "SystemTime::now",
    "std::net",
    "std::fs",
    "std::thread",
    "thread::sleep",
    "thread::spawn",
    "tokio",
    "rand",
];

/// Returns the impure paths that a source uses outside of its tests.
fn impure_paths(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(&without_tests(&tokens(text)), &mut found);
    found
}

/// Adds the impure paths of a module and of those written in it.
fn collect(tokens: &[&str], found: &mut BTreeSet<String>) {
    let items = Items::of(tokens);
    let imports = items.imports.iter().map(|import| &import.path);
    found.extend(imports.chain(&items.paths).filter(|path| is_impure(path)).map(|path| path.join("::")));
    for module in items.modules.iter().filter_map(|(_, written)| written.as_ref()) {
        collect(module, found);
    }
}

fn is_impure(path: &[&str]) -> bool {
    IMPURE.iter().any(|impure| {
        let words: Vec<&str> = impure.split("::").collect();
        path.starts_with(&words) || path.ends_with(&words)
    })
}

#[test]
fn pure_crates_stay_pure() {
    let texts = rust_texts();
    let mut problems = Vec::new();
    for begin in PURE {
        let mut sources = texts.iter().filter(|(path, _)| path.starts_with(begin)).peekable();
        if sources.peek().is_none() {
            problems.push(format!("{begin}: no such source exists; update the list"));
        }
        for (path, text) in sources.filter(|(path, _)| !path.ends_with("conformance.rs")) {
            let impure = impure_paths(text);
            problems.extend(impure.iter().map(|used| format!("{path}: `{used}`; make it an argument")));
        }
    }
    assert_none(
        problems,
        "I/O, clocks, threads or randomness in pure sources (list in lab/tests/tidy/purity.rs)",
    );
}

#[test]
fn impure_paths_are_found_however_they_are_written() {
    let text = "use std::{fs, time::Instant}; fn a() { Instant::now(); rand::random() } // std::net
        mod b { use tokio::*; } use crate::operand::c; const D: &str = \"std::thread\";
        #[cfg(test)] mod tests { use std::net::TcpStream; }";
    let found = ["Instant::now", "rand::random", "std::fs", "tokio"].map(str::to_owned);
    assert_eq!(impure_paths(text), found.into());
}
