//! Selections of elements as text: `u[0:10, ::2, 3, :]`, `grid/rho`, `[::4]`, `"a [b]"[0]`; or by coordinates,
//! `tas(time=2001-03, lat=40:60)`, see [`coordinate_selection`](crate::coordinate_selection).

use std::sync::Arc;

use array::{ArrayInfo, Dataset, Error, Indexing, ResolvedIndex, Result, Source};

use crate::coordinate_selection::CoordinateSelection;

/// A parsed selection, not yet checked against a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArraySelection {
    /// Name of the array; empty if there is only one.
    pub array: String,
    /// Indices between the brackets.
    pub indexing: Indexing,
    /// Text between parentheses, instead of the brackets.
    pub by_coordinate: Option<CoordinateSelection>,
    /// Line of the list that contained it, from 1; `None` for a single selection.
    pub line: Option<usize>,
}

impl ArraySelection {
    /// Parses a selection. A name with brackets, or with spaces at its ends, has single or double quotes.
    ///
    /// # Errors
    /// `Invalid`, with the expected form.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = || {
            Error::invalid(format!(
                "expected a selection such as `u[0:10, ::2, 3]`, `u` or `[::4]`, found `{text}`"
            ))
        };
        let trimmed = text.trim();
        let (name, rest) = match trimmed.chars().next() {
            Some(quote @ ('"' | '\'')) => trimmed[1..].split_once(quote).ok_or_else(bad)?,
            _ => {
                let end = trimmed.find('[').or_else(|| by_coordinate_at(trimmed)).unwrap_or(trimmed.len());
                (trimmed[..end].trim_end(), &trimmed[end..])
            }
        };
        if let Some(inside) = rest.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            let by_coordinate = Some(CoordinateSelection::parse(inside)?);
            let indexing = Indexing::parse("")?;
            return Ok(Self { array: name.to_owned(), indexing, by_coordinate, line: None });
        }
        if rest.is_empty() && name.contains(']') && !trimmed.starts_with(['"', '\'']) {
            return Err(bad());
        }
        let inside = match rest.trim() {
            "" => "",
            rest => rest.strip_prefix('[').and_then(|r| r.strip_suffix(']')).ok_or_else(bad)?,
        };
        let indexing = Indexing::parse(inside)?;
        Ok(Self { array: name.to_owned(), indexing, by_coordinate: None, line: None })
    }

    /// Parses a list of selections, one per line; empty lines and those that begin with `#` are skipped.
    ///
    /// # Errors
    /// As [`ArraySelection::parse`], naming the line.
    pub fn parse_lines(text: &str) -> Result<Vec<Self>> {
        let is_selection = |line: &str| !line.is_empty() && !line.starts_with('#');
        let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| is_selection(line));
        lines
            .map(|(number, line)| match Self::parse(line) {
                Ok(selection) => Ok(Self { line: Some(number), ..selection }),
                Err(error) => Err(error.context(format!("line {number}"))),
            })
            .collect()
    }

    /// Converts a selection by coordinates to one by index, at full resolution; returns warnings, too. A selection by
    /// index is returned unchanged.
    ///
    /// # Errors
    /// The errors of [`CoordinateSelection::to_indexing`]; `Invalid` for another level.
    pub async fn with_indexing(
        &self,
        source: &Arc<dyn Source>,
        dataset: &Dataset,
        level: u8,
    ) -> Result<(Self, Vec<String>)> {
        let Some(by_coordinate) = &self.by_coordinate else { return Ok((self.clone(), Vec::new())) };
        if level > 0 {
            return Err(Error::invalid(
                "expected level 0 for a selection by coordinates; select by index on other levels",
            ));
        }
        let (_, array) = self.array_of(dataset).map_err(|error| self.at_line(error))?;
        let found = by_coordinate.to_indexing(source, dataset, array).await;
        let (indexing, warnings) = found.map_err(|error| self.at_line(error))?;
        Ok((Self { indexing, by_coordinate: None, ..self.clone() }, warnings))
    }

    fn at_line(&self, error: Error) -> Error {
        match self.line {
            Some(line) => error.context(format!("line {line}")),
            None => error,
        }
    }

    /// Resolves the selection for a level of an array of the data set; returns the array's number and description, and
    /// the selection.
    ///
    /// # Errors
    /// `NotFound` for the array (listing the existing ones), `Invalid` for indices outside, and if no array is named
    /// though there are several; each with the line, if there is one.
    pub fn resolve<'a>(
        &self,
        dataset: &'a Dataset,
        level: u8,
    ) -> Result<(u32, &'a ArrayInfo, ResolvedIndex)> {
        self.resolved(dataset, level).map_err(|error| self.at_line(error))
    }

    fn array_of<'a>(&self, dataset: &'a Dataset) -> Result<(u32, &'a ArrayInfo)> {
        if let ("", [first, _, ..]) = (self.array.as_str(), &dataset.arrays[..]) {
            let (count, example) = (dataset.arrays.len(), &first.name);
            return Err(Error::invalid(format!(
                "expected the name of one of the {count} arrays, such as `{example}` or `{example}[0]`, found none"
            )));
        }
        dataset.find(&self.array)
    }

    fn resolved<'a>(&self, dataset: &'a Dataset, level: u8) -> Result<(u32, &'a ArrayInfo, ResolvedIndex)> {
        if self.by_coordinate.is_some() {
            return Err(Error::invalid("expected a selection by index here, such as `u[0:10]`"));
        }
        let (number, array) = self.array_of(dataset)?;
        let resolved = self
            .indexing
            .resolve(&array.level(level)?.shape)
            .map_err(|e| e.context(format!("array `{}`", array.name)))?;
        Ok((number, array, resolved))
    }
}

