//! What people write to pick elements: `u[0:10, ::2, 3, :]`, `grid/rho`, `[::4]`, `"a [b]"[0]`.

use array::{ArrayInfo, Dataset, Error, Indexing, Resolved, Result};

/// A parsed pick, not yet checked against a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Name of the array; empty where there is one.
    pub array: String,
    /// What stood between the brackets.
    pub indexing: Indexing,
}

impl Pick {
    /// Reads a pick. A name with brackets stands in single or double quotes.
    ///
    /// # Errors
    /// `Invalid`, saying what was expected.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = || {
            Error::invalid(format!(
                "expected a selection such as `u[0:10, ::2, 3]`, `u` or `[::4]`, found `{text}`"
            ))
        };
        let trimmed = text.trim();
        let (name, rest) = match trimmed.chars().next() {
            Some(quote @ ('"' | '\'')) => trimmed[1..].split_once(quote).ok_or_else(bad)?,
            _ => trimmed.split_at(trimmed.find('[').unwrap_or(trimmed.len())),
        };
        if rest.is_empty() && name.contains(']') && !trimmed.starts_with(['"', '\'']) {
            return Err(bad());
        }
        let inside = match rest.trim() {
            "" => "",
            rest => rest.strip_prefix('[').and_then(|r| r.strip_suffix(']')).ok_or_else(bad)?,
        };
        Ok(Self { array: name.trim().to_owned(), indexing: Indexing::parse(inside)? })
    }

    /// Reads a list of picks, one per line; empty lines are passed over.
    ///
    /// # Errors
    /// As [`Pick::parse`], naming the line.
    pub fn parse_lines(text: &str) -> Result<Vec<Self>> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines.map(|(at, line)| Self::parse(line).map_err(|e| e.context(format!("line {}", at + 1)))).collect()
    }

    /// Applies it to a level of a data set's array.
    ///
    /// # Errors
    /// `NotFound` for the array (listing what there is), `Invalid` for indices outside.
    pub fn resolve<'a>(&self, dataset: &'a Dataset, level: u8) -> Result<(u32, &'a ArrayInfo, Resolved)> {
        let (number, array) = dataset.find(&self.array)?;
        let resolved = self
            .indexing
            .resolve(&array.level(level)?.shape)
            .map_err(|e| e.context(format!("array `{}`", array.name)))?;
        Ok((number, array, resolved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let got = match Pick::parse(text) {
            Ok(p) => format!("{} | {}", p.array, p.indexing.resolve(&[8, 8]).unwrap().selection),
            Err(e) => e.kind().code().to_string(),
        };
        assert_eq!(got, expect, "for `{text}`");
    }

    #[test]
    fn reads_picks() {
        check("u[0:4, ::2]", "u | 0:4, 0:7:2");
        check("grid/rho", "grid/rho | 0:8, 0:8");
        check("[3]", " | 3:4, 0:8");
        check("\"a [b]\"[1]", "a [b] | 1:2, 0:8");
        check("'x'", "x | 0:8, 0:8");
        check("", " | 0:8, 0:8");
    }

    #[test]
    fn refuses_what_is_no_pick() {
        for text in ["u[0:4", "u]", "u[a]", "\"u[1]", "u[0]x"] {
            check(text, "2");
        }
    }
}
