//! The memory budget of a process, and its division.

use array::{Error, Result};
use cache::HeldMemory;

/// Minimum memory budget of a process, in bytes.
pub const MIN_BUDGET_BYTES: u64 = 64 << 20;
/// Maximum default budget, in bytes; a larger one must be requested.
const MAX_DEFAULT_BYTES: u64 = 16 << 30;
/// Budget if the system does not report its memory, in bytes.
const UNKNOWN_MACHINE_BYTES: u64 = 1 << 30;

/// Memory budget of a process, divided among its stages. The sum of the parts is less than the whole, except while a
/// viewing node saves a picture: the rest is for code, images and encoders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    /// The whole budget, in bytes.
    pub whole: u64,
    /// Cached blocks, including those in flight, of all data sets together, in bytes.
    pub cache: u64,
    /// Copies of blocks in the renderer, with ghost voxels, in bytes; used only by a viewing node.
    pub render: u64,
    /// Blocks of a picture or film that is being saved, in bytes; used only by a viewing node.
    pub saving: u64,
    /// Responses to all clients together, from preparation until they are sent, in bytes.
    pub send: u64,
    /// Data in flight from other servers, of all data sets together, in bytes.
    pub receive: u64,
    /// Scratch memory for reading files, in bytes; the blocks themselves are not included.
    pub scratch: u64,
}

impl MemoryBudget {
    /// Returns the budget of a viewing node: 6/16 for blocks, as much for the renderer.
    #[must_use]
    pub fn viewing(whole: u64) -> Self {
        let part = whole.max(MIN_BUDGET_BYTES) / 16;
        Self {
            whole: part * 16,
            cache: part * 6,
            render: part * 6,
            saving: part,
            send: part,
            receive: part,
            scratch: part,
        }
    }

    /// Returns the budget of a data server: 8/16 for blocks, 4/16 for responses.
    #[must_use]
    pub fn serving(whole: u64) -> Self {
        let part = whole.max(MIN_BUDGET_BYTES) / 16;
        Self {
            whole: part * 16,
            cache: part * 8,
            render: 0,
            saving: 0,
            send: part * 4,
            receive: part,
            scratch: part * 2,
        }
    }

    /// Returns the budget of a process that only reads: half for decoding files, an eighth for data in flight, none for
    /// responses.
    #[must_use]
    pub fn reading(whole: u64) -> Self {
        let part = whole.max(MIN_BUDGET_BYTES) / 16;
        Self {
            whole: part * 16,
            cache: part,
            render: 0,
            saving: 0,
            send: 0,
            receive: part * 2,
            scratch: part * 8,
        }
    }

    /// Returns the budget that counts blocks which the caches evicted and which still have a holder. In a data server this is `send`,
    /// the budget of answers, so a client that leaves its answers unread delays no other one.
    #[must_use]
    pub fn held_memory(&self) -> HeldMemory {
        if self.render == 0 && self.send > 0 { HeldMemory::CountedByHolders } else { HeldMemory::CountedHere }
    }

    /// Returns the share of one of `count` data sets.
    #[must_use]
    pub fn share_of(self, count: usize) -> Self {
        let count = count.max(1) as u64;
        Self { cache: self.cache / count, receive: self.receive / count, ..self }
    }

    /// Returns the default budget: a quarter of the machine's memory, at most 16 GiB.
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

/// Parses a size: `512MiB`, `2GiB`, `64M` (binary as well), `1000000`, `1GB` (decimal).
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
