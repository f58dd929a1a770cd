//! The headline tables of `docs/benchmarks.md`: rendered from the reports in `lab/results`.

use std::cmp::Ordering;

use serde_json::Value;

use super::pages::assert_page;
use super::sources::{assert_none, read, relative, root, tracked};

/// Headline cases of all reports together.
const MAX_HEADLINES: usize = 15;
/// Line before the generated part of the page.
const BEGIN: &str = "<!-- generated from lab/results: begin -->\n";
/// Line after the generated part.
const END: &str = "<!-- generated from lab/results: end -->\n";
/// Fields of each report; `command` repeats it.
const REPORT_FIELDS: &[&str] = &["bench", "machine", "commit", "link", "cases", "command"];
/// Fields of each case.
const CASE_FIELDS: &[&str] = &[
    "name",
    "unit",
    "better",
    "ours",
    "runs",
    "min",
    "max",
    "peers",
    "limit",
    "limit_why",
    "goal",
    "meets_goal",
];

/// Beginnings of the names of peers that are not other projects: our own variants, and bounds measured in the same run.
const NO_PEERS: &[&str] = &["ours", "bound"];

/// Reports by the names of their files, without the extension.
fn reports() -> Vec<(String, Value)> {
    let mut reports = Vec::new();
    for path in tracked() {
        let relative = relative(&path);
        let name = relative.strip_prefix("lab/results/").and_then(|name| name.strip_suffix(".json"));
        if let Some(name) = name {
            let report = serde_json::from_str(&read(&path)).unwrap_or_else(|e| panic!("{relative}: {e}"));
            reports.push((name.to_owned(), report));
        }
    }
    reports
}

/// Cases of a report.
fn cases(report: &Value) -> impl Iterator<Item = &Value> {
    report["cases"].as_array().into_iter().flatten()
}

/// Cases of a report that stand in the table.
fn headlines(report: &Value) -> impl Iterator<Item = &Value> {
    cases(report).filter(|case| case["headline"] == true)
}

/// Text of a field, or nothing.
fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// A number with its unit, or nothing; ratios have the unit 1.
fn figure(number: &Value, unit: &str) -> String {
    match number.as_f64() {
        Some(number) if unit == "1" => number.to_string(),
        Some(number) => format!("{number} {unit}"),
        None => String::new(),
    }
}

/// Our figure, with the range of its runs.
fn ours(case: &Value) -> String {
    let figure = figure(&case["ours"], text(case, "unit"));
    match (case["min"].as_f64(), case["max"].as_f64()) {
        (Some(min), Some(max)) => format!("{figure} ({min} to {max})"),
        _ => figure,
    }
}

/// The peer with the best figure.
fn best_peer(case: &Value) -> String {
    let direction = |ordering: Ordering| match text(case, "better") {
        "higher" => ordering.reverse(),
        _ => ordering,
    };
    let peers = case["peers"].as_object().into_iter().flatten();
    let is_other = |name: &str| !NO_PEERS.iter().any(|prefix| name.starts_with(prefix));
    let known = peers.filter(|(name, figure)| figure.is_number() && is_other(name));
    let best = known.min_by(|(name, a), (other, b)| {
        let (a, b) = (a.as_f64().unwrap_or_default(), b.as_f64().unwrap_or_default());
        direction(a.total_cmp(&b)).then_with(|| name.cmp(other))
    });
    best.map_or_else(String::new, |(name, number)| format!("{name}: {}", figure(number, text(case, "unit"))))
}

/// The physical limit and its reason.
fn limit(case: &Value) -> String {
    let limit = figure(&case["limit"], text(case, "unit"));
    if limit.is_empty() { limit } else { format!("{limit}: {}", text(case, "limit_why")) }
}

/// Row of the table of headlines.
fn row(name: &str, case: &Value) -> String {
    let met = case["meets_goal"].as_bool().map_or("", |met| if met { "yes" } else { "**no**" });
    let goal = figure(&case["goal"], text(case, "unit"));
    let (ours, peer, limit) = (ours(case), best_peer(case), limit(case));
    format!("| {} | {ours} | {peer} | {limit} | {goal} | {met} | {name} |\n", text(case, "name"))
}

