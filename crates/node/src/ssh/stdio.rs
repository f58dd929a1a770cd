//! Standard input and output as asynchronous streams of bytes, without blocking threads.

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
    let (input, input_type) = owned(&io::stdin())?;
    let (output, output_type) = owned(&io::stdout())?;
    let input: StdinStream = match input_type {
        FileType::Fifo => Box::new(pipe::Receiver::from_owned_fd(input)?),
        FileType::Socket => Box::new(socket(input)?),
        _ => return Err(unsuitable()),
    };
    let output: StdoutStream = match output_type {
        FileType::Fifo => Box::new(pipe::Sender::from_owned_fd(output)?),
        FileType::Socket => Box::new(socket(output)?),
        _ => return Err(unsuitable()),
    };
    Ok((input, output))
}

fn owned(stream: &impl AsFd) -> Result<(OwnedFd, FileType)> {
    let fd = stream.as_fd().try_clone_to_owned()?;
    let stat = fstat(&fd).map_err(io::Error::from)?;
    Ok((fd, FileType::from_raw_mode(stat.st_mode)))
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let socket = net::UnixStream::from(fd);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

fn unsuitable() -> Error {
    Error::invalid(
        "standard input and output must be pipes or sockets: `corridor serve --stdio` is for `ssh://` addresses",
    )
}
