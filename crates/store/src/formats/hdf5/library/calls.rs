//! Calls of the C library: the lock around them, their errors, and identifiers that are released when dropped.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::Once;

use array::{Error, Result};
use hdf5_metno_sys::h5::{H5dont_atexit, herr_t};
use hdf5_metno_sys::h5e::{H5E_DEFAULT, H5E_direction_t, H5E_error2_t, H5Eclear2, H5Eset_auto2, H5Ewalk2};
use hdf5_metno_sys::h5i::{H5Idec_ref, hid_t};
use hdf5_metno_sys::{LOCK, h5pl::H5PLset_loading_state};

use super::driver;

/// Runs `work` while no other thread is inside the library.
pub(super) fn locked<T>(work: impl FnOnce() -> T) -> T {
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

/// Runs one library call. A negative result becomes an error that names the call (`what`): the error of the file if reading it
/// failed meanwhile, since a retry may help then.
pub(super) fn check<T: PartialOrd + Default>(what: &str, call: impl FnOnce() -> T) -> Result<T> {
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

/// Returns the innermost message of the library's error stack, and clears the stack.
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

/// Identifier of the library (`hid_t`), released when dropped.
#[derive(Debug)]
pub(super) struct Handle(pub(super) hid_t);

impl Handle {
    /// Takes ownership of the identifier that `call` returns.
    pub(super) fn new(what: &str, call: impl FnOnce() -> hid_t) -> Result<Self> {
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
