//! Small reads that are wanted at the same time: a storage thread makes many of them in one job, in the order in which
//! they lie in the file, and tells of all of them at once. It knows neither formats nor how long a read waits.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use array::{Error, ReadEnds, ReadRequest, Region, Result, Urgency};
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::future::FutureExt;
use futures::stream::{self, StreamExt};

use crate::jobs::WithdrawOnDrop;
use crate::pieces::PIECE_COST;
use crate::workers::{Job, Workers};
use crate::{Cancel, Format};

/// One of them.
pub(crate) struct SmallRead {
    /// Which one, as its asker counts.
    pub(crate) number: usize,
    pub(crate) request: ReadRequest,
    pub(crate) into: Region,
    /// In bytes copied instead.
    pub(crate) cost: u64,
}

/// Makes reads that fit their array; dropping the stream withdraws what is left.
pub(crate) fn read_together(format: &Arc<dyn Format>, reads: Vec<SmallRead>) -> ReadEnds {
    let withdraw = WithdrawOnDrop(Cancel::default());
    let (sender, ends) = unbounded();
    let jobs: Vec<Together> = in_jobs(reads)
        .into_iter()
        .map(|reads| Together {
            format: Arc::clone(format),
            unread: reads,
            reading: None,
            ended: Vec::new(),
            cancel: withdraw.0.clone(),
            sender: sender.clone(),
        })
        .collect();
    drop(sender);
    let submitted = async move {
        for job in jobs {
            let place = Workers::shared().place().await;
            Workers::shared().submit(Box::new(job), place);
        }
        ends
    };
    let ends = submitted.flatten_stream().flat_map(stream::iter);
    ends.map(move |end| {
        let _as_long_as_somebody_listens = &withdraw;
        end
    })
    .boxed()
}

/// Reads of one priority that lie near each other, worth a thread together and soon done.
fn in_jobs(mut reads: Vec<SmallRead>) -> Vec<VecDeque<SmallRead>> {
    reads.sort_by(|a, b| in_order(&a.request, &b.request));
    let mut jobs: Vec<VecDeque<SmallRead>> = Vec::new();
    let mut cost = 0u64;
    for read in reads {
        cost = cost.saturating_add(read.cost);
        let joins = |job: &&mut VecDeque<SmallRead>| {
            cost <= PIECE_COST && job.front().is_some_and(|r| r.request.priority == read.request.priority)
        };
        if let Some(job) = jobs.last_mut().filter(joins) {
            job.push_back(read);
        } else {
            cost = read.cost;
            jobs.push(VecDeque::from([read]));
        }
    }
    jobs
}

/// The most urgent first, then as they lie in their array.
fn in_order(a: &ReadRequest, b: &ReadRequest) -> Ordering {
    let of_array = |r: &ReadRequest| (r.array, r.level);
    let starts = a.selection.ranges().iter().zip(b.selection.ranges()).map(|(a, b)| a.start.cmp(&b.start));
    let mut where_they_lie = [of_array(a).cmp(&of_array(b))].into_iter().chain(starts);
    b.priority.cmp(&a.priority).then_with(|| where_they_lie.find(|o| o.is_ne()).unwrap_or(Ordering::Equal))
}

struct Together {
    format: Arc<dyn Format>,
    unread: VecDeque<SmallRead>,
    /// The one that is being read.
    reading: Option<usize>,
    ended: Vec<(usize, Result<()>)>,
    cancel: Cancel,
    sender: UnboundedSender<Vec<(usize, Result<()>)>>,
}

impl Job for Together {
    fn urgency(&self) -> Urgency {
        Urgency::of(self.unread.front().map(|read| read.request.priority).unwrap_or_default())
    }

    fn is_withdrawn(&self) -> bool {
        self.cancel.check().is_err()
    }

    fn run(mut self: Box<Self>) {
        while let Some(SmallRead { number, request, into, .. }) = self.unread.pop_front() {
            self.reading = Some(number);
            let ReadRequest { array, level, selection, .. } = request;
            let end = self.format.read(array, level, &selection, into, &self.cancel);
            let end =
                end.map_err(|e| e.context(format!("read [{selection}] of level {level}, array {array}")));
            self.ended.push((number, end));
            self.reading = None;
        }
    }
}

impl Drop for Together {
    /// Also where a read panicked: each has its end.
    fn drop(&mut self) {
        let left = self.reading.into_iter().chain(self.unread.drain(..).map(|read| read.number));
        let lost = |number| (number, Err(Error::internal("expected the end of a read, found none")));
        self.ended.extend(left.map(lost));
        // The asker may have gone; then nobody misses them.
        drop(self.sender.unbounded_send(std::mem::take(&mut self.ended)));
    }
}

#[cfg(test)]
mod tests {
    use array::{Priority, Selection, Target};

    use super::*;

    fn small(number: usize, row: u64, cost: u64, priority: Priority) -> SmallRead {
        let selection = Selection::of_box(&[row, 0], &[1, 4096]);
        let (_, into) = Target::new(&selection.shape(), 1).expect("memory");
        SmallRead { number, request: ReadRequest { array: 0, level: 0, selection, priority }, into, cost }
    }

    #[test]
    fn a_thousand_small_reads_are_a_few_jobs_in_the_order_of_the_file() {
        let cost = (16 << 10) + 4096;
        let reads = (0..1_000).map(|n| small(n, (n as u64 * 617) % 1_000, cost, Priority::NORMAL));
        let jobs = in_jobs(reads.collect());
        assert_eq!(jobs.len(), 5);
        let rows = jobs.iter().flatten().map(|r| r.request.selection.ranges()[0].start);
        assert!(rows.eq(0..1_000));
    }

    #[test]
    fn what_costs_much_or_is_urgent_is_a_job_of_its_own() {
        let dear = |number| small(number, 0, PIECE_COST - 1, Priority::NORMAL);
        assert_eq!(in_jobs((0..3).map(dear).collect()).len(), 3);
        let jobs = in_jobs(vec![small(0, 0, 1, Priority::NORMAL), small(1, 9, 1, Priority::URGENT)]);
        assert_eq!(jobs.iter().map(|job| job[0].number).collect::<Vec<_>>(), [1, 0]);
    }
}
