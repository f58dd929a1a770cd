//! Batches: many operations in one frame, and many small answers in one frame.
//!
//! Operations that are ready together and differ only in their parameters share a number, a name and a
//! priority. Their parameters are encoded as differences from the one before, so that many similar selections
//! take a few bytes each, and those at a constant stride a few bytes together. The meaning of the parameters
//! is not used here.

use std::sync::Arc;

use array::{Error, Priority, Result};
use bytes::{Bytes, BytesMut};

use crate::OpId;
use crate::frames::codec::{ByteReader, ByteWriter};
use crate::limits::{
    MAX_BATCH_OPERATIONS, MAX_BATCH_PARAMETER_BYTES, MAX_BODY_BYTES, MAX_CHUNK_BYTES, MAX_NAME_BYTES,
};

/// Operations that share everything but their parameters; their numbers are consecutive.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestBatch {
    /// Number of the first operation.
    pub first: OpId,
    /// Registered name of the operations.
    pub name: Arc<str>,
    /// Priority of the operations.
    pub priority: Priority,
    /// Deadline from now, milliseconds; 0 for none.
    pub deadline_ms: u32,
    /// Parameters of each operation, in order.
    pub parameters: Vec<Bytes>,
}

/// Part of an answer that is small enough for a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmallAnswer {
    /// Operation that it answers.
    pub op: OpId,
    /// Whole item, if there is one.
    pub item: Option<WholeItem>,
    /// True when the operation ended successfully with it.
    pub done: bool,
}

/// Item with its bulk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeItem {
    /// Number of the item, counting from 0 in each operation.
    pub item: u32,
    /// Small part of the item.
    pub body: Bytes,
    /// Bulk of the item.
    pub bulk: Bytes,
    /// CRC-32C of the bulk.
    pub bulk_crc32c: u32,
}

impl WholeItem {
    /// Size of body and bulk together, bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        self.body.len() + self.bulk.len()
    }
}

mod shared {
    pub(crate) const WEIGHT: u8 = 1;
    pub(crate) const DEADLINE: u8 = 2;
}

mod answer {
    pub(crate) const ITEM: u8 = 1;
    pub(crate) const DONE: u8 = 2;
    pub(crate) const BULK: u8 = 4;
    pub(crate) const NUMBERED: u8 = 8;
    pub(crate) const APART: u8 = 16;
}

impl RequestBatch {
    pub(crate) fn encode(&self, w: &mut ByteWriter) {
        let weighted = self.priority.weight.to_bits() != 0;
        let flags = if weighted { shared::WEIGHT } else { 0 }
            | if self.deadline_ms > 0 { shared::DEADLINE } else { 0 };
        w.varint(u64::from(self.first.0)).short(self.name.as_bytes()).u8(flags).u8(self.priority.tier);
        if weighted {
            w.f32(self.priority.weight);
        }
        if self.deadline_ms > 0 {
            w.varint(u64::from(self.deadline_ms));
        }
        w.varint(self.parameters.len() as u64);
        ParameterRuns::of(&self.parameters).for_each(|run| run.encode(w));
    }

    pub(crate) fn decode(r: &mut ByteReader) -> Result<Self> {
        let first = OpId(r.varint_u32("op")?);
        let name = r.short("name", MAX_NAME_BYTES)?;
        let name = std::str::from_utf8(&name)
            .map_err(|_| Error::corrupt("expected UTF-8 in `name`, found other bytes"))?
            .into();
        let flags = r.u8("flags")?;
        let tier = r.u8("tier")?;
        let weight = if flags & shared::WEIGHT > 0 { r.f32("weight")? } else { 0.0 };
        let deadline_ms = if flags & shared::DEADLINE > 0 { r.varint_u32("deadline")? } else { 0 };
        let count = r.varint_u32("count")?;
        if count == 0 || count as usize > MAX_BATCH_OPERATIONS || first.0.checked_add(count - 1).is_none() {
            return Err(Error::corrupt(format!(
                "expected 1 to {MAX_BATCH_OPERATIONS} operations with numbers below 2^32, found {count} from {first}"
            )));
        }
        let mut grown = ParameterBuffer::default();
        while grown.ends.len() < count as usize {
            grown.take_run(r, count as usize)?;
        }
        let priority = Priority { tier, weight };
        Ok(Self { first, name, priority, deadline_ms, parameters: grown.finish() })
    }
}

