//! Connections of a server: visitors and members. A visitor has not shown yet that it may come in. Visitors are few
//! and stay for a short time. The newest always finds a place: it takes that of the visitor that has stayed longest
//! among those of the network with the most visitors. So nobody without a token can keep others out by opening
//! connections and doing nothing with them. A member has shown that it may come in, and stays as long as it likes.
//!
//! Addresses of one network count as one. On loopback members are not counted by network, because a tunnel brings
//! everybody from there.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use tokio::sync::Notify;
use wire::{Full, HolderLimiter, HolderPermit};

/// Connections whose peer has not shown a token; pages for browsers are all among them.
pub const MAX_VISITORS: usize = 256;
/// Connections whose peer has, unless `--clients` says otherwise.
pub const MAX_MEMBERS: usize = 256;
/// Share of the members' places, as one in so many, that readers may take at most. Readers may only read Zarr; so
/// they cannot keep out clients that may do more.
const MEMBERS_PER_READER: usize = 2;
/// Most members from one network.
pub const MAX_MEMBERS_PER_NETWORK: usize = 64;
/// Further streams of members' links, whatever their number; of one network as many as it may have members.
pub const MAX_JOINED: usize = 256;
/// How long a visit may last, whatever the visitor does or leaves undone: pages take seconds.
pub const VISIT_WITHIN: Duration = Duration::from_secs(60);
/// How long a new connection may take to say what it is, to finish its handshake, or to send the head of a request.
pub const FIRST_BYTES_WITHIN: Duration = Duration::from_secs(10);
/// How long an HTTP client may take nothing of what it asked for. As long as silence on the wire.
pub const TAKEN_WITHIN: Duration = wire::limits::DEAD_AFTER;

/// Limits of connections; by default the constants of this module.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most visitors at a time; by default [`MAX_VISITORS`].
    pub most_visitors: usize,
    /// Most members at a time; by default [`MAX_MEMBERS`].
    pub most_members: usize,
    /// Most members from one network; by default [`MAX_MEMBERS_PER_NETWORK`].
    pub most_members_per_network: usize,
    /// Longest visit; by default [`VISIT_WITHIN`].
    pub visit_within: Duration,
    /// Time for the first bytes of a connection; by default [`FIRST_BYTES_WITHIN`].
    pub first_bytes_within: Duration,
    /// Time in which an HTTP client must take something of its answer; by default [`TAKEN_WITHIN`].
    pub taken_within: Duration,
}

impl Limits {
    /// Places for so many members, a quarter of them for one network.
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
            taken_within: TAKEN_WITHIN,
        }
    }
}

/// Network of an address, as large as one subscriber has at most: an IPv4 address alone, or all IPv6 addresses with
/// the same first 48 bits.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) if !ip.is_loopback() => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 80 << 80)),
        ip => ip,
    }
}

/// Network of a connection; on loopback each connection is counted as one of its own.
type Neighbourhood = (IpAddr, Option<u64>);

struct Visitor {
    from: IpAddr,
    dismissal: Arc<Notify>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// By number: the oldest first.
    visitors: BTreeMap<u64, Visitor>,
}

impl State {
    /// Makes room for one visitor.
    fn dismiss_one(&mut self) {
        let mut crowds = BTreeMap::<IpAddr, usize>::new();
        for visitor in self.visitors.values() {
            *crowds.entry(visitor.from).or_default() += 1;
        }
        let crowd = |visitor: &Visitor| crowds.get(&visitor.from).copied().unwrap_or_default();
        let longest = self.visitors.iter().rev().max_by_key(|(_, visitor)| crowd(visitor)).map(|(&n, _)| n);
        if let Some(visitor) = longest.and_then(|number| self.visitors.remove(&number)) {
            visitor.dismissal.notify_one();
        }
    }
}

/// Everybody who is connected.
#[derive(Clone)]
pub struct Connections {
    limits: Limits,
    state: Arc<Mutex<State>>,
    members: HolderLimiter<Neighbourhood>,
    /// Members that may only read Zarr.
    readers: HolderLimiter<Neighbourhood>,
    /// Further streams of members' links.
    joined: HolderLimiter<Neighbourhood>,
}

impl Connections {
    /// Nobody yet.
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

    /// Limits of these connections.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Most connections at a time.
    #[must_use]
    pub fn most_connections(&self) -> usize {
        self.limits.most_visitors + self.limits.most_members + MAX_JOINED
    }

    /// True when half of the places for visitors are taken.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.state.lock().visitors.len() >= self.limits.most_visitors / 2
    }

    /// Somebody came. Another may have to leave for it.
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

/// One connection, until it is dropped.
pub struct ConnectionSlot {
    connections: Connections,
    number: u64,
    dismissal: Arc<Notify>,
    /// None while it is a visitor.
    permits: Mutex<Vec<HolderPermit<Neighbourhood>>>,
}

impl ConnectionSlot {
    /// The visitor has shown that it may come in; once is enough.
    ///
    /// # Errors
    /// `Busy` when there are too many already, or it has been dismissed.
    pub fn admit(&self) -> Result<()> {
        self.admit_as(false)
    }

    /// Admits a visitor that may only read Zarr. Such members take half of the places at most, rounded up.
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

