//! Foreign bytes as a header with one or several files of data beside it.

use crate::files::read_some;

/// Size of each file of data; its contents do not matter.
const IMAGE_BYTES: usize = 4096;

/// Opens an image whose header has these bytes, by the image's name.
pub fn open_and_read(header: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder for the files");
    std::fs::write(folder.path().join("x.hdr"), header).expect("the header is written");
    let image = folder.path().join("x.img");
    std::fs::write(&image, [7; IMAGE_BYTES]).expect("the image is written");
    read_some(&image);
}

/// Opens a header with these bytes and four files of data beside it.
pub fn open_and_read_parts(header: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder for the files");
    for number in 0..4 {
        std::fs::write(folder.path().join(format!("s{number}.raw")), [b'7'; IMAGE_BYTES])
            .expect("a part is written");
    }
    let path = folder.path().join("x.nhdr");
    std::fs::write(&path, header).expect("the header is written");
    read_some(&path);
}
