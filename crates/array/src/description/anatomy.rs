//! Anatomical world space: formats of medical images state that the axes of the world lead to the right, to the front and up of a
//! person.

use crate::{ArrayInfo, Attribute};

/// Attribute of an array that states the directions of the axes of its world.
pub const SPACE_ATTRIBUTE: &str = "space";
/// Value of [`SPACE_ATTRIBUTE`] for anatomical space: x leads to the person's right, y to the front, z upward.
pub const ANATOMICAL_SPACE: &str = "right-anterior-superior";

impl ArrayInfo {
    /// True if the file states that world space is anatomical.
    #[must_use]
    pub fn is_anatomical(&self) -> bool {
        self.attributes.get(SPACE_ATTRIBUTE).and_then(Attribute::text) == Some(ANATOMICAL_SPACE)
    }

    /// States that world space is anatomical.
    pub fn set_anatomical(&mut self) {
        self.attributes.insert(SPACE_ATTRIBUTE.to_owned(), ANATOMICAL_SPACE.into());
    }
}
