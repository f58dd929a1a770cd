//! Beginnings of doc comments: a noun phrase, or a verb in the third person.

use super::sources::rust_texts;

/// Doc comments per thousand that may begin with one of [`OPENERS`].
const MAX_PER_MILLE: usize = 1;

/// Openings that leave the subject of the sentence unclear.
const OPENERS: &[&str] = &["What", "Who", "Whose", "Whom", "Where", "Of", "That", "The same"];

/// Examples that the test prints.
const SHOWN: usize = 10;

/// First lines of the doc comments of a text, with their numbers.
fn first_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut before = None;
    (1..).zip(text.lines()).filter_map(move |(number, line)| {
        let comment = doc_comment(line);
        let is_first = comment.is_some() && comment.map(|(kind, _)| kind) != before;
        before = comment.map(|(kind, _)| kind);
        comment.filter(|_| is_first).map(|(_, sentence)| (number, sentence))
    })
}

/// Marker and sentence of a line, if it is one of a doc comment.
fn doc_comment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let (kind, rest) = line.split_at_checked(3).filter(|(kind, _)| matches!(*kind, "///" | "//!"))?;
    (!rest.starts_with('/')).then_some((kind, rest.trim_start()))
}

/// Returns whether a sentence begins with one of [`OPENERS`].
fn has_opener(sentence: &str) -> bool {
    OPENERS.iter().any(|opener| {
        let rest = sentence.strip_prefix(opener);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-'))
    })
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    let texts = rust_texts();
    let mut all = 0;
    let mut unclear = Vec::new();
    for (path, text) in &texts {
        for (number, sentence) in first_lines(text) {
            all += 1;
            if has_opener(sentence) {
                unclear.push(format!("{path}:{number}: {sentence}"));
            }
        }
    }
    let per_mille = (unclear.len() * 1000).div_ceil(all);
    let found =
        format!("{} of {all} doc comments ({per_mille} per thousand) begin with {OPENERS:?}", unclear.len());
    println!("{found}; the first are:");
    unclear.iter().take(SHOWN).for_each(|line| println!("  {line}"));
    assert!(
        per_mille <= MAX_PER_MILLE,
        "{found}, {MAX_PER_MILLE} are allowed; begin them with a noun phrase or a verb (`Returns`, `Bytes queued`)"
    );
}

#[test]
fn a_comment_counts_once_by_its_first_line() {
    let text = [
        "//! What",
        "//! Who",
        "",
        "/// Bytes",
        "/// Where",
        "fn a()",
        "    /// The same",
        "//// no",
        "x /// y",
    ];
    let text = text.join("\n");
    let lines: Vec<(usize, &str)> = first_lines(&text).collect();
    assert_eq!(lines, [(1, "What"), (4, "Bytes"), (7, "The same")]);
}

#[test]
fn only_whole_words_are_openers() {
    assert!(["Of", "What a", "The same, again", "Whose: theirs"].into_iter().all(has_opener));
    assert!(
        !["Offset", "Whatever", "Where-clause", "The samples", "Thatch", "what"].into_iter().any(has_opener)
    );
}