/// Parameters of equal length with the same encoding.
enum ParameterRun<'a> {
    /// Differences of each from the one before.
    Patches { before: &'a [u8], parameters: &'a [Bytes] },
    /// Number at `at` that grows by `step` from one to the next.
    Progression { at: usize, step: u64, count: usize },
}

/// Splits parameters into runs.
struct ParameterRuns<'a> {
    all: &'a [Bytes],
    /// Number of parameters in the runs returned so far.
    taken: usize,
}

/// Shortest progression; shorter ones are encoded as patches.
const LEAST_PROGRESSION: usize = 3;

impl<'a> ParameterRuns<'a> {
    fn of(all: &'a [Bytes]) -> Self {
        Self { all, taken: 0 }
    }

    /// Returns the progression that the parameters from `start` on continue.
    fn progression(&self, start: usize) -> Option<ParameterRun<'a>> {
        let (at, step) = stride(self.all.get(start.checked_sub(1)?)?, self.all.get(start)?)?;
        let pairs = self.all[start - 1..].windows(2);
        let count = pairs.take_while(|pair| stride(&pair[0], &pair[1]) == Some((at, step))).count();
        (count >= LEAST_PROGRESSION).then_some(ParameterRun::Progression { at, step, count })
    }
}

impl<'a> Iterator for ParameterRuns<'a> {
    type Item = ParameterRun<'a>;

    fn next(&mut self) -> Option<ParameterRun<'a>> {
        let start = self.taken;
        let length = self.all.get(start)?.len();
        if let Some(run) = self.progression(start) {
            if let ParameterRun::Progression { count, .. } = run {
                self.taken += count;
            }
            return Some(run);
        }
        let mut end = start + 1;
        while self.all.get(end).is_some_and(|p| p.len() == length) && self.progression(end).is_none() {
            end += 1;
        }
        self.taken = end;
        let before = start.checked_sub(1).and_then(|n| self.all.get(n)).map_or(&[][..], |p| p);
        Some(ParameterRun::Patches { before, parameters: &self.all[start..end] })
    }
}

/// Finds the only 64-bit number in which two parameters of equal length differ: its offset, and its growth.
/// `None` where they differ in anything else.
fn stride(before: &[u8], after: &[u8]) -> Option<(usize, u64)> {
    if before.len() != after.len() || before.len() < 8 {
        return None;
    }
    let first = before.iter().zip(after).position(|(a, b)| a != b)?.min(before.len() - 8);
    if before[first + 8..] != after[first + 8..] {
        return None;
    }
    let number = |bytes: &[u8]| bytes[first..].first_chunk().map(|b| u64::from_le_bytes(*b));
    Some((first, number(after)?.wrapping_sub(number(before)?)))
}

impl ParameterRun<'_> {
    fn encode(&self, w: &mut ByteWriter) {
        match self {
            Self::Progression { at, step, count } => {
                w.varint((*count as u64) << 1 | 1).varint(*at as u64).varint(zigzag(*step));
            }
            Self::Patches { before, parameters } => {
                let length = parameters.first().map_or(0, Bytes::len);
                w.varint((parameters.len() as u64) << 1).varint(length as u64);
                let mut before = *before;
                for after in *parameters {
                    encode_patch(before, after, w);
                    before = after;
                }
            }
        }
    }
}

/// Most bytes that one token skips or replaces.
const MAX_TOKEN: usize = 15;

/// Encodes a patch as tokens: the upper four bits are the number of unchanged bytes, the lower four the
/// number of new bytes that follow the token. The token 0 ends the patch, unless the patch reaches the end.
/// Beyond the end of `before` there are zeros.
fn encode_patch(before: &[u8], after: &[u8], w: &mut ByteWriter) {
    let stays = |at: usize| before.get(at).copied().unwrap_or(0) == after[at];
    const SKIP_ALL: u8 = 0xF0;
    let mut at = 0;
    while at < after.len() {
        let same = (at..after.len()).take_while(|&i| stays(i)).count();
        if at + same == after.len() {
            w.u8(0);
            return;
        }
        let mut skip = same;
        while skip > MAX_TOKEN {
            w.u8(SKIP_ALL);
            skip -= MAX_TOKEN;
        }
        at += same;
        let new = (at..after.len()).take(MAX_TOKEN).take_while(|&i| !stays(i)).count();
        // Both are at most 15.
        w.u8(u8::try_from(skip << 4 | new).unwrap_or(SKIP_ALL)).raw(&after[at..at + new]);
        at += new;
    }
}

