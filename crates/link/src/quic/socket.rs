//! UDP socket of the QUIC stack: assigns controllers to new connections, limits batches to the size of a
//! datagram, and passes on only datagrams that can be QUIC packets.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller};
use socket2::{Domain, Protocol, Socket, Type};
use wire::Result;
use wire::frames::probe::is_quic;

use super::adapter::SharedPace;
use super::probe::Arrivals;
use super::rejected::RejectionCounters;

/// Largest batch passed to the system in one call, bytes; a larger one would be rejected and look like a
/// packet that exceeds the path's MTU.
pub(super) const MAX_BATCH_BYTES: usize = 65_507;
/// Socket buffer size requested from the kernel, bytes: 30 ms at 1 Gb/s, so that a busy host loses nothing.
/// The system may grant less (`net.core.rmem_max`).
const BUFFER_BYTES: usize = 4 << 20;

/// Creates a bound socket with large buffers.
///
/// # Errors
/// The operating system refused.
pub(super) fn bind(address: SocketAddr) -> Result<std::net::UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.bind(&address.into())?;
    socket.set_nonblocking(true)?;
    // A privileged process may exceed the system's limit; other processes get the limit.
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES).is_err() {
        drop(socket.set_recv_buffer_size(BUFFER_BYTES));
    }
    if rustix::net::sockopt::set_socket_send_buffer_size_force(&socket, BUFFER_BYTES).is_err() {
        drop(socket.set_send_buffer_size(BUFFER_BYTES));
    }
    Ok(socket.into())
}

/// UDP socket under the QUIC stack.
pub(super) struct PacedSocket {
    inner: Arc<dyn AsyncUdpSocket>,
    max_packet_bytes: usize,
    /// One connection is created at a time.
    making: Mutex<()>,
    /// Controller of the connection that is being created.
    joining: Mutex<Option<Arc<SharedPace>>>,
    /// Listeners for packet trains.
    pub(super) arrivals: Arc<Arrivals>,
    /// Counters of rejected datagrams.
    pub(super) rejections: Arc<RejectionCounters>,
}

impl fmt::Debug for PacedSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PacedSocket {
    pub(super) fn new(socket: std::net::UdpSocket, max_packet_bytes: usize) -> Result<Arc<Self>> {
        let inner = TokioRuntime.wrap_udp_socket(socket)?;
        Ok(Arc::new(Self {
            inner,
            max_packet_bytes,
            making: Mutex::default(),
            joining: Mutex::default(),
            arrivals: Arc::default(),
            rejections: Arc::default(),
        }))
    }

    /// Creates a connection with `make`, which requests a poller; that poller gets `pace`.
    pub(super) fn join<T>(&self, pace: &Arc<SharedPace>, make: impl FnOnce() -> T) -> T {
        let _one = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        *self.joining.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(pace));
        let made = make();
        *self.joining.lock().unwrap_or_else(PoisonError::into_inner) = None;
        made
    }

    /// Creates a poller without a controller.
    pub(super) fn plain_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.inner).create_io_poller()
    }

    /// Removes oversized datagrams and those that do not belong to QUIC from a buffer of datagrams that were
    /// read together.
    fn sift(&self, buf: &mut [u8], meta: &mut RecvMeta) {
        let stride = meta.stride.max(1);
        let Some(datagrams) = buf.get_mut(..meta.len) else { return };
        let is_packet = |datagram: &[u8]| is_quic(datagram) && datagram.len() <= self.max_packet_bytes;
        if datagrams.chunks(stride).all(is_packet) {
            return;
        }
        let at = self.arrivals.now_micros();
        let mut kept = 0;
        for start in (0..meta.len).step_by(stride) {
            let end = (start + stride).min(meta.len);
            let datagram = &datagrams[start..end];
            if datagram.len() > self.max_packet_bytes {
                self.rejections.note_oversized();
            } else if is_quic(datagram) {
                datagrams.copy_within(start..end, kept);
                kept += end - start;
            } else if !self.arrivals.note(datagram, meta.addr, at) {
                self.rejections.note_stray();
            }
        }
        meta.len = kept;
    }
}

impl AsyncUdpSocket for PacedSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        let pace = self.joining.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(Poller { inner: Arc::clone(&self.inner).create_io_poller(), pace })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.inner.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.inner.poll_recv(cx, bufs, meta))?;
        for (buf, meta) in bufs.iter_mut().zip(meta.iter_mut()).take(count) {
            self.sift(buf, meta);
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments().min(MAX_BATCH_BYTES / self.max_packet_bytes.max(1)).max(1)
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

/// Poller of the socket for one connection, which registers the task that the controller has to wake.
struct Poller {
    inner: Pin<Box<dyn UdpPoller>>,
    pace: Option<Arc<SharedPace>>,
}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl UdpPoller for Poller {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(pace) = &self.pace {
            pace.set_sender(cx.waker());
        }
        self.inner.as_mut().poll_writable(cx)
    }
}
