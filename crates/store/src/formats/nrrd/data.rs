//! Data of a NRRD file: after the header, in another file, or in several files that are encoded separately.
//!
//! Raw and gzip data are read in pieces. Data compressed by bzip2 or written as text have no positions at which decoding can start:
//! they are decoded as a whole, within the scratch budget, and kept as decoded chunks of other formats are.

use std::io::{Read, Write};
use std::sync::Arc;

use array::{DType, Error, ErrorKind, Result};
use parking_lot::Mutex;

use super::header::{DataLocation, DataSkip, NrrdEncoding, NrrdHeader};
use super::{MAX_NRRD_HEADER_BYTES, text};
use crate::cache::chunk_cache::{ChunkStore, DecodedChunk};
use crate::io::byte_store::FileStamp;
use crate::schedule::scratch::MAX_CHUNK_BYTES;
use crate::{Access, ByteStore, CancelFlag, FileBytes, GzipBytes, IoCounts, OpenOptions};

/// Most NRRD data files that are open at a time.
const MAX_OPEN: usize = 64;
/// Bytes of NRRD data that are decoded at a time.
const STEP_BYTES: usize = 1 << 20;

/// The store of the elements, where in it they begin, and how they are reached.
pub(super) struct LocatedData {
    pub(super) store: Arc<dyn ByteStore>,
    pub(super) offset: u64,
    pub(super) access: Access,
    /// Identities of files beside the header.
    pub(super) identity: Vec<Vec<u8>>,
}

/// Encoding, header length and element type of each file.
#[derive(Clone, Copy)]
struct FileLayout {
    encoding: NrrdEncoding,
    skip: DataSkip,
    dtype: DType,
}

/// Finds `size_bytes` of elements.
pub(super) fn find(
    file: &Arc<FileBytes>,
    header: &NrrdHeader,
    dtype: DType,
    size_bytes: u64,
    options: &OpenOptions,
) -> Result<LocatedData> {
    let file_layout = FileLayout { encoding: header.encoding, skip: header.skip, dtype };
    match &header.data {
        DataLocation::Attached => file_layout.find(file, header.end as u64, size_bytes, options, Vec::new()),
        DataLocation::Apart(name) => {
            let data = file.open_beside(name)?;
            let identity = data.identity();
            file_layout.find(&data, 0, size_bytes, options, identity)
        }
        DataLocation::Several(names) => {
            let parts =
                DataFiles::open(file, names, file_layout, size_bytes / names.len().max(1) as u64, options)?;
            let identity = parts.files.iter().flat_map(|part| part.identity()).collect();
            Ok(LocatedData { store: Arc::new(parts), offset: 0, access: Access::Chunked, identity })
        }
    }
}

impl FileLayout {
    /// Locates the elements of one file: they begin at `after`, after the lines and bytes to skip.
    fn find(
        self,
        data: &Arc<FileBytes>,
        after: u64,
        size_bytes: u64,
        options: &OpenOptions,
        identity: Vec<Vec<u8>>,
    ) -> Result<LocatedData> {
        let start = skip_lines(data, after, self.skip.lines)?;
        let found = |store, offset, access| Ok(LocatedData { store, offset, access, identity });
        match (self.encoding, self.skip.bytes) {
            (NrrdEncoding::Raw, Some(bytes)) => {
                let offset = start.saturating_add(bytes);
                check_within(data, offset, size_bytes)?;
                found(Arc::clone(data) as Arc<dyn ByteStore>, offset, Access::Flat)
            }
            (NrrdEncoding::Raw, None) => {
                // The header of a file that is cut short is no data.
                let from_end = data.size_bytes().checked_sub(size_bytes).filter(|&offset| offset >= start);
                let from_end = from_end.ok_or_else(|| short(data, start.saturating_add(size_bytes)))?;
                found(Arc::clone(data) as Arc<dyn ByteStore>, from_end, Access::Flat)
            }
            (NrrdEncoding::Gzip, Some(bytes)) => {
                found(Arc::new(GzipBytes::new(Arc::clone(data), start, options)), bytes, Access::Chunked)
            }
            _ => {
                let whole = WholeFile::new(Arc::clone(data), start, self, size_bytes, options)?;
                found(Arc::new(whole), 0, Access::Chunked)
            }
        }
    }
}

fn check_within(data: &FileBytes, offset: u64, size_bytes: u64) -> Result<()> {
    if offset.checked_add(size_bytes).is_some_and(|end| end <= data.size_bytes()) {
        return Ok(());
    }
    Err(short(data, offset.saturating_add(size_bytes)))
}

fn short(data: &FileBytes, expected: u64) -> Error {
    Error::corrupt(format!(
        "expected at least {expected} bytes, found {}: the file is cut short or its header is wrong: `{}`",
        data.size_bytes(),
        data.path().display()
    ))
}

