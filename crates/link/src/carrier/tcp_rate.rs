//! Holds a TCP socket to a rate (`SO_MAX_PACING_RATE`): the kernel then paces what leaves by it, and sends no faster. What is held
//! is read back with the rest that the kernel tells ([`TcpInfo::most_bytes_per_sec`](crate::carrier::tcp_info::TcpInfo)). Not here: which
//! rate.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "no crate at hand sets this option"))]

use std::io;
use std::os::fd::BorrowedFd;

/// Sends by this socket no faster than so many bytes per second from now on; a listening one gives it to all that it accepts.
///
/// # Errors
/// `Unsupported` where the system does not pace; the operating system refused.
#[cfg(target_os = "linux")]
pub(crate) fn hold(socket: BorrowedFd<'_>, bytes_per_sec: f64) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    // All ones would be no limit, and nothing no sending at all.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of floats saturates")]
    let rate = (bytes_per_sec as libc::c_ulong).clamp(1, libc::c_ulong::MAX - 1);
    let size_bytes = libc::socklen_t::try_from(size_of_val(&rate)).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open as long as it is borrowed; the kernel reads `size_bytes` bytes of a number that has as many.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const rate).cast(),
            size_bytes,
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Nothing to do it by.
///
/// # Errors
/// `Unsupported`.
#[cfg(not(target_os = "linux"))]
pub(crate) fn hold(_: BorrowedFd<'_>, _: f64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
