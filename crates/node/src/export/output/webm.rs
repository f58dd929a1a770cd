//! A WebM file with one video track of AV1 (RFC 9559 and the WebM guidelines; "AV1 in Matroska"): clusters of pictures as they come,
//! then an index of where playing can begin. What is held in memory is a few bytes a cluster.
//!
//! A file is elements: an id, a length, and bytes or further elements (EBML, RFC 8794). Lengths that are not known yet have
//! eight bytes, which are filled in at the end.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use array::{Error, Result};
use stream::Sample;

use super::Draft;

/// Length of a tick of the file's clock, nanoseconds, as the guidelines ask for.
const TICK_NANOS: u64 = 1_000_000;
/// Longest cluster, ticks: its pictures' times are 16 bits after its own.
const MAX_CLUSTER_TICKS: u64 = 30_000;
/// A length of eight bytes begins with this.
const LONG: u64 = 1 << 56;

/// Ids of elements, as the file has them.
mod id {
    pub(super) const EBML: u32 = 0x1a45_dfa3;
    pub(super) const EBML_VERSION: u32 = 0x4286;
    pub(super) const EBML_READ_VERSION: u32 = 0x42f7;
    pub(super) const EBML_MAX_ID_LENGTH: u32 = 0x42f2;
    pub(super) const EBML_MAX_SIZE_LENGTH: u32 = 0x42f3;
    pub(super) const DOC_TYPE: u32 = 0x4282;
    pub(super) const DOC_TYPE_VERSION: u32 = 0x4287;
    pub(super) const DOC_TYPE_READ_VERSION: u32 = 0x4285;
    pub(super) const SEGMENT: u32 = 0x1853_8067;
    pub(super) const SEEK_HEAD: u32 = 0x114d_9b74;
    pub(super) const SEEK: u32 = 0x4dbb;
    pub(super) const SEEK_ID: u32 = 0x53ab;
    pub(super) const SEEK_POSITION: u32 = 0x53ac;
    pub(super) const INFO: u32 = 0x1549_a966;
    pub(super) const TIMESTAMP_SCALE: u32 = 0x002a_d7b1;
    pub(super) const DURATION: u32 = 0x4489;
    pub(super) const MUXING_APP: u32 = 0x4d80;
    pub(super) const WRITING_APP: u32 = 0x5741;
    pub(super) const TRACKS: u32 = 0x1654_ae6b;
    pub(super) const TRACK_ENTRY: u32 = 0xae;
    pub(super) const TRACK_NUMBER: u32 = 0xd7;
    pub(super) const TRACK_UID: u32 = 0x73c5;
    pub(super) const TRACK_TYPE: u32 = 0x83;
    pub(super) const FLAG_LACING: u32 = 0x9c;
    pub(super) const DEFAULT_DURATION: u32 = 0x0023_e383;
    pub(super) const CODEC_ID: u32 = 0x86;
    pub(super) const CODEC_PRIVATE: u32 = 0x63a2;
    pub(super) const VIDEO: u32 = 0xe0;
    pub(super) const PIXEL_WIDTH: u32 = 0xb0;
    pub(super) const PIXEL_HEIGHT: u32 = 0xba;
    pub(super) const COLOUR: u32 = 0x55b0;
    pub(super) const MATRIX_COEFFICIENTS: u32 = 0x55b1;
    pub(super) const RANGE: u32 = 0x55b9;
    pub(super) const TRANSFER_CHARACTERISTICS: u32 = 0x55ba;
    pub(super) const PRIMARIES: u32 = 0x55bb;
    pub(super) const CLUSTER: u32 = 0x1f43_b675;
    pub(super) const TIMESTAMP: u32 = 0xe7;
    pub(super) const SIMPLE_BLOCK: u32 = 0xa3;
    pub(super) const CUES: u32 = 0x1c53_bb6b;
    pub(super) const CUE_POINT: u32 = 0xbb;
    pub(super) const CUE_TIME: u32 = 0xb3;
    pub(super) const CUE_TRACK_POSITIONS: u32 = 0xb7;
    pub(super) const CUE_TRACK: u32 = 0xf7;
    pub(super) const CUE_CLUSTER_POSITION: u32 = 0xf1;
}

