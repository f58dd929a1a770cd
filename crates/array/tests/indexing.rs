//! Selections mean what numpy means: against committed answers always, against numpy itself where it is installed.

use std::io::Write;
use std::process::{Command, Stdio};

use corridor_array::{AxisRange, Indexing, ResolvedIndex, Selection};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Case {
    text: String,
    shape: Vec<u64>,
    #[serde(default)]
    result: Option<Found>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Found {
    shape: Vec<u64>,
    /// Sum over the result of (place, from 1) times (flat index), modulo 2^64.
    checksum: u64,
}

fn found(resolved: &ResolvedIndex, shape: &[u64]) -> Found {
    let mut flat = vec![0u64];
    for (axis, range) in resolved.selection.ranges().iter().enumerate() {
        let mut indices: Vec<u64> = (0..range.count).map(|i| range.index(i)).collect();
        if resolved.reversed[axis] {
            indices.reverse();
        }
        flat = flat.iter().flat_map(|f| indices.iter().map(move |i| f * shape[axis] + i)).collect();
    }
    let checksum = (1u64..).zip(&flat).fold(0u64, |sum, (place, f)| sum.wrapping_add(place * f));
    Found { shape: resolved.shape(), checksum }
}

fn check(case: &Case) {
    let got = Indexing::parse(&case.text).and_then(|i| i.resolve(&case.shape));
    let got = got.ok().map(|r| found(&r, &case.shape));
    assert_eq!(got, case.result, "`{}` of {:?}", case.text, case.shape);
}

#[test]
fn equals_the_committed_answers_of_numpy() {
    let cases: Vec<Case> =
        include_str!("numpy/golden.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(cases.len() >= 400);
    cases.iter().for_each(check);
}

/// A Python with numpy, where there is one.
fn python_with_numpy() -> Option<String> {
    let python = std::env::var("CORRIDOR_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let works = Command::new(&python).args(["-c", "import numpy"]).stderr(Stdio::null()).status();
    works.is_ok_and(|s| s.success()).then_some(python)
}

fn entry() -> impl Strategy<Value = String> {
    let bound = || prop_oneof![1 => Just(String::new()), 3 => (-20i64..20).prop_map(|v| v.to_string())];
    let step = prop_oneof![10 => -9i64..10, 1 => Just(1_000_000), 1 => Just(-1_000_000)];
    prop_oneof![
        2 => (-9i64..9).prop_map(|v| v.to_string()),
        2 => (bound(), bound()).prop_map(|(a, b)| format!("{a}:{b}")),
        4 => (bound(), bound(), step).prop_map(|(a, b, s)| format!("{a}:{b}:{s}")),
        1 => Just("...".to_owned()),
    ]
}

#[test]
fn equals_numpy() {
    let Some(python) = python_with_numpy() else {
        println!("SKIPPED: no numpy; set CORRIDOR_TEST_PYTHON to a Python that has it");
        return;
    };
    let mut runner = TestRunner::deterministic();
    let cases = (prop::collection::vec(0u64..9, 0..5), prop::collection::vec(entry(), 0..5));
    let mut questions = String::new();
    for _ in 0..2000 {
        let (shape, entries) = cases.new_tree(&mut runner).unwrap().current();
        let case = Case { text: entries.join(","), shape, result: None };
        questions.push_str(&serde_json::to_string(&case).unwrap());
        questions.push('\n');
    }
    let mut child = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/numpy/answer.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::Builder::new().name("questions".into());
    let writer = writer.spawn(move || input.write_all(questions.as_bytes())).unwrap();
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    assert_eq!(answers.lines().count(), 2000);
    answers.lines().for_each(|line| check(&serde_json::from_str(line).unwrap()));
}

proptest! {
    #[test]
    fn reading_never_panics(text in "[-0-9:., a]{0,24}", shape in prop::collection::vec(any::<u64>(), 0..5)) {
        if let Ok(resolved) = Indexing::parse(&text).and_then(|i| i.resolve(&shape)) {
            prop_assert!(resolved.selection.check(&shape).is_ok());
        }
    }

    #[test]
    fn text_reads_back(ranges in prop::collection::vec((0u64..50, 1u64..9, 1u64..5), 1..4)) {
        let ranges: Vec<AxisRange> =
            ranges.into_iter().map(|(start, count, step)| AxisRange { start, count, step }).collect();
        let shape: Vec<u64> = ranges.iter().map(|r| r.end() + 3).collect();
        let selection = Selection::new(ranges).unwrap();
        let back = Selection::parse(&selection.to_string(), &shape).unwrap();
        for (a, b) in back.ranges().iter().zip(selection.ranges()) {
            prop_assert!(a.start == b.start && a.count == b.count && (a.step == b.step || a.count == 1));
        }
    }

    #[test]
    fn within_counts_what_lies_inside(
        start in 0u64..30, count in 0u64..20, step in 1u64..7, low in 0u64..120, size in 0u64..60,
    ) {
        let range = AxisRange { start, count, step };
        let inside: Vec<u64> =
            (0..count).filter(|&i| (low..low + size).contains(&range.index(i))).collect();
        let (first, found) = range.within(low, low + size);
        prop_assert_eq!(found, inside.len() as u64);
        prop_assert!(inside.first().is_none_or(|&f| f == first));
    }

    #[test]
    fn impossible_ranges_are_refused(start: u64, count: u64, step: u64) {
        let possible = step > 0
            && u128::from(count.max(1) - 1) * u128::from(step) + u128::from(start) < u128::from(u64::MAX);
        let made = Selection::new(vec![AxisRange { start, count, step }]);
        prop_assert_eq!(made.is_ok(), possible);
    }
}
