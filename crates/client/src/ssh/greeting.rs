//! First lines of both sides of a channel, before the wire protocol begins: one line in each direction, and neither
//! side waits for the line of the other.
//!
//! The local side sends one line of JSON, [`OpenRequest`]; frames follow at once. The other side sends any output of
//! the login, then a line that begins with [`MARK`], with a [`Greeting`] in JSON; then frames.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use array::{Error, ErrorKind, Result, Retry};
use bytes::{Buf, BytesMut};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// Beginning of the line of the other side.
const MARK: &str = "corridor-stdio ";
/// Maximum length of a line, in bytes.
pub const MAX_LINE_BYTES: usize = 64 << 10;
/// Maximum size of the login's output before the greeting, in bytes.
const MAX_NOISE_BYTES: usize = 256 << 10;
/// Number of bytes read at once before the greeting.
const READ_BYTES: usize = 8 << 10;

/// Request to the other side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpenRequest {
    /// Path to open; `~/` is the home directory.
    pub path: String,
    /// Whether to listen for a direct link.
    pub direct: bool,
}

impl OpenRequest {
    /// Encodes the request as a line.
    ///
    /// # Errors
    /// `Internal` if it cannot be represented in JSON.
    pub fn line(&self) -> Result<String> {
        Ok(format!("{}\n", text(self)?))
    }

    /// Parses a line.
    ///
    /// # Errors
    /// `Corrupt` if it has another form.
    pub fn read(line: &[u8]) -> Result<Self> {
        let wrong = |e| Error::corrupt(format!("expected a request in JSON, found {e}"));
        serde_json::from_slice(line).map_err(wrong)
    }
}

fn text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::internal(format!("a line in JSON: {e}")))
}

/// Response of the other side, which identifies its program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Greeting {
    /// Name and version of the program.
    pub program: String,
    /// Name of the array at the end of the path; empty if none.
    #[serde(default)]
    pub array: String,
    /// Address of a direct link, if the other side listens for one.
    #[serde(default)]
    pub direct: Option<DirectAddress>,
    /// Reason that the path could not be opened.
    #[serde(default)]
    pub error: Option<ErrorReport>,
}

impl Greeting {
    /// Encodes the greeting as a line.
    ///
    /// # Errors
    /// `Internal` if it cannot be represented in JSON.
    pub fn line(&self) -> Result<String> {
        Ok(format!("{MARK}{}\n", text(self)?))
    }

    /// Parses a line; `None` for other lines, such as the output of a login.
    pub fn read(line: &[u8]) -> Option<Result<Self>> {
        let text = line.strip_prefix(MARK.as_bytes())?;
        let wrong = |e| Error::corrupt(format!("expected a greeting in JSON, found {e}"));
        Some(serde_json::from_slice(text).map_err(wrong))
    }
}

/// Address of a direct link, and the credentials for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DirectAddress {
    /// Address and port.
    pub address: std::net::SocketAddr,
    /// Token that authorizes a client.
    pub token: String,
    /// Fingerprint of the certificate.
    pub fingerprint: String,
}

/// An error in JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ErrorReport {
    kind: u16,
    retry: bool,
    message: String,
    places: Vec<String>,
}

impl From<&Error> for ErrorReport {
    fn from(error: &Error) -> Self {
        Self {
            kind: error.kind().code(),
            retry: error.retry() == Retry::MayHelp,
            message: error.message().to_owned(),
            places: error.places().to_vec(),
        }
    }
}

impl From<ErrorReport> for Error {
    fn from(report: ErrorReport) -> Self {
        let retry = if report.retry { Retry::MayHelp } else { Retry::Never };
        let error = Self::new(ErrorKind::from_code(report.kind), report.message).with_retry(retry);
        report.places.into_iter().take(Self::MAX_CONTEXT).fold(error, Self::context)
    }
}

/// Stream of the other side: the greeting is removed and sent to a channel; reading returns the frames after it.
pub(super) struct GreetedStream<R, W> {
    input: R,
    output: W,
    /// Bytes read and not passed on yet.
    buffer: BytesMut,
    /// Channel of the greeting, used once.
    tell: Option<oneshot::Sender<Result<Greeting>>>,
    noise_bytes: usize,
}

impl<R, W> GreetedStream<R, W> {
    pub(super) fn new(input: R, output: W, tell: oneshot::Sender<Result<Greeting>>) -> Self {
        Self { input, output, buffer: BytesMut::new(), tell: Some(tell), noise_bytes: 0 }
    }