/// A film under way.
pub(crate) struct WebM {
    draft: Draft,
    file: BufWriter<File>,
    pictures_per_sec: f64,
    pictures: u64,
    /// Byte offset of the segment's contents, from which positions in the file are counted.
    segment_at: u64,
    /// Byte offsets at which the film's duration and the position of its index are filled in at the end.
    duration_at: u64,
    cues_position_at: u64,
    /// Cluster under way: the byte offset at which its length is filled in, and its time in ticks.
    cluster: Option<(u64, u64)>,
    /// Time and position of each cluster that begins with a key.
    cues: Vec<(u64, u64)>,
}

impl WebM {
    /// Makes the file, beside its place until it is whole. `configuration` is what decoders need first.
    ///
    /// # Errors
    /// `Io`, `Denied`, `Invalid` for an output that is something else already.
    pub(crate) fn create(
        target: &Path,
        size: (u32, u32),
        pictures_per_sec: f64,
        configuration: &[u8],
    ) -> Result<Self> {
        let draft = Draft::beside(target)?;
        let file = BufWriter::new(File::create_new(&draft.path).map_err(|e| draft.failed(e))?);
        let mut film = Self {
            draft,
            file,
            pictures_per_sec,
            pictures: 0,
            segment_at: 0,
            duration_at: 0,
            cues_position_at: 0,
            cluster: None,
            cues: Vec::new(),
        };
        film.begin(size, configuration).map_err(|e| film.draft.failed(e))?;
        Ok(film)
    }

    fn begin(&mut self, size: (u32, u32), configuration: &[u8]) -> std::io::Result<()> {
        let kind = [
            number(id::EBML_VERSION, 1),
            number(id::EBML_READ_VERSION, 1),
            number(id::EBML_MAX_ID_LENGTH, 4),
            number(id::EBML_MAX_SIZE_LENGTH, 8),
            element(id::DOC_TYPE, b"webm"),
            number(id::DOC_TYPE_VERSION, 4),
            number(id::DOC_TYPE_READ_VERSION, 2),
        ];
        self.file.write_all(&element(id::EBML, &kind.concat()))?;
        self.file.write_all(&id_bytes(id::SEGMENT))?;
        self.file.write_all(&LONG.to_be_bytes())?;
        self.segment_at = self.file.stream_position()?;
        let info = [
            number(id::TIMESTAMP_SCALE, TICK_NANOS),
            element(id::MUXING_APP, b"Corridor"),
            element(id::WRITING_APP, b"Corridor"),
            element(id::DURATION, &0f64.to_be_bytes()),
        ];
        let info = element(id::INFO, &info.concat());
        let tracks = element(id::TRACKS, &self.track(size, configuration));
        // All numbers have eight bytes, so that the head's length does not depend on them.
        let head_bytes = seek_head([0; 3]).len() as u64;
        let tracks_at = head_bytes + info.len() as u64;
        let head = seek_head([head_bytes, tracks_at, 0]);
        self.cues_position_at = self.segment_at + head_bytes - 8;
        self.duration_at = self.segment_at + tracks_at - 8;
        [head, info, tracks].iter().try_for_each(|part| self.file.write_all(part))
    }

