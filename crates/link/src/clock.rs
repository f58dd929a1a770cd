//! Clock of the connections.

use std::time::Instant;

/// tokio's clock: its tests can stop it.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
