//! Detection of hosts behind the same bottleneck, so that measurements of one serve the others.
//!
//! Rule: their addresses share the first 24 bits (IPv4) or 48 bits (IPv6), their least round trips lie within a tenth and
//! a millisecond of each other, and their capacities, where both are known, within a quarter.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// Prefix length, bits, that hosts of one network share (IPv4, IPv6).
const SHARED_BITS: (u32, u32) = (24, 48);
/// Largest relative difference of round trips of one bottleneck; `RTT_SECS` are added.
const RTT_SHARE: f64 = 0.1;
const RTT_SECS: f64 = 1e-3;
/// Largest relative difference of capacities.
const CAPACITY_SHARE: f64 = 0.25;

/// Prefix of the addresses of one network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetworkPrefix(IpAddr);

impl NetworkPrefix {
    /// Network of a host.
    #[must_use]
    pub fn of(host: IpAddr) -> Self {
        Self(match host.to_canonical() {
            IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits() & (u32::MAX << (32 - SHARED_BITS.0))).into(),
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << (128 - SHARED_BITS.1))).into(),
        })
    }
}

impl fmt::Display for NetworkPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = if self.0.is_ipv4() { SHARED_BITS.0 } else { SHARED_BITS.1 };
        write!(f, "{}/{bits}", self.0)
    }
}

/// Properties by which a bottleneck is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signature {
    /// Minimum round trip, seconds.
    pub rtt_secs: f64,
    /// Capacity towards the host, bytes per second, where it is known.
    pub capacity_bytes_per_sec: Option<f64>,
}

impl Signature {
    /// Returns whether both can belong to one bottleneck, if their networks are the same.
    #[must_use]
    pub fn fits(&self, other: &Self) -> bool {
        let apart = |a: f64, b: f64, share: f64, least: f64| (a - b).abs() <= (share * a.max(b)).max(least);
        let rtts = apart(self.rtt_secs, other.rtt_secs, RTT_SHARE, RTT_SECS);
        let capacities = self.capacity_bytes_per_sec.zip(other.capacity_bytes_per_sec);
        rtts && capacities.is_none_or(|(a, b)| apart(a, b, CAPACITY_SHARE, 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_address_prefixes() {
        let of = |text: &str| NetworkPrefix::of(text.parse().unwrap()).to_string();
        assert_eq!(of("192.0.2.77"), "192.0.2.0/24");
        assert_eq!(of("::ffff:192.0.2.77"), "192.0.2.0/24");
        assert_eq!(of("2001:db8:7:8::9"), "2001:db8:7::/48");
    }

    #[test]
    fn one_bottleneck_has_one_signature() {
        let at = |rtt_secs, capacity_bytes_per_sec| Signature { rtt_secs, capacity_bytes_per_sec };
        assert!(at(0.020, Some(1e8)).fits(&at(0.0215, Some(1.2e8))));
        assert!(at(0.020, None).fits(&at(0.0205, Some(1e6))));
        assert!(!at(0.020, None).fits(&at(0.025, None)), "another route");
        assert!(!at(0.020, Some(1e8)).fits(&at(0.020, Some(5e7))), "a slower bottleneck");
        assert!(!at(f64::NAN, None).fits(&at(0.02, None)));
    }
}
