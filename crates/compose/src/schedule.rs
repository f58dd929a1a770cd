//! Schedules of compositing: the exchange of parts of the image between ranks, as data. This is radix-k
//! compositing.
//!
//! Ranks are ordered front to back. The number of ranks is a product of factors, one for each round. In a
//! round of factor k, k ranks that are neighbors (after the earlier rounds) divide their common region into k
//! parts; each keeps one and receives that part from the others. Neighbors are adjacent in depth order, so
//! compositing is always correct. In the end each rank holds one part of the image, composited over all
//! ranks.
//!
//! A single round of all ranks is *direct send*; factors of 2 are *binary swap*. With pieces that cover the
//! whole image both send (p - 1)/p of the image from each of p ranks. Direct send needs p - 1 messages and
//! one round, binary swap log2 p messages and rounds. (Hsu 1993; Ma, Painter, Hansen and Krogh 1994; Peterka,
//! Goodell, Ross, Shen and Thakur 2009.)

use std::str::FromStr;

use array::{Error, Result};
use render::Rect;

/// Compositing method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Direct send for up to [`Method::DIRECT_SEND_MAX_RANKS`] ranks, then radix-k of that many.
    #[default]
    Auto,
    /// Direct send: every rank sends to every other rank, in one round.
    DirectSend,
    /// Binary swap, for powers of two.
    BinarySwap,
    /// Radix-k with groups of at most this number of ranks, or larger prime factors.
    RadixK(usize),
}

/// Parses a name: `auto`, `direct-send`, `binary-swap`, `radix-4`.
impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let radix = || text.strip_prefix("radix-")?.parse().ok().filter(|&k| k >= 2).map(Self::RadixK);
        let known = match text {
            "auto" => Some(Self::Auto),
            "direct-send" => Some(Self::DirectSend),
            "binary-swap" => Some(Self::BinarySwap),
            _ => radix(),
        };
        known.ok_or_else(|| {
            Error::invalid(format!(
                "expected `auto`, `direct-send`, `binary-swap` or a radix of 2 or more such as `radix-4`, found `{text}`"
            ))
        })
    }
}

impl Method {
    /// Most ranks for which the default method is direct send.
    pub const DIRECT_SEND_MAX_RANKS: usize = 32;
}

/// Factors of the number of ranks, one for each round; see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    factors: Vec<usize>,
    /// Regions are divided into rows at multiples of this; otherwise along their longer side.
    rows: Option<u32>,
}

/// Exchange of one rank in one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeRound {
    /// Positions in depth order of the ranks that exchange, front first, including this one.
    pub group: Vec<usize>,
    /// Index of this rank in the group, and of the part of the region that it keeps.
    pub own: usize,
}

impl Schedule {
    /// Creates the schedule of a method for this number of ranks.
    ///
    /// # Errors
    /// `Invalid` for binary swap with a number of ranks that is no power of two, groups of less than two, or
    /// no rank.
    pub fn new(method: Method, ranks: usize) -> Result<Self> {
        if ranks == 0 {
            return Err(Error::invalid("a schedule needs at least one rank"));
        }
        let factors = match method {
            Method::DirectSend => vec![ranks],
            Method::Auto if ranks <= Method::DIRECT_SEND_MAX_RANKS => vec![ranks],
            Method::Auto => factors(ranks, Method::DIRECT_SEND_MAX_RANKS),
            Method::BinarySwap if ranks.is_power_of_two() => vec![2; ranks.trailing_zeros() as usize],
            Method::BinarySwap => {
                return Err(Error::invalid(format!(
                    "binary swap needs a power of two of ranks, found {ranks}; choose direct send or radix-k"
                )));
            }
            Method::RadixK(most) if most >= 2 => factors(ranks, most),
            Method::RadixK(most) => {
                return Err(Error::invalid(format!("expected groups of at least 2 ranks, found {most}")));
            }
        };
        Ok(Self { factors: factors.into_iter().filter(|&k| k > 1).collect(), rows: None })
    }

