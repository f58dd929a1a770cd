//! Rate limit of a TCP socket (`SO_MAX_PACING_RATE`): the kernel paces the packets of the socket and does not
//! exceed the limit. [`TcpInfo::most_bytes_per_sec`](crate::carrier::tcp_info::TcpInfo) reads it back.
//! Outside this module: the choice of a rate.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "no crate at hand sets this option"))]

use std::io;
use std::os::fd::BorrowedFd;

/// Limits the sending rate of a socket, bytes per second, from now on; a listening socket passes it on to all
/// connections that it accepts.
///
/// # Errors
/// `Unsupported` where the system cannot pace; the operating system refused.
#[cfg(target_os = "linux")]
pub(crate) fn hold(socket: BorrowedFd<'_>, bytes_per_sec: f64) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    // A value of all ones would mean no limit, and zero would stop sending.
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

/// Rejects the request: this system cannot pace.
///
/// # Errors
/// `Unsupported`.
#[cfg(not(target_os = "linux"))]
pub(crate) fn hold(_: BorrowedFd<'_>, _: f64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
