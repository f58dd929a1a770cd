//! Decoder of a gzip file from its start or from a restart point: members, their headers and checksums.

use array::{Error, Result};
use flate2::Crc;

use super::inflate::{InflateEnd, Inflater};
use crate::{ByteStore, FileBytes};

/// Compressed bytes of a gzip file that are read at once.
const INPUT_BYTES: u64 = 256 << 10;
/// Longest name or comment in the header of a gzip member, bytes.
const MAX_GZIP_NAME_BYTES: usize = 64 << 10;

/// Position in the compressed file at which decoding stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecoderStop {
    /// The output is full, or nothing special.
    Within,
    /// After a block: the next byte of the file, and how many bits of the one before it are still to be used.
    Block { packed: u64, bits: u8 },
    /// The data ended as it should.
    End,
    /// The file ended before the data.
    Cut,
}

/// Decoder that reads forward from a position in a gzip file.
pub(super) struct GzipDecoder<'a> {
    file: &'a FileBytes,
    input: Vec<u8>,
    /// Number of bytes of `input` that are used.
    used: usize,
    /// Position in the file at which `input` ends.
    read_to: u64,
    inflater: Inflater,
    /// Checksum and length of this member so far; only when read from its start.
    check: Option<Crc>,
    is_done: bool,
}

impl<'a> GzipDecoder<'a> {
    /// Starts at the header of the first member.
    pub(super) fn start(file: &'a FileBytes, start: u64) -> Result<Self> {
        let mut decoder = Self::at(file, start, Inflater::new()?);
        if !decoder.header()? {
            return Err(Error::corrupt("expected a gzip stream (1f 8b 08), found something else"));
        }
        decoder.check = Some(Crc::new());
        Ok(decoder)
    }

    /// Starts at a restart point; checksums are not verified.
    pub(super) fn resume(file: &'a FileBytes, packed: u64, bits: u8, window: &[u8]) -> Result<Self> {
        let mut byte = [0];
        if bits > 0 {
            file.read_at(packed.saturating_sub(1), &mut byte)?;
        }
        Ok(Self::at(file, packed, Inflater::resume(bits, byte[0], window)?))
    }

    fn at(file: &'a FileBytes, start: u64, inflater: Inflater) -> Self {
        Self { file, input: Vec::new(), used: 0, read_to: start, inflater, check: None, is_done: false }
    }

    /// The next packed byte to be used.
    pub(super) fn packed(&self) -> u64 {
        self.read_to - (self.input.len() - self.used) as u64
    }

    /// Decodes into `output`: how many bytes, and why it stopped. With `stop_at_blocks` it stops after each block.
    pub(super) fn step(&mut self, output: &mut [u8], stop_at_blocks: bool) -> Result<(usize, DecoderStop)> {
        let mut produced = 0;
        while produced < output.len() {
            if self.is_done {
                return Ok((produced, DecoderStop::End));
            }
            if self.used == self.input.len() && !self.refill()? {
                return Ok((produced, DecoderStop::Cut));
            }
            let step =
                self.inflater.step(&self.input[self.used..], &mut output[produced..], stop_at_blocks)?;
            if let Some(check) = &mut self.check {
                check.update(&output[produced..produced + step.produced]);
            }
            self.used += step.consumed;
            produced += step.produced;
            match step.end {
                InflateEnd::BlockEnd(bits) if stop_at_blocks => {
                    return Ok((produced, DecoderStop::Block { packed: self.packed(), bits }));
                }
                InflateEnd::StreamEnd => match self.next_member()? {
                    Some(true) => {}
                    Some(false) => self.is_done = true,
                    None => return Ok((produced, DecoderStop::Cut)),
                },
                _ if step.consumed == 0 && step.produced == 0 => {
                    return Err(Error::corrupt("the deflate stream makes no progress"));
                }
                _ => {}
            }
        }
        Ok((produced, DecoderStop::Within))
    }

    /// Fills `output` or fails.
    pub(super) fn fill(&mut self, output: &mut [u8]) -> Result<()> {
        let (produced, _) = self.step(output, false)?;
        if produced == output.len() {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "expected {} unpacked bytes, found {produced}: the file changed",
            output.len()
        )))
    }

    /// Reads the trailer of a member and the header of the next: whether there is one, `None` when cut.
    fn next_member(&mut self) -> Result<Option<bool>> {
        let mut trailer = [0; 8];
        for byte in &mut trailer {
            let Some(next) = self.byte()? else { return Ok(None) };
            *byte = next;
        }
        let [a, b, c, d, e, f, g, h] = trailer;
        if let Some(check) = &self.check {
            let expected = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
            if (check.sum(), check.amount()) != expected {
                return Err(Error::corrupt(format!(
                    "expected checksum {:08x} and length {}, found {:08x} and {}: the packed data is damaged",
                    expected.0,
                    expected.1,
                    check.sum(),
                    check.amount()
                )));
            }
            self.check = Some(Crc::new());
        }
        self.inflater = Inflater::new()?;
        // Padding or foreign bytes may follow the last member; unpackers pass over them.
        self.header().map(Some)
    }

    /// Reads the header of a member; `false` if there is none.
    fn header(&mut self) -> Result<bool> {
        let mut fixed = [0u8; 10];
        for byte in &mut fixed {
            let Some(next) = self.byte()? else { return Ok(false) };
            *byte = next;
        }
        let [magic, second, method, flags, ..] = fixed;
        if (magic, second, method) != (0x1f, 0x8b, 8) {
            return Ok(false);
        }
        if flags & 4 != 0 {
            let (low, high) = (self.need()?, self.need()?);
            self.skip(usize::from(u16::from_le_bytes([low, high])))?;
        }
        for text in [8, 16] {
            if flags & text != 0 {
                self.skip_text()?;
            }
        }
        if flags & 2 != 0 {
            self.skip(2)?;
        }
        Ok(true)
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        (0..count).try_for_each(|_| self.need().map(drop))
    }

    fn skip_text(&mut self) -> Result<()> {
        for _ in 0..MAX_GZIP_NAME_BYTES {
            if self.need()? == 0 {
                return Ok(());
            }
        }
        Err(Error::corrupt(format!(
            "expected a name of at most {MAX_GZIP_NAME_BYTES} bytes in a gzip header, found more"
        )))
    }

    fn need(&mut self) -> Result<u8> {
        self.byte()?.ok_or_else(|| Error::corrupt("expected a whole gzip header, found the end of the file"))
    }

    fn byte(&mut self) -> Result<Option<u8>> {
        if self.used == self.input.len() && !self.refill()? {
            return Ok(None);
        }
        let byte = self.input[self.used];
        self.used += 1;
        Ok(Some(byte))
    }

    /// Reads on; false at the end of the file.
    fn refill(&mut self) -> Result<bool> {
        let size = self.file.size_bytes().saturating_sub(self.read_to).min(INPUT_BYTES);
        self.input.resize(usize::try_from(size).unwrap_or(0), 0);
        self.used = 0;
        if self.input.is_empty() {
            return Ok(false);
        }
        self.file.read_at(self.read_to, &mut self.input)?;
        self.read_to += size;
        Ok(true)
    }
}