fn zigzag(value: u64) -> u64 {
    let value = value.cast_signed();
    (value << 1 ^ value >> 63).cast_unsigned()
}

fn unzigzag(value: u64) -> u64 {
    value >> 1 ^ (value & 1).wrapping_neg()
}

/// Decoded parameters, one after the other in one buffer.
#[derive(Default)]
struct ParameterBuffer {
    bytes: BytesMut,
    ends: Vec<usize>,
}

impl ParameterBuffer {
    /// Decodes a run; `most`: limit of the operations of all runs.
    fn take_run(&mut self, r: &mut ByteReader, most: usize) -> Result<()> {
        let head = r.varint("run")?;
        let count = usize::try_from(head >> 1).unwrap_or(usize::MAX);
        let left = most - self.ends.len();
        if count == 0 || count > left {
            return Err(Error::corrupt(format!("expected a run of 1 to {left} operations, found {count}")));
        }
        if head & 1 == 1 {
            return self.take_progression(r, count);
        }
        let length = r.varint_usize("length")?;
        for _ in 0..count {
            let start = self.start(length)?;
            take_patch(r, &mut self.bytes[start..])?;
        }
        Ok(())
    }

    fn take_progression(&mut self, r: &mut ByteReader, count: usize) -> Result<()> {
        let (at, step) = (r.varint_usize("place")?, unzigzag(r.varint("step")?));
        let length = self.last().len();
        if at.checked_add(8).is_none_or(|end| end > length) {
            return Err(Error::corrupt(format!("expected a number within {length} bytes, found it at {at}")));
        }
        for _ in 0..count {
            let start = self.start(length)? + at;
            if let Some(number) = self.bytes[start..].first_chunk_mut() {
                *number = u64::from_le_bytes(*number).wrapping_add(step).to_le_bytes();
            }
        }
        Ok(())
    }

    fn last(&self) -> &[u8] {
        let end = self.ends.last().copied().unwrap_or(0);
        let start = self.ends.iter().rev().nth(1).copied().unwrap_or(0);
        &self.bytes[start..end]
    }

    /// Begins the next parameters as a copy of the last ones, cut or padded with zeros; returns their start.
    fn start(&mut self, length: usize) -> Result<usize> {
        let start = self.bytes.len();
        if start.saturating_add(length) > MAX_BATCH_PARAMETER_BYTES {
            return Err(Error::corrupt(format!(
                "expected at most {MAX_BATCH_PARAMETER_BYTES} bytes of parameters in a batch, found more"
            )));
        }
        let last = self.ends.iter().rev().nth(1).copied().unwrap_or(0)..start;
        let same = last.len().min(length);
        self.bytes.reserve(length);
        self.bytes.extend_from_within(last.start..last.start + same);
        self.bytes.resize(start + length, 0);
        self.ends.push(start + length);
        Ok(start)
    }

    fn finish(self) -> Vec<Bytes> {
        let bytes = self.bytes.freeze();
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| bytes.slice(start..end)).collect()
    }
}

fn take_patch(r: &mut ByteReader, into: &mut [u8]) -> Result<()> {
    let mut at = 0;
    while at < into.len() {
        let token = r.u8("token")?;
        if token == 0 {
            return Ok(());
        }
        let (start, new) = (at + usize::from(token >> 4), usize::from(token & 15));
        let length = into.len();
        let Some(place) = into.get_mut(start..start + new) else {
            return Err(Error::corrupt(format!("expected a patch of {length} bytes, found one beyond")));
        };
        r.copy_to(place, "patch")?;
        at = start + new;
    }
    Ok(())
}

