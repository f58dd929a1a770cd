//! Raw inflate of zlib with the two operations that random access needs and no safe interface offers: stopping at block boundaries,
//! and starting in the middle of a byte.
#![expect(unsafe_code, reason = "zlib is a C library")]

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;

use array::{Error, Result};
use libz_sys as zlib;

/// A stream being decoded. zlib keeps a pointer to its `z_stream`, so that one must not move: it is boxed.
pub(super) struct Inflater(Box<MaybeUninit<zlib::z_stream>>);

// SAFETY: the state belongs to this value alone and zlib has no thread-local state.
unsafe impl Send for Inflater {}

/// Position at which decoding stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InflateEnd {
    /// Within a block: input or output is exhausted.
    Within,
    /// After a block; this many bits of the last byte taken belong to the next.
    BlockEnd(u8),
    /// At the end of the stream.
    StreamEnd,
}

/// Result of one step: input bytes, output bytes, and the position at which it stopped.
#[derive(Clone, Copy, Debug)]
pub(super) struct InflateStep {
    pub(super) consumed: usize,
    pub(super) produced: usize,
    pub(super) end: InflateEnd,
}

/// No header, no trailer, the largest window.
const RAW: c_int = -15;

impl Inflater {
    /// Starts at the beginning of a raw deflate stream.
    pub(super) fn new() -> Result<Self> {
        let mut stream = Box::new(MaybeUninit::<zlib::z_stream>::zeroed());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_possible_wrap,
            reason = "about a hundred bytes"
        )]
        let size = size_of::<zlib::z_stream>() as c_int;
        // SAFETY: zlib takes a zeroed stream (null allocators mean its own; the null function pointers are
        // never read as Rust values) and its own version string and size.
        let code = unsafe { zlib::inflateInit2_(stream.as_mut_ptr(), RAW, zlib::zlibVersion(), size) };
        if code != zlib::Z_OK {
            return Err(Error::internal(format!("expected zlib to start, found code {code}")));
        }
        Ok(Self(stream))
    }

    /// In the middle of a stream: `bits` bits of `byte` (its upper ones) come before the next input, and
    /// `window` is the output before.
    pub(super) fn resume(bits: u8, byte: u8, window: &[u8]) -> Result<Self> {
        let mut inflater = Self::new()?;
        let length =
            u32::try_from(window.len()).map_err(|_| Error::corrupt("expected a window of 32 KiB"))?;
        let stream = inflater.0.as_mut_ptr();
        if bits > 0 {
            // SAFETY: an initialized stream.
            let code = unsafe {
                zlib::inflatePrime(stream, c_int::from(bits), c_int::from(byte >> (8 - bits.min(8))))
            };
            inflater.expect(code)?;
        }
        if length > 0 {
            // SAFETY: an initialized stream; zlib copies `length` bytes from `window`.
            let code = unsafe { zlib::inflateSetDictionary(stream, window.as_ptr(), length) };
            inflater.expect(code)?;
        }
        Ok(inflater)
    }

    /// Decodes from `input` to `output`; stops after a block if asked.
    pub(super) fn step(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        stop_at_blocks: bool,
    ) -> Result<InflateStep> {
        let available = (u32::try_from(input.len()), u32::try_from(output.len()));
        let (Ok(input_size), Ok(output_size)) = available else {
            return Err(Error::internal("expected pieces below 4 GiB for zlib"));
        };
        let stream = self.0.as_mut_ptr();
        let flush = if stop_at_blocks { zlib::Z_BLOCK } else { zlib::Z_NO_FLUSH };
        // SAFETY: an initialized stream, whose fields are set through the raw pointer; the buffers outlive the
        // call, zlib reads `input_size` and writes at most `output_size` bytes; the pointers are
        // cleared afterwards, so none dangles in the stream.
        let (code, left_in, left_out, flags) = unsafe {
            (*stream).next_in = input.as_ptr().cast_mut();
            (*stream).avail_in = input_size;
            (*stream).next_out = output.as_mut_ptr();
            (*stream).avail_out = output_size;
            let code = zlib::inflate(stream, flush);
            let left = ((*stream).avail_in, (*stream).avail_out, (*stream).data_type);
            (*stream).next_in = ptr::null_mut();
            (*stream).next_out = ptr::null_mut();
            (code, left.0, left.1, left.2)
        };
        let end = match code {
            zlib::Z_STREAM_END => InflateEnd::StreamEnd,
            zlib::Z_OK | zlib::Z_BUF_ERROR => end(flags),
            other => return Err(corrupt(other)),
        };
        Ok(InflateStep {
            consumed: input.len() - left_in as usize,
            produced: output.len() - left_out as usize,
            end,
        })
    }

    fn expect(&self, code: c_int) -> Result<()> {
        if code == zlib::Z_OK { Ok(()) } else { Err(corrupt(code)) }
    }
}

/// zlib's `data_type`: 128 after a block, 64 in the last block, the low bits count unused bits.
fn end(flags: c_int) -> InflateEnd {
    match u8::try_from(flags & 7) {
        Ok(bits) if flags & 128 != 0 && flags & 64 == 0 => InflateEnd::BlockEnd(bits),
        _ => InflateEnd::Within,
    }
}

fn corrupt(code: c_int) -> Error {
    Error::corrupt(format!("expected a valid deflate stream, found damage (zlib code {code})"))
}

impl Drop for Inflater {
    fn drop(&mut self) {
        // SAFETY: initialized by `new`, ended only here.
        unsafe { zlib::inflateEnd(self.0.as_mut_ptr()) };
    }
}