    /// It is a further stream of a member's link, which has proven that.
    ///
    /// # Errors
    /// `Busy` when there are too many already, or it has been dismissed.
    pub fn join(&self) -> Result<()> {
        self.leave_visitors(|network| {
            let joined = self.connections.joined.try_acquire(network, 1);
            Ok(vec![joined.map_err(|_| busy("the server has no place for another stream of this link"))?])
        })
    }

    /// Makes something else of a visitor, with the permits for it; once is enough.
    fn leave_visitors(
        &self,
        acquire: impl FnOnce(Neighbourhood) -> Result<Vec<HolderPermit<Neighbourhood>>>,
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

    /// Waits until the visit has to end, and says why. For ever once admitted.
    ///
    /// # Cancel safety
    /// Safe, but the time begins anew.
    pub async fn over(&self) -> Error {
        let outstayed = async {
            tokio::time::sleep(self.connections.limits.visit_within).await;
            if !self.permits.lock().is_empty() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = self.dismissal.notified() => Error::new(ErrorKind::Busy, "others needed the place"),
            () = outstayed => {
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

    fn is_over(slot: &ConnectionSlot) -> bool {
        slot.over().now_or_never().is_some()
    }

    #[tokio::test]
    async fn the_newest_finds_a_place_and_the_largest_crowd_makes_room() {
        let connections = connections();
        let alone = enter(&connections, "192.0.2.1");
        let crowd: Vec<ConnectionSlot> =
            (0..5).map(|n| enter(&connections, &format!("2001:db8::{n}"))).collect();
        assert_eq!(crowd.iter().map(is_over).collect::<Vec<_>>(), [true, true, false, false, false]);
        assert!(!is_over(&alone), "a modest network is left in peace");
        let newest = enter(&connections, "192.0.2.1");
        assert!(is_over(&crowd[2]) && !is_over(&newest) && !is_over(&alone));
        assert!(crowd[2].admit().is_err(), "who was dismissed comes in no more");
    }

    #[tokio::test]
    async fn members_are_not_asked_to_leave() {
        let connections = connections();
        let member = enter(&connections, LOOPBACK);
        member.admit().unwrap();
        let visitors: Vec<ConnectionSlot> = (0..20).map(|_| enter(&connections, LOOPBACK)).collect();
        assert!(!is_over(&member));
        assert_eq!(visitors.iter().filter(|slot| !is_over(slot)).count(), 4);
    }

    #[tokio::test]
    async fn members_are_counted_in_all_and_by_network() {
        let connections = connections();
        let admitted = |from: &str| {
            let slot = enter(&connections, from);
            let result = slot.admit();
            (slot, result.map_err(|e| e.kind()))
        };
        let (mut places, mut results) = (Vec::new(), Vec::new());
        for from in ["192.0.2.1", "192.0.2.1", "192.0.2.1", LOOPBACK, LOOPBACK] {
            let (slot, result) = admitted(from);
            places.push(slot);
            results.push(result.is_ok());
        }
        assert_eq!(results, [true, true, false, true, false]);
        places.clear();
        for loopback in [LOOPBACK, "::1"] {
            let all: Vec<_> = (0..3).map(|_| admitted(loopback)).collect();
            assert!(
                all.iter().all(|(_, result)| result.is_ok()),
                "{loopback}: tunnels and proxies come from here"
            );
        }
    }

    #[tokio::test]
    async fn who_may_only_read_zarr_leaves_half_of_the_places_to_others() {
        let connections = connections();
        let slots: Vec<ConnectionSlot> = (0..4).map(|_| enter(&connections, LOOPBACK)).collect();
        assert!(slots[..2].iter().all(|slot| slot.admit_reader().is_ok()));
        assert_eq!(slots[2].admit_reader().unwrap_err().kind(), ErrorKind::Busy);
        assert!(slots[0].admit_reader().is_ok(), "once is enough");
        assert!(slots[3].admit().is_ok());
    }

    #[tokio::test]
    async fn further_streams_are_counted_by_themselves_in_all_and_by_network() {
        let connections = connections();
        let join = |from: &str| {
            let slot = enter(&connections, from);
            let joined = slot.join().is_ok();
            (slot, joined)
        };
        let streams: Vec<(ConnectionSlot, bool)> = (0..3).map(|_| join("192.0.2.1")).collect();
        assert_eq!(streams.iter().map(|(_, joined)| *joined).collect::<Vec<_>>(), [true, true, false]);
        let member = enter(&connections, "192.0.2.1");
        assert!(member.admit().is_ok(), "they take no member's place");
        let many: Vec<(ConnectionSlot, bool)> = (0..MAX_JOINED).map(|_| join(LOOPBACK)).collect();
        assert_eq!(many.iter().filter(|(_, joined)| *joined).count(), MAX_JOINED - 2);
        drop((streams, many));
        assert!(join("192.0.2.1").1 && connections.joined.used() == 0);
    }

    #[tokio::test]
    async fn a_visit_ends_in_time_and_a_membership_does_not() {
        let visit_within = Duration::from_millis(20);
        let connections = Connections::new(Limits { visit_within, ..Limits::default() });
        let (visitor, member) = (enter(&connections, LOOPBACK), enter(&connections, LOOPBACK));
        member.admit().unwrap();
        assert_eq!(visitor.over().await.kind(), ErrorKind::TimedOut);
        assert!(tokio::time::timeout(visit_within * 5, member.over()).await.is_err());
    }
}
