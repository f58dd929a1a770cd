//! Modules of a crate, read from its files, and the file in which a path ends. Names are followed through imports
//! and re-exports, as the compiler does; names that macros define are not known here.

use std::collections::{BTreeMap, BTreeSet};

use super::items::Items;
use super::tokens::{tokens, without_tests};
use super::use_paths::{Import, Visibility};

/// Most re-exports that are followed from one name.
const MAX_STEPS: usize = 16;

/// One module.
#[derive(Debug)]
pub(crate) struct Module<'a> {
    /// Path of the file it stands in.
    pub(crate) file: &'a str,
    pub(crate) items: Items<'a>,
    parent: usize,
    children: BTreeMap<&'a str, usize>,
}

impl Module<'_> {
    /// Returns whether a submodule has this name.
    pub(crate) fn declares(&self, name: &str) -> bool {
        self.children.contains_key(name)
    }
}

/// Modules of one crate that are built without tests; the first is its root.
#[derive(Debug, Default)]
pub(crate) struct Modules<'a>(Vec<Module<'a>>);

/// End of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Module(usize),
    /// Item defined in a module.
    Item(usize),
}

/// Files by the files that use them, with the names used.
pub(crate) type Uses<'a> = BTreeMap<&'a str, BTreeMap<&'a str, BTreeSet<&'a str>>>;

impl<'a> Modules<'a> {
    /// Reads a crate from the path of its root and the texts of all files by path.
    pub(crate) fn of(root: &'a str, texts: &'a BTreeMap<String, String>) -> Self {
        let mut modules = Self::default();
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        modules.add(0, root, folder, &without_tests(&tokens(&texts[root])), texts);
        modules
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Module<'a>> {
        self.0.iter()
    }

    /// Adds a module, whose declared modules lie in `folder`; returns its number.
    fn add(
        &mut self,
        parent: usize,
        file: &'a str,
        folder: &str,
        tokens_in_it: &[&'a str],
        texts: &'a BTreeMap<String, String>,
    ) -> usize {
        let id = self.0.len();
        let mut items = Items::of(tokens_in_it);
        let below = std::mem::take(&mut items.modules);
        self.0.push(Module { file, items, parent, children: BTreeMap::new() });
        for (name, written) in below {
            let inner = format!("{folder}/{name}");
            let child = if let Some(written) = written {
                self.add(id, file, &inner, &written, texts)
            } else {
                let paths = [format!("{inner}.rs"), format!("{inner}/mod.rs")];
                // Missing if an attribute gives another path.
                let Some((path, text)) = paths.iter().find_map(|p| texts.get_key_value(p)) else { continue };
                self.add(id, path, &inner, &without_tests(&tokens(text)), texts)
            };
            self.0[id].children.insert(name, child);
        }
        id
    }

    /// Follows a path written in a module; `None` where it leads out of the crate.
    pub(crate) fn resolve(&self, from: usize, path: &[&str]) -> Option<End> {
        self.resolve_within(from, path, MAX_STEPS)
    }

    fn resolve_within(&self, from: usize, path: &[&str], steps: usize) -> Option<End> {
        let steps = steps.checked_sub(1)?;
        let module = &self.0[from];
        match *path.first()? {
            "crate" => self.walk(0, &path[1..], steps),
            "self" => self.walk(from, &path[1..], steps),
            "super" => self.walk(module.parent, &path[1..], steps),
            first if module.children.contains_key(first) => self.walk(from, path, steps),
            first if module.items.defines(first, path.len() > 1) => Some(End::Item(from)),
            first => {
                let import = self.import(from, first)?;
                let is_itself = import.path == [first] || import.path == path;
                if is_itself { None } else { self.walk(from, path, steps) }
            }
        }
    }

    /// Follows names down from a module.
    fn walk(&self, from: usize, names: &[&str], steps: usize) -> Option<End> {
        let steps = steps.checked_sub(1)?;
        let Some((name, rest)) = names.split_first() else { return Some(End::Module(from)) };
        let module = &self.0[from];
        let import = self.import(from, name);
        match module.children.get(name) {
            _ if *name == "super" => return self.walk(module.parent, rest, steps),
            // A function may be called as the module it is re-exported from.
            Some(child) if !rest.is_empty() || import.is_none() => return self.walk(*child, rest, steps),
            _ if module.items.defines(name, !rest.is_empty()) => return Some(End::Item(from)),
            _ => {}
        }
        if let Some(import) = import {
            return match self.resolve_within(from, &import.path, steps)? {
                End::Module(found) => self.walk(found, rest, steps),
                item @ End::Item(_) => Some(item),
            };
        }
        let mut globs = module.items.imports.iter().filter(|import| import.is_glob());
        let within = globs.find_map(|glob| match self.resolve_within(from, &glob.path, steps)? {
            End::Module(found) if found != from && self.has(found, name) => self.walk(found, names, steps),
            _ => None,
        });
        within.or(Some(End::Item(from)))
    }

    fn has(&self, module: usize, name: &str) -> bool {
        let Module { items, children, .. } = &self.0[module];
        items.names.contains(name) || children.contains_key(name) || self.import(module, name).is_some()
    }

    fn import(&self, module: usize, name: &str) -> Option<&Import<'a>> {
        self.0[module].items.imports.iter().find(|import| import.name == name)
    }

