//! Cases that have ended. Each is shown at once on standard error: a later one may take long, or fail.

use std::io::Write;

use array::Result;

use super::report::{Case, Report};

/// See the module.
#[derive(Default)]
pub(super) struct Finished {
    cases: Vec<Case>,
    failures: Vec<String>,
}

impl Finished {
    pub(super) fn add(&mut self, case: Case) {
        // Somebody who closed it does not want it.
        writeln!(std::io::stderr(), "{}", super::line(&case)).unwrap_or_default();
        self.cases.push(case);
    }

    pub(super) fn add_all(&mut self, cases: Vec<Case>) {
        cases.into_iter().for_each(|case| self.add(case));
    }

    /// What is left of a group of cases when one of them failed: those before it, and why.
    pub(super) fn end_of(&mut self, group: &str, result: Result<()>) {
        if let Err(error) = result {
            self.failures.push(format!("{group}: {error}"));
        }
    }

    pub(super) fn into_report(self, mut report: Report) -> Report {
        report.cases = self.cases;
        report.error = (!self.failures.is_empty()).then(|| self.failures.join("; "));
        report
    }
}

#[cfg(test)]
mod tests {
    use array::Error;

    use super::super::report::{Better, Link};
    use super::*;

    #[test]
    fn what_has_ended_is_kept_when_a_later_case_fails() {
        let mut finished = Finished::default();
        finished.end_of("random", Ok(()));
        finished.add(Case::measured("a split", "s", Better::Lower, vec![1.0]));
        finished.end_of("split", Err(Error::corrupt("other bytes")));
        finished.add(Case::measured("urgent", "s", Better::Lower, vec![2.0]));
        let report = finished.into_report(Report::here("access", Link::default()));
        let told = serde_json::to_value(&report).unwrap();
        assert_eq!(told["cases"].as_array().map(Vec::len), Some(2));
        assert_eq!(told["error"], "split: other bytes");
        let fine = Finished::default().into_report(Report::here("access", report.link));
        assert!(serde_json::to_value(&fine).unwrap().get("error").is_none());
    }
}
