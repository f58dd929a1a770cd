//! Several servers of the same data as one [`Source`]: their throughput adds up, and the failure of one is compensated
//! by the others.
//!
//! - `scheduler` (pure) assigns work to servers and chooses its size, by the estimates of `speed` and `hedging`.
//!   `work_queue` adds a clock, and wakes waiting tasks.
//! - `group` holds the available servers with the same data, and checks the others periodically.
//! - `first_answer` has one work item done by any server; `blocks`, `reads` and `read_many` split requests into such
//!   items.
//! - `unassigned_parts` holds the rest of a read that no server has taken yet.
//! - `homes` computes the servers responsible for a block if each server caches a part of the blocks.
//!
//! This module does not use the network: every server is a [`Source`], remote or not.

mod blocks;
mod first_answer;
mod group;
mod hedging;
mod homes;
mod read_many;
mod reads;
mod scheduler;
mod speed;
mod unassigned_parts;
mod work_queue;

use std::str::FromStr;
use std::sync::Arc;

use array::{
    Completions, Dataset, Error, ErrorKind, ReadEnds, ReadRequest, Region, Result, Source, Want, gather,
};
use futures::future::BoxFuture;
use futures::stream;
use futures::{FutureExt, StreamExt};

use group::ServerGroup;
pub use group::{ReplicaServer, ReplicaSource, ServerState};
pub use scheduler::MAX_SERVERS;
pub(crate) use unassigned_parts::UnassignedParts;

/// Number of servers responsible for a block if each server caches a part of the blocks; with two, one may fail.
const HOMES_OF_A_BLOCK: usize = 2;

/// Rule for assigning requests to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharingRule {
    /// Every server has all data: work goes to the server that is expected to complete it first.
    Spread,
    /// Each block comes from one of its `copies` homes, the first available one. Reads are assembled from blocks.
    Homes {
        /// Number of servers responsible for a block; at least 1.
        copies: usize,
    },
}

/// Distribution of data among the servers of one URL, as stated by the user who names several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// As the servers report: the same data set, or data sets of their own if the URL names none.
    #[default]
    Auto,
    /// All servers have the same data: [`SharingRule::Spread`].
    Replicated,
    /// Each server caches a part of the blocks: [`SharingRule::Homes`], two for each block.
    Blocks,
    /// Each server has data sets of its own, or copies of others'; together they are a catalogue.
    Files,
}

impl Sharing {
    const ALL: [(&'static str, Self); 4] = [
        ("auto", Self::Auto),
        ("replicated", Self::Replicated),
        ("blocks", Self::Blocks),
        ("files", Self::Files),
    ];

    /// Returns the rule for assigning requests on one data set.
    #[must_use]
    pub fn rule(self) -> SharingRule {
        match self {
            Self::Blocks => SharingRule::Homes { copies: HOMES_OF_A_BLOCK },
            Self::Auto | Self::Replicated | Self::Files => SharingRule::Spread,
        }
    }
}

impl FromStr for Sharing {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, sharing)| *sharing).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name).join("`, `");
            Error::invalid(format!("expected one of the rules `{names}`, found `{text}`"))
        })
    }
}

/// Several servers of the same data. Clones share all state.
#[derive(Clone)]
pub struct Servers {
    group: Arc<ServerGroup>,
    rule: SharingRule,
}

impl Servers {
    /// Combines these servers, without a request. The description by the first server that answers, in the given order,
    /// is the reference; servers with another description are not used.
    ///
    /// # Errors
    /// `Invalid` for none, or more than [`MAX_SERVERS`].
    pub fn new(servers: Vec<ReplicaServer>, rule: SharingRule) -> Result<Self> {
        Ok(Self { group: ServerGroup::new(servers)?, rule })
    }

    /// Returns the state of each server, in the given order.
    #[must_use]
    pub fn states(&self) -> Vec<ServerState> {
        self.group.states()
    }

    /// Requests the current description of every server: those with other data than before are not used, and if no
    /// server is left the data are described again.
    pub(crate) async fn ask_again(&self) {
        self.group.ask_again().await;
    }

    /// Returns whether the server with this number, in the given order, did not answer the last request.
    pub(crate) fn is_away(&self, member: usize) -> bool {
        self.group.is_away(member)
    }
}

impl Source for Servers {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        let group = Arc::clone(&self.group);
        async move { group.dataset().await }.boxed()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        blocks::blocks(Arc::clone(&self.group), self.rule, wants)
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        match self.rule {
            SharingRule::Spread => reads::read(Arc::clone(&self.group), request, into).boxed(),
            SharingRule::Homes { .. } => {
                let (this, group): (Arc<dyn Source>, _) = (Arc::new(self.clone()), Arc::clone(&self.group));
                async move {
                    // An invalid request is refused as by every source.
                    request.check(&*this.describe().await?, &into)?;
                    let (loan, lent) = into.lend();
                    let gathered = gather(this, request.clone(), lent).await;
                    match loan.try_end() {
                        // Blocks of a sparse level that are not covered cannot be gathered.
                        Ok(into) if lacks_blocks(&gathered) => reads::read(group, request, into).await,
                        _ => gathered,
                    }
                }
                .boxed()
            }
        }
    }

    fn read_many(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        if self.rule == SharingRule::Spread {
            return read_many::read_many(Arc::clone(&self.group), reads);
        }
        let this = self.clone();
        let each = stream::iter(reads.into_iter().enumerate());
        let each = each.map(move |(n, (request, into))| this.read(request, into).map(move |end| (n, end)));
        each.buffer_unordered(read_many::MAX_LARGE_READS).boxed()
    }
}

/// Returns whether a read could not be assembled because blocks are not covered.
fn lacks_blocks(gathered: &Result<()>) -> bool {
    gathered.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

#[cfg(test)]
mod tests;