/// Encodes the heads; returns the bulk bytes that follow them.
pub(crate) fn encode_answers(answers: &[SmallAnswer], w: &mut ByteWriter) -> Vec<Bytes> {
    w.varint(answers.len() as u64);
    let mut before = 0_u32;
    for SmallAnswer { op, item, done } in answers {
        let apart = op.0.wrapping_sub(before.wrapping_add(1));
        let bulky = item.as_ref().is_some_and(|i| !i.bulk.is_empty());
        let numbered = item.as_ref().is_some_and(|i| i.item > 0);
        let flag = |condition: bool, flag: u8| if condition { flag } else { 0 };
        w.u8(flag(item.is_some(), answer::ITEM)
            | flag(*done, answer::DONE)
            | flag(bulky, answer::BULK)
            | flag(numbered, answer::NUMBERED)
            | flag(apart != 0, answer::APART));
        if apart != 0 {
            w.varint(u64::from(apart));
        }
        if let Some(item) = item {
            if numbered {
                w.varint(u64::from(item.item));
            }
            w.short(&item.body);
            if bulky {
                w.varint(item.bulk.len() as u64).u32(item.bulk_crc32c);
            }
        }
        before = op.0;
    }
    gather(answers.iter().filter_map(|a| a.item.as_ref()).map(|i| &i.bulk))
}

/// Joins neighbors that are so small that copying costs less than keeping them separate.
fn gather<'a>(bulks: impl Iterator<Item = &'a Bytes>) -> Vec<Bytes> {
    const WORTH_A_PART_BYTES: usize = 2 << 10;
    let mut parts = Vec::new();
    let mut small = BytesMut::new();
    for bulk in bulks {
        if bulk.len() < WORTH_A_PART_BYTES {
            small.extend_from_slice(bulk);
            continue;
        }
        if !small.is_empty() {
            parts.push(small.split().freeze());
        }
        parts.push(bulk.clone());
    }
    if !small.is_empty() {
        parts.push(small.freeze());
    }
    parts
}

pub(crate) fn decode_answers(r: &mut ByteReader) -> Result<Vec<SmallAnswer>> {
    let count = r.varint_usize("count")?;
    if count == 0 || count > MAX_BATCH_OPERATIONS {
        return Err(Error::corrupt(format!(
            "expected 1 to {MAX_BATCH_OPERATIONS} answers in a batch, found {count}"
        )));
    }
    let mut answers = Vec::new();
    let mut sizes = Vec::new();
    let mut before = 0_u32;
    for _ in 0..count {
        let flags = r.u8("flags")?;
        let apart = if flags & answer::APART > 0 { r.varint_u32("op")? } else { 0 };
        before = before.wrapping_add(1).wrapping_add(apart);
        let (item, bulk_bytes) = decode_item(flags, r)?;
        answers.push(SmallAnswer { op: OpId(before), item, done: flags & answer::DONE > 0 });
        sizes.push(bulk_bytes);
    }
    let all: usize = sizes.iter().fold(0, |n, &size| n.saturating_add(size));
    if all > MAX_CHUNK_BYTES {
        return Err(Error::corrupt(format!(
            "expected at most {MAX_CHUNK_BYTES} bulk bytes in a batch, found {all}"
        )));
    }
    for (answer, size_bytes) in answers.iter_mut().zip(sizes) {
        if let Some(item) = &mut answer.item {
            item.bulk = r.take(size_bytes, "bulk")?;
        }
    }
    Ok(answers)
}

/// Decodes the head of an item; returns it with the size of its bulk.
fn decode_item(flags: u8, r: &mut ByteReader) -> Result<(Option<WholeItem>, usize)> {
    if flags & answer::ITEM == 0 {
        return Ok((None, 0));
    }
    let item = if flags & answer::NUMBERED > 0 { r.varint_u32("item")? } else { 0 };
    let body = r.short("body", MAX_BODY_BYTES)?;
    let (bulk_bytes, bulk_crc32c) =
        if flags & answer::BULK > 0 { (r.varint_usize("bulk length")?, r.u32("checksum")?) } else { (0, 0) };
    Ok((Some(WholeItem { item, body, bulk: Bytes::new(), bulk_crc32c }), bulk_bytes))
}
