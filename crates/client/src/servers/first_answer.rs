//! One work item, done by the first server that succeeds: another server is asked when one fails or is late.

use array::{Dataset, Error, ErrorKind, Priority, Result, Urgency, Want};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::Instant;

use super::group::ServerGroup;
use super::scheduler::{ServerSet, WorkRequest};
use super::work_queue::{LateAction, LateTimer, NoServer, WorkPermit, WorkTicket};

/// Priority of a work item, now and later.
pub(super) enum ItemUrgency<'a> {
    /// A block, whose priority may change.
    Want(&'a Want),
    /// A part of a read.
    Fixed(Priority),
}

impl ItemUrgency<'_> {
    pub(super) fn urgency(&self) -> Urgency {
        match self {
            Self::Want(want) => want.urgency(),
            Self::Fixed(priority) => Urgency::of(*priority),
        }
    }

    async fn changed(&self, seen: u64) -> u64 {
        match self {
            Self::Want(want) => want.changed(seen).await,
            Self::Fixed(_) => std::future::pending().await,
        }
    }
}

/// Servers that may be asked for a work item.
pub(super) struct Candidates {
    /// Servers in the order of trial; any order if `None`.
    order: Option<Vec<usize>>,
    all: ServerSet,
    asked: ServerSet,
}

impl Candidates {
    pub(super) fn any(all: ServerSet) -> Self {
        Self { order: None, all, asked: ServerSet::NONE }
    }

    /// Restricts the candidates to these servers, in this order.
    pub(super) fn in_order(order: Vec<usize>) -> Self {
        let all = order.iter().fold(ServerSet::NONE, |set, &n| set.with(n));
        Self { order: Some(order), all, asked: ServerSet::NONE }
    }

    fn rest(&self) -> ServerSet {
        self.all.without(self.asked)
    }

    /// Returns the servers that may be asked only because they are idle; none if there is an order, because homes are
    /// asked only in their order.
    fn idle(&self) -> ServerSet {
        if self.order.is_some() { ServerSet::NONE } else { self.rest() }
    }

    /// Returns the servers that may be asked next.
    fn next(&self) -> ServerSet {
        match self.next_in_order() {
            None if self.order.is_some() => ServerSet::NONE,
            None => self.rest(),
            Some(next) => ServerSet::NONE.with(next),
        }
    }

    fn next_in_order(&self) -> Option<usize> {
        self.order.as_ref()?.iter().copied().find(|&n| !self.asked.has(n))
    }

    /// Skips the next server, which is not available. Returns true if another may be asked.
    fn skip_next(&mut self) -> bool {
        let Some(next) = self.next_in_order() else { return false };
        self.asked = self.asked.with(next);
        !self.rest().is_empty()
    }
}

/// One work item, and the servers that may do it.
pub(super) struct WorkItem<'a> {
    pub(super) asked: ItemUrgency<'a>,
    pub(super) bytes: u64,
    pub(super) candidates: Candidates,
    /// Permit for the first server, if it is assigned already.
    pub(super) first: Option<WorkPermit>,
}

/// A request in flight at one server; returns its result.
type Attempt<'a, T> = BoxFuture<'a, (WorkPermit, Result<T>)>;

/// Asks servers until one has answered with data in the state that `of` describes. `ask` starts the request at a
/// server; the request is dropped if another server was faster.
///
/// # Errors
/// The errors of the servers, if none is left.
///
/// # Cancel safety
/// Dropping the future withdraws every request.
pub(super) async fn first_answer<'a, T: Send + 'a>(
    group: &'a ServerGroup,
    of: &Dataset,
    mut piece: WorkItem<'a>,
    mut ask: impl FnMut(usize, Urgency) -> BoxFuture<'a, Result<T>> + Send,
) -> Result<T> {
    let mut running: FuturesUnordered<Attempt<'a, T>> = FuturesUnordered::new();
    let mut newest: Option<LateTimer> = None;
    let mut failures = Vec::new();
    let mut seen = 0;
    let mut turn = None;
    match piece.first.take() {
        Some(permit) => start(permit, &mut piece, &mut running, &mut newest, &mut ask),
        None => turn = Some(next_turn(group, &piece, false)),
    }
    loop {
        let (rest, idle) = (piece.candidates.rest(), piece.candidates.idle());
        let can_hedge = turn.is_none() && !rest.is_empty();
        tokio::select! {
            biased;
            Some((permit, result)) = running.next(), if !running.is_empty() => {
                let member = permit.member();
                match result {
                    Ok(answer) => {
                        permit.finished();
                        return Ok(answer);
                    }
                    Err(error) if is_final(&error, &piece.asked) => return Err(error),
                    Err(error) => {
                        if permit.failed(&error) {
                            group.monitor(member);
                        }
                        failures.push((member, error));
                        if running.is_empty() && turn.is_none() {
                            turn = Some(next_turn(group, &piece, false));
                        }
                    }
                }
            }
            granted = granted(&mut turn), if turn.is_some() => {
                turn = None;
                match granted {
                    Ok(permit) => start(permit, &mut piece, &mut running, &mut newest, &mut ask),
                    Err(NoServer) if piece.candidates.skip_next() => {
                        turn = Some(next_turn(group, &piece, !running.is_empty()));
                    }
                    Err(NoServer) if running.is_empty() => return Err(group.no_answer(of, &failures)),
                    Err(NoServer) => {}
                }
            }
            late = late(newest.as_ref(), rest, idle), if can_hedge && !running.is_empty() => {
                if let LateAction::Silent(member) = late {
                    group.monitor(member);
                }
                turn = Some(next_turn(group, &piece, true));
            }
            version = piece.asked.changed(seen) => {
                seen = version;
                if let Some(turn) = &mut turn {
                    turn.adjust(piece.asked.urgency().priority);
                }
            }
        }
    }
}

fn next_turn(group: &ServerGroup, piece: &WorkItem<'_>, is_second: bool) -> WorkTicket {
    group.queue.ask(WorkRequest {
        priority: piece.asked.urgency().priority,
        bytes: piece.bytes,
        is_one_piece: true,
        may: piece.candidates.next(),
        is_second,
    })
}

fn start<'a, T: Send + 'a>(
    permit: WorkPermit,
    piece: &mut WorkItem<'a>,
    running: &mut FuturesUnordered<Attempt<'a, T>>,
    newest: &mut Option<LateTimer>,
    ask: &mut (impl FnMut(usize, Urgency) -> BoxFuture<'a, Result<T>> + Send),
) {
    piece.candidates.asked = piece.candidates.asked.with(permit.member());
    *newest = Some(permit.watch());
    let answer = ask(permit.member(), piece.asked.urgency());
    running.push(Box::pin(async move { (permit, answer.await) }));
}

async fn granted(turn: &mut Option<WorkTicket>) -> Result<WorkPermit, NoServer> {
    match turn {
        Some(turn) => turn.granted().await,
        None => std::future::pending().await,
    }
}

async fn late(newest: Option<&LateTimer>, rest: ServerSet, idle: ServerSet) -> LateAction {
    match newest {
        Some(watch) => watch.late(rest, idle).await,
        None => std::future::pending().await,
    }
}

/// Returns whether the error is final: every other server would answer the same, or the item was withdrawn.
fn is_final(error: &Error, asked: &ItemUrgency<'_>) -> bool {
    let deadline = asked.urgency().deadline.map(Instant::from_std);
    match error.kind() {
        ErrorKind::Cancelled => true,
        ErrorKind::TimedOut => deadline.is_some_and(|at| at <= Instant::now()),
        _ => false,
    }
}
