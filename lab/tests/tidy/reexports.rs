//! Interfaces of crates without names of other crates: each name is imported from the crate that defines it, so that
//! re-exports cannot circumvent the allowed edges between crates.

use std::collections::BTreeSet;

use super::modules::{Modules, crate_roots};
use super::ratchet::assert_listed;
use super::sources::{read, root, rust_texts};
use super::use_paths::Visibility;

/// Names of other crates that a crate re-exports, with the file; the list only shrinks.
const REEXPORTED: &[&str] = &[
    "crates/link/src/lib.rs: control::Choice",
    "crates/link/src/lib.rs: control::Refusal",
    "crates/link/src/lib.rs: control::RememberedPath",
    "crates/link/src/lib.rs: control::parse_rate",
    "crates/stream/src/lib.rs: compose",
    "crates/wire/src/lib.rs: array::Error",
    "crates/wire/src/lib.rs: array::ErrorKind",
    "crates/wire/src/lib.rs: array::Priority",
    "crates/wire/src/lib.rs: array::Result",
    "crates/wire/src/lib.rs: array::Retry",
    "crates/wire/src/lib.rs: array::Urgency",
];

/// Returns the names by which the crates of the workspace refer to each other, from the `Cargo.toml` of the root.
fn crate_names(manifest: &str) -> BTreeSet<&str> {
    let lines = manifest.lines().filter(|line| line.contains("package = \"corridor-"));
    lines.filter_map(|line| line.split(' ').next()).collect()
}

/// Public imports of one crate that begin with another: `file: path`.
fn reexported(modules: &Modules<'_>, crates: &BTreeSet<&str>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for module in modules.iter() {
        let imports = module.items.imports.iter().filter(|import| import.visibility == Visibility::Public);
        for import in imports {
            let first = import.path[0];
            let is_crate = crates.contains(first.strip_prefix("corridor_").unwrap_or(first));
            if is_crate && !module.declares(first) {
                let all = if import.is_glob() { "::*" } else { "" };
                found.insert(format!("{}: {}{all}", module.file, import.path.join("::")));
            }
        }
    }
    found
}

#[test]
fn crates_reexport_no_names_of_others() {
    let texts = rust_texts();
    let manifest = read(&root().join("Cargo.toml"));
    let crates = crate_names(&manifest);
    let roots = crate_roots(&texts);
    let found = roots.iter().flat_map(|(_, root)| reexported(&Modules::of(root, &texts), &crates)).collect();
    let rule = "names of other crates in a crate's interface (list in lab/tests/tidy/reexports.rs)";
    assert_listed(&found, REEXPORTED, rule, "import it from its own crate where it is used");
}

#[test]
fn only_public_names_of_other_crates_are_reexports() {
    let manifest = "[workspace.dependencies]\narray = { package = \"corridor-array\", path = \"a\" }\n\
        plan = { package = \"corridor-plan\" }\nserde = \"1\"\n";
    let crates = crate_names(manifest);
    assert_eq!(crates, ["array", "plan"].into());
    let text = "mod plan; pub use plan::A; pub use array::{B, c::*}; pub(crate) use array::D; use array::E;
        pub use serde::F; pub mod g { pub use corridor_plan; }";
    let texts =
        [("src/lib.rs".to_owned(), text.to_owned()), ("src/plan.rs".to_owned(), String::new())].into();
    let found = reexported(&Modules::of("src/lib.rs", &texts), &crates);
    let expected = ["src/lib.rs: array::B", "src/lib.rs: array::c::*", "src/lib.rs: corridor_plan"];
    assert_eq!(found, expected.map(str::to_owned).into());
}
