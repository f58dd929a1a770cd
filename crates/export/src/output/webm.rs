//! A WebM file with one video track of AV1 (Matroska, RFC 9559, and "AV1 Codec Mapping in Matroska"): clusters of pictures in
//! order, then the table of their places (`Cues`). The pictures of one cluster are kept in memory.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use array::{Error, Result};
use stream::VideoSample;

use super::AtomicOutput;

/// Numbers of elements, as they are written.
mod element {
    pub(super) const EBML: u32 = 0x1A45_DFA3;
    pub(super) const EBML_VERSION: u32 = 0x4286;
    pub(super) const EBML_READ_VERSION: u32 = 0x42F7;
    pub(super) const EBML_MAX_ID_LENGTH: u32 = 0x42F2;
    pub(super) const EBML_MAX_SIZE_LENGTH: u32 = 0x42F3;
    pub(super) const DOC_TYPE: u32 = 0x4282;
    pub(super) const DOC_TYPE_VERSION: u32 = 0x4287;
    pub(super) const DOC_TYPE_READ_VERSION: u32 = 0x4285;
    pub(super) const SEGMENT: u32 = 0x1853_8067;
    pub(super) const SEEK_HEAD: u32 = 0x114D_9B74;
    pub(super) const SEEK: u32 = 0x4DBB;
    pub(super) const SEEK_ID: u32 = 0x53AB;
    pub(super) const SEEK_POSITION: u32 = 0x53AC;
    pub(super) const INFO: u32 = 0x1549_A966;
    pub(super) const TIMESTAMP_SCALE: u32 = 0x2A_D7B1;
    pub(super) const DURATION: u32 = 0x4489;
    pub(super) const MUXING_APP: u32 = 0x4D80;
    pub(super) const WRITING_APP: u32 = 0x5741;
    pub(super) const TRACKS: u32 = 0x1654_AE6B;
    pub(super) const TRACK_ENTRY: u32 = 0xAE;
    pub(super) const TRACK_NUMBER: u32 = 0xD7;
    pub(super) const TRACK_UID: u32 = 0x73C5;
    pub(super) const TRACK_TYPE: u32 = 0x83;
    pub(super) const FLAG_LACING: u32 = 0x9C;
    pub(super) const DEFAULT_DURATION: u32 = 0x23_E383;
    pub(super) const CODEC_ID: u32 = 0x86;
    pub(super) const CODEC_PRIVATE: u32 = 0x63A2;
    pub(super) const VIDEO: u32 = 0xE0;
    pub(super) const PIXEL_WIDTH: u32 = 0xB0;
    pub(super) const PIXEL_HEIGHT: u32 = 0xBA;
    pub(super) const COLOUR: u32 = 0x55B0;
    pub(super) const MATRIX_COEFFICIENTS: u32 = 0x55B1;
    pub(super) const RANGE: u32 = 0x55B9;
    pub(super) const TRANSFER_CHARACTERISTICS: u32 = 0x55BA;
    pub(super) const PRIMARIES: u32 = 0x55BB;
    pub(super) const CLUSTER: u32 = 0x1F43_B675;
    pub(super) const TIMESTAMP: u32 = 0xE7;
    pub(super) const SIMPLE_BLOCK: u32 = 0xA3;
    pub(super) const CUES: u32 = 0x1C53_BB6B;
    pub(super) const CUE_POINT: u32 = 0xBB;
    pub(super) const CUE_TIME: u32 = 0xB3;
    pub(super) const CUE_TRACK_POSITIONS: u32 = 0xB7;
    pub(super) const CUE_TRACK: u32 = 0xF7;
    pub(super) const CUE_CLUSTER_POSITION: u32 = 0xF1;
}

/// Nanoseconds of a unit of time in the file: a millisecond, as WebM requires.
const TIMESTAMP_NANOS: u64 = 1_000_000;
/// Longest time in a cluster, milliseconds: times in it are 16-bit numbers.
const MAX_CLUSTER_MILLIS: u64 = 30_000;
/// Most bytes of a cluster before the next one begins.
const MAX_CLUSTER_BYTES: usize = 8 << 20;

