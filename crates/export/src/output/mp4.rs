//! An MP4 file with one video track (ISO/IEC 14496-12) of H.264 (14496-15) or AV1 ("AV1 Codec ISO Media File Format
//! Binding"): pictures in order, then the tables with their offsets. A few bytes per picture are kept in memory.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::str::FromStr;

use array::{Error, Result};
use mp4_atom::{
    Atom, Av01, Av1c, Avc1, Avcc, Co64, Codec, Colr, Compressor, Dinf, Dref, DrefEntry, FourCC, Ftyp, Hdlr,
    Mdhd, Mdia, Minf, Moov, Mvhd, Stbl, Stsc, StscEntry, Stsd, Stss, Stsz, StszSamples, Stts, SttsEntry,
    Tkhd, Trak, Url, Visual, Vmhd, WriteTo,
};
use stream::{ParameterSets, VideoSample};

use super::AtomicOutput;

/// Ticks of the file's clock per second: fine enough for any rate.
const TICKS_PER_SEC: u32 = 90_000;
/// Size of the header of the media data box (`mdat`), which contains the pictures and has a size field of 64 bits, in
/// bytes.
const HEAD_BYTES: u64 = 16;

/// Video codec of a film.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VideoCodec {
    /// H.264: supported by all players and browsers.
    #[default]
    H264,
    /// AV1: smaller files, slower to write, free of license fees.
    Av1,
}

impl FromStr for VideoCodec {
    type Err = Error;

    /// Parses `h264` or `av1`.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "h264" => Ok(Self::H264),
            "av1" => Ok(Self::Av1),
            _ => Err(Error::invalid(format!("expected the codec `h264` or `av1`, found `{text}`"))),
        }
    }
}

