//! Paths in a Rust text: the expanded tree of a `use`, and paths in code.

use super::tokens::{group, is_word};

/// Modules that may use an imported name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// This module and those below it.
    Private,
    /// `pub(crate)`, `pub(super)` and the like.
    Restricted,
    /// `pub`.
    Public,
}

/// One name that a `use` imports, or all names of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import<'a> {
    /// Words of the path, without `*`.
    pub(crate) path: Vec<&'a str>,
    /// Name in this module; `*` for all.
    pub(crate) name: &'a str,
    pub(crate) visibility: Visibility,
}

impl Import<'_> {
    pub(crate) fn is_glob(&self) -> bool {
        self.name == "*"
    }
}

/// Expands the tree between `use` and its semicolon.
pub(crate) fn expand<'a>(tree: &[&'a str], visibility: Visibility) -> Vec<Import<'a>> {
    let mut imports = Vec::new();
    expand_below(&[], tree, visibility, &mut imports);
    imports
}

fn expand_below<'a>(
    prefix: &[&'a str],
    tree: &[&'a str],
    visibility: Visibility,
    imports: &mut Vec<Import<'a>>,
) {
    let mut path = prefix.to_vec();
    let mut name = None;
    let mut at = 0;
    while at < tree.len() {
        match tree[at] {
            "{" => {
                let inner = &tree[at + 1..at + group(&tree[at..]) - 1];
                return branches(inner).for_each(|branch| expand_below(&path, branch, visibility, imports));
            }
            "*" => name = Some("*"),
            "as" => {
                name = tree.get(at + 1).copied();
                at += 1;
            }
            // In braces it is the module itself; alone, the current module.
            "self" if !path.is_empty() => {}
            word if is_word(word) => path.push(word),
            _ => {}
        }
        at += 1;
    }
    if let Some(name) = name.or(path.last().copied()) {
        imports.push(Import { path, name, visibility });
    }
}

/// Splits the contents of braces at their top-level commas.
fn branches<'t, 'a>(inner: &'t [&'a str]) -> impl Iterator<Item = &'t [&'a str]> {
    let mut depth = 0;
    inner
        .split(move |token| {
            match *token {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            depth == 0 && *token == ","
        })
        .filter(|branch| !branch.is_empty())
}

/// Returns the path of several words that begins at a position, if any. The end of a longer path, a method and the scope of
/// a `pub` do not count.
pub(crate) fn path_at<'a>(tokens: &[&'a str], at: usize) -> Option<Vec<&'a str>> {
    let is_middle = at > 0 && matches!(tokens[at - 1], "::" | ".");
    let is_scope = at > 2 && tokens[at - 3..at] == ["pub", "(", "in"];
    if !is_word(tokens[at]) || is_middle || is_scope {
        return None;
    }
    let further = tokens[at + 1..].chunks_exact(2).map_while(|two| match two {
        ["::", word] if is_word(word) => Some(*word),
        _ => None,
    });
    let path: Vec<&str> = std::iter::once(tokens[at]).chain(further).collect();
    (path.len() > 1).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    fn expanded(tree: &str) -> Vec<String> {
        let imports = expand(&tokens(tree), Visibility::Private);
        imports.iter().map(|i| format!("{} = {}", i.name, i.path.join("::"))).collect()
    }

    #[test]
    fn braces_renames_and_globs_are_expanded() {
        assert_eq!(
            expanded("crate::{a::B, c::{self, D as E, g::{H, I}}, f::*,}"),
            [
                "B = crate::a::B",
                "c = crate::c",
                "E = crate::c::D",
                "H = crate::c::g::H",
                "I = crate::c::g::I",
                "* = crate::f"
            ]
        );
        assert_eq!(expanded("self::a"), ["a = self::a"]);
        assert_eq!(expanded("a::{self as b}"), ["b = a"]);
        assert_eq!(expanded("super::super::{*, a}"), ["* = super::super", "a = super::super::a"]);
        assert_eq!(expanded("a"), ["a = a"]);
    }

    #[test]
    fn paths_are_found_where_they_begin() {
        let text = "pub(in crate::a) fn b(c: crate::d::E<T>) { f.g::<super::h::I>(); J::k::<L>(); $crate::m!(..n::O) }";
        let tokens = tokens(text);
        let found: Vec<String> =
            (0..tokens.len()).filter_map(|at| path_at(&tokens, at)).map(|p| p.join("::")).collect();
        assert_eq!(found, ["crate::d::E", "super::h::I", "J::k", "crate::m", "n::O"]);
    }
}
