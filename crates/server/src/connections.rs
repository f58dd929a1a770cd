//! Connections of a server: visitors, which have not been admitted, and members, which have. Members stay connected as
//! long as they like. The number of visitors and the duration of a visit are limited. A new connection always gets a
//! place: if all are taken, the oldest visitor of the network with the most visitors is closed. So clients without a
//! token cannot keep others out by opening connections and leaving them idle.
//!
//! All addresses of a network count as one. Members on loopback are not limited by network, because all clients behind
//! a tunnel or proxy connect from there.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use tokio::sync::Notify;
use wire::{Full, HolderLimiter, HolderPermit};

/// Maximum number of connections that have not been admitted, such as those that load only the viewer's page.
pub const MAX_VISITORS: usize = 256;
/// Maximum number of admitted connections, by default (`--clients`).
pub const MAX_MEMBERS: usize = 256;
/// Number of members' places per place for a reader. Readers may only read Zarr; the limit keeps places free for
/// clients with more rights.
const MEMBERS_PER_READER: usize = 2;
/// Maximum number of admitted connections from one network.
pub const MAX_MEMBERS_PER_NETWORK: usize = 64;
/// Maximum number of further streams of all members' links; from one network, at most as many as members.
pub const MAX_JOINED: usize = 256;
/// Maximum duration of a visit, whether or not the visitor is active: loading a page takes seconds.
pub const VISIT_WITHIN: Duration = Duration::from_secs(60);
/// Timeout for the first bytes of a new connection, for its handshake, and for the header of a request.
pub const FIRST_BYTES_WITHIN: Duration = Duration::from_secs(10);
/// Timeout for writing to an HTTP client that reads nothing: that for silence in the wire protocol.
pub const WRITE_TIMEOUT: Duration = wire::limits::DEAD_AFTER;

/// Limits of connections; by default the constants of this module.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of visitors at a time; by default [`MAX_VISITORS`].
    pub most_visitors: usize,
    /// Maximum number of members at a time; by default [`MAX_MEMBERS`].
    pub most_members: usize,
    /// Maximum number of members from one network; by default [`MAX_MEMBERS_PER_NETWORK`].
    pub most_members_per_network: usize,
    /// Maximum duration of a visit; by default [`VISIT_WITHIN`].
    pub visit_within: Duration,
    /// Timeout for the first bytes of a connection; by default [`FIRST_BYTES_WITHIN`].
    pub first_bytes_within: Duration,
    /// Timeout for writing to an HTTP client that reads nothing; by default [`WRITE_TIMEOUT`].
    pub write_timeout: Duration,
}

impl Limits {
    /// Creates limits for this number of members, at most a quarter of them from one network.
    #[must_use]
    pub fn of_clients(most_members: usize) -> Self {
        let share = MAX_MEMBERS / MAX_MEMBERS_PER_NETWORK;
        Self { most_members, most_members_per_network: most_members.div_ceil(share), ..Self::default() }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            most_visitors: MAX_VISITORS,
            most_members: MAX_MEMBERS,
            most_members_per_network: MAX_MEMBERS_PER_NETWORK,
            visit_within: VISIT_WITHIN,
            first_bytes_within: FIRST_BYTES_WITHIN,
            write_timeout: WRITE_TIMEOUT,
        }
    }
}

/// Returns the network of an address, as large as that of one subscriber: a single IPv4 address, or all IPv6 addresses
/// with the same first 48 bits.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) if !ip.is_loopback() => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 80 << 80)),
        ip => ip,
    }
}

/// Network of a connection; on loopback, together with the number of the connection, so that each counts by itself.
type NetworkKey = (IpAddr, Option<u64>);

struct Visitor {
    from: IpAddr,
    dismissal: Arc<Notify>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// Visitors by number, oldest first.
    visitors: BTreeMap<u64, Visitor>,
}

impl State {
    /// Dismisses the oldest visitor of the network with the most visitors.
    fn dismiss_one(&mut self) {
        let mut counts = BTreeMap::<IpAddr, usize>::new();
        for visitor in self.visitors.values() {
            *counts.entry(visitor.from).or_default() += 1;
        }
        let count = |visitor: &Visitor| counts.get(&visitor.from).copied().unwrap_or_default();
        // Of several maxima, `max_by_key` returns the last: in reversed order, the oldest.
        let oldest = self.visitors.iter().rev().max_by_key(|(_, visitor)| count(visitor)).map(|(&n, _)| n);
        if let Some(visitor) = oldest.and_then(|number| self.visitors.remove(&number)) {
            visitor.dismissal.notify_one();
        }
    }
}

/// All connections of a server. Clones share them.
#[derive(Clone)]
pub struct Connections {
    limits: Limits,
    state: Arc<Mutex<State>>,
    members: HolderLimiter<NetworkKey>,
    /// Members that may only read Zarr.
    readers: HolderLimiter<NetworkKey>,
    /// Further streams of members' links.
    joined: HolderLimiter<NetworkKey>,
}

