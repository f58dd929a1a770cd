//! The one memory budget of a process, and how it is shared out.

use array::{Error, Result};

/// Least budget that still works, bytes.
pub const MIN_BUDGET_BYTES: u64 = 64 << 20;
/// Largest budget taken by itself, bytes; more must be asked for.
const MAX_DEFAULT_BYTES: u64 = 16 << 30;
/// Budget where the system does not tell its memory, bytes.
const UNKNOWN_MACHINE_BYTES: u64 = 1 << 30;

/// One budget, split by stage. The parts sum up to less than the whole: the rest is for code, images and encoders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    /// All of it, bytes.
    pub whole: u64,
    /// Blocks kept, including those under way, bytes; of all data sets together.
    pub cache: u64,
    /// The renderer's own copies of blocks, with aprons, bytes; only a viewing node uses it.
    pub render: u64,
    /// Answers from being prepared until they are sent, bytes; of all clients together.
    pub send: u64,
    /// On the way here from other servers, bytes; of all data sets together.
    pub receive: u64,
    /// Working memory for reading files, besides the blocks themselves, bytes.
    pub scratch: u64,
}

impl MemoryBudget {
    /// A node that shows pictures: 6/16 blocks, as much for the renderer.
    #[must_use]
    pub fn viewing(whole: u64) -> Self {
        let part = whole.max(MIN_BUDGET_BYTES) / 16;
        Self { whole: part * 16, cache: part * 6, render: part * 6, send: part, receive: part, scratch: part }
    }

    /// A data server: 8/16 blocks, 4/16 on the way to clients.
    #[must_use]
    pub fn serving(whole: u64) -> Self {
        let part = whole.max(MIN_BUDGET_BYTES) / 16;
        Self {
            whole: part * 16,
            cache: part * 8,
            render: 0,
            send: part * 4,
            receive: part,
            scratch: part * 2,
        }
    }

    /// A process that only reads: half for decoding files, an eighth on the way here, nothing for others.
    #[must_use]
    pub fn reading(whole: u64) -> Self {
        let part = whole.max(MIN_BUDGET_BYTES) / 16;
        Self { whole: part * 16, cache: part, render: 0, send: 0, receive: part * 2, scratch: part * 8 }
    }

    /// For one of `count` data sets.
    #[must_use]
    pub fn share_of(self, count: usize) -> Self {
        let count = count.max(1) as u64;
        Self { cache: self.cache / count, receive: self.receive / count, ..self }
    }

    /// A quarter of the machine's memory, at most 16 GiB.
    #[must_use]
    pub fn default_bytes() -> u64 {
        let quarter = machine_bytes().map_or(UNKNOWN_MACHINE_BYTES, |n| n / 4);
        quarter.clamp(MIN_BUDGET_BYTES, MAX_DEFAULT_BYTES)
    }
}

fn machine_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Reads a size: `512MiB`, `2GiB`, `64M` (binary as well), `1000000`, `1GB` (decimal).
///
/// # Errors
/// `Invalid`, quoting the text.
pub fn parse_size(text: &str) -> Result<u64> {
    let bad = || Error::invalid(format!("expected a size such as `512MiB`, `2GiB` or `1GB`, found `{text}`"));
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(bad()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().map_err(|_| bad())?;
    let mut size = whole.checked_mul(factor).ok_or_else(bad)?;
    if !fraction.is_empty() {
        let digits = fraction.get(..fraction.len().min(6)).ok_or_else(bad)?;
        let value: u64 = digits.parse().map_err(|_| bad())?;
        let scale = 10u64.pow(u32::try_from(digits.len()).map_err(|_| bad())?);
        let part = u128::from(value) * u128::from(factor) / u128::from(scale);
        size = size.checked_add(u64::try_from(part).map_err(|_| bad())?).ok_or_else(bad)?;
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sizes() {
        let cases = [
            ("512MiB", 512 << 20),
            ("1.5GiB", 3 << 29),
            ("64M", 64 << 20),
            ("1GB", 1_000_000_000),
            ("4096", 4096),
            ("2 gib", 2 << 30),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text).unwrap(), bytes, "{text}");
        }
        for text in ["", "MiB", "-1", "1XB", "99999999TiB", "1.2.3", "1e9"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parts_never_exceed_the_whole() {
        for whole in [0, MIN_BUDGET_BYTES, 512 << 20, (1 << 40) + 7] {
            for b in
                [MemoryBudget::viewing(whole), MemoryBudget::serving(whole), MemoryBudget::reading(whole)]
            {
                assert!(b.cache + b.render + b.send + b.receive + b.scratch < b.whole);
                assert!(b.whole <= whole.max(MIN_BUDGET_BYTES));
                let shares = b.share_of(3);
                assert!(shares.cache * 3 <= b.cache && shares.receive * 3 <= b.receive);
            }
        }
    }
}
