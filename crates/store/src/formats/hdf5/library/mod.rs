//! The C library behind safe calls: one lock, handles that close themselves, errors instead of codes.
//!
//! This folder is the only place of the crate with `unsafe`. It knows files, links, attributes, data sets and
//! element types as the library tells them, and gives plain values; what they mean is decided elsewhere.
//!
//! HDF5 is not thread-safe: every call happens under [`hdf5_metno_sys::LOCK`], which any other user of the
//! library in the process shares. It is only held to look things up and for filters that have no decoder
//! of ours; bulk bytes are read and decoded without it.
#![expect(unsafe_code, reason = "HDF5 is a C library")]

mod attribute;
mod chunks;
mod create;
mod dataset;
mod datatype;
mod driver;
mod file;
mod heap;
mod mappings;

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::Once;

use array::{Error, Result};
use hdf5_metno_sys::h5::{H5dont_atexit, herr_t};
use hdf5_metno_sys::h5e::{H5E_DEFAULT, H5E_direction_t, H5E_error2_t, H5Eclear2, H5Eset_auto2, H5Ewalk2};
use hdf5_metno_sys::h5i::{H5Idec_ref, hid_t};
use hdf5_metno_sys::{LOCK, h5pl::H5PLset_loading_state};

pub(super) use attribute::AttributeValue;
pub(super) use chunks::ChunkLocation;
pub use create::{NewHdf5, create_hdf5};
pub(super) use dataset::{DatasetInfo, DatasetLayout, PipelineFilter, TextForm, trim_text};
pub(super) use datatype::{CompoundMember, Datatype, TextEnd};
pub(super) use file::{GroupLink, Hdf5File, LinkTarget, Object, ObjectKind, ObjectToken};
pub(super) use mappings::{DataspaceSelection, HyperslabAxis, VirtualMapping};

/// Runs `work` while no other thread is inside the library.
fn locked<T>(work: impl FnOnce() -> T) -> T {
    static START: Once = Once::new();
    let _guard = LOCK.lock();
    // SAFETY: has to come before every other call, and does: under the lock, once.
    START.call_once(|| unsafe {
        // A process may end while a storage thread is inside the library; its clean-up at exit would pull the
        // tables from under that thread. Files that are written are flushed and closed by us.
        H5dont_atexit();
    });
    // SAFETY: plain calls under the lock; both only set a mode of the library. Errors are read from the
    // stack instead of being printed, and no filter is ever loaded from a shared library.
    unsafe {
        H5Eset_auto2(H5E_DEFAULT, None, std::ptr::null_mut());
        let mut no_plugins: c_int = 0;
        H5PLset_loading_state(std::ptr::from_mut(&mut no_plugins));
    }
    work()
}

/// Runs one library call; a negative result becomes an error that says what the library was asked to do: that of
/// the file, if reading it failed meanwhile, which may go better the next time.
fn check<T: PartialOrd + Default>(what: &str, call: impl FnOnce() -> T) -> Result<T> {
    locked(|| {
        drop(driver::take_failure());
        let code = call();
        if code >= T::default() {
            return Ok(code);
        }
        let message = take_message();
        Err(match driver::take_failure() {
            Some(error) => error.context(format!("{what} by HDF5")),
            None => Error::corrupt(format!("expected HDF5 to {what}, found: {message}")),
        })
    })
}

/// The library's innermost complaint; clears its error stack.
fn take_message() -> String {
    unsafe extern "C" fn first(_n: c_uint, error: *const H5E_error2_t, data: *mut c_void) -> herr_t {
        // SAFETY: the library passes a valid record; `data` is the `String` given to the walk below.
        unsafe {
            let message = &mut *data.cast::<String>();
            if message.is_empty() && !(*error).desc.is_null() {
                *message = CStr::from_ptr((*error).desc).to_string_lossy().into_owned();
            }
        }
        0
    }
    let mut message = String::new();
    // SAFETY: the callback gets the pointer to `message`, which outlives the call.
    unsafe {
        let data = std::ptr::from_mut(&mut message).cast();
        H5Ewalk2(H5E_DEFAULT, H5E_direction_t::H5E_WALK_UPWARD, Some(first), data);
        H5Eclear2(H5E_DEFAULT);
    }
    if message.is_empty() { "no reason given".into() } else { message }
}

/// An identifier of the library, released when dropped.
#[derive(Debug)]
struct Handle(hid_t);

impl Handle {
    /// Takes over the identifier that `call` gives.
    fn new(what: &str, call: impl FnOnce() -> hid_t) -> Result<Self> {
        check(what, call).map(Self)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        locked(|| {
            // SAFETY: the identifier is valid and owned by this value alone.
            unsafe { H5Idec_ref(self.0) };
        });
    }
}
