//! The operations that a node answers, registered by name. A user's own operation is one more [`Handler`] here and one
//! more [`RemoteOperation`](client::requests::RemoteOperation) on the client's side; `examples/operations` has three.

mod describe;
mod forward;
mod geometry;
mod handler;
mod list;
pub(crate) mod operation_limit;
pub(crate) mod path;
mod probe;
mod read;
mod read_block;
mod read_packed;
mod read_together;
mod stats;

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{Error, ErrorKind, Result};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, join_all};

pub use describe::DescribeHandler;
use forward::{Forwarded, forward};
pub use geometry::GeometryHandler;
use handler::end;
pub use handler::{BeginOutcome, Handler, NodeState, OperationCall};
pub use list::ListHandler;
pub use path::PathHandler;
pub use probe::ProbeHandler;
pub use read::ReadHandler;
pub use read_block::ReadBlockHandler;
pub use stats::StatsHandler;

/// Operations by name.
#[derive(Clone, Default)]
pub struct OperationRegistry(BTreeMap<&'static str, Arc<dyn AnyHandler>>);

impl OperationRegistry {
    /// Adds an operation, or replaces the one of the same name.
    pub fn add(&mut self, handler: impl Handler) {
        self.0.insert(handler.name(), Arc::new(handler));
    }

    /// Returns whether there is an operation of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns how many calls of this name begin together.
    pub(crate) fn most_together(&self, name: &str) -> usize {
        self.0.get(name).map_or(1, |handler| handler.most_together())
    }

    /// Returns whether calls of this name may begin before the client's address is validated.
    pub(crate) fn only_reads(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|handler| handler.only_reads())
    }

    /// Begins calls of one name; the rest of each call is to be run in a task. An operation that does more than read
    /// waits there until the client's address is validated, and is dropped if that fails.
    pub(crate) fn begin(&self, calls: Vec<OperationCall>) -> Vec<BoxFuture<'static, ()>> {
        let Some(first) = calls.first() else { return Vec::new() };
        if let Err(error) = first.check_right() {
            calls.iter().for_each(|call| end(call, Err(error.clone())));
            return Vec::new();
        }
        let waiting = first.flow.as_ref().filter(|flow| !flow.is_proven());
        let Some(flow) = waiting.filter(|_| !self.only_reads(first.operation.name())) else {
            return self.begin_proven(calls);
        };
        let (proven, registry) = (flow.proven(), self.clone());
        let waiting = async move {
            if proven.await {
                join_all(registry.begin_proven(calls)).await;
            }
        };
        vec![waiting.boxed()]
    }

    fn begin_proven(&self, calls: Vec<OperationCall>) -> Vec<BoxFuture<'static, ()>> {
        let Some(name) = calls.first().map(|call| call.operation.name()) else { return Vec::new() };
        if let Some(handler) = self.0.get(name) {
            return Arc::clone(handler).begin(calls);
        }
        let unknown = self.unknown(name);
        calls.into_iter().map(|call| run_elsewhere(call, unknown.clone()).boxed()).collect()
    }

    fn unknown(&self, name: &str) -> Error {
        let names: Vec<&str> = self.0.keys().copied().collect();
        Error::unsupported(format!("expected one of the operations {names:?}, found `{name}`"))
    }
}

/// Answers at once, unless the connection is full of responses that the client does not take.
fn answer_now(call: OperationCall, body: Bytes) -> Option<BoxFuture<'static, ()>> {
    match call.operation.try_answer(body.clone(), Bytes::new()) {
        Ok(()) => None,
        Err(error) if error.kind() == ErrorKind::Busy => {
            let later = async move {
                if let Err(error) = call.operation.answer(body, Bytes::new()).await {
                    end(&call, Err(error));
                }
            };
            Some(later.boxed())
        }
        Err(error) => {
            end(&call, Err(error));
            None
        }
    }
}

async fn run<H: Handler>(handler: Arc<H>, work: H::Work, call: OperationCall) {
    let result = if handler.handles_changes() {
        handler.run(work, &call).await
    } else {
        let working = async {
            let forwarded = match handler.is_forwarded() {
                true => forward(&call).await?,
                false => Forwarded::NotThere,
            };
            match forwarded {
                Forwarded::Answered => Ok(()),
                Forwarded::NotThere => handler.run(work, &call).await,
            }
        };
        until_cancelled(&call, working).await
    };
    end(&call, result);
}

/// Forwards a call of an unknown operation to the server that has the data.
async fn run_elsewhere(call: OperationCall, unknown: Error) {
    let working = async {
        match forward(&call).await? {
            Forwarded::Answered => Ok(()),
            Forwarded::NotThere => Err(unknown),
        }
    };
    let result = until_cancelled(&call, working).await;
    end(&call, result);
}

async fn until_cancelled(call: &OperationCall, working: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::select! {
        biased;
        () = call.operation.cancelled() => Err(Error::cancelled()),
        result = working => result,
    }
}

/// A [`Handler`] with any type of work.
trait AnyHandler: Send + Sync {
    fn only_reads(&self) -> bool;
    fn most_together(&self) -> usize;
    fn begin(self: Arc<Self>, calls: Vec<OperationCall>) -> Vec<BoxFuture<'static, ()>>;
}

impl<H: Handler> AnyHandler for H {
    fn only_reads(&self) -> bool {
        Handler::only_reads(self)
    }

    fn most_together(&self) -> usize {
        Handler::most_together(self)
    }

    fn begin(self: Arc<Self>, calls: Vec<OperationCall>) -> Vec<BoxFuture<'static, ()>> {
        let (mut rest, mut together) = (Vec::new(), Vec::new());
        for call in calls {
            match Handler::begin(&*self, call.operation.parameters()) {
                Ok(BeginOutcome::Done) => end(&call, Ok(())),
                Ok(BeginOutcome::Answered(body)) => rest.extend(answer_now(call, body)),
                Ok(BeginOutcome::Work(work)) => rest.push(run(Arc::clone(&self), work, call).boxed()),
                Ok(BeginOutcome::Together(work)) => together.push((work, call)),
                Err(error) => end(&call, Err(error)),
            }
        }
        if !together.is_empty() {
            rest.push(async move { self.run_together(together).await }.boxed());
        }
        rest
    }
}