    fn track(&self, (width, height): (u32, u32), configuration: &[u8]) -> Vec<u8> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "10 s at most")]
        let picture_nanos = (1e9 / self.pictures_per_sec).round() as u64;
        // As ISO/IEC 23091-2 counts them: BT.601 three times, and limited range.
        let colour = [
            number(id::MATRIX_COEFFICIENTS, 6),
            number(id::RANGE, 1),
            number(id::TRANSFER_CHARACTERISTICS, 6),
            number(id::PRIMARIES, 6),
        ];
        let video = [
            number(id::PIXEL_WIDTH, width.into()),
            number(id::PIXEL_HEIGHT, height.into()),
            element(id::COLOUR, &colour.concat()),
        ];
        let entry = [
            number(id::TRACK_NUMBER, 1),
            number(id::TRACK_UID, 1),
            number(id::TRACK_TYPE, 1),
            number(id::FLAG_LACING, 0),
            number(id::DEFAULT_DURATION, picture_nanos),
            element(id::CODEC_ID, b"V_AV1"),
            element(id::CODEC_PRIVATE, configuration),
            element(id::VIDEO, &video.concat()),
        ];
        element(id::TRACK_ENTRY, &entry.concat())
    }

    /// When a picture is shown, ticks.
    #[expect(clippy::cast_precision_loss, reason = "22,500 pictures at most")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "days at most")]
    fn ticks(&self, picture: u64) -> u64 {
        (picture as f64 / self.pictures_per_sec * 1e9 / TICK_NANOS as f64).round() as u64
    }

    /// Adds a picture.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn add(&mut self, sample: &Sample) -> Result<()> {
        self.add_block(sample).map_err(|e| self.draft.failed(e))
    }

    fn add_block(&mut self, sample: &Sample) -> std::io::Result<()> {
        let ticks = self.ticks(self.pictures);
        self.pictures += 1;
        let begins_at = match self.cluster {
            Some((_, begins_at)) if !sample.is_key && ticks - begins_at <= MAX_CLUSTER_TICKS => begins_at,
            _ => {
                self.begin_cluster(ticks, sample.is_key)?;
                ticks
            }
        };
        let since = i16::try_from(ticks - begins_at).unwrap_or(i16::MAX).to_be_bytes();
        let flags = if sample.is_key { 0x80 } else { 0 };
        // The number of the track is written as lengths are.
        let head = [0x81, since[0], since[1], flags];
        self.file.write_all(&id_bytes(id::SIMPLE_BLOCK))?;
        self.file.write_all(&(LONG | (head.len() + sample.bytes.len()) as u64).to_be_bytes())?;
        self.file.write_all(&head)?;
        self.file.write_all(&sample.bytes)
    }

    fn begin_cluster(&mut self, ticks: u64, is_key: bool) -> std::io::Result<()> {
        self.end_cluster()?;
        let at = self.file.stream_position()?;
        if is_key {
            self.cues.push((ticks, at - self.segment_at));
        }
        let id = id_bytes(id::CLUSTER);
        self.file.write_all(&id)?;
        self.file.write_all(&LONG.to_be_bytes())?;
        self.cluster = Some((at + id.len() as u64, ticks));
        self.file.write_all(&number(id::TIMESTAMP, ticks))
    }

    fn end_cluster(&mut self) -> std::io::Result<()> {
        let Some((length_at, _)) = self.cluster.take() else { return Ok(()) };
        let end = self.file.stream_position()?;
        self.fill_in(length_at, LONG | (end - length_at - 8))
    }

    /// Writes eight bytes somewhere before, and goes on at the end.
    fn fill_in(&mut self, at: u64, bytes: u64) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(&bytes.to_be_bytes())?;
        self.file.seek(SeekFrom::End(0)).map(drop)
    }

    /// Writes the index and puts the film in its place.
    ///
    /// # Errors
    /// `Invalid` for a film without a picture; `Io`.
    pub(crate) fn finish(mut self) -> Result<()> {
        if self.pictures == 0 {
            return Err(Error::invalid("expected a film of at least one picture, found none"));
        }
        self.end().map_err(|e| self.draft.failed(e))?;
        self.draft.keep()
    }

    #[expect(clippy::cast_precision_loss, reason = "below 2^53 for thousands of years")]
    fn end(&mut self) -> std::io::Result<()> {
        self.end_cluster()?;
        let cues_at = self.file.stream_position()?;
        let points = self.cues.iter().map(|&(ticks, position)| {
            let place = [number(id::CUE_TRACK, 1), number(id::CUE_CLUSTER_POSITION, position)];
            let point = [number(id::CUE_TIME, ticks), element(id::CUE_TRACK_POSITIONS, &place.concat())];
            element(id::CUE_POINT, &point.concat())
        });
        let cues = points.collect::<Vec<_>>().concat();
        self.file.write_all(&element(id::CUES, &cues))?;
        let end = self.file.stream_position()?;
        self.fill_in(self.segment_at - 8, LONG | (end - self.segment_at))?;
        self.fill_in(self.cues_position_at, cues_at - self.segment_at)?;
        self.fill_in(self.duration_at, (self.ticks(self.pictures) as f64).to_bits())?;
        self.file.flush()
    }
}

/// Encodes the positions of a segment's information, tracks and index within it (`SeekHead`).
fn seek_head(positions: [u64; 3]) -> Vec<u8> {
    let entries = [id::INFO, id::TRACKS, id::CUES].into_iter().zip(positions).map(|(id, position)| {
        let entry = [element(id::SEEK_ID, &id_bytes(id)), number(id::SEEK_POSITION, position)];
        element(id::SEEK, &entry.concat())
    });
    element(id::SEEK_HEAD, &entries.collect::<Vec<_>>().concat())
}

