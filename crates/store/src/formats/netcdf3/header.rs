//! The binary header of NetCDF-3: dimensions, attributes, variables. Everything is big-endian; names and values are
//! padded to four bytes.

use std::collections::HashSet;

use array::{ByteOrder, DType, ElementType, Error, MAX_AXES, Result, Scalar};

use crate::formats::common::cf::{CfAttributes, CfValue};
use crate::{ByteStore, FileBytes};

/// Header sizes that are tried one after another, bytes: most headers are short.
const HEAD_BYTES: [usize; 3] = [64 << 10, 1 << 20, 64 << 20];

/// Type of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NcType {
    Text,
    Number(ElementType),
}

impl NcType {
    pub(super) fn size_bytes(self) -> usize {
        match self {
            Self::Text => 1,
            Self::Number(element) => element.size_bytes(),
        }
    }

    /// Type in which values are stored; text counts as bytes.
    pub(super) fn dtype(self) -> DType {
        match self {
            Self::Text => DType::new(ElementType::U8, ByteOrder::Big),
            Self::Number(element) => DType::new(element, ByteOrder::Big),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct DimensionSize {
    pub(super) name: String,
    /// `None`: as many as there are records.
    size: Option<u64>,
}

impl DimensionSize {
    /// Whether it grows with the records.
    pub(super) fn is_of_records(&self) -> bool {
        self.size.is_none()
    }
}

#[derive(Clone, Debug)]
pub(super) struct NetcdfVariable {
    pub(super) name: String,
    /// Numbers of its dimensions.
    pub(super) dimensions: Vec<usize>,
    pub(super) attributes: CfAttributes,
    pub(super) element: NcType,
    /// Offset of the first element, bytes.
    pub(super) begin: u64,
}

/// A header that was understood.
#[derive(Clone, Debug)]
pub(super) struct NetcdfHeader {
    pub(super) dimensions: Vec<DimensionSize>,
    pub(super) attributes: CfAttributes,
    pub(super) variables: Vec<NetcdfVariable>,
    /// Bytes from one record to the next.
    pub(super) record_bytes: u64,
    records: u64,
}

impl NetcdfHeader {
    /// Reads the header of a file.
    pub(super) fn read(file: &FileBytes) -> Result<Self> {
        let mut attempts = HEAD_BYTES.iter().map(|&limit| (limit, file.head(limit)));
        loop {
            let Some((limit, head)) = attempts.next() else {
                return Err(Error::corrupt(
                    "expected a NetCDF-3 header of at most 64 MiB, found a longer one",
                ));
            };
            let mut cursor = HeaderCursor { bytes: &head?, at: 0, wide: false, ran_out: false };
            let header = Self::parse(&mut cursor, file.size_bytes());
            if !cursor.ran_out || limit as u64 >= file.size_bytes() {
                return header;
            }
        }
    }

    fn parse(cursor: &mut HeaderCursor<'_>, file_bytes: u64) -> Result<Self> {
        let version = match cursor.take(4)? {
            [b'C', b'D', b'F', version @ (1 | 2 | 5)] => *version,
            found => {
                return Err(Error::corrupt(format!(
                    "expected `CDF` and version 1, 2 or 5, found {found:02x?}"
                )));
            }
        };
        cursor.wide = version == 5;
        let records = cursor.size()?;
        let streaming = records == if cursor.wide { u64::MAX } else { u64::from(u32::MAX) };
        let dimensions = cursor.list(10, |c| {
            let (name, size) = (c.name()?, c.size()?);
            Ok(DimensionSize { name, size: (size > 0).then_some(size) })
        })?;
        let attributes = cursor.attributes()?;
        let variables = cursor.list(11, |c| c.variable(version, &dimensions))?;
        let mut header = Self { dimensions, attributes, variables, record_bytes: 0, records };
        header.record_bytes = header.sum_records()?;
        if streaming {
            header.records = header.count_records(file_bytes);
        }
        Ok(header)
    }

    /// Elements per axis.
    pub(super) fn shape(&self, variable: &NetcdfVariable) -> Vec<u64> {
        variable.dimensions.iter().map(|&d| self.dimensions[d].size.unwrap_or(self.records)).collect()
    }

    /// Per dimension: whether characters along it are texts, as xarray has it: no variable has its name, and all variables that
    /// have it are characters with it as the last dimension.
    pub(super) fn text_dimensions(&self) -> Vec<bool> {
        let names: HashSet<&str> = self.variables.iter().map(|v| v.name.as_str()).collect();
        let mut are_of_texts: Vec<bool> =
            self.dimensions.iter().map(|d| !names.contains(d.name.as_str())).collect();
        for variable in &self.variables {
            let last = variable.dimensions.last().filter(|_| matches!(variable.element, NcType::Text));
            for dimension in variable.dimensions.iter().filter(|&d| Some(d) != last) {
                are_of_texts[*dimension] = false;
            }
        }
        are_of_texts
    }

    pub(super) fn is_record(&self, variable: &NetcdfVariable) -> bool {
        variable.dimensions.first().is_some_and(|&d| self.dimensions[d].size.is_none())
    }

    /// Bytes of one record of a variable.
    fn record_part(&self, variable: &NetcdfVariable) -> Result<u64> {
        let mut sizes =
            variable.dimensions.iter().skip(1).map(|&d| self.dimensions[d].size.unwrap_or(self.records));
        let size = sizes.try_fold(variable.element.size_bytes() as u64, u64::checked_mul);
        size.ok_or_else(|| {
            Error::corrupt(format!(
                "expected records below 2^64 bytes, found larger ones in `{}`",
                variable.name
            ))
        })
    }

    /// Parts are padded to four bytes, except when there is only one record variable.
    fn sum_records(&self) -> Result<u64> {
        let parts = self.variables.iter().filter(|v| self.is_record(v));
        let parts = parts.map(|v| self.record_part(v)).collect::<Result<Vec<u64>>>()?;
        match parts[..] {
            [only] => Ok(only),
            _ => parts
                .iter()
                .try_fold(0u64, |sum, &part| sum.checked_add(part.checked_next_multiple_of(4)?))
                .ok_or_else(|| Error::corrupt("expected records below 2^64 bytes, found larger ones")),
        }
    }

    /// Number of records of a file whose writer did not store it.
    fn count_records(&self, file_bytes: u64) -> u64 {
        let begins = self.variables.iter().filter(|v| self.is_record(v)).map(|v| v.begin);
        let room = begins.min().map_or(0, |begin| file_bytes.saturating_sub(begin));
        room.checked_div(self.record_bytes).unwrap_or(0)
    }
}

/// Reads a header from front to back; every count is checked against the bytes that are left.
struct HeaderCursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Sizes have 64 bits (CDF-5).
    wide: bool,
    /// Whether more bytes were requested than the header has.
    ran_out: bool,
}

impl<'a> HeaderCursor<'a> {
    fn take(&mut self, size: usize) -> Result<&'a [u8]> {
        let found = self.at.checked_add(size).and_then(|end| self.bytes.get(self.at..end));
        let Some(found) = found else {
            self.ran_out = true;
            return Err(Error::corrupt(format!(
                "expected {size} more bytes of header at {}, found {}",
                self.at,
                self.bytes.len().saturating_sub(self.at)
            )));
        };
        self.at += size;
        Ok(found)
    }

    fn u32(&mut self) -> Result<u32> {
        let raw = self.take(4)?;
        Ok(u32::from_be_bytes([raw[0], raw[1], raw[2], raw[3]]))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from(self.u32()?) << 32 | u64::from(self.u32()?))
    }

