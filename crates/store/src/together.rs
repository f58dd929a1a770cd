//! Small reads that are wanted at the same time: a storage thread makes many of them in one job, in the order in which
//! they lie in the file, and tells of all of them at once; neighbours in a flat file come by one request. It knows no
//! formats.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use array::{Error, ReadEnds, ReadRequest, Region, Result, Urgency};
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::future::FutureExt;
use futures::stream::{self, StreamExt};

use crate::jobs::WithdrawOnDrop;
use crate::pieces::PIECE_COST;
use crate::window::{Flat, Window};
use crate::workers::{Job, Workers};
use crate::{Cancel, Format};

/// So long a job keeps its thread; then it tells what it has, and what is left queues again behind what is more urgent.
const TURN: Duration = Duration::from_millis(5);

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
            workers: Workers::shared().clone(),
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
    workers: Workers,
}

impl Together {
    /// Lets others have the thread. The place in the queue is one too many, of which there are no more than threads.
    fn queue_again(&mut self) {
        let rest = Self {
            format: Arc::clone(&self.format),
            unread: std::mem::take(&mut self.unread),
            reading: None,
            ended: Vec::new(),
            cancel: self.cancel.clone(),
            sender: self.sender.clone(),
            workers: self.workers.clone(),
        };
        self.workers.submit(Box::new(rest), None);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "storage threads are an edge: how long one is kept is measured here"
)]
fn now() -> Instant {
    Instant::now()
}

impl Job for Together {
    fn urgency(&self) -> Urgency {
        Urgency::of(self.unread.front().map(|read| read.request.priority).unwrap_or_default())
    }

    fn is_withdrawn(&self) -> bool {
        self.cancel.check().is_err()
    }

    fn run(mut self: Box<Self>) {
        let since = now();
        let mut near = Near { flat: None, window: None };
        while let Some(SmallRead { number, request, into, .. }) = self.unread.pop_front() {
            self.reading = Some(number);
            let end = self.read(&mut near, &request, into);
            let ReadRequest { array, level, selection, .. } = request;
            let end =
                end.map_err(|e| e.context(format!("read [{selection}] of level {level}, array {array}")));
            self.ended.push((number, end));
            self.reading = None;
            if !self.unread.is_empty() && now().duration_since(since) >= TURN {
                return self.queue_again();
            }
        }
    }
}

/// What the last reads have left for the next ones.
struct Near {
    /// Of which array and level, and where that lies, if it is flat.
    flat: Option<((u32, u8), Option<Flat>)>,
    window: Option<Window>,
}

impl Near {
    fn flat(&mut self, format: &dyn Format, array: u32, level: u8) -> Option<Flat> {
        if self.flat.as_ref().is_none_or(|(of, _)| *of != (array, level)) {
            self.flat = Some(((array, level), format.flat(array, level)));
        }
        self.flat.as_ref().and_then(|(_, flat)| flat.clone())
    }
}

