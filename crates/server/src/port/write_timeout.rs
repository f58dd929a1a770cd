//! A stream with a timeout for writing: writing fails if the peer has read nothing for a while.
//!
//! Without it, a peer that sends requests and never reads would keep its connection, and the responses queued in it,
//! without end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Reads and writes like the inner stream, with a timeout for writing.
pub(crate) struct WriteTimeout<S> {
    inner: S,
    within: Duration,
    /// Timer that runs while the peer reads nothing.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    /// Creates a stream whose writes fail with `TimedOut` if the peer reads nothing for `within`.
    pub(crate) fn new(inner: S, within: Duration) -> Self {
        Self { inner, within, waiting: None }
    }

    /// Returns `written`, the result of a write, or `TimedOut` if it is pending and the peer has read nothing for too
    /// long.
    fn or_timeout<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let within = self.within;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer reads nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.or_timeout(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, parts);
        self.or_timeout(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.or_timeout(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.inner).poll_shutdown(context);
        self.or_timeout(context, ended)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const WITHIN: Duration = Duration::from_secs(40);

    #[tokio::test(start_paused = true)]
    async fn writing_fails_for_a_peer_that_reads_nothing_but_not_for_a_slow_one() {
        let (here, mut there) = duplex(16);
        let slow = async {
            for _ in 0..10 {
                tokio::time::sleep(WITHIN / 2).await;
                there.read_exact(&mut [0; 16]).await.unwrap();
            }
        };
        let mut patient = WriteTimeout::new(here, WITHIN);
        tokio::join!(slow, async { patient.write_all(&[7; 160]).await.unwrap() });
        let error = patient.write_all(&[7; 160]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
