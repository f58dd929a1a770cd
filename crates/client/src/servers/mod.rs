//! Several servers of the same data as one [`Source`]: their speeds add up, and one that dies is not missed.
//!
//! - `shares` (pure) decides who does the next piece of work, and how large it is; `speed` and `late` are what it
//!   knows. `desk` gives it a clock and wakes whoever waits.
//! - `group` knows which servers are there and speak of the same data, and looks after those that do not.
//! - `first_answer` has one piece done by whoever can; `blocks`, `reads` and `many` cut requests into such pieces, or put
//!   them together.
//! - `homes` says which servers answer for a block when each answers for a part.
//!
//! It knows no network: every server is a [`Source`], remote or not.

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

/// Servers that answer for a block where each answers for a part: one that dies is not missed.
const HOMES_OF_A_BLOCK: usize = 2;

/// Rule that says which server is asked for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharingRule {
    /// Every server has all data: work goes to whoever will have done it first.
    Spread,
    /// Each block is answered by one of its `copies` homes, the first of them that is there. Reads are put together
    /// from blocks.
    Homes {
        /// How many servers may answer for a block; at least 1.
        copies: usize,
    },
}

/// Sharing of data among the servers of one URL, as stated by the person who names several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// As they say themselves: the same data set, or each data sets of its own where the URL names none.
    #[default]
    Auto,
    /// All have the same: [`Rule::Spread`].
    Replicated,
    /// Each keeps a part of the blocks in its memory: [`Rule::Homes`], two of them for each block.
    Blocks,
    /// Each has data sets of its own, or copies of others'; together they are a catalogue.
    Files,
}

impl Sharing {
    const ALL: [(&'static str, Self); 4] = [
        ("auto", Self::Auto),
        ("replicated", Self::Replicated),
        ("blocks", Self::Blocks),
        ("files", Self::Files),
    ];

    /// How work on one data set is shared out.
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

/// Several servers of the same data. Clones share everything.
#[derive(Clone)]
pub struct Servers {
    group: Arc<ServerGroup>,
    rule: SharingRule,
}

impl Servers {
    /// Combines these servers; asks nothing yet. The description of the first server, in the order given, that
    /// answers says what the data are; servers that describe anything else are left out.
    ///
    /// # Errors
    /// `Invalid` for none, or more than [`MAX_SERVERS`].
    pub fn new(servers: Vec<ReplicaServer>, rule: SharingRule) -> Result<Self> {
        Ok(Self { group: ServerGroup::new(servers)?, rule })
    }

    /// State of each server so far, in the order given.
    #[must_use]
    pub fn states(&self) -> Vec<ServerState> {
        self.group.states()
    }

    /// Asks all again what they have now: those that have other data than before are left out, and where nobody is left the
    /// data are described anew.
    pub(crate) async fn ask_again(&self) {
        self.group.ask_again().await;
    }

    /// Whether the server of this number, in the order given, did not answer when it was asked last.
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
                    // So that a request that cannot be is refused as every source refuses it.
                    request.check(&*this.describe().await?, &into)?;
                    let (loan, lent) = into.lend();
                    let gathered = gather(this, request.clone(), lent).await;
                    match loan.try_end() {
                        // Blocks of a sparse level that are not covered have nothing to be gathered.
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
        each.buffer_unordered(read_many::MAX_APART).boxed()
    }
}

fn lacks_blocks(gathered: &Result<()>) -> bool {
    gathered.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

#[cfg(test)]
mod tests;