/// The byte after `lines` line ends.
fn skip_lines(data: &FileBytes, start: u64, lines: u64) -> Result<u64> {
    if lines == 0 {
        return Ok(start);
    }
    let from = usize::try_from(start).unwrap_or(usize::MAX);
    let head = data.head(from.saturating_add(MAX_NRRD_HEADER_BYTES))?;
    let mut ends =
        head.iter().enumerate().skip(from).filter(|(_, b)| **b == b'\n').map(|(i, _)| i as u64 + 1);
    let wanted = usize::try_from(lines - 1).unwrap_or(usize::MAX);
    ends.nth(wanted).ok_or_else(|| {
        Error::corrupt(format!(
            "expected {lines} lines to skip in the first {MAX_NRRD_HEADER_BYTES} bytes, found fewer"
        ))
    })
}

/// Data that are decoded as a whole.
struct WholeFile {
    file: Arc<FileBytes>,
    start: u64,
    file_layout: FileLayout,
    size: usize,
    kept: ChunkStore,
}

impl WholeFile {
    fn new(
        file: Arc<FileBytes>,
        start: u64,
        file_layout: FileLayout,
        size_bytes: u64,
        options: &OpenOptions,
    ) -> Result<Self> {
        let size = usize::try_from(size_bytes).ok().filter(|_| size_bytes <= MAX_CHUNK_BYTES).ok_or_else(|| {
            Error::too_large(format!(
                "expected at most {MAX_CHUNK_BYTES} bytes of data in an encoding that has to be decoded as a whole \
                 (bzip2, ascii, hex), found {size_bytes}: write them as raw or gzip"
            ))
        })?;
        Ok(Self { file, start, file_layout, size, kept: ChunkStore::new(options.scratch.clone()) })
    }

    fn decode(&self, cancel: &CancelFlag) -> Result<Vec<u8>> {
        let mut input = FileStream { file: &self.file, at: self.start, end: self.file.size_bytes(), cancel };
        let FileLayout { encoding, skip, dtype } = self.file_layout;
        match encoding {
            NrrdEncoding::Bzip2 => self.unpack(&mut bzip2::read::MultiBzDecoder::new(&mut input), cancel),
            NrrdEncoding::Raw | NrrdEncoding::Gzip => {
                self.unpack(&mut flate2::read::MultiGzDecoder::new(&mut input), cancel)
            }
            NrrdEncoding::Ascii | NrrdEncoding::Hex => {
                let Some(bytes) = skip.bytes else {
                    return Err(Error::unsupported(
                        "expected `byte skip: -1` only with raw or packed data, found it with text",
                    ));
                };
                input.at = input.at.saturating_add(bytes).min(input.end);
                match encoding {
                    NrrdEncoding::Hex => text::hex(&mut input, self.size),
                    _ => text::numbers(&mut input, dtype, self.size),
                }
            }
        }
    }

    /// Reads the data from a decompressed stream: those after the bytes to skip, or those at its end.
    fn unpack(&self, stream: &mut dyn Read, cancel: &CancelFlag) -> Result<Vec<u8>> {
        let mut left = self.file_layout.skip.bytes.unwrap_or(0);
        let is_end_wanted = self.file_layout.skip.bytes.is_none();
        let mut out = Vec::new();
        let mut step = vec![0; STEP_BYTES];
        loop {
            cancel.check()?;
            let count = match stream.read(&mut step) {
                Ok(count) => count,
                // Bytes after the data are ignored. If the data are counted from the end, the whole stream is needed.
                Err(_) if !is_end_wanted && out.len() >= self.size => 0,
                Err(error) if !is_end_wanted && error.kind() == std::io::ErrorKind::UnexpectedEof => 0,
                Err(error) => return Err(as_corrupt(error)),
            };
            if count == 0 {
                break;
            }
            let skipped = usize::try_from(left).unwrap_or(usize::MAX).min(count);
            left -= skipped as u64;
            out.extend_from_slice(&step[skipped..count]);
            if is_end_wanted {
                let surplus = out.len().saturating_sub(self.size);
                out.drain(..surplus);
            } else if out.len() >= self.size {
                break;
            }
        }
        if out.len() < self.size {
            return Err(Error::corrupt(format!(
                "expected {} bytes of unpacked data, found {}: the file is cut short or its header is wrong: `{}`",
                self.size,
                out.len(),
                self.file.path().display()
            )));
        }
        out.truncate(self.size);
        Ok(out)
    }
}

/// An error of reading is its own; one of a decoder means that the data are damaged.
fn as_corrupt(error: std::io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(own) => own,
        Err(error) => Error::corrupt(format!("expected data that can be unpacked: {error}")),
    }
}

/// The next byte of a stream over [`FileStream`]; its errors are its own.
pub(super) fn next_byte(bytes: &mut impl Iterator<Item = std::io::Result<u8>>) -> Result<Option<u8>> {
    bytes.next().transpose().map_err(|error| error.downcast::<Error>().unwrap_or_else(Error::from))
}

