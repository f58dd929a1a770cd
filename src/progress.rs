//! Progress: a bar on a terminal, one JSON object per event with `--json`, otherwise nothing.
//!
//! Events precede the result on standard output; for commands with another form of output, they are on standard error.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use array::Error;
use client::reverse;
use client::url::Url;
use indicatif::{ProgressBar, ProgressStyle};
use node::assemble::OnAwait;
use serde_json::json;
use store::OnProgress;

use crate::common::{print, say};

/// Interval between JSON events.
const EVENT_INTERVAL: Duration = Duration::from_millis(200);

/// Form in which progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressOutput {
    /// A bar, if there is a terminal.
    Bar,
    /// JSON lines on standard output.
    Json,
    /// JSON lines on standard error, because standard output is used for something else.
    JsonAside,
    /// None: another process shows it.
    Hidden,
}

impl ProgressOutput {
    /// Returns the form for a command whose result comes last.
    pub(crate) fn before_result(is_json: bool) -> Self {
        if is_json { Self::Json } else { Self::Bar }
    }
}

/// Shows the progress of some work.
pub(crate) enum ProgressMeter {
    /// A bar on standard error.
    Bar(ProgressBar),
    /// JSON lines, and the time of the last one.
    Json(ProgressOutput, Mutex<Option<Instant>>),
    /// No output.
    Silent,
}

/// Unit in which progress is counted.
#[derive(Clone, Copy)]
pub(crate) enum ProgressUnit {
    Bytes,
    Blocks,
    Pictures,
    Voxels,
}

impl ProgressMeter {
    /// Creates a meter for work that is about to begin.
    pub(crate) fn new(unit: ProgressUnit, progress: ProgressOutput) -> Self {
        if progress == ProgressOutput::Hidden {
            return Self::Silent;
        }
        if progress != ProgressOutput::Bar {
            return Self::Json(progress, Mutex::new(None));
        }
        if !std::io::stderr().is_terminal() {
            return Self::Silent;
        }
        let template = match unit {
            ProgressUnit::Bytes => "{msg} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}",
            ProgressUnit::Blocks => "{msg} {wide_bar} {pos}/{len} blocks",
            ProgressUnit::Pictures => "{msg} {wide_bar} {pos}/{len} pictures {eta}",
            ProgressUnit::Voxels => "{msg} {wide_bar} {percent} % {eta}",
        };
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    /// Shows that `done` of `total` units are completed.
    pub(crate) fn set(&self, what: &str, done: u64, total: u64) {
        match self {
            Self::Bar(bar) => {
                bar.set_message(what.to_owned());
                bar.set_length(total);
                bar.set_position(done);
            }
            Self::Json(progress, last) if is_due(last, done == total) => {
                let event = json!({"progress": {"what": what, "done": done, "total": total}}).to_string();
                match progress {
                    ProgressOutput::JsonAside => say(&event),
                    // A closed output is detected when the result is printed.
                    _ => drop(print(&event)),
                }
            }
            Self::Json(..) | Self::Silent => {}
        }
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "real time, for how often to print")]
fn is_due(last: &Mutex<Option<Instant>>, is_last: bool) -> bool {
    let now = Instant::now();
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let is_due = is_last || last.is_none_or(|t| now.duration_since(t) >= EVENT_INTERVAL);
    if is_due {
        *last = Some(now);
    }
    is_due
}

/// Returns a callback that shows the URL at which this process waits for a server. Users start the server by hand, and
/// need the token in the URL.
pub(crate) fn of_awaiting(progress: ProgressOutput) -> OnAwait {
    Arc::new(move |url: &Url| {
        let event = json!({"awaiting": {"url": url.to_string()}}).to_string();
        let shown = match progress {
            ProgressOutput::Json => print(&event),
            ProgressOutput::JsonAside => writeln!(std::io::stderr(), "{event}").map_err(Error::from),
            // Not hidden: each process waits at its own address.
            ProgressOutput::Bar | ProgressOutput::Hidden => {
                writeln!(std::io::stderr(), "{}", reverse::hint(url)).map_err(Error::from)
            }
        };
        // A closed stream is ignored.
        drop(shown);
    })
}

/// Returns a callback for long work while opening files.
pub(crate) fn of_opening(progress: ProgressOutput) -> OnProgress {
    let meter = ProgressMeter::new(ProgressUnit::Bytes, progress);
    Arc::new(move |now: store::LongTaskProgress| {
        meter.set(&now.what, now.done_bytes, now.total_bytes);
        if now.done_bytes >= now.total_bytes {
            meter.clear();
        }
    })
}
