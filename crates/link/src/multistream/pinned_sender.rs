//! Senders that are pinned to cores close to the network card that they send by.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

use tokio::sync::oneshot;
use wire::{Error, Result};

use crate::carrier::ended;
use crate::multistream::topology::{Topology, Units};

/// Cores that senders are pinned to, one sender each. Clones share the state.
#[derive(Clone, Default)]
pub(super) struct PinnedSenders(Arc<PinnedCores>);

#[derive(Default)]
struct PinnedCores {
    topology: Topology,
    /// Cores that have a sender.
    taken: Mutex<BTreeSet<usize>>,
}

/// Core reserved for one sender, until dropped.
pub(super) struct PinnedSender {
    core: usize,
    shared: Arc<PinnedCores>,
}

impl PinnedSenders {
    pub(super) fn of(topology: Topology) -> Self {
        Self(Arc::new(PinnedCores { topology, taken: Mutex::default() }))
    }

    /// Number of reserved cores.
    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Reserves a free core close to the card with this address; `None` where there is none, or where pinning
    /// would not help.
    pub(super) fn take(&self, local: IpAddr) -> Option<PinnedSender> {
        let beside = self.0.topology.beside(local);
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let core = beside.into_iter().find(|core| taken.insert(*core))?;
        Some(PinnedSender { core, shared: Arc::clone(&self.0) })
    }
}

impl PinnedSender {
    fn units(&self) -> &Units {
        &self.shared.topology.cores[self.core]
    }

    /// Runs `sending` on a thread that is pinned to the core; dropping the future ends it.
    pub(super) async fn run(self, sending: impl Future<Output = Result<()>> + Send + 'static) -> Result<()> {
        let (done, end) = oneshot::channel();
        let (_stay, gone) = oneshot::channel::<()>();
        let on_thread = move || {
            pin(self.units());
            let both = async {
                tokio::select! {
                    end = sending => end,
                    _ = gone => Err(ended()),
                }
            };
            // The runtime that accepted the socket drives it.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            let end = runtime.map_err(Error::from).and_then(|runtime| runtime.block_on(both));
            drop(self);
            // The receiver is gone where the server has ended.
            let _is_heard = done.send(end).is_ok();
        };
        Builder::new().name("corridor sender".into()).spawn(on_thread)?;
        end.await.unwrap_or_else(|_| Err(Error::internal("a sender ended without a word")))
    }
}

impl Drop for PinnedSender {
    fn drop(&mut self) {
        self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.core);
    }
}

/// Pins this thread to these units; has no effect where the system does not allow it.
#[cfg(target_os = "linux")]
fn pin(units: &Units) {
    let mut set = rustix::thread::CpuSet::new();
    units.iter().filter(|unit| **unit < rustix::thread::CpuSet::MAX_CPU).for_each(|unit| set.set(*unit));
    let _is_allowed = rustix::thread::sched_setaffinity(None, &set).is_ok();
}

#[cfg(not(target_os = "linux"))]
fn pin(_: &Units) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multistream::topology::Card;

    /// Topology of two cores, the first of which is close to the card of 127.0.0.1.
    fn two_pieces() -> Topology {
        let card = Card { addresses: vec![IpAddr::from([127, 0, 0, 1])], near: Units::from([0]) };
        Topology { cores: vec![Units::from([0]), Units::from([1])], cards: vec![card] }
    }

    #[tokio::test]
    async fn each_core_has_one_sender_which_runs_there_and_gives_it_back() {
        let senders = PinnedSenders::of(two_pieces());
        let local = IpAddr::from([127, 0, 0, 1]);
        let sender = senders.take(local).unwrap();
        assert!(senders.take(local).is_none() && senders.take([10, 0, 0, 1].into()).is_none());
        let (told, place) = oneshot::channel();
        let sending = async move {
            #[cfg(target_os = "linux")]
            told.send(
                rustix::thread::sched_getaffinity(None).is_ok_and(|set| set.count() == 1 && set.is_set(0)),
            )
            .unwrap();
            Err(Error::cancelled())
        };
        assert_eq!(sender.run(sending).await, Err(Error::cancelled()));
        assert!(place.await.unwrap(), "it runs on the first core alone");
        assert_eq!(senders.taken(), 0);
    }

    #[tokio::test]
    async fn a_sender_ends_with_whoever_waits_for_it() {
        let senders = PinnedSenders::of(two_pieces());
        let sender = senders.take([127, 0, 0, 1].into()).unwrap();
        let waiting = sender.run(std::future::pending());
        assert!(tokio::time::timeout(std::time::Duration::from_millis(20), waiting).await.is_err());
        while senders.taken() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
}
