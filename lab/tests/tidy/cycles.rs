//! Cycles among the files of a crate: files that use each other can only be read, moved and tested together.

use std::collections::BTreeMap;

use super::modules::{Modules, Uses, crate_roots};
use super::ratchet::{Advice, assert_counts};
use super::sources::rust_texts;

/// Number of files in the largest cycle of each crate; 1 if there is none. The numbers may only fall; at most 6 are needed.
const LARGEST_CYCLES: &[(&str, usize)] = &[
    ("array", 2),
    ("cache", 1),
    ("client", 4),
    ("compose", 1),
    ("control", 1),
    ("corridor", 2),
    ("examples/operations", 1),
    ("examples/operations (program)", 1),
    ("export", 3),
    ("geometry", 1),
    ("gpu", 1),
    ("lab", 4),
    ("lab/targets", 1),
    ("link", 6),
    ("mpi", 1),
    ("node", 1),
    ("plan", 3),
    ("python", 2),
    ("render", 4),
    ("server", 3),
    ("session", 1),
    ("store", 6),
    ("stream", 4),
    ("view", 3),
    ("wire", 3),
];

/// Strongly connected components of a graph given as successors by node, by Tarjan's algorithm.
fn components(successors: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let count = successors.len();
    let mut search = Search {
        successors,
        order: vec![None; count],
        lowest: vec![0; count],
        is_open: vec![false; count],
        open: Vec::new(),
        visited: 0,
        found: Vec::new(),
    };
    for node in 0..count {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    search.found
}

struct Search<'a> {
    successors: &'a [Vec<usize>],
    /// Number at which a node was visited.
    order: Vec<Option<usize>>,
    /// Smallest number that is reached from a node within its component.
    lowest: Vec<usize>,
    /// Visited nodes whose components are not complete.
    open: Vec<usize>,
    is_open: Vec<bool>,
    visited: usize,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn visit(&mut self, node: usize) {
        let number = self.visited;
        self.visited += 1;
        self.order[node] = Some(number);
        self.lowest[node] = number;
        self.open.push(node);
        self.is_open[node] = true;
        for &next in &self.successors[node] {
            match self.order[next] {
                None => {
                    self.visit(next);
                    self.lowest[node] = self.lowest[node].min(self.lowest[next]);
                }
                Some(order) if self.is_open[next] => self.lowest[node] = self.lowest[node].min(order),
                Some(_) => {}
            }
        }
        if self.lowest[node] == number {
            let start = self.open.iter().rposition(|open| *open == node).expect("it was pushed above");
            let component = self.open.split_off(start);
            for &closed in &component {
                self.is_open[closed] = false;
            }
            self.found.push(component);
        }
    }
}

/// Files of the largest cycle, sorted.
pub(crate) fn largest_cycle<'a>(uses: &Uses<'a>) -> Vec<&'a str> {
    let files: Vec<&str> = uses.keys().copied().collect();
    let number = |file: &str| files.binary_search(&file).expect("each file has its uses");
    let successors: Vec<Vec<usize>> =
        uses.values().map(|to| to.keys().map(|file| number(file)).collect()).collect();
    let components = components(&successors);
    let largest =
        components.into_iter().max_by_key(|c| (c.len(), std::cmp::Reverse(c.iter().min().copied())));
    let mut cycle: Vec<&str> = largest.unwrap_or_default().into_iter().map(|node| files[node]).collect();
    cycle.sort_unstable();
    cycle
}

/// Uses among the files of a cycle, a line for each file.
fn describe(cycle: &[&str], uses: &Uses<'_>) -> String {
    let in_cycle = |file: &&str| cycle.binary_search(file).is_ok();
    let short = |file: &str| file.rsplit_once("src/").map_or(file, |(_, short)| short).to_owned();
    let line = |file: &&str| {
        let others = uses[file].iter().filter(|(to, _)| in_cycle(to)).map(|(to, names)| {
            let names: Vec<&str> = names.iter().copied().collect();
            format!("{} ({})", short(to), names.join(" "))
        });
        format!("\n    {} uses {}", short(file), others.collect::<Vec<_>>().join(", "))
    };
    cycle.iter().filter(|_| cycle.len() > 1).map(line).collect()
}

#[test]
fn files_that_use_each_other_are_few() {
    let texts = rust_texts();
    let mut found = BTreeMap::new();
    let mut details = BTreeMap::new();
    for (name, root) in crate_roots(&texts) {
        let uses = Modules::of(root, &texts).uses();
        let cycle = largest_cycle(&uses);
        details.insert(name.clone(), describe(&cycle, &uses));
        found.insert(name, cycle.len());
    }
    let advice = Advice {
        rule: "files in the largest cycle of each crate (table in lab/tests/tidy/cycles.rs)",
        risen: "break the cycle: move what both sides use into a file of its own, or hand it over as an argument",
        fallen: "lower the number in the table",
    };
    assert_counts(&found, LARGEST_CYCLES, &advice, |name| details[name].clone());
}

#[test]
fn a_cycle_of_three_files_is_found() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod d; pub use a::A;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "pub struct B(super::c::C);"),
        ("c.rs", "use crate::A; use crate::d::D; pub struct C(Option<Box<A>>, D);"),
        ("d.rs", "pub struct D;"),
    ];
    let texts = files.iter().map(|(path, text)| (format!("src/{path}"), (*text).to_owned())).collect();
    let uses = Modules::of("src/lib.rs", &texts).uses();
    let cycle = largest_cycle(&uses);
    assert_eq!(cycle, ["src/a.rs", "src/b.rs", "src/c.rs"]);
    assert_eq!(
        describe(&cycle, &uses),
        "\n    a.rs uses b.rs (B)\n    b.rs uses c.rs (C)\n    c.rs uses a.rs (A)"
    );
}

#[test]
fn components_are_as_large_as_their_cycles() {
    let graph = [vec![1], vec![2, 4], vec![0, 3], vec![4], vec![5], vec![3], vec![]];
    let mut sizes: Vec<usize> = components(&graph).iter().map(Vec::len).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 3, 3]);
}
