//! Descriptions of data sets: arrays, axes, levels, attributes.

pub(crate) mod anatomy;
pub(crate) mod attribute;
pub(crate) mod axis;
pub(crate) mod dataset;
pub(crate) mod grids;
pub(crate) mod growth;
pub(crate) mod level;
pub(crate) mod storage;
