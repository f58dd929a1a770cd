//! Reports as tables for people.

use std::fmt::Write;

use super::report::{BenchReport, Case};

/// A report as a table for people.
#[must_use]
pub fn table(report: &BenchReport) -> String {
    let mut out = format!(
        "{}, commit {}, {} cores, {}, Linux {}\n",
        report.bench, report.commit, report.machine.cores, report.machine.cpu, report.machine.kernel
    );
    for case in &report.cases {
        writeln!(out, "  {}", line(case)).unwrap_or_default();
    }
    out
}

/// A case for people.
pub(super) fn line(case: &Case) -> String {
    let figure = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), figure);
    let mut out = format!(
        "{:<44} {:>12} {} (median of {}, {} to {})",
        case.name,
        figure(case.ours),
        case.unit,
        case.runs,
        figure(case.min),
        figure(case.max)
    );
    // On loopback a round trip limits nothing.
    if let Some(limit) = case.limit.filter(|&limit| limit > 0.0) {
        write!(out, "; limit {}: {}", self::figure(limit), case.limit_why).unwrap_or_default();
    }
    for (peer, value) in &case.peers {
        write!(out, "; {peer} {}", figure(*value)).unwrap_or_default();
    }
    match (case.goal, case.meets_goal) {
        (Some(goal), Some(true)) => write!(out, "; goal {} met", self::figure(goal)).unwrap_or_default(),
        (Some(goal), Some(false)) => write!(out, "; goal {} MISSED", self::figure(goal)).unwrap_or_default(),
        _ => {}
    }
    if !case.why.is_empty() {
        write!(out, "; {}", case.why).unwrap_or_default();
    }
    out
}

/// Formats with four significant digits.
fn figure(value: f64) -> String {
    let digits = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 9")]
    let decimals = (3.0 - digits).clamp(0.0, 9.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn figures_have_four_digits_that_count() {
        let shown = [0.0, 0.000_123_456, 1.0, 12.345_6, 123_456.7, -5.0].map(super::figure);
        assert_eq!(shown, ["0.000", "0.0001235", "1.000", "12.35", "123457", "-5.000"]);
    }
}
