//! Small pieces of work on the storage threads, most urgent first, together with the reads of blocks.

use array::{Error, Priority, Result, Urgency};
use futures::channel::oneshot;

use crate::CancelFlag;
use crate::schedule::jobs::WithdrawOnDrop;
use crate::schedule::workers::{QueuePermit, WorkerJob, Workers};

/// Does `work` on a storage thread when it is the most urgent. Dropping the future withdraws it: before it runs at once,
/// later when it looks at what it is given.
///
/// # Errors
/// Errors of the work; `Internal` if it panicked.
pub async fn on_pool<T: Send + 'static>(
    priority: Priority,
    work: impl FnOnce(&CancelFlag) -> Result<T> + Send + 'static,
) -> Result<T> {
    let withdraw = WithdrawOnDrop(CancelFlag::default());
    let (reply, answer) = oneshot::channel();
    let task = PoolTask { priority, work, reply, cancel: withdraw.0.clone() };
    let place = Workers::shared().place().await;
    Workers::shared().submit(Box::new(task), place);
    answer.await.map_err(|_| Error::internal("a storage thread gave up its work"))?
}

/// Does `work` on a storage thread when it is the most urgent, without waiting for a place in the queue: for those who
/// bound how much they have there.
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

    fn run(self: Box<Self>, place: QueuePermit) {
        drop(place);
        let result = (self.work)(&self.cancel);
        // The asker may have gone away.
        drop(self.reply.send(result));
    }
}
