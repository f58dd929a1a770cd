//! Suggestions of similar names.

/// Largest edit distance of a suggestion, and at most half the length of the name.
const MOST_EDITS: usize = 2;

/// Returns names similar to `name`: one is a prefix of the other, or they differ by a few letters.
#[must_use]
pub fn similar<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let is_begun = |other: &str| name.len() > 2 && other.starts_with(name) || name.starts_with(other);
    let most = MOST_EDITS.min(name.len() / 2);
    names.into_iter().filter(|other| is_begun(other) || edits(name, other) <= most).collect()
}

/// Returns the edit distance: letters to insert, remove or replace.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (number, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = number + 1;
        for (at, &other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_and_beginnings_are_similar() {
        let names = ["camera", "iso", "mode", "shading", "slices", "time"];
        assert_eq!(similar("shadign", names), ["shading"]);
        assert_eq!(similar("cam", names), ["camera"]);
        assert_eq!(similar("isosurfaces", names), ["iso"]);
        assert_eq!(similar("slice", names), ["slices"]);
        assert!(similar("background", names).is_empty() && similar("x", ["tf"]).is_empty());
        assert_eq!([edits("", "abc"), edits("kitten", "sitting"), edits("same", "same")], [3, 3, 0]);
    }
}