/// A film that is being written.
pub(crate) struct WebM {
    draft: AtomicOutput,
    file: BufWriter<File>,
    pictures_per_sec: f64,
    /// Number of pictures so far.
    pictures: u64,
    /// First byte of the segment's content, to which all positions are relative.
    segment_at: u64,
    /// Byte of the position of `Cues`, and of the duration.
    cues_position_at: u64,
    duration_at: u64,
    cluster: Option<Cluster>,
    /// Time and position of each cluster that begins with a key frame.
    cues: Vec<(u64, u64)>,
}

/// Cluster that is being filled.
struct Cluster {
    millis: u64,
    begins_with_key: bool,
    blocks: Vec<u8>,
}

impl WebM {
    /// Creates the file, under a temporary name until it is complete. `configuration` is the contents of `av1C`.
    ///
    /// # Errors
    /// `Io`, `Denied`.
    pub(crate) fn create(
        target: &Path,
        size: (u32, u32),
        pictures_per_sec: f64,
        configuration: &[u8],
    ) -> Result<Self> {
        let draft = AtomicOutput::beside(target)?;
        let file = BufWriter::new(File::create_new(&draft.path).map_err(|e| draft.failed(e))?);
        let mut film = Self {
            draft,
            file,
            pictures_per_sec,
            pictures: 0,
            segment_at: 0,
            cues_position_at: 0,
            duration_at: 0,
            cluster: None,
            cues: Vec::new(),
        };
        film.begin(size, configuration).map_err(|e| film.draft.failed(e))?;
        Ok(film)
    }

    fn begin(&mut self, (width, height): (u32, u32), configuration: &[u8]) -> std::io::Result<()> {
        let head = [
            number(element::EBML_VERSION, 1),
            number(element::EBML_READ_VERSION, 1),
            number(element::EBML_MAX_ID_LENGTH, 4),
            number(element::EBML_MAX_SIZE_LENGTH, 8),
            bytes(element::DOC_TYPE, b"webm"),
            number(element::DOC_TYPE_VERSION, 4),
            number(element::DOC_TYPE_READ_VERSION, 2),
        ];
        self.file.write_all(&bytes(element::EBML, &head.concat()))?;
        // The size is known at the end.
        self.file.write_all(&[&id(element::SEGMENT)[..], &size_of_eight(0)].concat())?;
        self.segment_at = self.file.stream_position()?;
        let seek =
            [bytes(element::SEEK_ID, &id(element::CUES)), eight_bytes(element::SEEK_POSITION, 0)].concat();
        self.file.write_all(&bytes(element::SEEK_HEAD, &bytes(element::SEEK, &seek)))?;
        self.cues_position_at = self.file.stream_position()? - 8;
        let info = [
            number(element::TIMESTAMP_SCALE, TIMESTAMP_NANOS),
            bytes(element::MUXING_APP, b"Corridor"),
            bytes(element::WRITING_APP, b"Corridor"),
            bytes(element::DURATION, &0f64.to_be_bytes()),
        ];
        self.file.write_all(&bytes(element::INFO, &info.concat()))?;
        self.duration_at = self.file.stream_position()? - 8;
        // Codes of ISO/IEC 23091-2: BT.601 three times; limited range.
        let colour = [
            number(element::MATRIX_COEFFICIENTS, 6),
            number(element::RANGE, 1),
            number(element::TRANSFER_CHARACTERISTICS, 6),
            number(element::PRIMARIES, 6),
        ];
        let video = [
            number(element::PIXEL_WIDTH, width.into()),
            number(element::PIXEL_HEIGHT, height.into()),
            bytes(element::COLOUR, &colour.concat()),
        ];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate above 0")]
        let nanos = (1e9 / self.pictures_per_sec).round().clamp(1.0, 1e18) as u64;
        let track = [
            number(element::TRACK_NUMBER, 1),
            number(element::TRACK_UID, 1),
            number(element::TRACK_TYPE, 1),
            number(element::FLAG_LACING, 0),
            number(element::DEFAULT_DURATION, nanos),
            bytes(element::CODEC_ID, b"V_AV1"),
            bytes(element::CODEC_PRIVATE, configuration),
            bytes(element::VIDEO, &video.concat()),
        ];
        self.file.write_all(&bytes(element::TRACKS, &bytes(element::TRACK_ENTRY, &track.concat())))
    }