    /// Returns the greeting, if its line has arrived; lines before it are dropped.
    fn greeting(&mut self) -> Option<Result<Greeting>> {
        while let Some(end) = self.buffer.iter().position(|&b| b == b'\n') {
            let line = self.buffer.split_to(end + 1);
            if let Some(read) = Greeting::read(&line) {
                return Some(read);
            }
            self.noise_bytes += line.len();
        }
        let too_much = self.buffer.len() > MAX_LINE_BYTES || self.noise_bytes > MAX_NOISE_BYTES;
        too_much.then(|| {
            Err(Error::corrupt("expected a greeting of `corridor serve --stdio`, found other output"))
        })
    }
}

impl<R: AsyncRead + Unpin, W: Unpin> AsyncRead for GreetedStream<R, W> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.tell.is_some() {
            if let Some(greeting) = this.greeting() {
                let is_good = greeting.as_ref().is_ok_and(|greeting| greeting.error.is_none());
                if let Some(tell) = this.tell.take() {
                    // The receiver may have been dropped.
                    drop(tell.send(greeting));
                }
                if !is_good {
                    return Poll::Ready(Err(io::Error::other("the other side sent no greeting")));
                }
                break;
            }
            let mut piece = [0; READ_BYTES];
            let mut read = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut this.input).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.buffer.extend_from_slice(read.filled());
        }
        if this.buffer.is_empty() {
            return Pin::new(&mut this.input).poll_read(cx, into);
        }
        let now = this.buffer.len().min(into.remaining());
        into.put_slice(&this.buffer[..now]);
        this.buffer.advance(now);
        Poll::Ready(Ok(()))
    }
}

impl<R: Unpin, W: AsyncWrite + Unpin> AsyncWrite for GreetedStream<R, W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.output).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.output).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.output.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    const FINE: &str = "corridor-stdio {\"program\": \"corridor 1\"}\n";

    async fn read(output: &str, piece: usize) -> (Option<Result<Greeting>>, io::Result<Vec<u8>>) {
        let (sender, greeting) = oneshot::channel();
        let (mut far, near) = tokio::io::duplex(piece);
        let mut greeted = GreetedStream::new(near, tokio::io::sink(), sender);
        let output = output.to_owned();
        let mut frames = Vec::new();
        let send = async move {
            use tokio::io::AsyncWriteExt;
            // The reader may have ended with an error.
            far.write_all(output.as_bytes()).await.unwrap_or_default();
        };
        let receive = async {
            let done = greeted.read_to_end(&mut frames).await;
            drop(greeted);
            done
        };
        let (done, ()) = tokio::join!(receive, send);
        (greeting.await.ok(), done.map(|_| frames))
    }

    #[tokio::test]
    async fn the_greeting_is_found_after_the_output_of_the_login() {
        for noise in ["", "\n", "welcome\nto the corridor-stdio {}\n", "no end of line \n"] {
            for piece in [1, 7, 4096] {
                let (greeting, frames) = read(&format!("{noise}{FINE}frames\nand more"), piece).await;
                assert_eq!(greeting.unwrap().unwrap().program, "corridor 1");
                assert_eq!(frames.unwrap(), b"frames\nand more");
            }
        }
    }

    #[tokio::test]
    async fn other_output_ends_without_a_greeting_or_is_an_error() {
        assert!(read("bash: no\n", 64).await.0.is_none(), "the stream ended; the exit code has the reason");
        assert!(read("corridor-stdio {]\n", 64).await.0.unwrap().is_err());
        assert!(read(&"noise\n".repeat(60_000), 4096).await.0.unwrap().is_err());
        assert!(read(&"noise".repeat(60_000), 4096).await.0.unwrap().is_err());
    }

    #[tokio::test]
    async fn an_error_of_the_other_side_arrives_unchanged() {
        let error = Error::not_found("no such file `x`").context("there").with_retry(Retry::MayHelp);
        let greeting = Greeting {
            program: String::new(),
            array: String::new(),
            direct: None,
            error: Some(ErrorReport::from(&error)),
        };
        let (greeting, frames) = read(&greeting.line().unwrap(), 64).await;
        assert!(frames.is_err());
        let found = Error::from(greeting.unwrap().unwrap().error.unwrap());
        assert_eq!(
            (found.to_string(), found.kind(), found.retry()),
            (error.to_string(), error.kind(), error.retry())
        );
    }
}
