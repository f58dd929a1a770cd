//! Standard input and output as asynchronous streams of bytes, without threads that wait for them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net;

use array::{Error, Result};
use rustix::fs::{FileType, fstat};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// Standard input as a stream.
pub(super) type StdinStream = Box<dyn AsyncRead + Send + Unpin>;
/// Standard output as a stream.
pub(super) type StdoutStream = Box<dyn AsyncWrite + Send + Unpin>;

/// Returns this process's standard input and output, which `ssh` made pipes or sockets. Nothing else may read or print
/// from now on.
///
/// # Errors
/// `Invalid` if they are something else, such as a terminal.
pub(super) fn take() -> Result<(StdinStream, StdoutStream)> {
    let (input, from) = owned(&io::stdin())?;
    let (output, to) = owned(&io::stdout())?;
    let input: StdinStream = match from {
        FileType::Fifo => Box::new(pipe::Receiver::from_owned_fd(input)?),
        FileType::Socket => Box::new(socket(input)?),
        _ => return Err(unsuitable()),
    };
    let output: StdoutStream = match to {
        FileType::Fifo => Box::new(pipe::Sender::from_owned_fd(output)?),
        FileType::Socket => Box::new(socket(output)?),
        _ => return Err(unsuitable()),
    };
    Ok((input, output))
}

fn owned(of: &impl AsFd) -> Result<(OwnedFd, FileType)> {
    let fd = of.as_fd().try_clone_to_owned()?;
    let about = fstat(&fd).map_err(io::Error::from)?;
    Ok((fd, FileType::from_raw_mode(about.st_mode)))
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let socket = net::UnixStream::from(fd);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

fn unsuitable() -> Error {
    Error::invalid(
        "expected pipes as standard input and output: `corridor serve --stdio` is started by `ssh://`",
    )
}
