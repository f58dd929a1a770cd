//! Cost of the first picture of a file far larger than memory.
//!
//! The file is sparse: 64 GiB of holes with a little structure written into it. Requests and bytes are counted,
//! not timed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use array::{Priority, ReadRequest, Selection, Source, Target};
use corridor_store::{FormatSource, OpenOptions, open_format, process_io_counts};

#[tokio::test]
async fn a_coarse_picture_of_64_gigabytes_costs_4096_requests() {
    let dir = tempfile::tempdir().unwrap();
    let file = File::create(dir.path().join("big.bin")).unwrap();
    file.set_len(1 << 36).unwrap();
    // Three of the voxels that will be sampled.
    let offset = |z: u64, y: u64, x: u64| (z * 4096 + y) * 4096 + x;
    for z in [32u64, 32 + 64 * 20, 32 + 64 * 63] {
        file.write_all_at(&[z.to_le_bytes()[0] | 1], offset(z, 96, 160)).unwrap();
    }
    std::fs::write(
        dir.path().join("volume.toml"),
        "file = 'big.bin'\nshape = [4096, 4096, 4096]\ndtype = 'uint8'\n",
    )
    .unwrap();

    let before = process_io_counts();
    let location = dir.path().join("volume.toml");
    let format = open_format(&location.to_string_lossy(), &OpenOptions::default()).unwrap();
    let source = FormatSource::new(Arc::clone(&format));
    let selection = Selection::parse("32::64, 32::64, 32::64", format.dataset().arrays[0].shape()).unwrap();
    let (target, region) = Target::new(&[64; 3], 1).unwrap();
    let request = ReadRequest { array: 0, level: 0, selection, priority: Priority::INTERACTIVE };
    source.read(request, region).await.unwrap();
    let after = process_io_counts();

    let bytes = target.into_vec().unwrap();
    let at = |z: usize| bytes[(z * 64 + 1) * 64 + 2];
    assert_eq!([at(0), at(20), at(63)], [33, 33, 225]);
    assert_eq!(bytes.iter().filter(|&&b| b != 0).count(), 3);
    let requests = after.requests - before.requests;
    // One per row of samples, two for the description.
    assert!((4096..=4099).contains(&requests), "{requests} requests");
    assert!(after.bytes - before.bytes < 17 << 20, "{} bytes", after.bytes - before.bytes);
}
