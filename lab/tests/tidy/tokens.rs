//! Tokens of a Rust text, without comments, literals, lifetimes and tests. Not a parser: the grammar that the rules
//! need is in `use_paths.rs` and `items.rs`.

/// Splits a text into words, `::`, `..`, and single other characters.
pub(crate) fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if let Some(length) = comment(rest).or_else(|| literal(rest)) {
            length
        } else {
            let length = token(rest);
            if !first.is_whitespace() {
                tokens.push(&rest[..length]);
            }
            length
        };
        rest = &rest[length..];
    }
    tokens
}

/// Returns whether a token is a name, a keyword or a number.
pub(crate) fn is_word(token: &str) -> bool {
    token.chars().next().is_some_and(is_word_part)
}

fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Bytes of the word at the start of a text.
fn word(text: &str) -> usize {
    text.find(|c| !is_word_part(c)).unwrap_or(text.len())
}

/// Bytes of the token at the start of a text that is not empty.
fn token(text: &str) -> usize {
    if text.starts_with("::") || text.starts_with("..") {
        return 2;
    }
    let raw = if text.starts_with("r#") { 2 } else { 0 };
    match word(&text[raw..]) {
        0 => text.chars().next().map_or(0, char::len_utf8),
        length => raw + length,
    }
}

/// Bytes of the comment at the start of a text.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    let mut length = text.strip_prefix("/*").map(|_| 2)?;
    let mut depth = 1;
    while depth > 0 {
        let rest = &text[length..];
        let Some(next) = rest.find("*/") else { return Some(text.len()) };
        match rest.find("/*").filter(|inner| *inner < next) {
            Some(inner) => (depth, length) = (depth + 1, length + inner + 2),
            None => (depth, length) = (depth - 1, length + next + 2),
        }
    }
    Some(length)
}

/// Bytes of the text, byte, character or lifetime at the start of a text.
fn literal(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c"].into_iter().find(|prefix| text.starts_with(prefix));
    if let Some(prefix) = prefix {
        let length = quoted(&text[prefix.len()..], prefix.ends_with('r'))?;
        return Some(prefix.len() + length);
    }
    quoted(text, false)
}

/// Bytes of the quoted literal at the start of a text; it is raw after an `r`.
fn quoted(text: &str, is_raw: bool) -> Option<usize> {
    if is_raw {
        let fence = text.len() - text.trim_start_matches('#').len();
        let body = text[fence..].strip_prefix('"')?;
        let end = format!("\"{}", &text[..fence]);
        return Some(body.find(&end).map_or(text.len(), |at| fence + 1 + at + end.len()));
    }
    let body = text.strip_prefix(['"', '\''])?;
    if text.starts_with('"') {
        return Some(closing(body, '"').map_or(text.len(), |at| at + 2));
    }
    let first = body.chars().next()?;
    if first == '\\' || body[first.len_utf8()..].starts_with('\'') {
        return Some(closing(body, '\'').map_or(text.len(), |at| at + 2));
    }
    Some(1 + word(body))
}

/// Position of the closing quote, without escaped ones.
fn closing(body: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    body.char_indices().find_map(|(at, c)| {
        let ends = c == quote && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends.then_some(at)
    })
}

/// Number of tokens of the group in brackets that starts them.
pub(crate) fn group(tokens: &[&str]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth <= 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// Removes the items that are built for tests only.
pub(crate) fn without_tests<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_for_tests(&tokens[at..]) {
            at += item(&tokens[at..]);
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

/// Returns whether the tokens begin with an attribute that builds the next item for tests only.
fn is_for_tests(tokens: &[&str]) -> bool {
    tokens.starts_with(&["#", "[", "cfg", "(", "test", ")"])
        || tokens.starts_with(&["#", "[", "cfg", "(", "all", "(", "test"])
}

/// Number of tokens of the item, field or statement that starts them, with its attributes.
fn item(tokens: &[&str]) -> usize {
    let mut at = 0;
    while tokens.get(at) == Some(&"#") {
        at += 1 + group(&tokens[at + 1..]);
    }
    let head = tokens[at..].iter().take_while(|t| !matches!(**t, ";" | "{" | "," | ":" | "="));
    let begins_with = |words: &[&str]| head.clone().any(|token| words.contains(token));
    let has_body = begins_with(&["fn", "mod", "struct", "enum", "trait", "impl", "macro_rules", "extern"]);
    let has_semicolon = !has_body && begins_with(&["use", "const", "static", "type", "let"]);
    while at < tokens.len() {
        match tokens[at] {
            ";" => return at + 1,
            "," if !has_body && !has_semicolon => return at + 1,
            "{" if !has_semicolon => return at + group(&tokens[at..]),
            "(" | "[" | "{" => at += group(&tokens[at..]),
            ")" | "]" | "}" => return at,
            _ => at += 1,
        }
    }
    at
}

#[test]
fn comments_literals_and_lifetimes_are_not_tokens() {
    let text = r##"a /* b /* c */ d */ "e\"f" r#"g"h"# 'i' '\'' b'j' <'k> br"l" r#m // n
        ::o.p 'q: 0x1f"##;
    assert_eq!(tokens(text), ["a", "<", ">", "r#m", "::", "o", ".", "p", ":", "0x1f"]);
    assert_eq!(tokens("'\"' \"'\" '\u{e9}' x"), ["x"]);
    assert_eq!(tokens("brc b c rb"), ["brc", "b", "c", "rb"]);
}

#[test]
fn items_for_tests_are_left_out() {
    let text = "a; #[cfg(test)] use b::{c, d}; e; #[cfg(all(test, unix))] #[x(y)] mod f { g { h } } i;
        #[cfg(test)] const J: [u8; 2] = k({ l }); #[cfg(test)] mod m; n #[cfg(unix)] o";
    assert_eq!(without_tests(&tokens(text)).concat(), "a;e;i;n#[cfg(unix)]o");
    let text =
        "a { b: c, #[cfg(test)] pub d: e<f>, } #[cfg(test)] pub fn g<h, i>() {} j { #[cfg(test)] { k } }
        l { #[cfg(test)] m: n }";
    assert_eq!(without_tests(&tokens(text)).concat(), "a{b:c,}j{}l{}");
}
