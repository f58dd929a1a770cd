//! Choice of a controller as users write it: `auto`, `cubic`, `rate=400Mb/s`. Parsed text; no controller is
//! created yet.

use std::fmt;
use std::str::FromStr;

use crate::registry::{self, Refusal};
use crate::{Config, Controller, MAX_RATE_BYTES_PER_SEC, MIN_RATE_BYTES_PER_SEC, Signal};

/// Longest text of a choice, bytes; it is sent as a capability.
pub const MAX_CHOICE_BYTES: usize = 48;

/// Name of a controller, and its rate where one was given: the rate of `rate`, the upper limit of others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    name: &'static str,
    rate_bytes_per_sec: Option<f64>,
}

impl Default for Choice {
    /// Returns the first entry of the registry, `auto`.
    fn default() -> Self {
        Self { name: registry::ALL.first().map_or("auto", |entry| entry.name), rate_bytes_per_sec: None }
    }
}

impl Choice {
    /// Name of the controller.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Given rate, bytes per second.
    #[must_use]
    pub fn rate_bytes_per_sec(&self) -> Option<f64> {
        self.rate_bytes_per_sec
    }

    /// Creates the controller for an engine that provides the signals `offered`.
    ///
    /// # Errors
    /// [`Refusal`] when the engine does not provide a needed signal.
    pub fn make(&self, config: &Config, offered: &[Signal]) -> Result<Box<dyn Controller>, Refusal> {
        let rate_bytes_per_sec = self.rate_bytes_per_sec.or(config.rate_bytes_per_sec);
        registry::make(self.name, &Config { rate_bytes_per_sec, ..config.clone() }, offered)
    }
}

impl FromStr for Choice {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let told = || text.chars().take(MAX_CHOICE_BYTES).collect();
        let (name, rate) = text.split_once('=').map_or((text, None), |(name, rate)| (name, Some(rate)));
        let entry = registry::ALL.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| Refusal::Unknown { name: told() })?;
        let no_rate = || Refusal::NoRate { text: told() };
        let rate_bytes_per_sec = rate.map(|rate| parse_rate(rate).ok_or_else(no_rate)).transpose()?;
        Ok(Self { name: entry.name, rate_bytes_per_sec })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        self.rate_bytes_per_sec.map_or(Ok(()), |rate| write!(f, "={:.6}Mb/s", rate * 8e-6))
    }
}

/// Parses a rate, `400Mb/s` or `400mbit` (bits) or `50MB/s` (bytes), with `k`, `M`, `G` or no prefix; bytes
/// per second. `None` for anything else, and for rates that no host can send.
#[must_use]
pub fn parse_rate(text: &str) -> Option<f64> {
    let bits =
        text.strip_suffix("b/s").or_else(|| text.strip_suffix("bit")).or_else(|| text.strip_suffix("bit/s"));
    let (text, bytes) = match bits {
        Some(text) => (text, 0.125),
        None => (text.strip_suffix("B/s")?, 1.0),
    };
    let prefixes = [('k', 1e3), ('m', 1e6), ('M', 1e6), ('g', 1e9), ('G', 1e9)];
    let prefix = prefixes.iter().find_map(|(letter, factor)| Some((text.strip_suffix(*letter)?, *factor)));
    let (number, factor) = prefix.unwrap_or((text, 1.0));
    let is_plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let rate = number.parse::<f64>().ok().filter(|_| is_plain)? * factor * bytes;
    (MIN_RATE_BYTES_PER_SEC..=MAX_RATE_BYTES_PER_SEC).contains(&rate).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_come_back_as_they_were_written() {
        for text in ["auto", "polite", "rate=400Mb/s", "cubic", "auto=1Gb/s", "rate=12345678.5B/s"] {
            let choice: Choice = text.parse().unwrap();
            let again: Choice = choice.to_string().parse().unwrap();
            assert_eq!(again.name(), choice.name(), "{text}");
            let (a, b) = (choice.rate_bytes_per_sec(), again.rate_bytes_per_sec());
            assert!(a.zip(b).is_none_or(|(a, b)| (a - b).abs() <= 1e-6 * a) && a.is_some() == b.is_some());
            assert!(choice.to_string().len() <= MAX_CHOICE_BYTES, "{choice}");
        }
        assert_eq!("rate=400Mb/s".parse::<Choice>().unwrap().rate_bytes_per_sec(), Some(50e6));
        assert_eq!(Choice::default().name(), "auto");
    }

    #[test]
    fn rates_need_a_unit_and_sense() {
        assert_eq!(parse_rate("1.5GB/s"), Some(1.5e9));
        assert_eq!(parse_rate("64kb/s"), Some(8e3));
        for odd in
            ["400M", "400", "-1Mb/s", "0b/s", "1e9Gb/s", "inf b/s", "infB/s", "NaNB/s", "Mb/s", "1Xb/s", ""]
        {
            assert_eq!(parse_rate(odd), None, "{odd}");
        }
    }

    #[test]
    fn unknown_choices_are_named() {
        for odd in ["", "fast", "rate=", "rate=much", "Auto"] {
            let refusal = odd.parse::<Choice>().unwrap_err();
            assert!(refusal.to_string().contains(&format!("`{odd}`")), "{refusal}");
        }
    }
}
