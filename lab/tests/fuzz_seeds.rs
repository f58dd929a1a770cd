//! The bodies of the fuzz targets, on the seeds written by hand and on inputs that once failed, each also damaged a
//! little: so they stay true, and compile, without a fuzzer. Long runs are `make fuzz`.

#![expect(
    unreachable_pub,
    clippy::disallowed_methods,
    reason = "a crate of its own elsewhere, where time begins"
)]

use std::path::Path;

// What the targets build without the node.
use ::client::url;
use export::selection_text;
use link::datagram;

#[path = "../../crates/store/src/formats/common/shuffle.rs"]
mod shuffle;

/// Stand-ins for names in the crate `store` that the decoders of `chunk` use.
mod formats {
    pub(crate) mod common {
        pub(crate) use crate::shuffle;
    }
    pub(crate) mod hdf5 {
        pub(crate) use crate::chunk::filters;
    }
}

#[path = "../fuzz/src/chunk.rs"]
mod chunk;
#[path = "../fuzz/src/client.rs"]
mod client;
#[path = "../fuzz/src/datagrams.rs"]
mod datagrams;
#[path = "../fuzz/src/description.rs"]
mod description;
#[path = "../fuzz/src/files.rs"]
mod files;
#[path = "../fuzz/src/frames.rs"]
mod frames;
#[path = "../fuzz/src/operations.rs"]
mod operations;
#[path = "../fuzz/src/pair.rs"]
mod pair;
#[path = "../fuzz/src/script.rs"]
mod script;
#[path = "../fuzz/src/server.rs"]
mod server;
#[path = "../fuzz/src/talk.rs"]
mod talk;
#[path = "../fuzz/src/texts.rs"]
mod texts;
#[path = "../fuzz/src/zarr.rs"]
mod zarr;

/// Damaged copies of each seed.
const COPIES: usize = 100;

/// Runs `target` on every seed in `lab/fuzz/seeds/NAME`, and on damaged copies.
fn check(name: &str, target: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name);
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for entry in std::fs::read_dir(&folder).expect("there are seeds") {
        let seed = std::fs::read(entry.expect("an entry").path()).expect("a seed is a file");
        target(&seed);
        (0..COPIES).for_each(|_| target(&dice.damaged(&seed)));
    }
}

/// xorshift64: the same damage every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % end.max(1)
    }

    /// A copy that is cut short, or has some bytes changed.
    fn damaged(&mut self, seed: &[u8]) -> Vec<u8> {
        let mut copy = seed.to_vec();
        if self.below(4) == 0 {
            copy.truncate(self.below(seed.len()));
        }
        for _ in 0..self.below(6) {
            let at = self.below(copy.len());
            if let Some(byte) = copy.get_mut(at) {
                *byte ^= 1 << self.below(8);
            }
        }
        copy
    }
}

#[test]
fn files() {
    check("nrrd", |bytes| files::open_and_read("x.nrrd", bytes));
    check("nrrd_parts", pair::open_and_read_parts);
    check("nifti", |bytes| files::open_and_read("x.nii", bytes));
    check("nifti_gz", |bytes| files::open_and_read("x.nii.gz", bytes));
    check("analyze", pair::open_and_read);
    check("mgh", |bytes| files::open_and_read("x.mgh", bytes));
    check("npy", |bytes| files::open_and_read("x.npy", bytes));
    check("raw", |bytes| files::open_and_read("x.toml", bytes));
    check("enzo", |bytes| files::open_and_read("x.hierarchy", bytes));
    check("zarr", zarr::open_and_read);
    check("chunk", chunk::decode);
}

#[test]
fn connections() {
    check("frames", frames::cut_and_decode);
    check("server", server::play);
    check("client", client::play);
    check("datagrams", datagrams::play);
    check("operations", operations::decode);
    check("description", description::use_description);
}

#[test]
fn people() {
    check("talk", talk::take_part);
    check("texts", texts::parse);
}