/// Returns the position of the parenthesis of a selection by coordinates, which closes at the end of the text and
/// contains `AXIS=...` or nothing.
fn by_coordinate_at(text: &str) -> Option<usize> {
    let at = text.find('(')?;
    let inside = text[at + 1..].strip_suffix(')')?;
    (inside.trim().is_empty() || inside.contains('=')).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let got = match ArraySelection::parse(text) {
            Ok(p) => format!("{} | {}", p.array, p.indexing.resolve(&[8, 8]).unwrap().selection),
            Err(e) => e.kind().code().to_string(),
        };
        assert_eq!(got, expect, "for `{text}`");
    }

    #[test]
    fn selections_are_parsed() {
        check("u[0:4, ::2]", "u | 0:4, 0:7:2");
        check("grid/rho", "grid/rho | 0:8, 0:8");
        check("[3]", " | 3:4, 0:8");
        check("\"a [b]\"[1]", "a [b] | 1:2, 0:8");
        check("'x'", "x | 0:8, 0:8");
        check(" 'end ' [1]", "end  | 1:2, 0:8");
        check("x [1]", "x | 1:2, 0:8");
        check("mass (total)", "mass (total) | 0:8, 0:8");
        let found = ArraySelection::parse("g/tas(time=2001-03:2001-04, lat=5)").unwrap();
        assert_eq!((found.array.as_str(), found.by_coordinate.is_some()), ("g/tas", true));
        let found = ArraySelection::parse("'a (b)'(x=1)").unwrap();
        assert_eq!((found.array.as_str(), found.by_coordinate.is_some()), ("a (b)", true));
        assert!(ArraySelection::parse("(x=1)").unwrap().array.is_empty());
        check("", " | 0:8, 0:8");
    }

    #[test]
    fn a_list_has_blank_lines_and_comments_and_errors_name_the_line() {
        let list = ArraySelection::parse_lines("# a comment\n\n u[0]\n  # another one\nv\n").unwrap();
        let found: Vec<_> = list.iter().map(|p| (p.array.as_str(), p.line)).collect();
        assert_eq!(found, [("u", Some(3)), ("v", Some(5))]);
        let error = ArraySelection::parse_lines("u\n\nu[a]").unwrap_err().to_string();
        assert!(error.starts_with("line 3: "), "{error}");
    }

    #[test]
    fn malformed_selections_are_refused() {
        for text in ["u[0:4", "u]", "u[a]", "\"u[1]", "u[0]x"] {
            check(text, "2");
        }
    }
}
