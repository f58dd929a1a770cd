//! Where the data rests: file formats, synthetic fields, and levels made on demand.

mod format;

pub use format::{Access, Cancel, Format};
