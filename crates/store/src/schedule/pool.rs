//! Small pieces of work on the storage threads, most urgent first, together with the reads of blocks.

use array::{Error, Priority, Result, Urgency};
use futures::channel::oneshot;

use crate::CancelFlag;
use crate::schedule::jobs::CancelWorkOnDrop;
use crate::schedule::workers::{QueuePermit, WorkerJob, Workers};

/// Runs `work` on a storage thread when it is the most urgent. Dropping the future cancels it: at once before it runs, later when it checks
/// its flag.
///
/// # Errors
/// Errors of the work; `Internal` if it panicked.
pub async fn on_pool<T: Send + 'static>(
    priority: Priority,
    work: impl FnOnce(&CancelFlag) -> Result<T> + Send + 'static,
) -> Result<T> {
    let withdraw = CancelWorkOnDrop(CancelFlag::default());
    let (reply, answer) = oneshot::channel();
    let task = PoolTask { priority, work, reply, cancel: withdraw.0.clone() };
    let permit = Workers::shared().permit().await;
    Workers::shared().submit(Box::new(task), permit);
    answer.await.map_err(|_| Error::internal("a storage thread gave up its work"))?
}

/// Runs `work` on a storage thread when it is the most urgent, without waiting for a permit of the queue: for callers that bound their
/// queued work.
pub fn soon(priority: Priority, work: impl FnOnce() + Send + 'static) {
    // No caller waits for the answer.
    let (reply, _) = oneshot::channel();
    let work = move |_: &CancelFlag| {
        work();
        Ok(())
    };
    Workers::shared()
        .submit(Box::new(PoolTask { priority, work, reply, cancel: CancelFlag::default() }), None);
}

struct PoolTask<T, F> {
    priority: Priority,
    work: F,
    reply: oneshot::Sender<Result<T>>,
    cancel: CancelFlag,
}

impl<T: Send, F: FnOnce(&CancelFlag) -> Result<T> + Send> WorkerJob for PoolTask<T, F> {
    fn urgency(&self) -> Urgency {
        Urgency::of(self.priority)
    }

    fn is_withdrawn(&self) -> bool {
        self.cancel.check().is_err()
    }

    fn run(self: Box<Self>, permit: QueuePermit) {
        drop(permit);
        let result = (self.work)(&self.cancel);
        // The caller may have gone away.
        drop(self.reply.send(result));
    }
}
