//! Virtual file driver: every byte that the library reads comes through it, and the library opens no file by itself.
//!
//! So the library reads the very file that was checked and opened before, changes are detected, requests are counted, and no
//! malicious file can make the library open another one.
#![expect(unsafe_code, reason = "HDF5 is a C library")]

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use std::sync::{Arc, OnceLock};

use array::{Error, Result};
use hdf5_metno_sys::h5::{haddr_t, herr_t};
use hdf5_metno_sys::h5fd::{H5FD_class_t, H5FDregister};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::H5Pset_driver;
use parking_lot::Mutex;

use super::super::signature::SIGNATURE;
use super::calls::{Handle, check, locked};
use super::heap;
use crate::{ByteStore, FileBytes};

/// Value by which the library marks an unknown address.
const UNDEFINED: haddr_t = haddr_t::MAX;
/// Number of the driver: the first number that is not reserved, plus an offset.
const DRIVER_NUMBER: c_int = 0x436f;
/// Version of the class below.
const CLASS_VERSION: c_uint = 1;
/// Most bytes of one read that may lie beyond the end of the file: the library guesses how long some headers
/// are.
const MAX_BEYOND_BYTES: usize = 64 << 10;
/// Largest file size: the largest signed offset.
const MAX_ADDRESS: haddr_t = i64::MAX as u64;

/// The file that is being opened; set only while the lock is held, so that nothing else can be opened.
static OPENING: Mutex<Option<Arc<FileBytes>>> = Mutex::new(None);

/// Last error of a read of the file; set and taken while the lock is held. The library itself reports only that a read failed.
static FAILURE: Mutex<Option<Error>> = Mutex::new(None);

/// Range of the last read of elements. Set only while the lock is held; while it is set, no elements are read.
static PROBED: Mutex<Option<ProbedRange>> = Mutex::new(None);

/// First byte and number of bytes of the last read; `None` before the first read.
type ProbedRange = Option<(u64, u64)>;

/// Memory type by which the library marks reads of elements, as opposed to metadata.
const ELEMENTS: c_int = 3;

/// Optional function that this driver does not implement.
type AbsentFunction = Option<unsafe extern "C" fn()>;

/// The library's class of drivers, version 1, as its headers declare it. (The bindings lack its first field.)
#[repr(C)]
struct DriverClass {
    version: c_uint,
    value: c_int,
    name: *const c_char,
    max_address: haddr_t,
    close_degree: c_int,
    terminate: AbsentFunction,
    superblock: [AbsentFunction; 3],
    fapl_size: usize,
    fapl: [AbsentFunction; 3],
    dxpl_size: usize,
    dxpl: [AbsentFunction; 2],
    open: unsafe extern "C" fn(*const c_char, c_uint, hid_t, haddr_t) -> *mut OpenFile,
    close: unsafe extern "C" fn(*mut OpenFile) -> herr_t,
    compare: AbsentFunction,
    query: AbsentFunction,
    get_type_map: AbsentFunction,
    allocate: AbsentFunction,
    free: AbsentFunction,
    get_eoa: unsafe extern "C" fn(*const OpenFile, c_int) -> haddr_t,
    set_eoa: unsafe extern "C" fn(*mut OpenFile, c_int, haddr_t) -> herr_t,
    get_eof: unsafe extern "C" fn(*const OpenFile, c_int) -> haddr_t,
    get_handle: AbsentFunction,
    read: unsafe extern "C" fn(*mut OpenFile, c_int, hid_t, haddr_t, usize, *mut c_void) -> herr_t,
    write: unsafe extern "C" fn(*mut OpenFile, c_int, hid_t, haddr_t, usize, *const c_void) -> herr_t,
    vectors_and_selections: [AbsentFunction; 4],
    flush: AbsentFunction,
    truncate: AbsentFunction,
    lock: AbsentFunction,
    unlock: AbsentFunction,
    delete: AbsentFunction,
    control: AbsentFunction,
    free_lists: [c_int; 7],
}

// SAFETY: constant data; its only pointer is to a constant string.
unsafe impl Sync for DriverClass {}

static CLASS: DriverClass = DriverClass {
    version: CLASS_VERSION,
    value: DRIVER_NUMBER,
    name: c"corridor".as_ptr(),
    max_address: MAX_ADDRESS,
    // Closed when the last object in it is.
    close_degree: 1,
    terminate: None,
    superblock: [None; 3],
    fapl_size: 0,
    fapl: [None; 3],
    dxpl_size: 0,
    dxpl: [None; 2],
    open,
    close,
    compare: None,
    query: None,
    get_type_map: None,
    allocate: None,
    free: None,
    get_eoa,
    set_eoa,
    get_eof,
    get_handle: None,
    read,
    write,
    vectors_and_selections: [None; 4],
    flush: None,
    truncate: None,
    lock: None,
    unlock: None,
    delete: None,
    control: None,
    free_lists: [0; 7],
};

/// Open file: the fields that the library keeps for every driver (80 bytes), then those of this driver.
#[repr(C)]
struct OpenFile {
    library: [c_ulong; 16],
    file: Arc<FileBytes>,
    /// End of the addresses that the library may use.
    end: haddr_t,
    /// Bytes the file uses for lengths.
    length_bytes: usize,
}

