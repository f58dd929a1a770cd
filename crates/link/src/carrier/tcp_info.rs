//! Statistics of a TCP connection from the kernel (`TCP_INFO`). Outside this module: their use.
//!
//! The kernel's structure grows at its end with each version; fields are read by offset, as far as this
//! kernel filled the structure.
#![expect(unsafe_code, reason = "no crate at hand asks the kernel for all of this structure")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Size of the buffer for the structure, bytes: more than any kernel fills in.
const MOST_BYTES: libc::socklen_t = 512;
/// Value of a minimum round trip that was not measured yet.
const NEVER: u32 = u32::MAX;

/// Structure that the kernel filled in, as raw bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct TcpInfo(Vec<u8>);

impl TcpInfo {
    /// Queries a socket.
    ///
    /// # Errors
    /// The socket is not a TCP socket.
    pub(crate) fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let mut told = vec![0_u8; MOST_BYTES as usize];
        let mut filled = MOST_BYTES;
        // SAFETY: the descriptor is open as long as it is borrowed; the kernel writes at most `filled` bytes to a buffer that
        // has as many, and says in `filled` how many it wrote.
        let answer = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                told.as_mut_ptr().cast(),
                &raw mut filled,
            )
        };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        told.truncate(filled as usize);
        Ok(Self(told))
    }

    fn u32_at(&self, offset: usize) -> Option<u32> {
        let bytes = self.0.get(offset..offset + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    }

    fn u64_at(&self, offset: usize) -> Option<u64> {
        let bytes = self.0.get(offset..offset + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    fn micros_at(&self, offset: usize) -> Option<Duration> {
        let micros = self.u32_at(offset).filter(|micros| *micros != 0 && *micros != NEVER)?;
        Some(Duration::from_micros(micros.into()))
    }

    /// Smoothed round trip.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.micros_at(68)
    }

    /// Recent minimum round trip.
    pub(crate) fn least_rtt(&self) -> Option<Duration> {
        self.micros_at(148)
    }

    /// Segment size for sending, bytes of data.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.u32_at(16).unwrap_or_default().into()
    }

    /// Largest IP packet that the path carries, bytes.
    pub(crate) fn mtu_bytes(&self) -> Option<u32> {
        self.u32_at(60).filter(|bytes| *bytes > 0)
    }

    /// Congestion window, segments.
    pub(crate) fn window_segments(&self) -> u64 {
        self.u32_at(80).unwrap_or_default().into()
    }

    /// Segments in flight.
    pub(crate) fn in_flight_segments(&self) -> u64 {
        self.u32_at(24).unwrap_or_default().into()
    }

    /// True when data is in flight and nothing was acknowledged for this long.
    pub(crate) fn is_unanswered_for(&self, time: Duration) -> bool {
        let since_ms = self.u32_at(56).unwrap_or_default();
        self.in_flight_segments() > 0 && Duration::from_millis(since_ms.into()) >= time
    }

    /// Pacing rate of the kernel, bytes per second; `None` where it does not pace.
    pub(crate) fn rate_bytes_per_sec(&self) -> Option<u64> {
        self.u64_at(104).filter(|rate| *rate != 0 && *rate != u64::MAX)
    }

    /// Limit of the pacing rate, bytes per second; `None` where there is none.
    pub(crate) fn most_bytes_per_sec(&self) -> Option<u64> {
        self.u64_at(112).filter(|rate| *rate != 0 && *rate != u64::MAX)
    }

    /// Recent delivery rate, bytes per second; `None` where the application sent too little to measure it.
    pub(crate) fn delivery_bytes_per_sec(&self) -> Option<u64> {
        let is_limited_by_sender = self.0.get(7).is_some_and(|bits| bits & 1 == 1);
        self.u64_at(160).filter(|rate| *rate > 0 && !is_limited_by_sender)
    }

    /// Bytes sent, retransmissions included.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.u64_at(200).unwrap_or_default()
    }

    /// Bytes retransmitted.
    pub(crate) fn resent_bytes(&self) -> u64 {
        self.u64_at(208).unwrap_or_default()
    }

    /// Bytes received.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.u64_at(128).unwrap_or_default()
    }

    /// Data segments sent, retransmissions included.
    pub(crate) fn sent_segments(&self) -> u64 {
        self.u32_at(156).unwrap_or_default().into()
    }

    /// Segments retransmitted.
    pub(crate) fn resent_segments(&self) -> u64 {
        self.u32_at(100).unwrap_or_default().into()
    }

    /// Number of observed reordering events.
    pub(crate) fn reordered(&self) -> Option<u64> {
        self.u32_at(220).map(u64::from)
    }

    /// Segments received after a gap.
    pub(crate) fn out_of_order(&self) -> Option<u64> {
        self.u32_at(224).map(u64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_kernel_tells_less_and_that_is_known() {
        let mut told = vec![0_u8; 160];
        told[68..72].copy_from_slice(&20_000_u32.to_ne_bytes());
        told[148..152].copy_from_slice(&NEVER.to_ne_bytes());
        let info = TcpInfo(told);
        assert_eq!(info.rtt(), Some(Duration::from_millis(20)));
        assert_eq!((info.least_rtt(), info.delivery_bytes_per_sec(), info.reordered()), (None, None, None));
        assert_eq!(TcpInfo::default().rtt(), None);
    }

    #[test]
    fn silence_counts_while_bytes_are_in_flight() {
        let told = |in_flight: u32, since_ms: u32| {
            let mut told = vec![0_u8; 232];
            told[24..28].copy_from_slice(&in_flight.to_ne_bytes());
            told[56..60].copy_from_slice(&since_ms.to_ne_bytes());
            TcpInfo(told).is_unanswered_for(Duration::from_secs(10))
        };
        assert!(told(1, 10_000) && !told(0, 10_000) && !told(7, 9_999));
    }

    #[test]
    fn a_rate_limited_by_the_sender_is_no_delivery_rate() {
        let mut told = vec![0_u8; 232];
        told[160..168].copy_from_slice(&5_000_000_u64.to_ne_bytes());
        assert_eq!(TcpInfo(told.clone()).delivery_bytes_per_sec(), Some(5_000_000));
        told[7] = 1;
        assert_eq!(TcpInfo(told).delivery_bytes_per_sec(), None);
    }
}
