//! Schedules of compositing: which rank sends which part of the image to which rank, and when. This is
//! radix-k compositing as data.
//!
//! Ranks stand in a row, the front one first. The number of ranks is a product of factors, one for each round. In a round of
//! factor k, k ranks that are neighbors (of what earlier rounds have put together) cut the region that they
//! all have a piece of into k parts; each keeps one and gets that part from the others. Neighbors lie one behind the
//! other without anything in between, so each join keeps the order. In the end each rank holds one part of the image,
//! of all ranks.
//!
//! With one round of as many as there are this is *direct send*; with factors of 2 *binary swap*. Pieces that cover all
//! are sent as often in either: (p - 1)/p of the image by each of p ranks. Direct send needs p - 1 messages for that and
//! the fewest rounds, binary swap log2 p messages and rounds.
//! (Hsu 1993; Ma, Painter, Hansen and Krogh 1994; Peterka, Goodell, Ross, Shen and Thakur 2009.)

use std::str::FromStr;

use array::{Error, Result};
use render::Rect;

/// How parts of images are exchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Direct send for up to [`Method::DIRECT_SEND_MAX_RANKS`] ranks, then radix-k of that many.
    #[default]
    Auto,
    /// Everybody sends to everybody, once.
    DirectSend,
    /// Two by two; for powers of two.
    BinarySwap,
    /// In groups of at most so many; where that is not a divisor, of what is.
    RadixK(usize),
}

/// From its name, as people write it: `auto`, `direct-send`, `binary-swap`, `radix-4`.
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
    /// Ranks up to which everybody may well send to everybody.
    pub const DIRECT_SEND_MAX_RANKS: usize = 32;
}

/// Factors of the number of ranks, one for each round; see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    factors: Vec<usize>,
    /// Regions are cut into rows at multiples of this; otherwise along their longer side.
    rows: Option<u32>,
}

/// Exchange of one rank in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeRound {
    /// Places in the row of those that exchange, front first; the rank itself is one of them.
    pub group: Vec<usize>,
    /// Which of them it is, and which part of the region it keeps.
    pub own: usize,
}

impl Schedule {
    /// The schedule of a method for so many ranks.
    ///
    /// # Errors
    /// `Invalid` for binary swap among a number that is no power of two, groups of less than two, or no rank at all.
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

    /// Changes the schedule to regions of whole rows, whose borders lie at multiples of `unit` rows: for
    /// encoders that need a picture in such regions. The regions may lie in another order than the ranks.
    #[must_use]
    pub fn by_rows(self, unit: u32) -> Self {
        Self { rows: Some(unit.max(1)), ..self }
    }

    /// Whether regions are whole rows.
    pub(crate) fn is_by_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// One of `count` parts of a region.
    pub(crate) fn cut(&self, region: &Rect, index: usize, count: usize) -> Rect {
        self.rows.map_or_else(|| region.part(index, count), |unit| region.rows(index, count, unit))
    }

    /// How many ranks it is for.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.factors.iter().product()
    }

    /// Returns the exchanges of the rank at a place in the row, round by round.
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

    /// The part of a region that the rank at a place holds in the end.
    #[must_use]
    pub fn part(&self, place: usize, region: Rect) -> Rect {
        self.rounds(place).fold(region, |region, round| self.cut(&region, round.own, round.group.len()))
    }
}

/// Factors of a number, each at most `most` where it is no larger prime; the larger ones first, because early rounds have the
/// most to send and that goes best at once.
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
