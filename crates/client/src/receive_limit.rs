//! Limit of the rate at which this process receives from all servers together: one rate for all its connections,
//! because they share this host. It is divided among connections by `control::fair_share` and `link::ReceiveGroup`.

use std::sync::OnceLock;

use array::{Error, Result};
use control::fair_share::LEAST_RATE;
use link::{ClientHandle, Driver, Link, ReceiveGroup};
use wire::ClientConfig;

static RECEIVER: OnceLock<(f64, ReceiveGroup)> = OnceLock::new();

/// Limits the total rate of receiving of all connections made from now on to `bytes_per_sec`. To be called within a
/// runtime.
///
/// # Errors
/// `Invalid` if it is less than 64 KiB per second, or another rate was set before.
pub fn receive_at_most(bytes_per_sec: f64) -> Result<()> {
    if bytes_per_sec.is_nan() || bytes_per_sec < LEAST_RATE {
        return Err(Error::invalid(format!(
            "expected a rate of receiving of at least {LEAST_RATE} bytes per second, found {bytes_per_sec}"
        )));
    }
    let (current, _) = RECEIVER.get_or_init(|| (bytes_per_sec, ReceiveGroup::new(bytes_per_sec)));
    if current.to_bits() != bytes_per_sec.to_bits() {
        return Err(Error::invalid(format!(
            "the rate of receiving cannot be changed: it was set to {current} bytes per second in this process, found \
             {bytes_per_sec}"
        )));
    }
    Ok(())
}

/// Starts a client on a link, subject to the limit if there is one.
pub(crate) fn connect(link: Link, config: ClientConfig) -> Result<(ClientHandle, Driver)> {
    match RECEIVER.get() {
        Some((_, group)) => link::connect_among(group, link, config),
        None => link::connect(link, config),
    }
}

#[cfg(test)]
mod tests {
    use super::receive_at_most;

    #[test]
    fn rates_that_are_too_low_are_refused() {
        for wrong in [0.0, -1.0, f64::NAN, 1e4] {
            let error = receive_at_most(wrong).unwrap_err().to_string();
            assert!(error.contains("at least 65536 bytes per second"), "{error}");
        }
    }
}