impl ByteStore for WholeFile {
    fn size_bytes(&self) -> u64 {
        self.size as u64
    }

    fn read_at(&self, offset: u64, mut into: &mut [u8], cancel: &CancelFlag) -> Result<()> {
        let decoded = self.kept.get(0, 0, self.size, cancel, || {
            // The decoder's own memory and the text of numbers are small compared with the output.
            let needed = (self.size + 4 * STEP_BYTES) as u64;
            let room = self.kept.scratch().reserve(self.size as u64, needed, cancel)?;
            Ok(DecodedChunk::new(self.decode(cancel)?, room))
        })?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let wanted =
            from.checked_add(into.len()).and_then(|end| decoded.get(from..end)).ok_or_else(|| {
                Error::corrupt(format!("expected bytes from {offset} on of {}, found fewer", decoded.len()))
            })?;
        into.write_all(wanted)?;
        Ok(())
    }

    fn counts(&self) -> IoCounts {
        self.file.counts()
    }
}

/// File as a stream, from a position on.
pub(super) struct FileStream<'a> {
    file: &'a FileBytes,
    at: u64,
    end: u64,
    cancel: &'a CancelFlag,
}

impl Read for FileStream<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let count = left.min(into.len()).min(STEP_BYTES);
        let read = self.cancel.check().and_then(|()| self.file.read_at(self.at, &mut into[..count]));
        read.map_err(std::io::Error::other)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Data in several files of one size, one after another. Few of them are open at a time.
struct DataFiles {
    header: Arc<FileBytes>,
    files: Vec<DataFile>,
    part_bytes: u64,
    file_layout: FileLayout,
    options: OpenOptions,
    open: Mutex<Vec<(usize, Arc<OpenDataFile>)>>,
}

struct DataFile {
    name: String,
    stamp: FileStamp,
}

struct OpenDataFile {
    store: Arc<dyn ByteStore>,
    offset: u64,
}

impl DataFile {
    fn identity(&self) -> [Vec<u8>; 2] {
        [self.name.as_bytes().to_vec(), self.stamp.to_bytes().to_vec()]
    }
}

impl DataFiles {
    /// Checks every file once.
    fn open(
        header: &Arc<FileBytes>,
        names: &[String],
        file_layout: FileLayout,
        part_bytes: u64,
        options: &OpenOptions,
    ) -> Result<Self> {
        let part = |name: &String| {
            let file = header.open_beside(name)?;
            let stamp = file.stamp();
            file_layout.find(&file, 0, part_bytes, options, Vec::new())?;
            Ok(DataFile { name: name.clone(), stamp })
        };
        Ok(Self {
            header: Arc::clone(header),
            files: names.iter().map(part).collect::<Result<_>>()?,
            part_bytes,
            file_layout,
            options: options.clone(),
            open: Mutex::new(Vec::new()),
        })
    }

    /// The file of this number, opened now unless it is open.
    fn part(&self, number: usize) -> Result<Arc<OpenDataFile>> {
        let mut open = self.open.lock();
        if let Some(at) = open.iter().position(|(n, _)| *n == number) {
            let found = open.remove(at);
            open.push(found.clone());
            return Ok(found.1);
        }
        let part = &self.files[number];
        let file = self.header.open_beside(&part.name)?;
        if file.stamp() != part.stamp {
            return Err(Error::new(
                ErrorKind::Stale,
                format!("the file changed since it was opened, open it again: `{}`", part.name),
            ));
        }
        let found = self.file_layout.find(&file, 0, self.part_bytes, &self.options, Vec::new())?;
        let opened = Arc::new(OpenDataFile { store: found.store, offset: found.offset });
        if open.len() >= MAX_OPEN {
            open.remove(0);
        }
        open.push((number, Arc::clone(&opened)));
        Ok(opened)
    }
}

impl ByteStore for DataFiles {
    fn size_bytes(&self) -> u64 {
        self.part_bytes.saturating_mul(self.files.len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8], cancel: &CancelFlag) -> Result<()> {
        let (mut at, mut rest) = (offset, into);
        while !rest.is_empty() {
            cancel.check()?;
            let number = usize::try_from(at / self.part_bytes.max(1)).unwrap_or(usize::MAX);
            if number >= self.files.len() {
                return Err(Error::corrupt(format!(
                    "expected bytes within {}, found {at}",
                    self.size_bytes()
                )));
            }
            let within = at % self.part_bytes;
            let here = usize::try_from(self.part_bytes - within).unwrap_or(usize::MAX).min(rest.len());
            let (now, later) = rest.split_at_mut(here);
            let part = self.part(number)?;
            part.store.read_at(part.offset.saturating_add(within), now, cancel)?;
            at += here as u64;
            rest = later;
        }
        Ok(())
    }

    fn counts(&self) -> IoCounts {
        self.header.counts()
    }
}
