//! `python/corridor/_view.py`: keywords of Python that set fields of a view.

use std::fmt::Write;

use corridor_view::{FIELDS, FieldKeyword, FieldType, ViewField};
use serde_json::json;

use crate::names::wrapped;

const HEAD: &str = "\
\"\"\"Keywords that set fields of a view. Made from crates/view/src/fields.rs by
``CORRIDOR_BLESS=1 cargo test -p corridor-view --test generated``; change that file, not this one.\"\"\"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, TypedDict

if TYPE_CHECKING:
    from ._array import Array


class ViewOptions(TypedDict, total=False):
    \"\"\"Fields of a view, by keyword. None, like leaving a keyword out, leaves a field as the view has it.\"\"\"

";

pub(crate) fn text() -> String {
    let mut text = HEAD.to_owned();
    for (field, keyword) in FIELDS.iter().filter_map(|field| Some((field, field.keyword?))) {
        put(&mut text, &format!("    {}: {} | None", keyword.name, annotation(field, &keyword)));
        let lines = wrapped(&format!("\"\"\"{}\"\"\"", help(field, &keyword)), 106);
        lines.iter().for_each(|line| put(&mut text, &format!("    {line}")));
    }
    text.push_str("\n\n# Former names of keywords, which are still accepted.\n");
    let former = FIELDS.iter().filter_map(|field| field.keyword);
    let former =
        former.filter_map(|keyword| Some(format!("{}: {}", json!(keyword.former?), json!(keyword.name))));
    let former: Vec<String> = former.collect();
    put(&mut text, &format!("FORMER_KEYWORDS: dict[str, str] = {{{}}}", former.join(", ")));
    put_list(&mut text);
    text
}

/// Puts the keywords as a list for the documentation of a function.
fn put_list(text: &mut String) {
    text.push_str("\n# The keywords for the documentation of functions.\nKEYWORDS = \"\"\"\n");
    text.push_str("    Fields of a view; None leaves a field as the view has it.\n\n");
    for (field, keyword) in FIELDS.iter().filter_map(|field| Some((field, field.keyword?))) {
        let lines = wrapped(&format!("- ``{}``: {}", keyword.name, help(field, &keyword)), 106);
        for (number, line) in lines.iter().enumerate() {
            put(text, &format!("    {}{line}", if number == 0 { "" } else { "  " }));
        }
    }
    text.push_str("    \"\"\"\n");
}

/// Description of a keyword.
fn help(field: &ViewField, keyword: &FieldKeyword) -> String {
    format!("{} {}", field.help.replace("null", "None"), keyword.more).trim_end().to_owned()
}

fn annotation(field: &ViewField, keyword: &FieldKeyword) -> String {
    if !keyword.annotation.is_empty() {
        return keyword.annotation.to_owned();
    }
    match *field.plain_type() {
        FieldType::Text => "str".into(),
        FieldType::Flag => "bool".into(),
        FieldType::Index { .. } => "int".into(),
        FieldType::Number(_) => "float".into(),
        FieldType::Choice(choice) => {
            let names: Vec<String> = choice.names.iter().map(|name| json!(name.name).to_string()).collect();
            format!("Literal[{}]", names.join(", "))
        }
        _ => panic!("the keyword of `{}` needs an annotation", field.name),
    }
}

fn put(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}