impl Connections {
    /// Starts without connections.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let limiter = |most: usize| HolderLimiter::new(most as u64);
        let most_per_network = limits.most_members_per_network as u64;
        Self {
            state: Arc::default(),
            members: limiter(limits.most_members).with_most_per_holder(most_per_network),
            readers: limiter(limits.most_members.div_ceil(MEMBERS_PER_READER)),
            joined: limiter(MAX_JOINED).with_most_per_holder(most_per_network),
            limits,
        }
    }

    /// Returns the limits of these connections.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the maximum number of connections at a time.
    #[must_use]
    pub fn most_connections(&self) -> usize {
        self.limits.most_visitors + self.limits.most_members + MAX_JOINED
    }

    /// Returns whether half of the places for visitors are taken.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.state.lock().visitors.len() >= self.limits.most_visitors / 2
    }

    /// Adds a new connection as a visitor; dismisses another visitor if all places are taken.
    #[must_use]
    pub fn enter(&self, from: IpAddr) -> ConnectionSlot {
        let mut state = self.state.lock();
        if state.visitors.len() >= self.limits.most_visitors {
            state.dismiss_one();
        }
        let number = state.next;
        state.next += 1;
        let dismissal = Arc::new(Notify::new());
        let visitor = Visitor { from: network(from), dismissal: Arc::clone(&dismissal) };
        state.visitors.insert(number, visitor);
        ConnectionSlot { connections: self.clone(), number, dismissal, permits: Mutex::default() }
    }
}

/// Place of one connection, until it is dropped.
pub struct ConnectionSlot {
    connections: Connections,
    number: u64,
    dismissal: Arc<Notify>,
    /// Permits of a member; empty for a visitor.
    permits: Mutex<Vec<HolderPermit<NetworkKey>>>,
}

impl ConnectionSlot {
    /// Makes a visitor a member; has no effect on a member.
    ///
    /// # Errors
    /// `Busy` if all members' places are taken, or the visitor has been dismissed.
    pub fn admit(&self) -> Result<()> {
        self.admit_as(false)
    }

    /// Makes a visitor a member that may only read Zarr. Such members take at most half of the places, rounded up.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    pub fn admit_reader(&self) -> Result<()> {
        self.admit_as(true)
    }

    fn admit_as(&self, is_reader: bool) -> Result<()> {
        let Connections { limits, members, readers, .. } = &self.connections;
        self.leave_visitors(|network| {
            let member = members.try_acquire(network, 1).map_err(|full| match full {
                Full::All => one_more(limits.most_members, ""),
                Full::Holder => one_more(limits.most_members_per_network, " from one network"),
            })?;
            let reader = is_reader.then(|| readers.try_acquire(network, 1)).transpose();
            let reader = reader.map_err(|_| one_more(readers.limit(), " that read Zarr"))?;
            Ok([Some(member), reader].into_iter().flatten().collect())
        })
    }

    /// Makes a visitor a further stream of a member's link; the caller has verified that it is one.
    ///
    /// # Errors
    /// `Busy` if all places for streams are taken, or the visitor has been dismissed.
    pub fn join(&self) -> Result<()> {
        self.leave_visitors(|network| {
            let joined = self.connections.joined.try_acquire(network, 1);
            Ok(vec![joined.map_err(|_| busy("the server has no place for another stream of this link"))?])
        })
    }

    /// Removes the connection from the visitors if `acquire` returns permits for it; has no effect if it has permits.
    fn leave_visitors(
        &self,
        acquire: impl FnOnce(NetworkKey) -> Result<Vec<HolderPermit<NetworkKey>>>,
    ) -> Result<()> {
        let mut permits = self.permits.lock();
        if !permits.is_empty() {
            return Ok(());
        }
        let mut state = self.connections.state.lock();
        let Some(&Visitor { from, .. }) = state.visitors.get(&self.number) else {
            return Err(busy("the server has no place for this connection; try again"));
        };
        *permits = acquire((from, from.is_loopback().then_some(self.number)))?;
        state.visitors.remove(&self.number);
        Ok(())
    }

    /// Waits until the visit has to end; returns the reason. Does not return for a member.
    ///
    /// # Cancel safety
    /// Safe, but each call starts the time limit again.
    pub async fn visit_ended(&self) -> Error {
        let timed_out = async {
            tokio::time::sleep(self.connections.limits.visit_within).await;
            if !self.permits.lock().is_empty() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = self.dismissal.notified() => {
                busy("too many connections without a token: this one was closed to make room for another")
            }
            () = timed_out => {
                let secs = self.connections.limits.visit_within.as_secs_f32();
                Error::new(ErrorKind::TimedOut, format!("expected a token within {secs} s, found none"))
            }
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.state.lock().visitors.remove(&self.number);
    }
}

fn busy(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Busy, what)
}

