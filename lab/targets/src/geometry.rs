//! Files of geometry: the first byte selects the format, the rest are the bytes of the file.

/// Names by format.
const NAMES: [&str; 10] =
    ["x.ply", "x.stl", "x.vtp", "x.glb", "x.gii", "x.csv", "x.tsv", "x.geojson", "x.shp", "lh.pial"];

/// Reads a file.
pub fn read(bytes: &[u8]) {
    let Some((&which, file)) = bytes.split_first() else { return };
    let name = NAMES[usize::from(which) % NAMES.len()];
    if let Ok(read) = geometry::read(name, file) {
        let vertices = read.positions.len();
        assert!(read.triangles.as_flattened().iter().all(|&corner| (corner as usize) < vertices));
    }
}
