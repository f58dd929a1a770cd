//! Size of a packet of rays, the unit in which rays are cast.

use crate::simd::LANES;

/// Rays along a side of a packet.
pub(crate) const PACKET_SIDE: u32 = 4;

/// Column and row of each ray in a packet.
pub(crate) const PACKET_PIXELS: [[u32; 2]; LANES] = pixels();

/// A number per ray.
pub(crate) type LaneValues = [f64; LANES];

const fn pixels() -> [[u32; 2]; LANES] {
    let mut pixels = [[0; 2]; LANES];
    let (mut lane, mut number) = (0, 0);
    while lane < LANES {
        pixels[lane] = [number % PACKET_SIDE, number / PACKET_SIDE];
        (lane, number) = (lane + 1, number + 1);
    }
    pixels
}
