//! Crates of the workspace: which of them a crate may use, and the lints that all of them inherit.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use super::sources::{assert_none, read, relative, root, with_extension};

/// Dependency rule: crates of the workspace that each crate uses; `corridor` is the binary.
pub(crate) const EDGES: &[(&str, &[&str])] = &[
    ("array", &[]),
    ("store", &["array"]),
    ("cache", &["array"]),
    ("wire", &["array"]),
    ("control", &[]),
    ("link", &["wire", "control"]),
    ("plan", &[]),
    ("view", &["array"]),
    ("geometry", &["array"]),
    ("render", &["view", "geometry", "array"]),
    ("session", &["view", "array"]),
    ("compose", &["render", "view", "array"]),
    ("mpi", &["compose", "array"]),
    ("gpu", &["render", "view", "array"]),
    ("stream", &["render", "compose", "gpu", "geometry", "session", "view", "array"]),
    ("export", &["stream", "session", "view", "render", "store", "wire", "array"]),
    ("client", &["plan", "link", "control", "wire", "store", "array"]),
    (
        "server",
        &[
            "client", "export", "plan", "link", "control", "wire", "render", "geometry", "cache", "store",
            "array",
        ],
    ),
    (
        "node",
        &[
            "server", "client", "export", "stream", "session", "view", "render", "geometry", "link", "wire",
            "cache", "store", "array",
        ],
    ),
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
    (
        "fuzz-targets",
        &["array", "store", "geometry", "wire", "link", "view", "render", "session", "export", "client"],
    ),
    (
        "corridor",
        &[
            "array", "store", "link", "view", "render", "stream", "export", "client", "server", "node",
            "mpi", "lab",
        ],
    ),
];

/// Returns the output of `cargo metadata`: packages of the workspace and their dependencies.
pub(crate) fn metadata() -> Value {
    // Only dependencies of this platform: others may not have been downloaded.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--filter-platform", &platform])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(out.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("cargo metadata is JSON")
}

/// Short name of a package in the rule: `store` for `corridor-store`, `corridor` for the binary; `None` for others.
fn short_name(name: &Value) -> Option<&str> {
    let name = name.as_str()?;
    if name == "corridor" { Some(name) } else { name.strip_prefix("corridor-") }
}

/// Crates of the workspace that each of them uses, except for its tests.
fn used_crates(metadata: &Value) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut used: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in metadata["packages"].as_array().expect("metadata have packages") {
        let Some(name) = short_name(&package["name"]) else { continue };
        let dependencies = package["dependencies"].as_array().expect("a package has dependencies");
        let uses = dependencies.iter().filter(|d| d["kind"] != "dev").filter_map(|d| short_name(&d["name"]));
        used.entry(name).or_default().extend(uses);
    }
    used
}

/// Differences between the crates that are used and the rule.
fn differences(used: &BTreeMap<&str, BTreeSet<&str>>, rule: &[(&str, &[&str])]) -> Vec<String> {
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        rule.iter().map(|(name, uses)| (*name, uses.iter().copied().collect())).collect();
    let mut problems = Vec::new();
    for (name, uses) in used {
        match allowed.get(name) {
            Some(may) => problems.extend(uses.difference(may).map(|other| {
                format!("{name} uses {other}: move the code to a crate that may, or allow it and say why")
            })),
            None => problems.push(format!("{name} is not in the table; add it with the crates that it uses")),
        }
    }
    for (name, may) in &allowed {
        match used.get(name) {
            Some(uses) => problems.extend(
                may.difference(uses)
                    .map(|other| format!("{name} does not use {other}; take it out of the table")),
            ),
            None => problems.push(format!("{name} is no crate of the workspace; take it out of the table")),
        }
    }
    problems
}

#[test]
fn crates_use_what_the_rule_allows_and_nothing_else() {
    let metadata = metadata();
    let rule = "edges between crates (table `EDGES` in lab/tests/tidy/crates.rs)";
    assert_none(differences(&used_crates(&metadata), EDGES), rule);
}

#[test]
fn every_crate_inherits_the_lints() {
    let problems = with_extension("toml")
        .iter()
        .filter(|path| path.ends_with("Cargo.toml"))
        // Outside the workspace there are no lints to inherit.
        .filter(|path| !path.ends_with("lab/fuzz/Cargo.toml"))
        .filter(|path| {
            let manifest = read(path);
            manifest.contains("[package]") && !manifest.contains("[lints]\nworkspace = true")
        })
        .map(|path| format!("{}: add `[lints]` with `workspace = true`", relative(path)))
        .collect();
    assert_none(problems, "crates without the lints of the workspace");
}

#[test]
fn edges_outside_the_rule_are_found() {
    let package =
        |name: &str, dependencies: Value| serde_json::json!({"name": name, "dependencies": dependencies});
    let tests_only = serde_json::json!([{"name": "corridor-b", "kind": "dev"}]);
    let metadata = serde_json::json!({"packages": [
        package("corridor-a", serde_json::json!([{"name": "corridor-b", "kind": null}, {"name": "serde", "kind": null}])),
        package("corridor-b", serde_json::json!([])),
        package("corridor-c", tests_only),
        package("corridor", serde_json::json!([{"name": "corridor-a", "kind": null}])),
        package("serde", serde_json::json!([])),
    ]});
    let used = used_crates(&metadata);
    assert_eq!(
        used,
        [("a", ["b"].into()), ("b", [].into()), ("c", [].into()), ("corridor", ["a"].into())].into()
    );
    let rule: &[(&str, &[&str])] = &[("a", &["b"]), ("b", &[]), ("c", &[]), ("corridor", &["a"])];
    assert_eq!(differences(&used, rule), [""; 0]);
    let rule: &[(&str, &[&str])] = &[("a", &[]), ("b", &["a"]), ("corridor", &["a"]), ("d", &[])];
    let found = differences(&used, rule);
    let beginnings = ["a uses b", "c is not in the table", "b does not use a", "d is no crate"];
    assert_eq!(found.len(), beginnings.len(), "{found:?}");
    assert!(found.iter().zip(beginnings).all(|(problem, begin)| problem.starts_with(begin)), "{found:?}");
}