/// An element of a number, which always has eight bytes.
fn number(id: u32, value: u64) -> Vec<u8> {
    element(id, &value.to_be_bytes())
}

/// An element: its id, its length and what it holds.
fn element(id: u32, bytes: &[u8]) -> Vec<u8> {
    [&id_bytes(id), &(LONG | bytes.len() as u64).to_be_bytes()[..], bytes].concat()
}

/// Without the zeros in front of it.
fn id_bytes(id: u32) -> Vec<u8> {
    id.to_be_bytes().into_iter().skip_while(|&byte| byte == 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The elements in some bytes: where each begins, its id and what it holds.
    fn elements(bytes: &[u8]) -> Vec<(usize, u32, &[u8])> {
        let (mut found, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let id_length = bytes[at].leading_zeros() as usize + 1;
            let id = bytes[at..at + id_length].iter().fold(0, |id, &byte| id << 8 | u32::from(byte));
            let length_at = at + id_length;
            let length = u64::from_be_bytes(bytes[length_at..length_at + 8].try_into().unwrap());
            assert_eq!(length >> 56, 1, "a length of eight bytes");
            let (from, length) = (length_at + 8, usize::try_from(length & (LONG - 1)).unwrap());
            found.push((at, id, &bytes[from..from + length]));
            at = from + length;
        }
        found
    }

    fn within(bytes: &[u8], wanted: u32) -> Vec<&[u8]> {
        elements(bytes).into_iter().filter(|(_, id, _)| *id == wanted).map(|(.., bytes)| bytes).collect()
    }

    fn read(bytes: &[u8]) -> u64 {
        u64::from_be_bytes(bytes.try_into().unwrap())
    }

    fn sample(byte: u8, is_key: bool) -> Sample {
        Sample { bytes: vec![byte; 3], is_key }
    }

    #[test]
    fn the_index_says_where_pictures_lie() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("film.webm");
        // A picture in two seconds: the 17th is more than half a minute after the first.
        let mut film = WebM::create(&path, (64, 48), 0.5, &[0x81, 0, 0, 0]).unwrap();
        for number in 0..20 {
            film.add(&sample(number, number == 0 || number == 18)).unwrap();
        }
        assert!(!path.exists(), "not before it is whole");
        film.finish().unwrap();

        let bytes = std::fs::read(&path).unwrap();
        let segment = within(&bytes, id::SEGMENT)[0];
        let parts = elements(segment);
        let ids: Vec<u32> = parts.iter().map(|(_, id, _)| *id).collect();
        let cluster = id::CLUSTER;
        assert_eq!(ids, [id::SEEK_HEAD, id::INFO, id::TRACKS, cluster, cluster, cluster, id::CUES]);
        for entry in within(parts[0].2, id::SEEK) {
            let position = usize::try_from(read(within(entry, id::SEEK_POSITION)[0])).unwrap();
            let id = within(entry, id::SEEK_ID)[0];
            assert!(segment[position..].starts_with(id), "{id:x?}");
        }
        assert_eq!(within(parts[1].2, id::DURATION)[0], 40_000f64.to_be_bytes());
        let blocks: Vec<Vec<&[u8]>> =
            parts[3..6].iter().map(|part| within(part.2, id::SIMPLE_BLOCK)).collect();
        assert_eq!(blocks.iter().map(Vec::len).collect::<Vec<_>>(), [16, 2, 2]);
        assert_eq!(blocks[0][0], [0x81, 0, 0, 0x80, 0, 0, 0]);
        assert_eq!(blocks[1][1], [0x81, 7, 208, 0, 17, 17, 17]);
        // Playing begins with keys only.
        let cues: Vec<(u64, u64)> = within(parts[6].2, id::CUE_POINT)
            .into_iter()
            .map(|point| {
                let place = within(point, id::CUE_TRACK_POSITIONS)[0];
                (read(within(point, id::CUE_TIME)[0]), read(within(place, id::CUE_CLUSTER_POSITION)[0]))
            })
            .collect();
        assert_eq!(cues, [(0, parts[3].0 as u64), (36_000, parts[5].0 as u64)]);
    }

    #[test]
    fn a_film_that_is_dropped_or_empty_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("film.webm");
        drop(WebM::create(&path, (64, 48), 25.0, &[]).unwrap());
        WebM::create(&path, (64, 48), 25.0, &[]).unwrap().finish().unwrap_err();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