    /// Changes the schedule to regions of whole rows, whose borders are multiples of `unit` rows, as encoders
    /// need them. The order of the regions may differ from that of the ranks.
    #[must_use]
    pub fn by_rows(self, unit: u32) -> Self {
        Self { rows: Some(unit.max(1)), ..self }
    }

    /// Returns true if regions are whole rows.
    pub(crate) fn is_by_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// Returns one of `count` parts of a region.
    pub(crate) fn cut(&self, region: &Rect, index: usize, count: usize) -> Rect {
        self.rows.map_or_else(|| region.part(index, count), |unit| region.rows(index, count, unit))
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.factors.iter().product()
    }

    /// Returns the exchanges of the rank at a position in depth order, round by round.
    pub fn rounds(&self, place: usize) -> impl Iterator<Item = ExchangeRound> {
        let mut stride = 1;
        self.factors.iter().map(move |&k| {
            let own = place / stride % k;
            let first = place - own * stride;
            let group = (0..k).map(|i| first + i * stride).collect();
            stride *= k;
            ExchangeRound { group, own }
        })
    }

    /// Returns the part of a region that the rank at a position holds in the end.
    #[must_use]
    pub fn part(&self, place: usize, region: Rect) -> Rect {
        self.rounds(place).fold(region, |region, round| self.cut(&region, round.own, round.group.len()))
    }
}

/// Factorizes a number into factors of at most `most`, unless they are larger primes. Larger factors come
/// first, because early rounds send the most.
fn factors(number: usize, most: usize) -> Vec<usize> {
    let mut factors = Vec::new();
    let mut rest = number;
    while rest > 1 {
        let fitting = (2..=most.min(rest)).rev().find(|&k| rest.is_multiple_of(k));
        let factor = fitting.or_else(|| (2..=rest).find(|&k| rest.is_multiple_of(k))).unwrap_or(rest);
        factors.push(factor);
        rest /= factor;
    }
    factors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_read_as_people_write_them() {
        assert_eq!("radix-4".parse::<Method>().unwrap(), Method::RadixK(4));
        assert_eq!("binary-swap".parse::<Method>().unwrap(), Method::BinarySwap);
        for bad in ["", "radix-1", "radix-x", "direct"] {
            assert!(bad.parse::<Method>().is_err(), "{bad}");
        }
    }

    #[test]
    fn factors_make_the_number() {
        for ranks in 1..=200 {
            for method in
                [Method::Auto, Method::DirectSend, Method::RadixK(2), Method::RadixK(4), Method::RadixK(7)]
            {
                assert_eq!(Schedule::new(method, ranks).unwrap().ranks(), ranks, "{method:?}");
            }
            let swap = Schedule::new(Method::BinarySwap, ranks);
            assert_eq!(swap.is_ok(), ranks.is_power_of_two());
        }
        assert_eq!(Schedule::new(Method::RadixK(4), 24).unwrap().factors, [4, 3, 2]);
        assert_eq!(Schedule::new(Method::RadixK(4), 14).unwrap().factors, [2, 7]);
        assert!(Schedule::new(Method::RadixK(1), 8).is_err() && Schedule::new(Method::Auto, 0).is_err());
    }

    #[test]
    fn all_of_the_image_is_somebodys() {
        let image = Rect { left: 3, top: 0, width: 61, height: 47 };
        for (method, ranks) in
            [(Method::DirectSend, 7), (Method::BinarySwap, 16), (Method::RadixK(4), 24), (Method::Auto, 96)]
        {
            let schedule = Schedule::new(method, ranks).unwrap();
            for schedule in [schedule.clone(), schedule.by_rows(16)] {
                let parts: Vec<Rect> = (0..ranks).map(|place| schedule.part(place, image)).collect();
                assert_eq!(parts.iter().map(Rect::pixels).sum::<usize>(), image.pixels());
                for (i, part) in parts.iter().enumerate() {
                    assert!(parts[..i].iter().all(|other| other.intersection(part).is_empty()));
                    let is_whole = part.is_empty() || (part.width, part.top % 16) == (image.width, 0);
                    assert!(is_whole || !schedule.is_by_rows(), "{part:?}");
                }
            }
        }
    }
}
