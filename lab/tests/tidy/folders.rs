//! Size of source folders, and one style for modules that have submodules.

use std::collections::{BTreeMap, BTreeSet};

use super::ratchet::{Advice, assert_counts, assert_listed};
use super::sources::tracked_paths;

/// Most files and folders in one folder of sources.
const MAX_ENTRIES: usize = 20;
/// Larger folders; the numbers may only fall.
const LARGER_FOLDERS: &[(&str, usize)] = &[];

/// Modules written as `foo.rs` beside their folder `foo`; the list only shrinks. Most are `foo/mod.rs`.
const MODULES_BESIDE_THEIR_FOLDERS: &[&str] =
    &["crates/array/src/conformance.rs", "crates/cache/src/table.rs", "crates/client/src/servers/tests.rs"];

/// Returns whether a folder contains sources of a crate or of the viewer.
fn is_of_sources(folder: &str) -> bool {
    let roots = ["lab/src", "src", "python/src", "web/src"];
    let is_below =
        |root: &str| folder.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let in_crate = folder.strip_prefix("crates/").and_then(|folder| folder.split_once('/'));
    roots.into_iter().any(is_below)
        || in_crate.is_some_and(|(_, rest)| rest == "src" || rest.starts_with("src/"))
}

/// Names in each folder of sources.
fn entries<'a>(paths: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut entries: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for path in paths {
        let mut rest = path;
        while let Some((folder, name)) = rest.rsplit_once('/') {
            if is_of_sources(folder) {
                entries.entry(folder).or_default().insert(name);
            }
            rest = folder;
        }
    }
    entries
}

/// Sources of Rust modules whose submodules lie in a folder beside them.
fn beside_their_folders<'a>(paths: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let is_folder =
        |folder: String| paths.range(folder.as_str()..).next().is_some_and(|p| p.starts_with(&folder));
    let has_modules = |path: &str| {
        let folder = path.strip_suffix(".rs").map(|name| format!("{name}/"));
        folder.is_some_and(is_folder)
    };
    paths.iter().copied().filter(|path| path.contains("src/") && has_modules(path)).collect()
}

#[test]
fn folders_of_sources_stay_small() {
    let paths = tracked_paths();
    let sizes =
        entries(paths.iter().map(String::as_str)).into_iter().map(|(folder, names)| (folder, names.len()));
    let found = sizes.filter(|(_, size)| *size > MAX_ENTRIES).map(|(folder, size)| (folder.to_owned(), size));
    let advice = Advice {
        rule: "folders of sources with more than 20 entries (table in lab/tests/tidy/folders.rs)",
        risen: "put files that belong together into a folder with a name",
        fallen: "lower the number in the table",
    };
    assert_counts(&found.collect(), LARGER_FOLDERS, &advice, |_| String::new());
}

#[test]
fn modules_with_modules_are_written_one_way() {
    let paths = tracked_paths();
    let rust = paths.iter().map(String::as_str).filter(|path| path.ends_with(".rs")).collect();
    let found = beside_their_folders(&rust).into_iter().map(str::to_owned).collect();
    let rule = "modules beside their folders (list in lab/tests/tidy/folders.rs)";
    assert_listed(&found, MODULES_BESIDE_THEIR_FOLDERS, rule, "move `foo.rs` to `foo/mod.rs`");
}

#[test]
fn entries_are_files_and_folders() {
    let paths = [
        "crates/a/src/lib.rs",
        "crates/a/src/b/c.rs",
        "crates/a/src/b/d.rs",
        "crates/a/tests/e.rs",
        "srcs/f",
    ];
    let counts: Vec<(&str, usize)> = entries(paths).into_iter().map(|(f, names)| (f, names.len())).collect();
    assert_eq!(counts, [("crates/a/src", 2), ("crates/a/src/b", 2)]);
}

#[test]
fn modules_beside_folders_are_found() {
    let paths =
        ["src/a.rs", "src/a/b.rs", "src/a_b.rs", "src/c/mod.rs", "src/c/d.rs", "tests/e.rs", "tests/e/f.rs"];
    assert_eq!(beside_their_folders(&paths.into()), ["src/a.rs"].into());
}