/// Data that a decoder needs before the first picture.
pub(crate) enum DecoderSetup<'a> {
    H264(&'a ParameterSets),
    /// Contents of `av1C`.
    Av1(&'a [u8]),
}

/// A film that is being written.
pub(crate) struct Mp4 {
    draft: AtomicOutput,
    file: BufWriter<File>,
    size: (u16, u16),
    ticks_per_picture: u32,
    /// Byte offset of the media data box.
    begins_at: u64,
    sample_bytes: Vec<u32>,
    /// Numbers of the key frames, from 1.
    keys: Vec<u32>,
}

impl Mp4 {
    /// Creates the file, under a temporary name until it is complete.
    ///
    /// # Errors
    /// `Invalid` for sizes that the format does not support; `Io`, `Denied`.
    pub(crate) fn create(
        target: &Path,
        size: (u32, u32),
        pictures_per_sec: f64,
        codec: VideoCodec,
    ) -> Result<Self> {
        let side = |n: u32| {
            u16::try_from(n)
                .map_err(|_| Error::invalid(format!("expected sides of at most 65,535 pixels, found {n}")))
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded and clamped")]
        let ticks_per_picture = (f64::from(TICKS_PER_SEC) / pictures_per_sec).round().clamp(1.0, 1e9) as u32;
        let draft = AtomicOutput::beside(target)?;
        let file = BufWriter::new(File::create_new(&draft.path).map_err(|e| draft.failed(e))?);
        let mut film = Self {
            draft,
            file,
            size: (side(size.0)?, side(size.1)?),
            ticks_per_picture,
            begins_at: 0,
            sample_bytes: Vec::new(),
            keys: Vec::new(),
        };
        film.begin(codec).map_err(|e| film.draft.failed(e))?;
        Ok(film)
    }

    fn begin(&mut self, codec: VideoCodec) -> std::io::Result<()> {
        let brand = match codec {
            VideoCodec::H264 => b"avc1",
            VideoCodec::Av1 => b"av01",
        };
        let kind = Ftyp {
            major_brand: FourCC::new(b"isom"),
            minor_version: 0x200,
            compatible_brands: [b"isom", b"iso2", brand, b"mp41"].map(FourCC::new).to_vec(),
        };
        kind.write_to(&mut self.file).map_err(std::io::Error::other)?;
        self.begins_at = self.file.stream_position()?;
        // The size is known at the end; 1 means that it follows the name as 64 bits.
        self.file.write_all(&1u32.to_be_bytes())?;
        self.file.write_all(b"mdat")?;
        self.file.write_all(&0u64.to_be_bytes())
    }

    /// Appends a picture.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn add(&mut self, sample: &VideoSample) -> Result<()> {
        let bytes = u32::try_from(sample.bytes.len()).map_err(|_| Error::internal("a picture of 4 GiB"))?;
        self.file.write_all(&sample.bytes).map_err(|e| self.draft.failed(e))?;
        self.sample_bytes.push(bytes);
        if sample.is_key {
            self.keys.push(u32::try_from(self.sample_bytes.len()).unwrap_or(u32::MAX));
        }
        Ok(())
    }

    /// Writes the tables and moves the film to its final name.
    ///
    /// # Errors
    /// `Invalid` for a film without a picture; `Io`.
    pub(crate) fn finish(mut self, setup: Option<DecoderSetup<'_>>) -> Result<()> {
        let setup = setup
            .filter(|_| !self.sample_bytes.is_empty())
            .ok_or_else(|| Error::invalid("expected a film of at least one picture, found none"))?;
        self.end(&setup).map_err(|e| self.draft.failed(e))?;
        self.draft.keep()
    }

    fn end(&mut self, setup: &DecoderSetup<'_>) -> std::io::Result<()> {
        let moov = self.moov(setup)?;
        moov.write_to(&mut self.file).map_err(std::io::Error::other)?;
        let media_bytes: u64 = self.sample_bytes.iter().map(|&n| u64::from(n)).sum();
        self.file.seek(SeekFrom::Start(self.begins_at + 8))?;
        self.file.write_all(&(media_bytes + HEAD_BYTES).to_be_bytes())?;
        self.file.flush()
    }

    /// Returns the entry that describes the samples (`stsd`).
    fn sample_entry(&self, setup: &DecoderSetup<'_>) -> mp4_atom::Result<Codec> {
        let (width, height) = self.size;
        let visual = Visual {
            data_reference_index: 1,
            width,
            height,
            compressor: Compressor::from("Corridor"),
            ..Visual::default()
        };
        Ok(match *setup {
            DecoderSetup::H264(sets) => {
                let avcc = Avcc::new(&sets.sequence, &sets.picture)?;
                Codec::Avc1(Avc1 {
                    visual,
                    avcc,
                    btrt: None,
                    colr: None,
                    pasp: None,
                    taic: None,
                    fiel: None,
                    spatial: None,
                })
            }
            DecoderSetup::Av1(mut configuration) => {
                let av1c = Av1c::decode_body(&mut configuration)?;
                // Codes of ISO/IEC 23091-2: BT.601 three times, and limited range.
                let colr = Some(Colr::new(6, 6, 6, false)?);
                Codec::Av01(Av01 { visual, av1c, colr, ..Av01::default() })
            }
        })
    }

    fn moov(&self, setup: &DecoderSetup<'_>) -> std::io::Result<Moov> {
        let pictures = u32::try_from(self.sample_bytes.len()).unwrap_or(u32::MAX);
        let duration = u64::from(pictures) * u64::from(self.ticks_per_picture);
        let (width, height) = self.size;
        let entry = self.sample_entry(setup).map_err(std::io::Error::other)?;
        let stbl = Stbl {
            stsd: Stsd { codecs: vec![entry] },
            stts: Stts {
                entries: vec![SttsEntry { sample_count: pictures, sample_delta: self.ticks_per_picture }],
            },
            stss: Some(Stss { entries: self.keys.clone() }),
            // All pictures are contiguous.
            stsc: Stsc {
                entries: vec![StscEntry {
                    first_chunk: 1,
                    samples_per_chunk: pictures,
                    sample_description_index: 1,
                }],
            },
            stsz: Stsz { samples: StszSamples::Different { sizes: self.sample_bytes.clone() } },
            co64: Some(Co64 { entries: vec![self.begins_at + HEAD_BYTES] }),
            ..Stbl::default()
        };
        let here = Dref { entries: vec![DrefEntry::Url(Url::default())] };
        let minf = Minf { vmhd: Some(Vmhd::default()), dinf: Dinf { dref: here }, stbl, ..Minf::default() };
        let mdia = Mdia {
            mdhd: Mdhd { timescale: TICKS_PER_SEC, duration, language: "und".into(), ..Mdhd::default() },
            hdlr: Hdlr { handler: FourCC::new(b"vide"), name: "Corridor".into() },
            minf,
        };
        let tkhd = Tkhd {
            track_id: 1,
            duration,
            enabled: true,
            in_movie: true,
            width: width.into(),
            height: height.into(),
            ..Tkhd::default()
        };
        let mvhd = Mvhd {
            timescale: TICKS_PER_SEC,
            duration,
            rate: 1u16.into(),
            volume: 1u8.into(),
            next_track_id: 2,
            ..Mvhd::default()
        };
        Ok(Moov { mvhd, trak: vec![Trak { tkhd, mdia, ..Trak::default() }], ..Moov::default() })
    }
}

#[cfg(test)]
mod tests {
    use mp4_atom::{Header, ReadAtom, ReadFrom};

    use super::*;

    /// Writes a film of three pictures; returns its bytes.
    fn film(codec: VideoCodec, setup: DecoderSetup<'_>) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("film.mp4");
        let mut film = Mp4::create(&path, (64, 48), 25.0, codec).unwrap();
        for (bytes, is_key) in [(vec![1; 5], true), (vec![2; 3], false), (vec![3; 9], true)] {
            film.add(&VideoSample { bytes, is_key }).unwrap();
        }
        assert!(!path.exists(), "an unfinished film has a temporary name");
        film.finish(Some(setup)).unwrap();
        std::fs::read(&path).unwrap()
    }

    /// Reads a film's kind and tables.
    fn tables(bytes: &[u8]) -> (Ftyp, Moov) {
        let mut rest = bytes;
        let header = Header::read_from(&mut rest).unwrap();
        let ftyp = Ftyp::read_atom(&header, &mut rest).unwrap();
        let mdat = Header::read_from(&mut rest).unwrap();
        assert_eq!((mdat.kind, mdat.size), (FourCC::new(b"mdat"), Some(17)));
        rest = &rest[17..];
        let header = Header::read_from(&mut rest).unwrap();
        assert_eq!(header.kind, Moov::KIND);
        let moov = Moov::read_atom(&header, &mut rest).unwrap();
        assert!(rest.is_empty());
        (ftyp, moov)
    }

    fn h264_sets() -> ParameterSets {
        ParameterSets { sequence: vec![0x67, 66, 0xc0, 30, 1], picture: vec![0x68, 2] }
    }

    #[test]
    fn the_tables_contain_the_offsets_of_pictures() {
        let bytes = film(VideoCodec::H264, DecoderSetup::H264(&h264_sets()));
        let (ftyp, moov) = tables(&bytes);
        assert!(ftyp.compatible_brands.contains(&FourCC::new(b"avc1")));
        let track = &moov.trak[0].mdia;
        assert_eq!((track.mdhd.timescale, track.mdhd.duration), (90_000, 3 * 3_600));
        let table = &track.minf.stbl;
        assert_eq!(table.stss.as_ref().unwrap().entries, [1, 3]);
        let at = usize::try_from(table.co64.as_ref().unwrap().entries[0]).unwrap();
        assert_eq!(bytes[at..at + 17], [[1; 5].as_slice(), &[2; 3], &[3; 9]].concat());
        assert_eq!(table.stsz.samples, StszSamples::Different { sizes: vec![5, 3, 9] });
    }

    #[test]
    fn av1_has_its_sample_entry_and_colors() {
        // 8 bits, 4:2:0, an unspecified level.
        let bytes = film(VideoCodec::Av1, DecoderSetup::Av1(&[0x81, 0x1f, 0x0c, 0]));
        let (ftyp, moov) = tables(&bytes);
        assert!(ftyp.compatible_brands.contains(&FourCC::new(b"av01")));
        let [Codec::Av01(entry)] = moov.trak[0].mdia.minf.stbl.stsd.codecs.as_slice() else {
            panic!("expected one entry of AV1");
        };
        assert_eq!((entry.visual.width, entry.visual.height), (64, 48));
        assert_eq!(entry.av1c.seq_level_idx_0, 31);
        assert!(entry.av1c.chroma_subsampling_x && entry.av1c.chroma_subsampling_y);
        assert!(!entry.av1c.high_bitdepth && entry.av1c.config_obus.is_empty());
        assert_eq!(entry.colr, Colr::new(6, 6, 6, false).ok());
    }

    #[test]
    fn codecs_have_names() {
        assert_eq!("av1".parse::<VideoCodec>().unwrap(), VideoCodec::Av1);
        assert_eq!("h264".parse::<VideoCodec>().unwrap(), VideoCodec::default());
        assert!("vp9".parse::<VideoCodec>().unwrap_err().to_string().contains("`h264` or `av1`"));
    }

    #[test]
    fn a_film_that_is_dropped_or_empty_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("film.mp4");
        let create = |width| Mp4::create(&path, (width, 48), 25.0, VideoCodec::H264);
        drop(create(64).unwrap());
        create(64).unwrap().finish(None).unwrap_err();
        create(64).unwrap().finish(Some(DecoderSetup::H264(&h264_sets()))).unwrap_err();
        create(70_000).map(|_| ()).unwrap_err();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