/// Takes the last error of a read of the file, if there was one since the last call.
pub(super) fn take_failure() -> Option<Error> {
    FAILURE.lock().take()
}

/// Lets `access` open files through this driver.
pub(super) fn choose(access: &Handle) -> Result<()> {
    static DRIVER: OnceLock<Result<hid_t>> = OnceLock::new();
    let register = || {
        // SAFETY: the class is as the library's headers declare it, and lives for ever.
        check("take our file driver", || unsafe { H5FDregister((&raw const CLASS).cast::<H5FD_class_t>()) })
    };
    let driver = DRIVER.get_or_init(register).clone()?;
    // SAFETY: a valid property list and driver; the driver has no properties.
    check("use our file driver", || unsafe { H5Pset_driver(access.0, driver, std::ptr::null()) })?;
    Ok(())
}

/// Runs `open_file`, during which the library may open `file` and nothing else.
pub(super) fn opening<T>(file: &Arc<FileBytes>, open_file: impl FnOnce() -> Result<T>) -> Result<T> {
    locked(|| {
        *OPENING.lock() = Some(Arc::clone(file));
        let opened = open_file();
        *OPENING.lock() = None;
        opened
    })
}

/// Runs `work`, in which the library may look up elements but not read them. Returns the range that it wanted to read last. The caller
/// holds the lock.
pub(super) fn probing<T>(work: impl FnOnce() -> T) -> (T, ProbedRange) {
    *PROBED.lock() = Some(None);
    let done = work();
    let probed = PROBED.lock().take();
    (done, probed.flatten())
}

/// Bytes the file uses for lengths, from its superblock.
fn length_bytes(file: &FileBytes) -> Result<usize> {
    const SUPERBLOCK_BYTES: u64 = 16;
    let mut at = 0u64;
    while at.saturating_add(SUPERBLOCK_BYTES) <= file.size_bytes() {
        let mut head = [0; 16];
        file.read_at(at, &mut head)?;
        if head.starts_with(SIGNATURE) {
            let found = usize::from(if head[8] < 2 { head[14] } else { head[10] });
            return match found {
                2 | 4 | 8 => Ok(found),
                _ => Err(Error::corrupt(format!("expected lengths of 2, 4 or 8 bytes, found {found}"))),
            };
        }
        at = if at == 0 { 512 } else { at * 2 };
    }
    Err(Error::corrupt("expected the signature of HDF5 at the start or after a user block"))
}

unsafe extern "C" fn open(_name: *const c_char, flags: c_uint, _fapl: hid_t, _max: haddr_t) -> *mut OpenFile {
    let file = OPENING.lock().clone();
    let (Some(file), 0) = (file, flags & 1) else { return std::ptr::null_mut() };
    let Ok(length_bytes) = length_bytes(&file) else { return std::ptr::null_mut() };
    Box::into_raw(Box::new(OpenFile { library: [0; 16], file, end: 0, length_bytes }))
}

unsafe extern "C" fn close(open: *mut OpenFile) -> herr_t {
    // SAFETY: the library gives back what `open` gave it, once.
    drop(unsafe { Box::from_raw(open) });
    0
}

unsafe extern "C" fn get_eoa(open: *const OpenFile, _kind: c_int) -> haddr_t {
    // SAFETY: the library gives what `open` gave it, not closed yet.
    unsafe { (*open).end }
}

unsafe extern "C" fn set_eoa(open: *mut OpenFile, _kind: c_int, end: haddr_t) -> herr_t {
    // SAFETY: as in `get_eoa`; the lock is held, so nobody else looks at it.
    unsafe { (*open).end = end };
    0
}

unsafe extern "C" fn get_eof(open: *const OpenFile, _kind: c_int) -> haddr_t {
    // SAFETY: as in `get_eoa`.
    unsafe { (*open).file.size_bytes() }
}

unsafe extern "C" fn read(
    open: *mut OpenFile,
    kind: c_int,
    _dxpl: hid_t,
    at: haddr_t,
    size: usize,
    buffer: *mut c_void,
) -> herr_t {
    if kind == ELEMENTS
        && let Some(probed) = PROBED.lock().as_mut()
    {
        *probed = Some((at, size as u64));
        return 0;
    }
    // SAFETY: as in `get_eoa`.
    let open = unsafe { &*open };
    // The library's own check wraps around for sizes that a file claims.
    let is_inside = at.checked_add(size as u64).is_some_and(|end| end <= open.end);
    let there = usize::try_from(open.file.size_bytes().saturating_sub(at)).unwrap_or(usize::MAX).min(size);
    if at == UNDEFINED || buffer.is_null() || !is_inside || size - there > MAX_BEYOND_BYTES {
        return -1;
    }
    // SAFETY: the library gives room for `size` bytes.
    let into = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size) };
    // Beyond the end of the file there are zeros, as with the library's own driver.
    let (found, beyond) = into.split_at_mut(there);
    beyond.fill(0);
    if !found.is_empty()
        && let Err(error) = open.file.read_at(at, found)
    {
        *FAILURE.lock() = Some(error);
        return -1;
    }
    if heap::ends(into, open.length_bytes) { 0 } else { -1 }
}

unsafe extern "C" fn write(
    _open: *mut OpenFile,
    _kind: c_int,
    _dxpl: hid_t,
    _at: haddr_t,
    _size: usize,
    _buffer: *const c_void,
) -> herr_t {
    -1
}
