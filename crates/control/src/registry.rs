//! Controllers by name, with the signals that they need.

use std::fmt;

use crate::auto::{CoexistingAuto, Friendliness};
use crate::bbr::Bbr;
use crate::guard::{Guard, sane_config};
use crate::rate::Rate;
use crate::tfrc::Tfrc;
use crate::udt::Udt;
use crate::window::{Bic, Cubic, HighSpeed, Reno, Scalable, Vegas, Westwood, WindowController};
use crate::{Config, Controller, Signal};

/// Entry of a controller.
pub struct ControllerEntry {
    /// Name of the controller.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Signals that an engine must provide.
    pub needs: &'static [Signal],
    make: fn(&Config) -> Box<dyn Controller>,
}

/// Signals that every window controller of TCP's family needs.
const WINDOW_NEEDS: &[Signal] = &[Signal::Ack, Signal::RoundTrip, Signal::Loss, Signal::Timeout];

/// Signals that `auto` and its variants need.
const AUTO_NEEDS: &[Signal] =
    &[Signal::Sent, Signal::Ack, Signal::RoundTrip, Signal::Delivery, Signal::Loss, Signal::Timeout];

/// All controllers; the default first.
pub const ALL: &[ControllerEntry] = &[
    ControllerEntry {
        name: "auto",
        about: "finds the free capacity in a few round trips, keeps the queue short, ignores random loss (of this project)",
        needs: AUTO_NEEDS,
        make: |config| Box::new(CoexistingAuto::new(config, Friendliness::Fair)),
    },
    ControllerEntry {
        name: "polite",
        about: "auto, but never above the rate of a TCP flow: for shared networks (of this project)",
        needs: AUTO_NEEDS,
        make: |config| Box::new(CoexistingAuto::new(config, Friendliness::Polite)),
    },
    ControllerEntry {
        name: "rate",
        about: "a fixed rate, whatever is lost: for reserved paths",
        needs: &[],
        make: |config| Box::new(Rate::new(config)),
    },
    ControllerEntry {
        name: "reno",
        about: "classic TCP: one packet more per round trip, half the window at a loss (RFC 5681, 6582)",
        needs: WINDOW_NEEDS,
        make: |config| Box::new(WindowController::new(config, Reno)),
    },
    ControllerEntry {
        name: "cubic",
        about: "default of most hosts: a cubic function of the time since the last loss (RFC 9438)",
        needs: WINDOW_NEEDS,
        make: |config| Box::new(WindowController::new(config, Cubic::default())),
    },
    ControllerEntry {
        name: "bic",
        about: "binary search for the window (Xu, Harfoush, Rhee 2004)",
        needs: WINDOW_NEEDS,
        make: |config| Box::new(WindowController::new(config, Bic::default())),
    },
    ControllerEntry {
        name: "highspeed",
        about: "larger steps and smaller cuts at large windows (RFC 3649)",
        needs: WINDOW_NEEDS,
        make: |config| Box::new(WindowController::new(config, HighSpeed)),
    },
    ControllerEntry {
        name: "scalable",
        about: "recovers from a loss in the same time at any rate (Kelly 2003)",
        needs: WINDOW_NEEDS,
        make: |config| Box::new(WindowController::new(config, Scalable)),
    },
    ControllerEntry {
        name: "westwood",
        about: "at a loss, falls to the measured bandwidth of the path (Westwood+, 2004)",
        needs: WINDOW_NEEDS,
        make: |config| Box::new(WindowController::new(config, Westwood::default())),
    },
    ControllerEntry {
        name: "vegas",
        about: "keeps two to four packets in the queue (Brakmo, Peterson 1995)",
        needs: &[Signal::Ack, Signal::RoundTrip, Signal::Delivery, Signal::Loss, Signal::Timeout],
        make: |config| Box::new(WindowController::new(config, Vegas::new())),
    },
    ControllerEntry {
        name: "bbr",
        about: "the largest recent delivery rate, with probes (version 1, draft-cardwell-iccrg-bbr-00)",
        needs: &[Signal::Ack, Signal::RoundTrip, Signal::Delivery, Signal::Timeout],
        make: |config| Box::new(Bbr::new(config)),
    },
    ControllerEntry {
        name: "udt",
        about: "steps by the magnitude of the free capacity, every 10 ms (draft-gg-udt-03)",
        needs: &[Signal::Ack, Signal::RoundTrip, Signal::Loss, Signal::Timeout, Signal::Arrivals],
        make: |config| Box::new(Udt::new(config)),
    },
    ControllerEntry {
        name: "tfrc",
        about: "as fast as TCP would be, but smooth; reordering is not loss (RFC 5348)",
        needs: &[
            Signal::Ack,
            Signal::RoundTrip,
            Signal::Delivery,
            Signal::Loss,
            Signal::Timeout,
            Signal::Spurious,
        ],
        make: |config| Box::new(Tfrc::new(config)),
    },
];

