//! Goodput that a link allows, as the limit of a case.

use super::super::report::{Case, Link};
use super::flows::TransportScene;

/// Bytes of data in a packet of 1500 bytes: TCP's share, the goodput that physics allows.
pub(super) const DATA_SHARE: f64 = 1448.0 / 1500.0;

/// Bytes of data per second that the link carries at the most, less those that it loses.
pub(super) fn goodput(link: &Link) -> Option<f64> {
    link.rate.map(|rate| rate * DATA_SHARE * (1.0 - link.loss.unwrap_or_default()))
}

pub(super) fn limited(scene: &TransportScene<'_>, case: Case) -> Case {
    match goodput(&scene.options.link) {
        Some(limit) => {
            case.limited(limit, "the link's rate without headers of packets of 1500 bytes and what is lost")
        }
        None => case,
    }
}
