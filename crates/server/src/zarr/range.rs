//! Byte ranges of HTTP requests (RFC 9110, section 14), and the elements of a chunk that contain them, so that nothing
//! else has to be read.

use std::ops::Range;

use axum::http::{HeaderMap, HeaderValue, Method, header};

/// Part of a text or chunk that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestedRange {
    /// All bytes: no range, several ranges, a unit other than bytes, a range of another state of the data, or another
    /// method than GET.
    Whole,
    /// These bytes.
    Part(Range<usize>),
    /// No existing bytes.
    Beyond,
}

/// Parses `Range`, which is for GET alone, and `If-Range` by the tag of the data.
pub(super) fn asked(method: &Method, headers: &HeaderMap, size_bytes: usize, tag: &str) -> RequestedRange {
    let is_other_state =
        headers.get(header::IF_RANGE).is_some_and(|known| known.as_bytes() != tag.as_bytes());
    let range = headers.get(header::RANGE).map(HeaderValue::to_str);
    let Some(Ok(range)) = range.filter(|_| method == Method::GET && !is_other_state) else {
        return RequestedRange::Whole;
    };
    parsed(range, size_bytes).unwrap_or(RequestedRange::Whole)
}

fn parsed(text: &str, size_bytes: usize) -> Option<RequestedRange> {
    let (unit, range) = text.split_once('=')?;
    let (first, last) = range.split_once('-').filter(|_| unit.trim().eq_ignore_ascii_case("bytes"))?;
    let range = match (first.trim(), last.trim()) {
        ("", suffix) => size_bytes.saturating_sub(number(suffix)?)..size_bytes,
        (first, "") => number(first)?..size_bytes,
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            first..last.saturating_add(1).min(size_bytes)
        }
    };
    Some(if range.is_empty() { RequestedRange::Beyond } else { RequestedRange::Part(range) })
}

/// Parses a number of digits only; a number that exceeds memory is larger than every size.
fn number(text: &str) -> Option<usize> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(usize::MAX))
}

/// Start and count per axis of consecutive elements of a chunk.
pub(super) type ChunkBox = (Vec<u64>, Vec<u64>);

/// Splits the elements `range` of a chunk of `shape` elements, counted in C order, into consecutive boxes: fewer than
/// two for each axis.
pub(super) fn boxes(shape: &[u64], range: Range<u64>) -> Vec<ChunkBox> {
    let mut boxes = Vec::new();
    let mut next = range.start;
    while next < range.end {
        let (mut start, mut rest) = (vec![0; shape.len()], next);
        for (place, &size) in start.iter_mut().zip(shape).rev() {
            (*place, rest) = (rest % size, rest / size);
        }
        // Along the slowest axis with at least one whole step in the range.
        let (mut axis, mut step) = (shape.len(), 1);
        while axis > 0 && (axis == shape.len() || start[axis] == 0 && step * shape[axis] <= range.end - next)
        {
            if axis < shape.len() {
                step *= shape[axis];
            }
            axis -= 1;
        }
        let mut count = vec![1; shape.len()];
        count.iter_mut().zip(shape).skip(axis + 1).for_each(|(count, &size)| *count = size);
        let steps = shape.get(axis).map_or(1, |size| (size - start[axis]).min((range.end - next) / step));
        count.get_mut(axis).into_iter().for_each(|count| *count = steps);
        boxes.push((start, count));
        next += steps * step;
    }
    boxes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &'static str, size_bytes: usize) -> RequestedRange {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, HeaderValue::from_static(text));
        asked(&Method::GET, &headers, size_bytes, "\"t\"")
    }

    #[test]
    fn a_single_byte_range_is_parsed() {
        for (text, part) in [
            ("bytes=0-0", 0..1),
            ("bytes=2-", 2..10),
            ("BYTES = 3 - 4", 3..5),
            ("bytes=9-99999999999999999999999", 9..10),
            ("bytes=-4", 6..10),
            ("bytes=-40", 0..10),
        ] {
            assert_eq!(of(text, 10), RequestedRange::Part(part), "{text}");
        }
        for beyond in ["bytes=10-", "bytes=10-12", "bytes=-0"] {
            assert_eq!(of(beyond, 10), RequestedRange::Beyond, "{beyond}");
        }
        for whole in
            ["bytes=4-3", "bytes=0-1,3-4", "lines=1-2", "bytes=+1-2", "bytes=", "bytes=-", "0-1", "bytes=a-b"]
        {
            assert_eq!(of(whole, 10), RequestedRange::Whole, "{whole}");
        }
    }

    #[test]
    fn ranges_of_another_state_or_method_are_ignored() {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, HeaderValue::from_static("bytes=0-1"));
        headers.insert(header::IF_RANGE, HeaderValue::from_static("\"t\""));
        assert_eq!(asked(&Method::GET, &headers, 10, "\"t\""), RequestedRange::Part(0..2));
        assert_eq!(asked(&Method::GET, &headers, 10, "\"u\""), RequestedRange::Whole);
        assert_eq!(asked(&Method::HEAD, &headers, 10, "\"t\""), RequestedRange::Whole);
    }

    #[test]
    fn boxes_cover_the_range_and_are_few() {
        for shape in [&[][..], &[5], &[2, 3], &[3, 1, 4], &[2, 3, 1, 2]] {
            let len = shape.iter().product::<u64>();
            for range in (0..=len).flat_map(|first| (first..=len).map(move |end| first..end)) {
                let found = boxes(shape, range.clone());
                assert!(found.len() <= (2 * shape.len()).max(1), "{shape:?} {range:?}: {found:?}");
                let elements: Vec<u64> = found.iter().flat_map(|part| elements(shape, part)).collect();
                assert_eq!(elements, range.clone().collect::<Vec<_>>(), "{shape:?} {range:?}: {found:?}");
            }
        }
    }

    fn elements(shape: &[u64], (start, count): &ChunkBox) -> Vec<u64> {
        let mut inside = vec![0];
        for ((&size, &from), &n) in shape.iter().zip(start).zip(count) {
            assert!(n > 0 && from + n <= size);
            inside = inside.iter().flat_map(|&i| (from..from + n).map(move |p| i * size + p)).collect();
        }
        inside
    }
}
