//! Descriptions of arrays of strings: the bytes of each string lie along the last axis.

use array::{ArrayInfo, Axis, AxisKind, ByteOrder, DType, ElementType, Meaning};

use crate::formats::common::describe;

/// Name of the axis of bytes where the file has none.
pub(crate) const BYTES_AXIS: &str = "bytes";

/// An array of texts. `shape`: texts per axis, then bytes of a text; `names`: those of the axes that the file names, first axis
/// first.
pub(crate) fn array(name: &str, shape: &[u64], names: &[String], chunk: Option<Vec<u64>>) -> ArrayInfo {
    let name_of = |axis: usize| match names.get(axis) {
        Some(name) => name.clone(),
        None if axis + 1 == shape.len() => BYTES_AXIS.to_owned(),
        None => format!("dim{axis}"),
    };
    let axes = (0..shape.len()).map(|axis| Axis::new(name_of(axis), AxisKind::Other)).collect();
    let mut info = describe::array(name, DType::new(ElementType::U8, ByteOrder::Little), axes, shape, chunk);
    info.meaning = Meaning::Text;
    info
}
