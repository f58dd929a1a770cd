//! A client and a server on a path in virtual time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use array::{AxisRange, DatasetId, Generation, Priority, Selection, Urgency};
use bytes::Bytes;
use corridor_wire as wire;
use wire::ops::{BlockPlace, ReadParameters};
use wire::{Client, ClientConfig, ClientEvent, Machine, Message, Server, ServerConfig, ServerEvent};

pub(crate) const NORMAL: Urgency = Urgency { priority: Priority::NORMAL, deadline: None };
/// Before each frame of a byte stream.
pub(crate) const PREFIX_BYTES: usize = 4;
pub(crate) const ONE_WAY: Duration = Duration::from_millis(75);
pub(crate) const MS: Duration = Duration::from_millis(1);

pub(crate) fn read(ranges: Vec<AxisRange>) -> Bytes {
    let dataset = DatasetId(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);
    let place = BlockPlace { dataset, generation: Generation(1), array: 0, level: 0 };
    ReadParameters { place, selection: Selection::new(ranges).unwrap() }.encode()
}

/// 4 KiB of an array of 2 GB, anywhere.
pub(crate) fn random_read(n: u64) -> Bytes {
    let start = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (2_000_000_000 / 4096) * 4096;
    read(vec![AxisRange::contiguous(start, 4096)])
}

/// A client and a server after their handshake.
pub(crate) fn open(window_bytes: u64, capabilities: &[&str]) -> (Instant, Client, Server) {
    let now = Instant::now();
    let capabilities = capabilities.iter().map(|&s| s.to_owned()).collect();
    let config = ClientConfig { window_bytes, capabilities, ..ClientConfig::default() };
    let mut client = Client::new(config, now).unwrap();
    let mut server = Server::new(ServerConfig::default(), now).unwrap();
    let hello = client.poll_transmit(now).unwrap();
    server.handle_frame(now, hello.into_bytes()).unwrap();
    assert!(matches!(server.poll_event(), Some(ServerEvent::Hello(_))));
    server.accept();
    client.handle_frame(now, server.poll_transmit(now).unwrap().into_bytes()).unwrap();
    assert!(matches!(client.poll_event(), Some(ClientEvent::Welcomed(_))));
    (now, client, server)
}

/// One direction of a link: so many bytes a millisecond, then a delay.
pub(crate) struct Pipe {
    pub(crate) bytes_per_ms: usize,
    /// Longest time that accepted messages may wait for the link; more messages stay with the sender.
    buffer: Duration,
    free_at: Instant,
    flying: VecDeque<(Instant, Message)>,
}

impl Pipe {
    pub(crate) fn new(start: Instant, bytes_per_ms: usize, buffer: Duration) -> Self {
        Self { bytes_per_ms, buffer, free_at: start, flying: VecDeque::new() }
    }

    /// Takes what the side has to send; how many bytes.
    pub(crate) fn fill(&mut self, now: Instant, side: &mut impl Machine) -> usize {
        let mut taken = 0;
        while self.free_at <= now + self.buffer
            && let Some(message) = side.poll_transmit(now)
        {
            let size = message.size_bytes() + PREFIX_BYTES;
            let nanos = size as u64 * 1_000_000 / self.bytes_per_ms as u64;
            self.free_at = self.free_at.max(now - MS) + Duration::from_nanos(nanos);
            self.flying.push_back((self.free_at + ONE_WAY, message));
            taken += size;
        }
        taken
    }

    /// Hands over what has come until at least so many bytes were handed over; how many were.
    pub(crate) fn empty(&mut self, now: Instant, side: &mut impl Machine, most: usize) -> usize {
        let mut taken = 0;
        while taken < most
            && let Some((_, message)) = self.flying.pop_front_if(|(at, _)| *at <= now)
        {
            taken += message.size_bytes();
            side.handle_frame(now, message.into_bytes()).unwrap();
        }
        taken
    }
}
