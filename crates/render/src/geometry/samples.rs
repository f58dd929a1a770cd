//! Samples of a band of rows: the nearest thing at four places in each pixel.

/// Samples of a pixel.
pub(crate) const SAMPLES: usize = 4;
/// Places of the samples in a pixel: no two in one row or one column, so that edges in all directions are smooth.
pub(crate) const PLACES: [[f64; 2]; SAMPLES] =
    [[0.375, 0.125], [0.875, 0.375], [0.125, 0.625], [0.625, 0.875]];

/// Samples of a band of rows.
pub(crate) struct BandSamples {
    width: u32,
    pub(crate) top: u32,
    pub(crate) rows: u32,
    /// Depth along the line of sight, world units; infinite where nothing is drawn.
    depths: Vec<f32>,
    colors: Vec<[u8; 3]>,
}

impl BandSamples {
    pub(crate) fn new(width: u32, top: u32, rows: u32) -> Self {
        let count = width as usize * rows as usize * SAMPLES;
        Self { width, top, rows, depths: vec![f32::INFINITY; count], colors: vec![[0; 3]; count] }
    }

    /// Returns the index of a sample.
    pub(crate) fn index(&self, column: u32, row: u32, sample: usize) -> usize {
        ((row - self.top) as usize * self.width as usize + column as usize) * SAMPLES + sample
    }

    pub(crate) fn is_hidden(&self, index: usize, depth: f32) -> bool {
        self.depths[index] < depth
    }

    pub(crate) fn put(&mut self, index: usize, depth: f32, color: [u8; 3]) {
        self.depths[index] = depth;
        self.colors[index] = color;
    }

    /// Returns depths and colors of the samples of a pixel, counted from the band's first.
    pub(crate) fn of_pixel(&self, number: usize) -> impl Iterator<Item = (f32, [u8; 3])> + '_ {
        let range = number * SAMPLES..(number + 1) * SAMPLES;
        let pairs = self.depths[range.clone()].iter().zip(&self.colors[range]);
        pairs.filter(|(depth, _)| **depth < f32::INFINITY).map(|(depth, color)| (*depth, *color))
    }

    pub(crate) fn pixels(&self) -> usize {
        self.width as usize * self.rows as usize
    }
}