fn one_more(most: impl Display, which: &str) -> Error {
    busy(format!("expected at most {most} connections{which}, found one more"))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const LOOPBACK: &str = "127.0.0.1";

    fn connections() -> Connections {
        Connections::new(Limits {
            most_visitors: 4,
            most_members: 3,
            most_members_per_network: 2,
            ..Limits::default()
        })
    }

    fn enter(connections: &Connections, from: &str) -> ConnectionSlot {
        connections.enter(from.parse().unwrap())
    }

    fn is_dismissed(slot: &ConnectionSlot) -> bool {
        slot.visit_ended().now_or_never().is_some()
    }

    #[tokio::test]
    async fn a_new_connection_replaces_the_oldest_visitor_of_the_largest_network() {
        let connections = connections();
        let single = enter(&connections, "192.0.2.1");
        let many: Vec<ConnectionSlot> =
            (0..5).map(|n| enter(&connections, &format!("2001:db8::{n}"))).collect();
        assert_eq!(many.iter().map(is_dismissed).collect::<Vec<_>>(), [true, true, false, false, false]);
        assert!(!is_dismissed(&single), "the visitor of a smaller network stays");
        let newest = enter(&connections, "192.0.2.1");
        assert!(is_dismissed(&many[2]) && !is_dismissed(&newest) && !is_dismissed(&single));
        assert!(many[2].admit().is_err(), "a dismissed visitor cannot be admitted");
    }

    #[tokio::test]
    async fn members_are_not_dismissed() {
        let connections = connections();
        let member = enter(&connections, LOOPBACK);
        member.admit().unwrap();
        let visitors: Vec<ConnectionSlot> = (0..20).map(|_| enter(&connections, LOOPBACK)).collect();
        assert!(!is_dismissed(&member));
        assert_eq!(visitors.iter().filter(|slot| !is_dismissed(slot)).count(), 4);
    }

    #[tokio::test]
    async fn members_are_limited_in_total_and_by_network() {
        let connections = connections();
        let admitted = |from: &str| {
            let slot = enter(&connections, from);
            let result = slot.admit();
            (slot, result.map_err(|e| e.kind()))
        };
        let (mut slots, mut results) = (Vec::new(), Vec::new());
        for from in ["192.0.2.1", "192.0.2.1", "192.0.2.1", LOOPBACK, LOOPBACK] {
            let (slot, result) = admitted(from);
            slots.push(slot);
            results.push(result.is_ok());
        }
        assert_eq!(results, [true, true, false, true, false]);
        slots.clear();
        for loopback in [LOOPBACK, "::1"] {
            let all: Vec<_> = (0..3).map(|_| admitted(loopback)).collect();
            assert!(
                all.iter().all(|(_, result)| result.is_ok()),
                "{loopback}: tunnels and proxies connect from here"
            );
        }
    }

    #[tokio::test]
    async fn zarr_readers_take_at_most_half_of_the_places() {
        let connections = connections();
        let slots: Vec<ConnectionSlot> = (0..4).map(|_| enter(&connections, LOOPBACK)).collect();
        assert!(slots[..2].iter().all(|slot| slot.admit_reader().is_ok()));
        assert_eq!(slots[2].admit_reader().unwrap_err().kind(), ErrorKind::Busy);
        assert!(slots[0].admit_reader().is_ok(), "repeated admission has no effect");
        assert!(slots[3].admit().is_ok());
    }

    #[tokio::test]
    async fn further_streams_have_limits_of_their_own() {
        let connections = connections();
        let join = |from: &str| {
            let slot = enter(&connections, from);
            let joined = slot.join().is_ok();
            (slot, joined)
        };
        let streams: Vec<(ConnectionSlot, bool)> = (0..3).map(|_| join("192.0.2.1")).collect();
        assert_eq!(streams.iter().map(|(_, joined)| *joined).collect::<Vec<_>>(), [true, true, false]);
        let member = enter(&connections, "192.0.2.1");
        assert!(member.admit().is_ok(), "streams take no places of members");
        let many: Vec<(ConnectionSlot, bool)> = (0..MAX_JOINED).map(|_| join(LOOPBACK)).collect();
        assert_eq!(many.iter().filter(|(_, joined)| *joined).count(), MAX_JOINED - 2);
        drop((streams, many));
        assert!(join("192.0.2.1").1 && connections.joined.used() == 0);
    }

    #[tokio::test]
    async fn visitors_time_out_and_members_do_not() {
        let visit_within = Duration::from_millis(20);
        let connections = Connections::new(Limits { visit_within, ..Limits::default() });
        let (visitor, member) = (enter(&connections, LOOPBACK), enter(&connections, LOOPBACK));
        member.admit().unwrap();
        assert_eq!(visitor.visit_ended().await.kind(), ErrorKind::TimedOut);
        assert!(tokio::time::timeout(visit_within * 5, member.visit_ended()).await.is_err());
    }
}
