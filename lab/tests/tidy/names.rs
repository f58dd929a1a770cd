//! Names of types that mean one thing in the whole workspace.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::modules::{Modules, crate_roots};
use super::ratchet::{Advice, assert_counts, has_risen};
use super::sources::{read, root, rust_texts};

/// Files that define each name of a type, for those defined twice or more, by name.
fn repeated<'a>(crates: &'a [Modules<'a>]) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for module in crates.iter().flat_map(Modules::iter) {
        for name in &module.items.types {
            files.entry(name).or_default().push(module.file);
        }
    }
    files.retain(|_, files| files.len() > 1);
    files
}

/// Path of the list of repeated names: a name and its number of definitions on each line. The list only shrinks.
fn list() -> PathBuf {
    root().join("lab/tests/tidy/type_names.txt")
}

/// Name and number of a line of the list.
fn entry(line: &str) -> Option<(&str, usize)> {
    let (name, count) = line.split_once(' ')?;
    Some((name, count.parse().ok()?))
}

/// Reads the list.
fn entries(text: &str) -> Vec<(&str, usize)> {
    let lines = text.lines();
    lines.map(|line| entry(line).unwrap_or_else(|| panic!("`{line}` is not a name with a number"))).collect()
}

#[test]
fn types_have_names_of_their_own() {
    let texts = rust_texts();
    let crates: Vec<Modules<'_>> =
        crate_roots(&texts).iter().map(|(_, root)| Modules::of(root, &texts)).collect();
    let repeated = repeated(&crates);
    let found: BTreeMap<String, usize> =
        repeated.iter().map(|(n, files)| ((*n).to_owned(), files.len())).collect();
    let text = read(&list());
    let listed = entries(&text);
    if std::env::var_os("CORRIDOR_BLESS").is_some() && !has_risen(&found, &listed) {
        let lines: String = found.iter().map(|(name, count)| format!("{name} {count}\n")).collect();
        return std::fs::write(list(), lines).expect("the list can be written");
    }
    assert!(listed.is_sorted(), "{} is not sorted by name; sort it", list().display());
    let advice = Advice {
        rule: "names of types defined more than once (list in lab/tests/tidy/type_names.txt)",
        risen: "choose a more specific name, such as `AtlasSlot`, `ReadPart`",
        fallen: "lower the number in the list, or run with CORRIDOR_BLESS=1",
    };
    assert_counts(&found, &listed, &advice, |name| format!("\n    {}", repeated[name].join("\n    ")));
}

#[test]
fn names_count_where_they_are_defined_again() {
    let one = "pub struct Part; enum Way { Part } mod a { type Way = u8; } #[cfg(test)] mod tests { trait Part {} }";
    let two = "trait Part { type Way; } fn f() { struct Way; } struct Other<Way>(Way);";
    let texts = [("a/src/lib.rs", one), ("b/src/lib.rs", two)];
    let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    let crates = ["a/src/lib.rs", "b/src/lib.rs"].map(|root| Modules::of(root, &texts));
    let (a, b) = ("a/src/lib.rs", "b/src/lib.rs");
    assert_eq!(repeated(&crates), [("Part", vec![a, b]), ("Way", vec![a, a])].into());
    assert_eq!(entries("Part 2\nWay 2\n"), [("Part", 2), ("Way", 2)]);
}
