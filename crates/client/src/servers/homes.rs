//! Homes of blocks: the servers responsible for a block if each server caches a part of the blocks. They are computed,
//! not looked up.
//!
//! Rendezvous hashing (Thaler and Ravishankar, 1998): the homes of a block are the servers with the largest hashes of
//! server and block together. When a server joins or leaves, only the blocks of that server move. The hash is xxh3 with
//! a fixed layout, so that every client computes the same homes.

use array::BlockKey;
use xxhash_rust::xxh3::Xxh3;

/// Returns the numbers of the `copies` servers responsible for a block, the preferred one first.
pub(super) fn of_block<'a>(
    names: impl Iterator<Item = &'a str>,
    key: &BlockKey,
    copies: usize,
) -> Vec<usize> {
    let mut ranked: Vec<(u64, usize)> = names.enumerate().map(|(n, name)| (hash(name, key), n)).collect();
    ranked.sort_by_key(|&(hash, n)| (std::cmp::Reverse(hash), n));
    ranked.into_iter().take(copies).map(|(_, n)| n).collect()
}

/// Returns the hash of a server's name and a block, without the generation: blocks of a growing array keep their homes.
fn hash(name: &str, key: &BlockKey) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(&key.dataset.0.to_le_bytes());
    hasher.update(&key.array.to_le_bytes());
    hasher.update(&[key.level]);
    hasher.update(&key.index.to_le_bytes());
    hasher.update(name.as_bytes());
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use array::{DatasetId, Generation};

    use super::*;

    fn key(index: u64) -> BlockKey {
        BlockKey { dataset: DatasetId(7), generation: Generation(1), array: 2, level: 3, index }
    }

    fn homes(names: &[&str], index: u64, copies: usize) -> Vec<String> {
        let found = of_block(names.iter().copied(), &key(index), copies);
        found.into_iter().map(|n| names[n].to_owned()).collect()
    }

    #[test]
    fn homes_are_even_and_move_little() {
        let (four, three) = (["a:1", "b:1", "c:1", "d:1"], ["d:1", "b:1", "a:1"]);
        let mut counts = [0u32; 4];
        for index in 0..4000 {
            let before = homes(&four, index, 1);
            let at = four.iter().position(|n| *n == before[0]).unwrap();
            counts[at] += 1;
            let after = homes(&three, index, 1);
            assert!(before == after || before[0] == "c:1", "{index} moved from {before:?} to {after:?}");
            if before[0] == "c:1" {
                assert_eq!(after[0], homes(&four, index, 2)[1], "the second home takes over");
            }
        }
        assert!(counts.iter().all(|n| (900..1100).contains(n)), "{counts:?}");
    }

    #[test]
    fn every_version_computes_the_same_homes() {
        let found: Vec<String> =
            (0..4).map(|index| homes(&["a:1", "b:1", "c:1"], index, 3).concat()).collect();
        assert_eq!(found, ["c:1a:1b:1", "a:1c:1b:1", "b:1a:1c:1", "a:1b:1c:1"]);
    }
}
