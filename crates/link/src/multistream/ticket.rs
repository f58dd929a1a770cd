//! Ticket that a stream presents to join a link: keying material exported from the TLS session of the link's
//! first stream (RFC 8446, section 7.5). Both ends derive it independently, nobody else can, and it reveals
//! nothing of other keys.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use rustls::ConnectionCommon;
use wire::{Error, Result};

const LABEL: &[u8] = b"EXPORTER-corridor-join";
const NAME_BYTES: usize = 16;
/// Size of a ticket, bytes.
pub(super) const TICKET_BYTES: usize = NAME_BYTES + 32;

/// Part of the ticket by which a link is found; not secret by itself.
pub(super) type LinkName = [u8; NAME_BYTES];

/// Ticket of a link. Never printed.
#[derive(Clone)]
pub(super) struct JoinTicket([u8; TICKET_BYTES]);

impl fmt::Debug for JoinTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket")
    }
}

impl JoinTicket {
    /// Derives the ticket of the link whose first stream is `connection`.
    pub(super) fn of<Data>(connection: &ConnectionCommon<Data>) -> Result<Self> {
        let made = connection.export_keying_material([0; TICKET_BYTES], LABEL, None);
        made.map(Self)
            .map_err(|e| Error::internal(format!("cannot derive a ticket from the TLS session: {e}")))
    }

    pub(super) fn from_bytes(bytes: [u8; TICKET_BYTES]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn name(&self) -> LinkName {
        let mut name = [0; NAME_BYTES];
        name.copy_from_slice(&self.0[..NAME_BYTES]);
        name
    }

    /// Compares in constant time.
    pub(super) fn is(&self, other: &Self) -> bool {
        verify_slices_are_equal(&self.0, &other.0).is_ok()
    }
}
