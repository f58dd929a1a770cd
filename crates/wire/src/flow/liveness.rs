//! Detection of a peer that has gone: a ping after silence, the end after more silence.

use std::time::Instant;

use array::{Error, ErrorKind, Result};

use crate::Frame;
use crate::limits::{DEAD_AFTER, PING_AFTER, PING_AFTER_IN_TRANSFER, PINGS_IN_TRANSFER};

#[derive(Debug)]
pub(crate) struct Liveness {
    heard: Instant,
    /// Time at which the peer was last heard, or a ping was sent.
    quiet_since: Instant,
    nonce: u64,
    pings_due: u32,
    /// Pong to send. Only the newest ping is answered, so that pings cannot fill a queue.
    pong_due: Option<u64>,
}

impl Liveness {
    pub(crate) fn new(now: Instant) -> Self {
        Self { heard: now, quiet_since: now, nonce: 0, pings_due: 0, pong_due: None }
    }

    pub(crate) fn handle_heard(&mut self, now: Instant) {
        self.heard = now;
        self.quiet_since = now;
    }

    /// Notes that nothing is read for now: silence does not count, but pings are still sent to the peer.
    pub(crate) fn handle_unread(&mut self, now: Instant) {
        self.heard = now;
    }

    pub(crate) fn handle_ping(&mut self, nonce: u64) {
        self.pong_due = Some(nonce);
    }

    /// `listening`: frames are being read; see [`handle_unread`](Self::handle_unread). `in_transfer`: the peer is expected to send all the time.
    pub(crate) fn handle_timeout(&mut self, now: Instant, listening: bool, in_transfer: bool) -> Result<()> {
        if !listening {
            self.handle_unread(now);
        }
        if now >= self.heard + DEAD_AFTER {
            let secs = DEAD_AFTER.as_secs();
            return Err(Error::new(ErrorKind::Unreachable, format!("received nothing for {secs} s")));
        }
        if now >= self.ping_at(in_transfer) {
            self.quiet_since = now;
            self.nonce += 1;
            self.pings_due = if in_transfer { PINGS_IN_TRANSFER } else { 1 };
        }
        Ok(())
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Frame> {
        if let Some(nonce) = self.pong_due.take() {
            return Some(Frame::Pong { nonce });
        }
        self.pings_due = self.pings_due.checked_sub(1)?;
        Some(Frame::Ping { nonce: self.nonce })
    }

    pub(crate) fn poll_timeout(&self, in_transfer: bool) -> Instant {
        self.ping_at(in_transfer).min(self.heard + DEAD_AFTER)
    }

    fn ping_at(&self, in_transfer: bool) -> Instant {
        let after = if in_transfer { PING_AFTER_IN_TRANSFER } else { PING_AFTER };
        self.quiet_since + after
    }
}
