//! Names that a Rust module defines, imports and uses, from its tokens.

use std::collections::BTreeSet;

use super::tokens::{group, is_word};
use super::use_paths::{Import, Visibility, expand, path_at};

/// Names of one module, without those of the modules below it.
#[derive(Debug, Default)]
pub(crate) struct Items<'a> {
    /// Modules written or declared in it; with their tokens if they are written in the same file.
    pub(crate) modules: Vec<(&'a str, Option<Vec<&'a str>>)>,
    /// Imports, including those in functions.
    pub(crate) imports: Vec<Import<'a>>,
    /// Structs, enums, traits and aliases at the level of the module.
    pub(crate) types: Vec<&'a str>,
    /// All names defined at the level of the module.
    pub(crate) names: BTreeSet<&'a str>,
    /// Paths of several words outside of imports.
    pub(crate) paths: BTreeSet<Vec<&'a str>>,
    /// Words outside of imports.
    pub(crate) words: BTreeSet<&'a str>,
}

impl<'a> Items<'a> {
    /// Reads a module.
    pub(crate) fn of(tokens: &[&'a str]) -> Self {
        let mut items = Self::default();
        let mut depth = 0;
        let mut at = 0;
        while at < tokens.len() {
            let rest = &tokens[at..];
            match rest {
                ["{", ..] => depth += 1,
                ["}", ..] => depth -= 1,
                ["use", next, ..] if *next != "<" => {
                    let end = rest.iter().position(|t| *t == ";").unwrap_or(rest.len());
                    items.imports.extend(expand(&rest[1..end], visibility(&tokens[..at])));
                    at += end;
                    continue;
                }
                ["mod", name, "{", ..] if depth == 0 => {
                    let end = 2 + group(&rest[2..]);
                    items.modules.push((name, Some(rest[3..end - 1].to_vec())));
                    at += end;
                    continue;
                }
                ["mod", name, ";", ..] if depth == 0 => {
                    items.modules.push((name, None));
                    at += 3;
                    continue;
                }
                _ => items.add(tokens, at, depth),
            }
            at += 1;
        }
        items
    }

    /// Returns whether the module defines a name; if a path follows it, a type.
    pub(crate) fn defines(&self, name: &str, has_more: bool) -> bool {
        if has_more { self.types.contains(&name) } else { self.names.contains(name) }
    }

    /// Returns whether a path outside of imports begins with a name.
    pub(crate) fn begins_path(&self, name: &str) -> bool {
        self.paths.range(vec![name]..).next().is_some_and(|path| path[0] == name)
    }

    /// Adds the names that one token introduces.
    fn add(&mut self, tokens: &[&'a str], at: usize, depth: i32) {
        self.paths.extend(path_at(tokens, at));
        if is_word(tokens[at]) {
            self.words.insert(tokens[at]);
        }
        // Not a raw pointer, nor a parameter of a type.
        let may_define = depth == 0 && !(at > 0 && matches!(tokens[at - 1], "*" | "<" | ","));
        let name = match &tokens[at..] {
            ["struct" | "enum" | "trait" | "type", name, ..] if may_define && is_word(name) => {
                self.types.push(name);
                name
            }
            ["fn" | "const" | "static" | "union", name, ..] if may_define && is_word(name) => name,
            ["macro_rules", "!", name, ..] => name,
            _ => return,
        };
        self.names.insert(name);
    }
}

/// Returns the visibility at the end of the tokens before an import.
fn visibility(before: &[&str]) -> Visibility {
    match before {
        [.., "pub"] => Visibility::Public,
        [.., "pub", "(", _, ")"] | [.., "pub", "(", "in", _, "::", _, ")"] => Visibility::Restricted,
        _ => Visibility::Private,
    }
}

#[test]
fn names_of_a_module_are_those_at_its_level() {
    let text = "use a::B; pub(crate) use c::d; mod e; pub mod f { struct G; }
        pub struct H<const N: usize>(*const I); enum J { K } macro_rules! l { () => { struct M; } }
        fn n() -> impl Sized + use<> { use o::P; struct Q; r::s() } type T = P; impl X for H { type U = V; }";
    let tokens = super::tokens::tokens(text);
    let items = Items::of(&tokens);
    assert_eq!(items.types, ["H", "J", "T"]);
    assert_eq!(items.names.iter().copied().collect::<Vec<_>>(), ["H", "J", "T", "l", "n"]);
    assert_eq!(items.imports.iter().map(|i| i.name).collect::<Vec<_>>(), ["B", "d", "P"]);
    assert_eq!(items.imports[1].visibility, Visibility::Restricted);
    assert_eq!(items.modules, [("e", None), ("f", Some(vec!["struct", "G", ";"]))]);
    assert!(items.paths.contains(&vec!["r", "s"]) && items.words.contains("V"));
    assert!(!items.words.contains("B"));
}
