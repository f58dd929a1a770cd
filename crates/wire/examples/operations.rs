//! Cost of one small operation in the state machines of both sides, including encoding and decoding only. Run
//! it under `time` and divide the user seconds by the number of operations that it prints.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement says what it did; where time begins does not matter"
)]

use std::time::Instant;

use array::{Priority, Result, Urgency};
use bytes::Bytes;
use corridor_wire::{Client, ClientConfig, Machine, Server, ServerConfig, ServerEvent};

const OPERATIONS: u64 = 1_000_000;
/// Number of operations in flight.
const IN_FLIGHT: u64 = 20_000;

fn main() -> Result<()> {
    let now = Instant::now();
    let mut client = Client::new(ClientConfig::default(), now)?;
    let mut server = Server::new(ServerConfig::default(), now)?;
    let (mut asked, mut bytes) = (0, 0);
    while asked < OPERATIONS {
        for n in asked..asked + IN_FLIGHT {
            client.request("op", parameters(n), Urgency::of(Priority::NORMAL))?;
        }
        asked += IN_FLIGHT;
        bytes += settle(now, &mut client, &mut server)?;
    }
    println!("{OPERATIONS} operations of 24 bytes, answered with as many: {bytes} bytes in frames");
    Ok(())
}

/// Makes parameters of 24 bytes that differ for each operation.
fn parameters(n: u64) -> Bytes {
    let part = |odd: u64| n.wrapping_mul(odd).to_le_bytes();
    let parts = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93, 0xA076_1D64_78BD_642F].map(part);
    Bytes::copy_from_slice(parts.as_flattened())
}

/// Exchanges frames until neither side has anything to send; returns the number of bytes sent.
fn settle(now: Instant, client: &mut Client, server: &mut Server) -> Result<usize> {
    let mut bytes = 0;
    loop {
        let (up, before) = (client.poll_transmit(now), bytes);
        if let Some(message) = up {
            bytes += message.size_bytes();
            server.handle_frame(now, message.into_bytes())?;
        }
        answer(server)?;
        if let Some(message) = server.poll_transmit(now) {
            bytes += message.size_bytes();
            client.handle_frame(now, message.into_bytes())?;
        }
        while client.poll_event().is_some() {}
        if bytes == before {
            return Ok(bytes);
        }
    }
}

fn answer(server: &mut Server) -> Result<()> {
    while let Some(event) = server.poll_event() {
        match event {
            ServerEvent::Hello(_) => server.accept(),
            ServerEvent::Request { op, parameters, .. } => {
                server.answer(op, parameters, Bytes::new().into())?;
            }
            _ => {}
        }
    }
    Ok(())
}
