//! Licenses of all packages that the workspace needs: those that `deny.toml` allows.

use std::collections::BTreeSet;

use super::crates::metadata;
use super::sources::{assert_none, read, root};

/// Words of a license expression that are not licenses.
const OPERATORS: &[&str] = &["AND", "OR", "WITH", "(", ")"];

/// Returns whether allowed licenses satisfy an SPDX expression; `None` if it cannot be parsed. `/` means `OR` in
/// older packages.
fn is_met(expression: &str, allowed: &BTreeSet<&str>) -> Option<bool> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let is_met = is_any_met(&mut rest, allowed)?;
    rest.is_empty().then_some(is_met)
}

/// Reads alternatives: `A OR B`, of which one is enough.
fn is_any_met(rest: &mut &[&str], allowed: &BTreeSet<&str>) -> Option<bool> {
    let mut is_met = are_all_met(rest, allowed)?;
    while take(rest, "OR") {
        is_met |= are_all_met(rest, allowed)?;
    }
    Some(is_met)
}

/// Reads licenses that hold together: `A AND B`, which binds more tightly than `OR`.
fn are_all_met(rest: &mut &[&str], allowed: &BTreeSet<&str>) -> Option<bool> {
    let mut are_met = is_one_met(rest, allowed)?;
    while take(rest, "AND") {
        are_met &= is_one_met(rest, allowed)?;
    }
    Some(are_met)
}

/// Reads a license, one with an exception (`A WITH B`), or an expression in parentheses.
fn is_one_met(rest: &mut &[&str], allowed: &BTreeSet<&str>) -> Option<bool> {
    if take(rest, "(") {
        let is_met = is_any_met(rest, allowed)?;
        return take(rest, ")").then_some(is_met);
    }
    let license = name(rest)?;
    if !take(rest, "WITH") {
        return Some(allowed.contains(license));
    }
    let exception = name(rest)?;
    Some(allowed.contains(format!("{license} WITH {exception}").as_str()))
}

/// Consumes a word if it is the next one.
fn take(rest: &mut &[&str], word: &str) -> bool {
    let is_next = rest.first() == Some(&word);
    if is_next {
        *rest = &rest[1..];
    }
    is_next
}

/// Consumes the name of a license or an exception.
fn name<'a>(rest: &mut &[&'a str]) -> Option<&'a str> {
    let (name, after) = rest.split_first().filter(|(name, _)| !OPERATORS.contains(name))?;
    *rest = after;
    Some(name)
}

#[test]
fn licenses_are_allowed() {
    let deny = read(&root().join("deny.toml"));
    let list = deny.split("allow = [").nth(1).and_then(|t| t.split(']').next()).expect("a list of licenses");
    let allowed: BTreeSet<&str> = list.split('"').skip(1).step_by(2).collect();
    let mut problems = Vec::new();
    for package in metadata()["packages"].as_array().expect("metadata have packages") {
        let name = package["name"].as_str().unwrap_or_default();
        match package["license"].as_str() {
            // Its license is a file; deny.toml names the license.
            None if deny.contains(&format!("crate = \"{name}\"")) => {}
            None => problems.push(format!("{name} names no license; clarify it in deny.toml or do without")),
            Some(expression) => match is_met(expression, &allowed) {
                Some(true) => {}
                Some(false) => problems.push(format!("{name}: {expression}; allow it there, or do without")),
                None => problems.push(format!("{name}: `{expression}` is no license expression")),
            },
        }
    }
    assert_none(problems, "licenses that deny.toml does not allow");
}

#[test]
fn license_expressions_are_read_with_their_parentheses() {
    let allowed = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].into();
    for met in [
        "MIT",
        "GPL-3.0 OR MIT",
        "GPL-3.0/MIT",
        "MIT AND Zlib",
        "(GPL-3.0 OR MIT) AND Zlib",
        "GPL-3.0 AND Zlib OR MIT",
        "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
        "((MIT))",
    ] {
        assert_eq!(is_met(met, &allowed), Some(true), "{met}");
    }
    for unmet in [
        "GPL-3.0",
        "Apache-2.0",
        "(MIT OR GPL-3.0) AND GPL-2.0",
        "MIT AND (GPL-2.0 OR GPL-3.0)",
        "GPL-3.0 AND (Zlib OR MIT)",
        "MIT WITH LLVM-exception",
    ] {
        assert_eq!(is_met(unmet, &allowed), Some(false), "{unmet}");
    }
    for broken in ["", "MIT OR", "AND MIT", "(MIT", "MIT)", "MIT Zlib", "MIT WITH", "()"] {
        assert_eq!(is_met(broken, &allowed), None, "{broken}");
    }
}