/// Reason why a controller cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The name is unknown.
    Unknown {
        /// Requested name.
        name: String,
    },
    /// The text after the name is not a rate.
    NoRate {
        /// Requested text.
        text: String,
    },
    /// The engine does not provide the needed signals.
    Unfed {
        /// Requested name.
        name: &'static str,
        /// Missing signals.
        missing: Vec<Signal>,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name } => {
                let names: Vec<&str> = ALL.iter().map(|e| e.name).collect();
                write!(
                    f,
                    "expected one of the controllers {names:?}, optionally with a rate such as `rate=400Mb/s`, found `{name}`"
                )
            }
            Self::NoRate { text } => {
                write!(
                    f,
                    "expected a rate such as `400Mb/s` (bits) or `50MB/s` (bytes) after `=`, found `{text}`"
                )
            }
            Self::Unfed { name, missing } => {
                let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "`{name}` needs {}, which this protocol cannot provide; choose another controller",
                    missing.join(" and ")
                )
            }
        }
    }
}

impl std::error::Error for Refusal {}

impl fmt::Debug for ControllerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerEntry")
            .field("name", &self.name)
            .field("needs", &self.needs)
            .finish_non_exhaustive()
    }
}

/// Creates the controller called `name`, for an engine that provides the signals `offered`.
///
/// # Errors
/// [`Refusal`] for an unknown name, or if the engine does not provide a needed signal.
pub fn make(name: &str, config: &Config, offered: &[Signal]) -> Result<Box<dyn Controller>, Refusal> {
    let entry =
        ALL.iter().find(|e| e.name == name).ok_or_else(|| Refusal::Unknown { name: name.to_owned() })?;
    let missing: Vec<Signal> = entry.needs.iter().copied().filter(|s| !offered.contains(s)).collect();
    if !missing.is_empty() {
        return Err(Refusal::Unfed { name: entry.name, missing });
    }
    Ok(Box::new(Guard::new((entry.make)(&sane_config(config)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_controller_can_be_made() {
        for (i, entry) in ALL.iter().enumerate() {
            assert!(ALL.iter().skip(i + 1).all(|other| other.name != entry.name));
            assert!(!entry.about.is_empty());
            assert!(make(entry.name, &Config::new(1500), Signal::ALL).is_ok());
        }
    }

    #[test]
    fn an_engine_that_cannot_feed_a_controller_is_refused_with_the_reason() {
        let offered = [Signal::Ack, Signal::RoundTrip, Signal::Loss, Signal::Timeout];
        assert!(make("cubic", &Config::new(1500), &offered).is_ok());
        let refusal = make("udt", &Config::new(1500), &offered).unwrap_err();
        assert_eq!(refusal, Refusal::Unfed { name: "udt", missing: vec![Signal::Arrivals] });
        assert!(refusal.to_string().contains("measured by the receiver"), "{refusal}");
        assert!(make("reno ", &Config::new(1500), &offered).unwrap_err().to_string().contains("`reno `"));
    }
}
