//! Texts of the repository: size, first lines of sources, forbidden words.

use super::sources::{assert_none, lines_without_tests, read, relative, tracked, with_extension};

/// Most lines of a source without its inline tests.
const MAX_FILE_LINES: usize = 800;
/// Largest file of the repository, bytes; the sample volume is the largest now.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Words for unfinished work, split so that this file does not contain them.
const UNFINISHED: &[[&str; 2]] =
    &[["TO", "DO"], ["FIX", "ME"], ["X", "XX"], ["unimple", "mented!"], ["to", "do!("]];
/// Paths and hosts of one workplace, split likewise.
const WORKPLACE: &[[&str; 2]] =
    &[["/wo", "rk/"], ["crates", ".io"], ["pypi", ".org"], ["npm", "js"], ["static.", "rust-lang"]];
/// Folder beside the checkout, which only continuous integration may name.
const SHARED: [&str; 2] = ["..", "/shared"];

/// Returns the numbers of the lines that contain one of the words.
fn lines_with(text: &str, words: &[[&str; 2]]) -> Vec<usize> {
    let has_word = |line: &str| words.iter().any(|pieces| line.contains(&pieces.concat()));
    (1..).zip(text.lines()).filter(|(_, line)| has_word(line)).map(|(number, _)| number).collect()
}

#[test]
fn files_stay_short() {
    let mut problems = Vec::new();
    for path in ["rs", "ts", "py"].into_iter().flat_map(with_extension) {
        let lines = lines_without_tests(&read(&path)).count();
        if lines > MAX_FILE_LINES {
            let path = relative(&path);
            problems.push(format!("{path}: {lines} lines; split it"));
        }
    }
    assert_none(problems, &format!("files over {MAX_FILE_LINES} lines, without the tests in them"));
}

#[test]
fn rust_files_begin_with_their_purpose() {
    let problems = with_extension("rs")
        .iter()
        .filter(|path| !read(path).starts_with("//!"))
        .map(|path| format!("{}: begin it with a description of its purpose", relative(path)))
        .collect();
    assert_none(problems, "files without a `//!` at the top");
}

#[test]
fn no_file_is_large() {
    let problems = tracked()
        .iter()
        .filter_map(|path| path.metadata().ok().map(|metadata| (path, metadata.len())))
        .filter(|(_, size_bytes)| *size_bytes > MAX_FILE_BYTES)
        .map(|(path, size_bytes)| {
            format!("{}: {size_bytes} bytes; generate it where it is needed", relative(path))
        })
        .collect();
    assert_none(problems, &format!("files over {MAX_FILE_BYTES} bytes"));
}

#[test]
fn unfinished_work_is_not_left_in_comments() {
    let mut problems = Vec::new();
    for path in ["rs", "ts", "py"].into_iter().flat_map(with_extension) {
        let lines = lines_with(&read(&path), UNFINISHED);
        problems.extend(lines.iter().map(|number| format!("{}:{number}", relative(&path))));
    }
    assert_none(problems, "unfinished work; do it, or add a line to docs/limitations.md");
}

#[test]
fn no_words_of_the_workplace_leak_in() {
    let mut problems = Vec::new();
    for path in tracked() {
        let relative = relative(&path);
        let is_lock = relative.ends_with("Cargo.lock") || relative.ends_with("package-lock.json");
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        if is_lock {
            continue;
        }
        let shared = if relative.starts_with(".ci/") { Vec::new() } else { lines_with(&text, &[SHARED]) };
        let lines = lines_with(&text, WORKPLACE).into_iter().chain(shared);
        problems.extend(lines.map(|number| format!("{relative}:{number}")));
    }
    assert_none(problems, "paths and hosts that only this workplace has; leave them out");
}

#[test]
fn words_are_found_by_line() {
    assert_eq!(lines_with("a\nbc\nb c\ncbc\n", &[["b", "c"]]), [2, 4]);
}