    /// Files of the crate that others of its files use. Declaring a module is no use, nor is passing on a name
    /// without using it.
    pub(crate) fn uses(&self) -> Uses<'a> {
        let mut uses = Uses::new();
        for (from, module) in self.0.iter().enumerate() {
            let of_file = uses.entry(module.file).or_default();
            let mut add = |end: End, name: &'a str| {
                let (End::Item(at) | End::Module(at)) = end;
                if self.0[at].file != module.file {
                    of_file.entry(self.0[at].file).or_default().insert(name);
                }
            };
            for import in &module.items.imports {
                let is_used = match import.visibility {
                    Visibility::Private => true,
                    _ => module.items.words.contains(import.name),
                };
                match self.resolve(from, &import.path).filter(|_| is_used) {
                    // A module is used where one of its names is: among the paths, if it is written out.
                    Some(End::Module(_)) if module.items.begins_path(import.name) => {}
                    Some(end) => add(end, import.name),
                    None => {}
                }
            }
            for path in &module.items.paths {
                if let Some(end @ End::Item(_)) = self.resolve(from, path) {
                    add(end, path[path.len() - 1]);
                }
            }
        }
        uses
    }
}

/// Roots of the crates among files: name of the crate and path of its `lib.rs` or `main.rs`.
pub(crate) fn crate_roots(texts: &BTreeMap<String, String>) -> Vec<(String, &str)> {
    let root = |path: &str| -> Option<String> {
        let (folder, file) = path.rsplit_once("src/")?;
        let folder = folder.trim_end_matches('/');
        let name = folder.strip_prefix("crates/").unwrap_or(folder);
        match file {
            "lib.rs" => Some(name.to_owned()),
            "main.rs" if name.is_empty() => Some("corridor".to_owned()),
            "main.rs" => Some(format!("{name} (program)")),
            _ => None,
        }
    };
    texts.keys().filter_map(|path| Some((root(path)?, path.as_str()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses of a crate written as `(path below src, text)`: `from -> to: names`.
    fn uses_of(files: &[(&str, &str)]) -> Vec<String> {
        let texts = files.iter().map(|(path, text)| (format!("src/{path}"), (*text).to_owned())).collect();
        let modules = Modules::of("src/lib.rs", &texts);
        let mut lines = Vec::new();
        for (from, to) in modules.uses() {
            for (to, names) in to {
                let names: Vec<&str> = names.into_iter().collect();
                lines.push(format!("{} -> {}: {}", &from[4..], &to[4..], names.join(" ")));
            }
        }
        lines
    }

    #[test]
    fn names_are_found_through_re_exports() {
        let lib = ("lib.rs", "mod a; mod b; mod c; pub use a::A; pub(crate) use b::*; pub use array;");
        let a = ("a.rs", "use crate::c::deep; pub struct A; fn f() { deep::D::new() }");
        let b = ("b/mod.rs", "mod inner; pub(crate) use self::inner::Inner as Renamed;");
        let inner = ("b/inner.rs", "use super::super::A; pub struct Inner(A);");
        let c =
            ("c.rs", "use crate::{A, Renamed, array::E}; pub mod deep { pub use crate::b::Renamed as D; }");
        assert_eq!(
            uses_of(&[lib, a, b, inner, c]),
            [
                "a.rs -> b/inner.rs: new",
                "b/inner.rs -> a.rs: A",
                "c.rs -> a.rs: A",
                "c.rs -> b/inner.rs: Renamed"
            ]
        );
    }

    #[test]
    fn declarations_and_re_exports_are_not_uses() {
        let lib = ("lib.rs", "mod a; mod b; mod c; pub use a::A; pub use b::B; fn f(_: B) { c::g() }");
        let a = ("a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }");
        let b = ("b.rs", "pub struct B; // crate::a::A");
        let c = ("c.rs", "pub fn g() { let _ = \"crate::a::A\"; }");
        assert_eq!(uses_of(&[lib, a, b, c]), ["lib.rs -> b.rs: B", "lib.rs -> c.rs: g"]);
    }

    #[test]
    fn macros_and_functions_named_as_their_module_are_found() {
        let lib = ("lib.rs", "mod cast; mod b; pub use cast::cast; macro_rules! m { () => {} } use m;");
        let cast = ("cast.rs", "use crate::b; pub fn cast() { b::helper() }");
        let b = ("b.rs", "use crate::{cast, m}; use super::*; pub fn helper() { cast(); }");
        assert_eq!(
            uses_of(&[lib, cast, b]),
            ["b.rs -> cast.rs: cast", "b.rs -> lib.rs: * m", "cast.rs -> b.rs: helper"]
        );
    }

    #[test]
    fn a_module_is_imported_beside_a_function_of_its_name() {
        let lib = ("lib.rs", "mod a; mod b;");
        let a = ("a.rs", "use crate::b; fn b() { b::c(); } struct D; impl D { fn e() { D::e() } }");
        assert_eq!(uses_of(&[lib, a, ("b.rs", "pub fn c() {}")]), ["a.rs -> b.rs: c"]);
        let a = ("a.rs", "use crate::b; #[with(\"b\")] struct D;");
        assert_eq!(uses_of(&[lib, a, ("b.rs", "")]), ["a.rs -> b.rs: b"]);
    }

    #[test]
    fn crates_are_named_by_their_folders() {
        let paths = ["crates/a/src/lib.rs", "b/src/lib.rs", "b/src/main.rs", "src/main.rs", "c.rs"];
        let texts = paths.map(|path| (path.to_owned(), String::new())).into();
        let names: Vec<String> = crate_roots(&texts).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["b", "b (program)", "a", "corridor"]);
    }
}
