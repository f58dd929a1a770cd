//! Progress: a bar on a terminal, one JSON object per event with `--json`, nothing otherwise.
//!
//! Events stand on standard output before the result; of commands whose output begins otherwise, on standard error.

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

/// Time between JSON events.
const EVENT_EVERY: Duration = Duration::from_millis(200);

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressOutput {
    /// As a bar, if there is a terminal.
    Bar,
    /// As JSON lines on standard output.
    Json,
    /// As JSON lines on standard error: standard output is for something else.
    JsonAside,
    /// Not at all: another process shows it.
    Hidden,
}

impl ProgressOutput {
    /// For a command whose result comes last.
    pub(crate) fn before_result(is_json: bool) -> Self {
        if is_json { Self::Json } else { Self::Bar }
    }
}

/// Shows how far some work is.
pub(crate) enum ProgressMeter {
    /// A bar on standard error.
    Bar(ProgressBar),
    /// JSON lines, and when the last one was written.
    Json(ProgressOutput, Mutex<Option<Instant>>),
    /// Nobody looks.
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
    /// For work that is about to begin.
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

    /// `done` of `total`.
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
                    // A reader that went away is noticed when the result is printed.
                    _ => drop(print(&event)),
                }
            }
            Self::Json(..) | Self::Silent => {}
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

/// Returns a listener that shows the URL at which a server is waited for: people start the server by hand, and need
/// its token.
pub(crate) fn of_awaiting(progress: ProgressOutput) -> OnAwait {
    Arc::new(move |url: &Url| {
        let event = json!({"awaiting": {"url": url.to_string()}}).to_string();
        let shown = match progress {
            ProgressOutput::Json => print(&event),
            ProgressOutput::JsonAside => writeln!(std::io::stderr(), "{event}").map_err(Error::from),
            // Each process that waits does so at an address of its own.
            ProgressOutput::Bar | ProgressOutput::Hidden => {
                writeln!(std::io::stderr(), "{}", reverse::hint(url)).map_err(Error::from)
            }
        };
        // Whoever closed it does not want to know.
        drop(shown);
    })
}

/// For long work while opening files.
pub(crate) fn of_opening(progress: ProgressOutput) -> OnProgress {
    let meter = ProgressMeter::new(ProgressUnit::Bytes, progress);
    Arc::new(move |now: store::Progress| {
        meter.set(&now.what, now.done_bytes, now.total_bytes);
        if now.done_bytes >= now.total_bytes {
            meter.clear();
        }
    })
}