    /// Appends a picture.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn add(&mut self, sample: &VideoSample) -> Result<()> {
        let millis = self.millis(self.pictures);
        self.pictures += 1;
        let is_full = |cluster: &Cluster| {
            sample.is_key
                || millis - cluster.millis > MAX_CLUSTER_MILLIS
                || cluster.blocks.len() > MAX_CLUSTER_BYTES
        };
        if self.cluster.as_ref().is_none_or(is_full) {
            self.end_cluster().map_err(|e| self.draft.failed(e))?;
        }
        let cluster = self.cluster.get_or_insert_with(|| Cluster {
            millis,
            begins_with_key: sample.is_key,
            blocks: number(element::TIMESTAMP, millis),
        });
        let offset = i16::try_from(millis - cluster.millis)
            .map_err(|_| Error::internal("a picture lies too far behind the first of its cluster"))?;
        let flags = if sample.is_key { 0x80 } else { 0 };
        let [high, low] = offset.to_be_bytes();
        // The track's number, the time in the cluster, flags.
        let head = [0x81, high, low, flags];
        cluster.blocks.extend(id(element::SIMPLE_BLOCK));
        cluster.blocks.extend(size_of_eight((head.len() + sample.bytes.len()) as u64));
        cluster.blocks.extend(head);
        cluster.blocks.extend(&sample.bytes);
        Ok(())
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "times"
    )]
    fn millis(&self, pictures: u64) -> u64 {
        (pictures as f64 * 1000.0 / self.pictures_per_sec).round() as u64
    }

    fn end_cluster(&mut self) -> std::io::Result<()> {
        let Some(Cluster { millis, begins_with_key, blocks }) = self.cluster.take() else { return Ok(()) };
        let position = self.file.stream_position()? - self.segment_at;
        if begins_with_key {
            self.cues.push((millis, position));
        }
        self.file.write_all(&bytes(element::CLUSTER, &blocks))
    }

    /// Writes the tables and moves the film to its final name.
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

    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a film")]
    fn end(&mut self) -> std::io::Result<()> {
        self.end_cluster()?;
        let cues_at = self.file.stream_position()? - self.segment_at;
        let points = self.cues.iter().flat_map(|&(millis, position)| {
            let place =
                [number(element::CUE_TRACK, 1), number(element::CUE_CLUSTER_POSITION, position)].concat();
            let point = [number(element::CUE_TIME, millis), bytes(element::CUE_TRACK_POSITIONS, &place)];
            bytes(element::CUE_POINT, &point.concat())
        });
        let cues = bytes(element::CUES, &points.collect::<Vec<u8>>());
        self.file.write_all(&cues)?;
        let end = self.file.stream_position()?;
        for (at, eight) in [
            (self.segment_at - 8, size_of_eight(end - self.segment_at)),
            (self.cues_position_at, cues_at.to_be_bytes()),
            (self.duration_at, (self.millis(self.pictures) as f64).to_be_bytes()),
        ] {
            self.file.seek(SeekFrom::Start(at))?;
            self.file.write_all(&eight)?;
        }
        self.file.flush()
    }
}

/// Returns the number of an element without leading zeros; it contains its own length.
fn id(element: u32) -> Vec<u8> {
    element.to_be_bytes().into_iter().skip_while(|&byte| byte == 0).collect()
}

/// Returns the size of an element in eight bytes.
fn size_of_eight(size: u64) -> [u8; 8] {
    (size | 1 << 56).to_be_bytes()
}

/// Returns an element with some content.
fn bytes(element: u32, content: &[u8]) -> Vec<u8> {
    [&id(element)[..], &size_of_eight(content.len() as u64), content].concat()
}

/// Returns an element with a number, in as few bytes as possible.
fn number(element: u32, value: u64) -> Vec<u8> {
    let significant: Vec<u8> = value.to_be_bytes().into_iter().skip_while(|&byte| byte == 0).collect();
    bytes(element, if significant.is_empty() { &[0] } else { &significant })
}

