//! Map of the repository, `ARCHITECTURE.md`, compared with the tree: folders with their subfolders, edges between crates, and
//! the files and modules that pages for contributors name.

use std::collections::{BTreeMap, BTreeSet};

use super::crates::EDGES;
use super::pages::quoted;
use super::sources::{assert_none, read, relative, root, tracked_paths, with_extension};

/// Page with the map.
const PAGE: &str = "ARCHITECTURE.md";
/// Heading above the table of folders.
const FOLDERS: &str = "## Folders";
/// Heading above the drawing of edges between crates.
const DRAWING: &str = "## Edges between crates";
/// Pages of which every quoted path and module has to exist.
const NAMING: &[&str] = &[PAGE, "CONTRIBUTING.md"];

/// Folders with the names of their subfolders.
type Tree<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Text between a heading and the next one.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, text) = page.split_once(heading).unwrap_or_else(|| panic!("{PAGE} has no heading `{heading}`"));
    text.split_once("\n## ").map_or(text, |(section, _)| section)
}

/// Folder of the map to which a file belongs, and the path of the file below the sources of the folder; empty for files that
/// are not sources.
fn place(path: &str) -> Option<(&str, &str)> {
    let (top, below) = path.split_once('/')?;
    match top {
        "crates" => path.split_once("/src/"),
        "src" => Some((top, below)),
        _ if top.starts_with('.') => None,
        _ => Some((top, below.strip_prefix("src/").unwrap_or_default())),
    }
}

/// Folders of the repository with the subfolders of their sources.
fn found<'a>(paths: impl IntoIterator<Item = &'a str>) -> Tree<'a> {
    let mut tree = Tree::new();
    for (folder, below) in paths.into_iter().filter_map(place) {
        let subfolder = below.split_once('/').map(|(subfolder, _)| subfolder);
        tree.entry(folder).or_default().extend(subfolder);
    }
    tree
}

/// Folders of the table with the subfolders in its second column.
fn listed(table: &str) -> Tree<'_> {
    let row = |line| {
        let mut cells = str::split(line, '|').skip(1).map(str::trim);
        let folder = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        Some((folder, quoted(cells.next()?).collect()))
    };
    table.lines().filter_map(row).collect()
}

/// Differences between the folders and the table.
fn differences(found: &Tree<'_>, listed: &Tree<'_>) -> Vec<String> {
    let names: BTreeSet<&str> = found.keys().chain(listed.keys()).copied().collect();
    let difference = |name: &str| match (found.get(name), listed.get(name)) {
        (Some(found), Some(listed)) if found == listed => None,
        (Some(found), Some(listed)) => {
            let new: Vec<&str> = found.difference(listed).copied().collect();
            let gone: Vec<&str> = listed.difference(found).copied().collect();
            Some(format!("`{name}`: add {new:?} to the table, take out {gone:?}"))
        }
        (Some(_), None) => Some(format!("`{name}` is not in the table: add a row")),
        (None, _) => Some(format!("`{name}` is not a folder: take out its row")),
    };
    names.into_iter().filter_map(difference).collect()
}

/// Edges of the drawing: lines such as `a, b -> c, d`.
fn drawn(drawing: &str) -> Tree<'_> {
    let mut tree = Tree::new();
    for (users, used) in drawing.lines().filter_map(|line| line.split_once("->")) {
        for user in users.split(',') {
            tree.entry(user.trim()).or_default().extend(used.split(',').map(str::trim));
        }
    }
    tree
}

/// Crates to which arrows lead from a crate, over others too.
fn reached<'a>(drawn: &Tree<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        let new = drawn.get(name).into_iter().flatten().copied().filter(|used| reached.insert(*used));
        open.extend(new.collect::<Vec<_>>());
    }
    reached
}

/// Differences between the arrows of the drawing and the allowed edges. An edge that follows from arrows over other crates need
/// not be drawn.
fn wrong_arrows(drawn: &Tree<'_>, edges: &[(&str, &[&str])]) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, uses) in edges {
        let reached = reached(drawn, name);
        let missing = uses.iter().filter(|used| !reached.contains(*used));
        problems.extend(missing.map(|used| format!("{name} -> {used} is allowed, but no arrows lead there")));
    }
    for (name, used) in drawn {
        let allowed = edges.iter().find(|(user, _)| user == name).map_or(&[][..], |(_, uses)| uses);
        let wrong = used.iter().filter(|used| !allowed.contains(used));
        problems.extend(wrong.map(|used| format!("{name} -> {used} is drawn, but not allowed")));
    }
    problems
}

/// Lines outside of blocks of code, with their numbers.
fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(page.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// Returns whether a quoted text is a path from the root; placeholders such as `docs/NAME.md` are not.
fn is_path(text: &str, tops: &BTreeSet<&str>) -> bool {
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/_.-".contains(c));
    is_plain && !text.contains("NAME") && text.split_once('/').is_some_and(|(top, _)| tops.contains(top))
}

/// Crate and path of a quoted text that names a module, such as `a::b::c`.
fn module(text: &str) -> Option<(&str, String)> {
    let is_word = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let (crate_name, rest) = text.split_once("::")?;
    text.split("::").all(is_word).then(|| (crate_name, rest.replace("::", "/")))
}

/// Returns whether a file belongs to a module: its crate matches, and its path ends with that of the module.
fn is_file_of(path: &str, crate_name: &str, end: &str) -> bool {
    let below = path.strip_prefix("crates/").and_then(|path| path.strip_prefix(crate_name));
    let file = below.and_then(|below| below.strip_prefix("/src/")?.strip_suffix(".rs"));
    file.is_some_and(|file| {
        let file = file.strip_suffix("/mod").unwrap_or(file);
        file.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    })
}

/// Targets of the links of a line that lead to files.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let files = targets.filter(|(target, _)| !target.contains("://") && !target.starts_with('#'));
    files.map(|(target, _)| target.split_once('#').map_or(target, |(file, _)| file))
}