/// Both tables.
fn tables(reports: &[(String, Value)]) -> String {
    let mut tables =
        "| case | ours | best peer | limit | goal | met | report |\n|---|---|---|---|---|---|---|\n"
            .to_owned();
    for (name, report) in reports {
        headlines(report).for_each(|case| tables.push_str(&row(name, case)));
    }
    tables.push_str("\n| report | command | processor | commit | details |\n|---|---|---|---|---|\n");
    for (name, report) in reports.iter().filter(|(_, report)| headlines(report).next().is_some()) {
        let (command, commit, bench) =
            (text(report, "command"), text(report, "commit"), text(report, "bench"));
        let cpu = report["machine"]["cpu"].as_str().unwrap_or("not recorded");
        let cores = figure(&report["machine"]["cores"], "cores");
        tables.push_str(&format!(
            "| [{name}](../lab/results/{name}.json) | `{command}` | {cpu}, {cores} | {commit} \
             | [{bench}](../lab/results/{bench}.md) |\n"
        ));
    }
    tables
}

/// A page with its generated part replaced.
fn with_tables(page: &str, tables: &str) -> String {
    let (before, rest) = page.split_once(BEGIN).expect("the page has the line before its generated part");
    let (_, after) = rest.split_once(END).expect("the page has the line after its generated part");
    format!("{before}{BEGIN}\n{tables}\n{END}{after}")
}

#[test]
fn the_page_of_benchmarks_matches_the_reports() {
    let path = root().join("docs/benchmarks.md");
    assert_page(&path, &with_tables(&read(&path), &tables(&reports())));
}

#[test]
fn reports_are_complete() {
    let mut problems = Vec::new();
    let mut count = 0;
    for (name, report) in reports() {
        let missing = |value: &Value, fields: &[&str]| -> Vec<String> {
            fields
                .iter()
                .filter(|field| value.get(**field).is_none())
                .map(|field| (*field).to_owned())
                .collect()
        };
        let case_problems = cases(&report).map(|case| (text(case, "name"), missing(case, CASE_FIELDS)));
        for (case, fields) in case_problems.chain([("the report", missing(&report, REPORT_FIELDS))]) {
            problems.extend(fields.into_iter().map(|field| format!("{name}: {case} has no `{field}`")));
        }
        let details = format!("lab/results/{}.md", text(&report, "bench"));
        if !root().join(&details).is_file() {
            problems.push(format!("{name}: {details} does not exist"));
        }
        count += headlines(&report).count();
    }
    if count > MAX_HEADLINES {
        problems.push(format!("{count} cases are headlines; at most {MAX_HEADLINES} are allowed"));
    }
    assert_none(problems, "reports in lab/results that a reader of the page cannot use");
}

#[test]
fn headlines_show_the_best_peer_and_the_limit() {
    let case = serde_json::json!({
        "name": "Copy", "unit": "MB/s", "better": "higher", "ours": 12.50, "runs": 3, "min": 12, "max": 13,
        "peers": {"a": 9, "b": 11.5, "c": null, "ours, old": 20, "bound": 14}, "limit": 15, "limit_why": "goodput",
        "goal": 13, "meets_goal": false, "headline": true
    });
    assert_eq!(
        row("r", &case),
        "| Copy | 12.5 MB/s (12 to 13) | b: 11.5 MB/s | 15 MB/s: goodput | 13 MB/s | **no** | r |\n"
    );
    let bare = serde_json::json!({"name": "Share", "unit": "1", "better": "lower", "ours": 0.9, "peers": {}});
    assert_eq!(row("r", &bare), "| Share | 0.9 |  |  |  |  | r |\n");
    let page = format!("a\n{BEGIN}old\n{END}b\n");
    assert_eq!(with_tables(&page, "new\n"), format!("a\n{BEGIN}\nnew\n\n{END}b\n"));
}
