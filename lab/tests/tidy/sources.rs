//! Files of the repository, and the failure of a rule: shared by the tests of the rules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("lab lies in the workspace").to_path_buf()
}

/// Returns the files that git tracks.
pub(crate) fn tracked() -> Vec<PathBuf> {
    let out = Command::new("git").arg("ls-files").arg("-z").current_dir(root()).output().expect("git runs");
    assert!(out.status.success(), "git ls-files failed");
    let text = String::from_utf8(out.stdout).expect("paths are UTF-8");
    text.split('\0').filter(|p| !p.is_empty()).map(|p| root().join(p)).filter(|p| p.is_file()).collect()
}

/// Paths of the same files from the folder of the workspace, as git writes them.
pub(crate) fn tracked_paths() -> Vec<String> {
    tracked().iter().map(|path| relative(path)).collect()
}

/// Tracked files with an extension.
pub(crate) fn with_extension(extension: &str) -> Vec<PathBuf> {
    tracked().into_iter().filter(|p| p.extension().is_some_and(|e| e == extension)).collect()
}

/// Text of a file.
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Path of a tracked file from the folder of the workspace, as git writes it.
pub(crate) fn relative(path: &Path) -> String {
    path.strip_prefix(root()).expect("inside").to_string_lossy().into_owned()
}

/// Texts of all tracked Rust files by relative path.
pub(crate) fn rust_texts() -> BTreeMap<String, String> {
    with_extension("rs").iter().map(|path| (relative(path), read(path))).collect()
}

/// Returns the lines of a file outside of its inline tests (`mod tests {`), with their numbers. Lines after such a module
/// count, and so do those after a declaration (`mod tests;`).
pub(crate) fn lines_without_tests(text: &str) -> impl Iterator<Item = (usize, &str)> {
    // Open brackets of an attribute that has several lines.
    let mut open = 0_usize;
    let (mut is_for_tests, mut in_tests) = (false, false);
    (1..).zip(text.lines()).filter(move |&(_, line)| {
        if open > 0 || line.starts_with("#[") {
            open = (open + line.matches('[').count()).saturating_sub(line.matches(']').count());
            is_for_tests |= line.starts_with("#[cfg(test)]");
        } else if !line.starts_with("//") {
            in_tests |= is_for_tests && line.ends_with("mod tests {");
            is_for_tests = false;
        }
        let counts = !in_tests;
        in_tests &= line != "}";
        counts
    })
}

/// Fails with a rule and its violations, one per line.
pub(crate) fn assert_none(problems: Vec<String>, rule: &str) {
    assert!(problems.is_empty(), "{rule}:\n  {}", problems.join("\n  "));
}

#[test]
fn only_tests_within_a_file_do_not_count() {
    let declared = "mod a;\n#[cfg(test)]\nmod tests;\nfn b() {}\n";
    let written = "#[cfg(test)]\nmod tests {\n    fn c() {}\n}\nfn d() {}\n";
    let text = format!("{declared}{written}");
    let counted: Vec<usize> = lines_without_tests(&text).map(|(number, _)| number).collect();
    assert_eq!(counted, [1, 2, 3, 4, 5, 9]);
}

#[test]
fn tests_may_have_further_attributes() {
    let attributes = ["#[cfg(test)]", "// Why.", "#[expect(", "    dead_code,", "    reason = \"x\"", ")]"];
    let module = ["mod tests {", "    fn a() {}", "}", "fn b() {}"];
    let text = [attributes.as_slice(), &module].concat().join("\n");
    let counted: Vec<usize> = lines_without_tests(&text).map(|(number, _)| number).collect();
    assert_eq!(counted, [1, 2, 3, 4, 5, 6, 10]);
    let other = "#[cfg(test)]\nfn a() {}\nmod tests {\n}\n";
    assert_eq!(lines_without_tests(other).count(), 4);
}
