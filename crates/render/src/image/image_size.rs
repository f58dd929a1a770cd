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
    /// Most pixels of an image that is held as a whole: 64 Mi, 1 GiB of RGBA f32. Larger ones are drawn in
    /// [rows](crate::cast_rows).
    pub const MAX_PIXELS: u64 = 64 << 20;

    /// Checks the size of an image that is held in memory as a whole.
    ///
    /// # Errors
    /// `Invalid` if empty or beyond the limits.
    pub fn check(self) -> Result<()> {
        self.check_sides()?;
        if self.pixels() > Self::MAX_PIXELS {
            return Err(Error::invalid(format!(
                "expected an image of at most {} pixels, found {}x{}; larger ones are drawn as single PNG files only",
                Self::MAX_PIXELS,
                self.width,
                self.height
            )));
        }
        Ok(())
    }

    /// Checks the size of an image that is drawn in rows, and so may have more pixels than one that is held as a whole.
    ///
    /// # Errors
    /// `Invalid` if empty or beyond the limit of a side.
    pub fn check_sides(self) -> Result<()> {
        if self.pixels() == 0 || self.width.max(self.height) > Self::MAX_SIDE {
            return Err(Error::invalid(format!(
                "expected an image of 1 to {} pixels a side, found {}x{}",
                Self::MAX_SIDE,
                self.width,
                self.height
            )));
        }
        Ok(())
    }

    /// Returns the number of pixels.
    #[must_use]
    pub fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }
}
