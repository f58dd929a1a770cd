//! Progress: a bar on a terminal, one JSON object per event with `--json`, nothing otherwise.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use node::store::{OnProgress, Progress};
use serde_json::json;

use crate::common::print;

/// Time between JSON events.
const EVENT_EVERY: Duration = Duration::from_millis(200);

/// Where progress goes.
pub(crate) enum Meter {
    /// A bar on standard error.
    Bar(ProgressBar),
    /// JSON lines on standard output.
    Json(Mutex<Option<Instant>>),
    /// Nobody looks.
    Silent,
}

/// What is counted.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Bytes,
    Blocks,
}

impl Meter {
    /// For work that is about to begin.
    pub(crate) fn new(unit: Unit, is_json: bool) -> Self {
        if is_json {
            return Self::Json(Mutex::new(None));
        }
        if !std::io::stderr().is_terminal() {
            return Self::Silent;
        }
        let template = match unit {
            Unit::Bytes => "{msg} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}",
            Unit::Blocks => "{msg} {wide_bar} {pos}/{len} blocks",
        };
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    /// `done` of `total`.
    pub(crate) fn set(&self, what: &str, done: u64, total: u64) {
        match self {
            Self::Bar(bar) => {
                bar.set_message(what.to_owned());
                bar.set_length(total);
                bar.set_position(done);
            }
            Self::Json(last) if is_due(last, done == total) => {
                // A reader that went away is noticed when the result is printed.
                drop(print(&json!({"progress": {"what": what, "done": done, "total": total}}).to_string()));
            }
            Self::Json(_) | Self::Silent => {}
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a person's clock, for how often to print")]
fn is_due(last: &Mutex<Option<Instant>>, is_last: bool) -> bool {
    let now = Instant::now();
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let is_due = is_last || last.is_none_or(|t| now.duration_since(t) >= EVENT_EVERY);
    if is_due {
        *last = Some(now);
    }
    is_due
}

/// For long work while opening files. Its events never come before a server's first lines: with `--json` they are left out.
pub(crate) fn of_opening(is_json: bool) -> OnProgress {
    let meter = if is_json { Meter::Silent } else { Meter::new(Unit::Bytes, false) };
    Arc::new(move |progress: Progress| {
        meter.set(&progress.what, progress.done_bytes, progress.total_bytes);
        if progress.done_bytes >= progress.total_bytes {
            meter.clear();
        }
    })
}