impl Together {
    fn read(&self, near: &mut Near, request: &ReadRequest, into: Region) -> Result<()> {
        let ReadRequest { array, level, ref selection, .. } = *request;
        if let Some(flat) = near.flat(&*self.format, array, level)
            && let Some(stretch) = flat.stretch(selection)
        {
            if near.window.as_ref().is_none_or(|window| !window.covers(&flat, &stretch)) {
                let same = self.unread.iter().map(|read| &read.request);
                let same = same.take_while(|r| (r.array, r.level) == (array, level));
                let next = same.map_while(|r| flat.stretch(&r.selection));
                // What is wrong with a neighbour is its own affair: then each is read by itself.
                near.window = Window::over(&flat, &stretch, next, &self.cancel).ok().flatten();
            }
            if let Some(window) = near.window.as_ref().filter(|window| window.covers(&flat, &stretch)) {
                return window.read(&flat, selection, into, &self.cancel);
            }
        }
        self.format.read(array, level, selection, into, &self.cancel)
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
    use array::{Axis, AxisKind, Dataset, Priority, Selection, Target};
    use futures::executor::block_on;

    use super::*;
    use crate::flat::FlatArray;
    use crate::flat_file::{About, FlatFile, Placed};
    use crate::{Access, ByteStore, FileBytes, describe};

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

    /// Reads rows of 4 KiB of a file of a thousand; gives what was asked of the system, and checks the bytes.
    fn read_rows(rows: impl Iterator<Item = u64>) -> (u64, u64) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.raw");
        let content: Vec<u8> = (0..4_096_000_u32).map(|n| (n % 251).to_le_bytes()[0]).collect();
        std::fs::write(&path, &content).expect("a file");
        let file = FileBytes::open(&path).expect("it is there");
        let kinds = [AxisKind::Y, AxisKind::X];
        let axes = kinds.iter().map(|&kind| Axis::new("a", kind)).collect();
        let placed = Placed {
            info: describe::array("a", "u1".parse().expect("a type"), axes, &[1_000, 4_096], None),
            place: FlatArray::c_order(0, 1, &[1_000, 4_096]).expect("it fits"),
            store: Arc::clone(&file) as Arc<dyn ByteStore>,
            access: Access::Flat,
        };
        let about = About::default();
        let format: Arc<dyn Format> =
            Arc::new(FlatFile::new(&[&file], about, vec![placed]).expect("a description"));
        let (reads, targets): (Vec<_>, Vec<_>) = rows
            .enumerate()
            .map(|(number, row)| {
                let selection = Selection::of_box(&[row, 0], &[1, 4096]);
                let (target, into) = Target::new(&selection.shape(), 1).expect("memory");
                let request = ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL };
                (SmallRead { number, request, into, cost: 20 << 10 }, (row, target))
            })
            .unzip();
        let before = file.counts();
        let ends: Vec<_> = block_on(read_together(&format, reads).collect());
        assert!(ends.len() == targets.len() && ends.iter().all(|(_, end)| end.is_ok()), "{ends:?}");
        for (row, target) in targets {
            let start = usize::try_from(row * 4096).expect("small");
            assert!(target.into_vec().expect("read") == content[start..start + 4096], "row {row}");
        }
        (file.counts().requests - before.requests, file.counts().bytes - before.bytes)
    }

    #[test]
    fn neighbours_come_by_one_request_and_small_gaps_with_them() {
        assert_eq!(read_rows((0..1_000).rev()), (5, 1_000 * 4096), "one request per job, no byte twice");
        assert_eq!(
            read_rows((0..200).map(|n| n * 2 % 199)),
            (1, 199 * 4096),
            "in any order, also the same twice"
        );
        assert_eq!(read_rows((0..100).map(|n| n * 2)), (1, 199 * 4096), "gaps of a page are read");
        assert_eq!(read_rows((0..100).map(|n| n * 3)), (100, 100 * 4096), "larger ones are not");
        assert_eq!(read_rows(std::iter::once(7)), (1, 4096));
    }

    /// A format in which every read takes a while.
    struct Slow;

    impl Format for Slow {
        fn dataset(&self) -> Arc<Dataset> {
            unreachable!("nobody asks")
        }

        fn access(&self, _array: u32) -> Access {
            Access::Flat
        }

        fn read(&self, _: u32, _: u8, _: &Selection, _: Region, _: &Cancel) -> Result<()> {
            std::thread::sleep(TURN);
            Ok(())
        }
    }

    struct Urgent(std::sync::mpsc::Sender<()>);

    impl Job for Urgent {
        fn urgency(&self) -> Urgency {
            Urgency::of(Priority::URGENT)
        }

        fn is_withdrawn(&self) -> bool {
            false
        }

        fn run(self: Box<Self>) {
            self.0.send(()).expect("somebody waits");
        }
    }

    #[test]
    fn something_urgent_waits_for_a_turn_and_not_for_all_that_are_read_together() {
        let workers = Workers::start(1);
        let (sender, mut ends) = unbounded();
        let unread = (0..100).map(|n| small(n, n as u64, 1, Priority::NORMAL)).collect();
        let (format, cancel) = (Arc::new(Slow), Cancel::default());
        let (reading, ended) = (None, Vec::new());
        let job = Together { format, unread, reading, ended, cancel, sender, workers: workers.clone() };
        workers.submit(Box::new(job), None);
        let first = block_on(ends.next()).expect("some have ended");
        let (told, was_run) = std::sync::mpsc::channel();
        workers.submit(Box::new(Urgent(told)), None);
        was_run.recv().expect("it is run");
        let mut before = first.len();
        while let Ok(more) = ends.try_recv() {
            before += more.len();
        }
        assert!(before < 20, "{before} reads went first");
        let rest: Vec<_> = block_on(ends.collect());
        let all = rest.into_iter().flatten().count() + before;
        assert_eq!(all, 100, "each ends once");
    }

    #[test]
    fn what_costs_much_or_is_urgent_is_a_job_of_its_own() {
        let dear = |number| small(number, 0, PIECE_COST - 1, Priority::NORMAL);
        assert_eq!(in_jobs((0..3).map(dear).collect()).len(), 3);
        let jobs = in_jobs(vec![small(0, 0, 1, Priority::NORMAL), small(1, 9, 1, Priority::URGENT)]);
        assert_eq!(jobs.iter().map(|job| job[0].number).collect::<Vec<_>>(), [1, 0]);
    }
}
