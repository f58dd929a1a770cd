//! Leases for probes: one probe of a bottleneck at a time, within the budget that all processes of this user share.

use std::net::IpAddr;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use plan::{NetworkPrefix, TooMuch};
use tokio::sync::oneshot;

use super::database::BudgetChange;
use super::{DatabaseJob, Paths, now};

/// Permission for a probe, held until this is dropped.
pub(super) struct ProbeLease {
    paths: Paths,
    host: IpAddr,
}

impl Drop for ProbeLease {
    fn drop(&mut self) {
        // If the queue of the thread is full, the lease expires by itself.
        let (answer, _) = oneshot::channel();
        self.paths.send(DatabaseJob::Spend { host: self.host, at: now(), what: BudgetChange::End, answer });
    }
}

/// Permission for one train to a host behind this bottleneck, held until this is dropped.
pub struct TrainLease {
    paths: Paths,
    network: NetworkPrefix,
}

impl Drop for TrainLease {
    fn drop(&mut self) {
        self.paths.0.turns.lock().retain(|network| *network != self.network);
    }
}

impl Paths {
    /// Begins a probe of the path to `host`.
    ///
    /// # Errors
    /// `Busy` while a probe of the same bottleneck is in progress.
    pub(super) async fn begin_probe(&self, host: IpAddr) -> Result<ProbeLease> {
        self.spending(host, BudgetChange::Begin).await?;
        Ok(ProbeLease { paths: self.clone(), host })
    }

    /// Takes this number of bytes from the budget of probes.
    ///
    /// # Errors
    /// `Busy` if too much was sent recently, with the time to wait.
    ///
    /// # Cancel safety
    /// Counted bytes stay counted.
    pub async fn spend(&self, host: IpAddr, bytes: u64) -> Result<()> {
        self.spending(host, BudgetChange::Bytes(bytes)).await
    }

    async fn spending(&self, host: IpAddr, what: BudgetChange) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        let busy = || Error::new(ErrorKind::Busy, "the database of paths, which limits probes, is busy");
        if !self.send(DatabaseJob::Spend { host: host.to_canonical(), at: now(), what, answer }) {
            return Err(busy());
        }
        answered.await.map_err(|_| busy())?
    }

    /// Takes part in a probe that another host began.
    ///
    /// # Errors
    /// `Busy` while another train of that network is in progress.
    pub fn take_turn(&self, host: IpAddr) -> Result<TrainLease> {
        let network = NetworkPrefix::of(host);
        let mut turns = self.0.turns.lock();
        if turns.contains(&network) {
            return Err(refused(TooMuch::Busy));
        }
        turns.push(network);
        Ok(TrainLease { paths: self.clone(), network })
    }
}

/// Converts the refusal of a budget to an error.
pub(super) fn refused(why: TooMuch) -> Error {
    let what = match why {
        TooMuch::Busy => "another probe of this bottleneck is in progress; try again later".into(),
        TooMuch::Spent(wait) => {
            let minutes = wait.saturating_add(Duration::from_secs(59)).as_secs() / 60;
            format!("the hourly budget of probes is spent; try again in {minutes} min")
        }
    };
    Error::new(ErrorKind::Busy, what)
}
