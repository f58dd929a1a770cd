//! Small pieces of work on the storage threads, most urgent first, beside the reads of blocks.

use array::{Error, Priority, Result, Urgency};
use futures::channel::oneshot;

use crate::workers::{Job, Workers};

/// Does `work` on a storage thread when it is the most urgent. Dropping the future withdraws it, unless it runs.
pub(super) async fn on_pool<T: Send + 'static>(
    priority: Priority,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (reply, answer) = oneshot::channel();
    let task = Task { priority, work, reply };
    for job in Workers::shared().submit(vec![Box::new(task)]) {
        job.refuse(Error::new(array::ErrorKind::Busy, "expected room in the storage queue, found it full"));
    }
    answer.await.map_err(|_| Error::internal("a storage thread gave up its work"))?
}

struct Task<T, F> {
    priority: Priority,
    work: F,
    reply: oneshot::Sender<Result<T>>,
}

impl<T: Send, F: FnOnce() -> Result<T> + Send> Job for Task<T, F> {
    fn urgency(&self) -> Urgency {
        Urgency::of(self.priority)
    }

    fn is_withdrawn(&self) -> bool {
        self.reply.is_canceled()
    }

    fn has_room(&self) -> bool {
        true
    }

    fn claim(&mut self) {}

    fn run(self: Box<Self>) {
        let result = (self.work)();
        // The asker may have gone away.
        drop(self.reply.send(result));
    }

    fn refuse(self: Box<Self>, error: Error) {
        drop(self.reply.send(Err(error)));
    }
}