#[test]
fn the_map_lists_the_folders_that_exist() {
    let paths = tracked_paths();
    let page = read(&root().join(PAGE));
    let problems = differences(&found(paths.iter().map(String::as_str)), &listed(section(&page, FOLDERS)));
    assert_none(problems, &format!("folders and the table `{FOLDERS}` of {PAGE}"));
}

#[test]
fn the_map_draws_the_allowed_edges() {
    let page = read(&root().join(PAGE));
    let problems = wrong_arrows(&drawn(section(&page, DRAWING)), EDGES);
    assert_none(
        problems,
        &format!("edges of lab/tests/tidy/crates.rs and the drawing `{DRAWING}` of {PAGE}"),
    );
}

#[test]
fn files_and_modules_that_pages_name_exist() {
    let paths = tracked_paths();
    let tops: BTreeSet<&str> = paths.iter().filter_map(|path| Some(path.split_once('/')?.0)).collect();
    let mut problems = Vec::new();
    for name in NAMING {
        for (number, line) in prose(&read(&root().join(name))) {
            for text in quoted(line) {
                let exists = match module(text) {
                    Some((crate_name, end)) => paths.iter().any(|path| is_file_of(path, crate_name, &end)),
                    None => !is_path(text, &tops) || root().join(text).exists(),
                };
                if !exists {
                    problems.push(format!("{name}:{number}: `{text}`"));
                }
            }
        }
    }
    assert_none(problems, "paths and modules that do not exist");
}

#[test]
fn links_of_pages_lead_to_files() {
    let mut problems = Vec::new();
    for path in with_extension("md") {
        let folder = path.parent().expect("a file lies in a folder");
        for (number, line) in prose(&read(&path)) {
            let broken = links(line).filter(|target| !folder.join(target).exists());
            problems.extend(broken.map(|target| format!("{}:{number}: {target}", relative(&path))));
        }
    }
    assert_none(problems, "links to files that do not exist");
}

#[test]
fn folders_are_compared_with_their_rows() {
    let paths = [
        "crates/a/src/lib.rs",
        "crates/a/src/b/c/d.rs",
        "crates/a/tests/e/f.rs",
        "lab/fuzz/src/g/h.rs",
        "lab/src/i/j.rs",
        "src/k/l.rs",
        ".ci/m",
        "n.md",
    ];
    let found = found(paths);
    let table = "| folder | subfolders |\n| `crates/a` | `b` | |\n| `lab` | `i` | |\n| `src` | `o` | |\n| `p` | | |\n";
    assert_eq!(
        differences(&found, &listed(table)),
        ["`p` is not a folder: take out its row", "`src`: add [\"k\"] to the table, take out [\"o\"]"]
    );
    let table = listed("| `crates/a` | `b` | |\n| `lab` | `i` | |\n");
    assert_eq!(differences(&found, &table), ["`src` is not in the table: add a row"]);
}

#[test]
fn arrows_are_compared_with_edges() {
    let drawing = drawn("a\nb, c   -> a\nd      -> b, c\n");
    let edges: [(&str, &[&str]); 4] = [("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["a", "b", "c"])];
    assert!(wrong_arrows(&drawing, &edges).is_empty());
    let edges: [(&str, &[&str]); 4] = [("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &["b", "c"])];
    assert_eq!(
        wrong_arrows(&drawing, &edges),
        ["c -> b is allowed, but no arrows lead there", "c -> a is drawn, but not allowed"]
    );
}

#[test]
fn names_of_files_and_modules_are_recognized() {
    let tops = ["docs", "crates"].into();
    assert!(is_path("docs/a.md", &tops) && is_path("crates/a/src", &tops));
    assert!(!["docs/NAME.md", "docs/*.md", "a/b", "docs"].iter().any(|text| is_path(text, &tops)));
    assert_eq!(module("a::b::c"), Some(("a", "b/c".to_owned())));
    assert!(module("a::B").is_none() && module("a").is_none());
    assert!(is_file_of("crates/a/src/x/b/c.rs", "a", "b/c") && is_file_of("crates/a/src/b/mod.rs", "a", "b"));
    assert!(!is_file_of("crates/a/src/xb.rs", "a", "b") && !is_file_of("crates/ab/src/c.rs", "a", "c"));
    let found: Vec<&str> = links("[a](b.md#c), [d](https://e), [f](#g) and ![h](i/j.png)").collect();
    assert_eq!(found, ["b.md", "i/j.png"]);
    let page = "a\n```\nb\n```\nc\n";
    assert!(prose(page).eq([(1, "a"), (5, "c")]));
}
