//! Cases that have ended. Each is shown at once on standard error: a later one may take long, or fail.

use std::io::Write;

use array::Result;

use super::options::Options;
use super::report::{BenchReport, Case};
use super::table::line;

/// Cases that have ended, and the groups that failed.
pub(super) struct Finished {
    is_quick: bool,
    cases: Vec<Case>,
    failures: Vec<String>,
}

impl Finished {
    pub(super) fn with(options: &Options) -> Self {
        Self { is_quick: options.is_quick, cases: Vec::new(), failures: Vec::new() }
    }

    pub(super) fn add(&mut self, mut case: Case) {
        if self.is_quick {
            case.leave_open();
        }
        // Somebody who closed it does not want it.
        writeln!(std::io::stderr(), "{}", line(&case)).unwrap_or_default();
        self.cases.push(case);
    }

    pub(super) fn add_all(&mut self, cases: Vec<Case>) {
        cases.into_iter().for_each(|case| self.add(case));
    }

    /// Notes the error of a group of cases when one of them failed; the cases before it are kept.
    pub(super) fn end_of(&mut self, group: &str, result: Result<()>) {
        if let Err(error) = result {
            self.failures.push(format!("{group}: {error}"));
        }
    }

    pub(super) fn into_report(self, mut report: BenchReport) -> BenchReport {
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
        let mut finished = Finished::with(&Options::default());
        finished.end_of("random", Ok(()));
        finished.add(Case::measured("a split", "s", Better::Lower, vec![1.0]));
        finished.end_of("split", Err(Error::corrupt("other bytes")));
        finished.add(Case::measured("urgent", "s", Better::Lower, vec![2.0]));
        let report = finished.into_report(BenchReport::here("access", Link::default()));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["cases"].as_array().map(Vec::len), Some(2));
        assert_eq!(json["error"], "split: other bytes");
        let fine = Finished::with(&Options::default()).into_report(BenchReport::here("access", report.link));
        assert!(serde_json::to_value(&fine).unwrap().get("error").is_none());
    }

    #[test]
    fn a_goal_is_not_judged_by_less_than_it_is_for() {
        let case = || Case::measured("a split", "s", Better::Lower, vec![1.0]).aiming(2.0);
        let judged = |is_quick| {
            let mut finished = Finished::with(&Options { is_quick, ..Options::default() });
            finished.add(case());
            finished.cases[0].meets_goal
        };
        assert_eq!((judged(false), judged(true)), (Some(true), None));
    }
}
