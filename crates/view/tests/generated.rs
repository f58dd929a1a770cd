//! Files that are generated from the table of fields are up to date.
//!
//! `CORRIDOR_BLESS=1 cargo test -p corridor-view --test generated` writes them again.

#[path = "generated/markdown.rs"]
mod markdown;
#[path = "generated/names.rs"]
mod names;
#[path = "generated/presets.rs"]
mod presets;
#[path = "generated/python.rs"]
mod python;
#[path = "generated/typescript.rs"]
mod typescript;

use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Compares a file with the text generated from the table.
fn assert_file(name: &str, text: &str) {
    if std::env::var_os("CORRIDOR_BLESS").is_some() {
        std::fs::write(path(name), text).expect("the file can be written");
    }
    let found = std::fs::read_to_string(path(name)).unwrap_or_default();
    assert!(found == text, "{name} differs from the table of fields: write it again with CORRIDOR_BLESS=1");
}

#[test]
fn the_json_schema_is_that_of_the_fields() {
    assert_file("docs/view.schema.json", &format!("{:#}\n", names::sorted(&corridor_view::json_schema())));
}

#[test]
fn the_document_is_that_of_the_fields() {
    assert_file("docs/view.md", &markdown::text());
}

#[test]
fn the_viewer_has_the_types_of_the_fields() {
    assert_file("web/src/view/fields.ts", &typescript::text());
}

#[test]
fn the_viewer_has_the_presets() {
    assert_file("web/src/transfer/presets.ts", &presets::text());
}

#[test]
fn python_has_the_keywords_of_the_fields() {
    assert_file("python/corridor/_view.py", &python::text());
}
