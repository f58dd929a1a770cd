//! Runs the bodies of the fuzz targets on the seeds in the repository (written by hand, or inputs that failed once) and on
//! damaged copies, so that they are tested without a fuzzer. `make fuzz` does long runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use targets::{
    chunk, client, datagrams, description, files, frames, geometry, operations, pair, server, talk, texts,
    zarr,
};

/// Number of damaged copies of each seed.
const COPIES: usize = 100;

/// Targets without seeds in the repository; tools/fuzz-seeds.py makes them.
const WITHOUT_SEEDS: [&str; 2] = ["hdf5", "netcdf3"];

/// Returns the path of a file or folder of `lab/fuzz`.
fn fuzz_path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(relative)
}

/// Returns the paths in a folder of `lab/fuzz`.
fn entries(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(fuzz_path(folder)).unwrap_or_else(|e| panic!("lab/fuzz/{folder}: {e}"));
    entries.map(|entry| entry.expect("an entry can be read").path()).collect()
}

/// Runs `target` on every seed in `lab/fuzz/seeds/NAME`, and on damaged copies.
fn check(name: &str, target: impl Fn(&[u8])) {
    let mut damage = SeedDamage(0x9e37_79b9_7f4a_7c15);
    for path in entries(&format!("seeds/{name}")) {
        let seed = std::fs::read(path).expect("a seed is a file");
        target(&seed);
        (0..COPIES).for_each(|_| target(&damage.copy(&seed)));
    }
}

/// Random damage by xorshift64, equal in every run.
struct SeedDamage(u64);

impl SeedDamage {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % end.max(1)
    }

    /// Makes a copy that is truncated or has some bits flipped.
    fn copy(&mut self, seed: &[u8]) -> Vec<u8> {
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
fn targets_are_declared_and_have_seeds() {
    let targets: BTreeSet<String> = entries("fuzz_targets").iter().filter_map(|path| stem(path)).collect();
    let manifest = std::fs::read_to_string(fuzz_path("Cargo.toml")).expect("the crate has a manifest");
    let declared = manifest.lines().filter_map(|line| line.strip_prefix("path = \"fuzz_targets/"));
    let declared: BTreeSet<String> =
        declared.filter_map(|file| Some(file.strip_suffix(".rs\"")?.to_owned())).collect();
    assert_eq!(targets, declared, "files in lab/fuzz/fuzz_targets, and `[[bin]]` in lab/fuzz/Cargo.toml");
    let mut seeded: BTreeSet<String> = entries("seeds").iter().filter_map(|path| stem(path)).collect();
    seeded.extend(WITHOUT_SEEDS.map(str::to_owned));
    assert_eq!(targets, seeded, "targets, and those with a folder in lab/fuzz/seeds or in WITHOUT_SEEDS");
}

/// Returns the name of a file without its extension.
fn stem(path: &Path) -> Option<String> {
    Some(path.file_stem()?.to_str()?.to_owned())
}

#[test]
fn files_of_formats() {
    check("geometry", geometry::read);
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
fn connections_with_hostile_peers() {
    check("frames", frames::cut_and_decode);
    check("server", server::play);
    check("client", client::play);
    check("datagrams", datagrams::play);
    check("operations", operations::decode);
    check("description", description::use_description);
}

#[test]
fn texts_of_users() {
    check("talk", talk::take_part);
    check("texts", texts::parse);
}