    /// A count or size.
    fn size(&mut self) -> Result<u64> {
        if self.wide { self.u64() } else { self.u32().map(u64::from) }
    }

    /// A count of things in memory.
    fn count(&mut self) -> Result<usize> {
        let size = self.size()?;
        usize::try_from(size)
            .map_err(|_| Error::corrupt(format!("expected a count that fits memory, found {size}")))
    }

    fn padded(&mut self, size: usize) -> Result<&'a [u8]> {
        let found = self.take(size)?;
        self.take(size.wrapping_neg() % 4)?;
        Ok(found)
    }

    fn name(&mut self) -> Result<String> {
        let size = self.count()?;
        // C programs may count the zero that ends a text.
        Ok(String::from_utf8_lossy(self.padded(size)?).trim_end_matches('\0').to_owned())
    }

    /// A list: its tag and count, or two zeros. Every item takes bytes, so the header's size bounds the list.
    fn list<T>(&mut self, tag: u32, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let (found, count) = (self.u32()?, self.size()?);
        if found != tag && (found, count) != (0, 0) {
            return Err(Error::corrupt(format!("expected a list with tag {tag}, found {found}")));
        }
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn attributes(&mut self) -> Result<CfAttributes> {
        let list = self.list(12, |c| {
            let (name, element, count) = (c.name()?, c.element()?, c.count()?);
            let size = count.checked_mul(element.size_bytes());
            let size = size
                .ok_or_else(|| Error::corrupt(format!("expected a short attribute, found {count} values")))?;
            let raw = c.padded(size)?;
            Ok(value(element, raw).map(|value| (name, value)))
        })?;
        Ok(list.into_iter().flatten().collect())
    }

    fn element(&mut self) -> Result<NcType> {
        use ElementType::{F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
        let code = self.u32()?;
        let element = match code {
            1 => I8,
            2 => return Ok(NcType::Text),
            3 => I16,
            4 => I32,
            5 => F32,
            6 => F64,
            7 => U8,
            8 => U16,
            9 => U32,
            10 => I64,
            11 => U64,
            _ => return Err(Error::corrupt(format!("expected a NetCDF type from 1 to 11, found {code}"))),
        };
        Ok(NcType::Number(element))
    }

    fn variable(&mut self, version: u8, dimensions: &[DimensionSize]) -> Result<NetcdfVariable> {
        let name = self.name()?;
        let count = self.count()?;
        if count > MAX_AXES {
            return Err(Error::corrupt(format!(
                "expected at most {MAX_AXES} dimensions of `{name}`, found {count}"
            )));
        }
        let mut numbers = Vec::with_capacity(count);
        for place in 0..count {
            let number = self.count()?;
            let known = dimensions.get(number);
            if known.is_none_or(|d| d.size.is_none() && place > 0) {
                return Err(Error::corrupt(format!(
                    "expected dimensions of `{name}` below {}, the record dimension first, found {number} at {place}",
                    dimensions.len()
                )));
            }
            numbers.push(number);
        }
        let attributes = self.attributes()?;
        let element = self.element()?;
        // The stored size is redundant, and wrong for variables beyond 4 GiB: it is computed instead.
        self.size()?;
        let begin = if version == 1 { self.u32().map(u64::from)? } else { self.u64()? };
        Ok(NetcdfVariable { name, dimensions: numbers, attributes, element, begin })
    }
}

/// The value of an attribute; an empty list of numbers is none.
fn value(element: NcType, raw: &[u8]) -> Option<CfValue> {
    let NcType::Number(kind) = element else {
        // C programs write the zero that ends a text with it.
        let text = String::from_utf8_lossy(raw);
        return Some(CfValue::Text(text.trim_end_matches('\0').to_owned()));
    };
    let numbers: Vec<Scalar> =
        (0..raw.len() / kind.size_bytes()).filter_map(|i| element.dtype().scalar_at(raw, i)).collect();
    (!numbers.is_empty()).then_some(CfValue::Numbers(kind, numbers))
}

/// Reads a header from bytes alone.
#[cfg(test)]
pub(super) fn parse(bytes: &[u8]) -> Result<NetcdfHeader> {
    NetcdfHeader::parse(&mut HeaderCursor { bytes, at: 0, wide: false, ran_out: false }, bytes.len() as u64)
}