/// Returns an element with a number in eight bytes, which is known later.
fn eight_bytes(element: u32, value: u64) -> Vec<u8> {
    bytes(element, &value.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements of some content: their numbers, where they begin, and their contents.
    fn elements(content: &[u8]) -> Vec<(u32, usize, &[u8])> {
        let (mut found, mut at) = (Vec::new(), 0);
        while at < content.len() {
            let begin = at;
            let length = content[at].leading_zeros() as usize + 1;
            let number =
                content[at..at + length].iter().fold(0, |number, &byte| number << 8 | u32::from(byte));
            at += length;
            let size = u64::from_be_bytes(content[at..at + 8].try_into().unwrap()) & !(1 << 56);
            at += 8;
            let end = at + usize::try_from(size).unwrap();
            found.push((number, begin, &content[at..end]));
            at = end;
        }
        found
    }

    fn only(content: &[u8], number: u32) -> &[u8] {
        elements(content).into_iter().find(|element| element.0 == number).unwrap().2
    }

    fn value(content: &[u8]) -> u64 {
        content.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    #[test]
    fn a_film_has_its_pictures_at_their_times_and_a_table_of_key_frames() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("film.webm");
        let mut film = WebM::create(&path, (64, 48), 25.0, &[9, 8, 7]).unwrap();
        for (byte, is_key) in [(1u8, true), (2, false), (3, true), (4, false)] {
            film.add(&VideoSample { bytes: vec![byte; 5], is_key }).unwrap();
        }
        film.finish().unwrap();
        let file = std::fs::read(&path).unwrap();
        let top = elements(&file);
        assert_eq!(
            top.iter().map(|element| element.0).collect::<Vec<_>>(),
            [element::EBML, element::SEGMENT]
        );
        let segment = top[1].2;
        let track = only(only(segment, element::TRACKS), element::TRACK_ENTRY);
        assert_eq!(only(track, element::CODEC_PRIVATE), [9, 8, 7]);
        assert_eq!(value(only(only(track, element::VIDEO), element::PIXEL_WIDTH)), 64);
        let duration = only(only(segment, element::INFO), element::DURATION);
        assert_eq!(f64::from_be_bytes(duration.try_into().unwrap()), 160.0);
        let clusters: Vec<_> =
            elements(segment).into_iter().filter(|element| element.0 == element::CLUSTER).collect();
        let mut pictures = Vec::new();
        for (_, _, content) in &clusters {
            let begin = value(only(content, element::TIMESTAMP));
            let blocks = elements(content).into_iter().filter(|element| element.0 == element::SIMPLE_BLOCK);
            pictures.extend(blocks.map(|(_, _, block)| (begin + value(&block[1..3]), block[3], block[4])));
        }
        assert_eq!(pictures, [(0, 0x80, 1), (40, 0, 2), (80, 0x80, 3), (120, 0, 4)]);
        let seek = only(only(segment, element::SEEK_HEAD), element::SEEK);
        let cues_at = usize::try_from(value(only(seek, element::SEEK_POSITION))).unwrap();
        assert_eq!(elements(&segment[cues_at..])[0].0, element::CUES);
        let points = elements(only(segment, element::CUES));
        let places = points.iter().map(|(_, _, point)| {
            let place = only(point, element::CUE_TRACK_POSITIONS);
            (value(only(point, element::CUE_TIME)), value(only(place, element::CUE_CLUSTER_POSITION)))
        });
        let begins = clusters.iter().map(|cluster| cluster.1 as u64);
        assert_eq!(places.collect::<Vec<_>>(), [0, 80].into_iter().zip(begins).collect::<Vec<_>>());
    }

    #[test]
    fn long_pauses_between_key_frames_are_divided() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("film.webm");
        let mut film = WebM::create(&path, (64, 48), 0.1, &[1]).unwrap();
        for number in 0..8u8 {
            film.add(&VideoSample { bytes: vec![number], is_key: number == 0 }).unwrap();
        }
        film.finish().unwrap();
        let file = std::fs::read(&path).unwrap();
        let segment = only(&file, element::SEGMENT);
        let clusters = elements(segment).into_iter().filter(|element| element.0 == element::CLUSTER).count();
        assert_eq!((clusters, elements(only(segment, element::CUES)).len()), (2, 1));
        let empty = WebM::create(&folder.path().join("empty.webm"), (64, 48), 25.0, &[1]).unwrap();
        empty.finish().unwrap_err();
        assert!(!folder.path().join("empty.webm").exists());
    }
}
