//! Size of an image in pixels, and its limits.

use array::{Error, Result};
use serde::{Deserialize, Serialize};

/// Pixels of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSize {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl ImageSize {
    /// Most pixels along one side of an image.
    pub const MAX_SIDE: u32 = 16_384;
    /// Most pixels of an image: 64 Mi, 1 GiB of RGBA f32.
    pub const MAX_PIXELS: u64 = 64 << 20;

    /// # Errors
    /// `Invalid` if empty or beyond the limits.
    pub fn check(self) -> Result<()> {
        let pixels = u64::from(self.width) * u64::from(self.height);
        if pixels == 0 || pixels > Self::MAX_PIXELS || self.width.max(self.height) > Self::MAX_SIDE {
            return Err(Error::invalid(format!(
                "expected an image of 1 to {} pixels a side and {} in all, found {}x{}",
                Self::MAX_SIDE,
                Self::MAX_PIXELS,
                self.width,
                self.height
            )));
        }
        Ok(())
    }
}
