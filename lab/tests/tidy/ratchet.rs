//! Rules that do not hold everywhere yet: exceptions are counted or listed in a table, which only shrinks.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::assert_none;

/// Advice for a change that alters a number.
pub(crate) struct Advice {
    /// Meaning of the numbers, and the file of their table.
    pub(crate) rule: &'static str,
    /// Next step if a number is higher than in the table.
    pub(crate) risen: &'static str,
    /// Next step if it is lower.
    pub(crate) fallen: &'static str,
}

/// Differences between counts and their table; `details` are for those that have risen.
fn differences(
    found: &BTreeMap<String, usize>,
    table: &BTreeMap<&str, usize>,
    advice: &Advice,
    details: impl Fn(&str) -> String,
) -> Vec<String> {
    let names: BTreeSet<&str> = found.keys().map(String::as_str).chain(table.keys().copied()).collect();
    let difference = |name: &str| {
        let Some(&count) = found.get(name) else {
            return Some(format!("`{name}` is not found any more; take it out of the table"));
        };
        let Some(&listed) = table.get(name) else {
            return Some(format!(
                "{count} in `{name}`, which is not in the table; {}{}",
                advice.risen,
                details(name)
            ));
        };
        match count.cmp(&listed) {
            std::cmp::Ordering::Less => {
                Some(format!("{count} in `{name}`, {listed} in the table; {}", advice.fallen))
            }
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => {
                Some(format!("{count} in `{name}`, {listed} in the table; {}{}", advice.risen, details(name)))
            }
        }
    };
    names.into_iter().filter_map(difference).collect()
}

/// Returns whether a count is higher than in its table, or missing there.
pub(crate) fn has_risen(found: &BTreeMap<String, usize>, table: &[(&str, usize)]) -> bool {
    let table: BTreeMap<&str, usize> = table.iter().copied().collect();
    found.iter().any(|(name, count)| table.get(name.as_str()).is_none_or(|listed| count > listed))
}

/// Fails if a count differs from its table: a higher one is worse, and a lower one must be recorded.
pub(crate) fn assert_counts(
    found: &BTreeMap<String, usize>,
    table: &[(&str, usize)],
    advice: &Advice,
    details: impl Fn(&str) -> String,
) {
    let by_name = table.iter().copied().collect();
    assert_none(differences(found, &by_name, advice, details), advice.rule);
}

/// Fails if a name is missing in the list, or if a listed name is no longer found.
pub(crate) fn assert_listed(found: &BTreeSet<String>, list: &[&str], rule: &str, advice: &str) {
    let listed: BTreeSet<&str> = list.iter().copied().collect();
    let new = found.iter().filter(|name| !listed.contains(name.as_str()));
    let gone = listed.iter().filter(|name| !found.contains(**name));
    let problems = new.map(|name| format!("`{name}` is new; {advice}"));
    let problems =
        problems.chain(gone.map(|name| format!("`{name}` is not found any more; take it off the list")));
    assert_none(problems.collect(), rule);
}

#[test]
fn counts_may_neither_rise_nor_fall_unnoticed() {
    let found = [("a", 1), ("b", 2), ("c", 3), ("d", 4)].map(|(name, count)| (name.to_owned(), count)).into();
    let table = [("b", 2), ("c", 2), ("d", 5), ("e", 6)].into();
    let advice = Advice { rule: "", risen: "mend it", fallen: "lower it" };
    assert_eq!(
        differences(&found, &table, &advice, |name| format!(" ({name})")),
        [
            "1 in `a`, which is not in the table; mend it (a)",
            "3 in `c`, 2 in the table; mend it (c)",
            "4 in `d`, 5 in the table; lower it",
            "`e` is not found any more; take it out of the table"
        ]
    );
}
