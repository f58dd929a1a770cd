//! Small reads that are wanted at the same time: a storage thread makes many of them in one job, in the order of their positions in
//! the file, and reports all of them at once; neighbors in a flat file share one request. This module knows no formats.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::vec;

use array::{Error, ReadEnds, ReadRequest, Region, Result, Urgency};
use futures::channel::mpsc;
use futures::future::FutureExt;
use futures::stream::{self, StreamExt};

use crate::io::byte_store::Unchecked;
use crate::io::read_ahead::ReadAhead;
use crate::io::window::{FileWindow, FlatSource};
use crate::schedule::jobs::CancelWorkOnDrop;
use crate::schedule::read_pieces::PIECE_COST;
use crate::schedule::workers::{QueuePermit, WorkerJob, Workers};
use crate::{ByteStore, CancelFlag, Format};

/// Time that a job keeps its thread; then it reports the finished reads, and the rest is queued again after more urgent jobs.
const TURN: Duration = Duration::from_millis(5);

/// Small read of a batch.
pub(crate) struct SmallRead {
    /// Number of the read, counted by the caller.
    pub(crate) number: usize,
    pub(crate) request: ReadRequest,
    pub(crate) into: Region,
    /// Cost as the number of bytes that could be copied in the same time.
    pub(crate) cost: u64,
}

/// Makes reads that fit their array; dropping the stream cancels the rest.
pub(crate) fn read_together(format: &Arc<dyn Format>, reads: Vec<SmallRead>) -> ReadEnds {
    let withdraw = CancelWorkOnDrop(CancelFlag::default());
    // A job reports at least one read whenever it yields its thread.
    let (sender, ends) = mpsc::channel(reads.len());
    let workers = Workers::of(&**format);
    let jobs: Vec<SmallReadBatch> = in_jobs(reads)
        .into_iter()
        .map(|reads| SmallReadBatch {
            format: Arc::clone(format),
            unread: reads,
            reading: None,
            unproven: Vec::new(),
            ended: Vec::new(),
            cancel: withdraw.0.clone(),
            sender: sender.clone(),
            workers: workers.clone(),
        })
        .collect();
    drop(sender);
    let submitted = async move {
        for job in jobs {
            let permit = workers.permit().await;
            workers.submit(Box::new(job), permit);
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

struct SmallReadBatch {
    format: Arc<dyn Format>,
    unread: VecDeque<SmallRead>,
    /// The one that is being read.
    reading: Option<usize>,
    /// Read from a store of which it was not seen since that it has not changed.
    unproven: Vec<(usize, Result<()>)>,
    ended: Vec<(usize, Result<()>)>,
    cancel: CancelFlag,
    /// Channel with room for the result of each read.
    sender: mpsc::Sender<Vec<(usize, Result<()>)>>,
    workers: Workers,
}

impl SmallReadBatch {
    /// Yields the thread. The rest keeps the position that the job had in the queue.
    fn queue_again(&mut self, permit: QueuePermit) {
        let rest = Self {
            format: Arc::clone(&self.format),
            unread: std::mem::take(&mut self.unread),
            reading: None,
            unproven: Vec::new(),
            ended: Vec::new(),
            cancel: self.cancel.clone(),
            sender: self.sender.clone(),
            workers: self.workers.clone(),
        };
        self.workers.submit(Box::new(rest), permit);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "storage threads are an edge: how long one is kept is measured here"
)]
fn now() -> Instant {
    Instant::now()
}

impl WorkerJob for SmallReadBatch {
    fn urgency(&self) -> Urgency {
        Urgency::of(self.unread.front().map(|read| read.request.priority).unwrap_or_default())
    }

    fn is_withdrawn(&self) -> bool {
        self.cancel.check().is_err()
    }

    fn run(mut self: Box<Self>, permit: QueuePermit) {
        let since = now();
        let mut near = RecentData { flat: None, window: None };
        while let Some(SmallRead { number, request, into, .. }) = self.unread.pop_front() {
            self.reading = Some(number);
            self.turn_to(&mut near, request.array, request.level);
            near.announce_next();
            let end = self.read(&mut near, &request, into);
            let ReadRequest { array, level, selection, .. } = request;
            let end =
                end.map_err(|e| e.context(format!("read [{selection}] of level {level}, array {array}")));
            self.unproven.push((number, end));
            self.reading = None;
            if !self.unread.is_empty() && now().duration_since(since) >= TURN {
                self.prove(&near);
                return self.queue_again(permit);
            }
        }
        self.prove(&near);
    }
}

/// Data of the last reads that the next ones may use.
struct RecentData {
    flat: Option<CurrentArray>,
    window: Option<FileWindow>,
}

/// Layout of the array that is being read, and its coming reads.
struct CurrentArray {
    array: u32,
    level: u8,
    /// None where it is not flat.
    flat: Option<(FlatSource, Unchecked)>,
    /// Byte ranges of the next reads of this array, as far as they are known.
    ahead: ReadAhead<vec::IntoIter<Range<u64>>>,
}

impl RecentData {
    /// Announces the positions of the next reads that are not announced yet.
    fn announce_next(&mut self) {
        if let Some(CurrentArray { flat: Some((flat, _)), ahead, .. }) = &mut self.flat {
            ahead.next(&*flat.store);
        }
    }
}

impl SmallReadBatch {
    /// The next read is of this array and level.
    fn turn_to(&mut self, near: &mut RecentData, array: u32, level: u8) {
        if near.flat.as_ref().is_none_or(|lying| (lying.array, lying.level) != (array, level)) {
            self.prove(near);
            let flat = self.format.flat(array, level);
            let flat = flat.map(|flat| {
                let unchecked = Unchecked(Arc::clone(&flat.store));
                (flat, unchecked)
            });
            let same = self.unread.iter().map(|read| &read.request);
            let same = same.take_while(|r| (r.array, r.level) == (array, level));
            let next = same.map_while(|r| flat.as_ref().and_then(|(flat, _)| flat.stretch(&r.selection)));
            let ahead = ReadAhead::of(next.collect::<Vec<_>>().into_iter());
            near.flat = Some(CurrentArray { array, level, flat, ahead });
        }
    }

    /// Checks once, for all reads since the last check, whether the file has changed.
    fn prove(&mut self, near: &RecentData) {
        let store = near.flat.as_ref().and_then(|lying| lying.flat.as_ref()).map(|(_, store)| store);
        let store = store.filter(|_| !self.unproven.is_empty());
        let proof = store.map_or(Ok(()), ByteStore::check_unchanged);
        let proven = self.unproven.drain(..).map(|(number, end)| (number, end.and_then(|()| proof.clone())));
        self.ended.extend(proven);
    }

    fn read(&self, near: &mut RecentData, request: &ReadRequest, into: Region) -> Result<()> {
        let ReadRequest { array, level, ref selection, .. } = *request;
        let RecentData { flat, window } = near;
        let flat = flat.as_ref().and_then(|lying| lying.flat.as_ref());
        let Some((flat, unchecked, stretch)) =
            flat.and_then(|(flat, unchecked)| Some((flat, unchecked, flat.stretch(selection)?)))
        else {
            return self.format.read(array, level, selection, into, &self.cancel);
        };
        if window.as_ref().is_none_or(|window| !window.covers(flat, &stretch)) {
            let same = self.unread.iter().map(|read| &read.request);
            let same = same.take_while(|r| (r.array, r.level) == (array, level));
            let next = same.map_while(|r| flat.stretch(&r.selection));
            // An error of a neighbor must not affect this read: then each is read alone.
            *window = FileWindow::over(flat, &stretch, next, &self.cancel).ok().flatten();
        }
        match window.as_ref().filter(|window| window.covers(flat, &stretch)) {
            Some(window) => window.read(flat, selection, into, &self.cancel),
            None => flat.layout.read(unchecked, selection, into, &self.cancel),
        }
    }
}

impl Drop for SmallReadBatch {
    /// Also where a read panicked: each has its end.
    fn drop(&mut self) {
        let unread = self.unread.drain(..).map(|read| read.number);
        let left =
            self.reading.into_iter().chain(self.unproven.drain(..).map(|(number, _)| number)).chain(unread);
        let lost = |number| (number, Err(Error::internal("expected the end of a read, found none")));
        self.ended.extend(left.map(lost));
        // The channel has room for all of them, so this fails only if the caller is gone.
        drop(self.sender.try_send(std::mem::take(&mut self.ended)));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use array::{Axis, AxisKind, Dataset, ErrorKind, Priority, Selection, Target};
    use futures::executor::block_on;
    use parking_lot::Mutex;

    use super::*;
    use crate::formats::common::flat::FlatArray;
    use crate::formats::common::flat_file::{FlatFile, FlatFileArray, HeaderInfo};
    use crate::schedule::workers::MAX_QUEUED_JOBS;
    use crate::{Access, FileBytes, IoCounts, formats::common::describe};

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

    /// A thousand rows of 4 KiB, with their bytes.
    fn file_of_rows(folder: &std::path::Path) -> (Arc<FileBytes>, Vec<u8>) {
        let path = folder.join("rows.raw");
        let content: Vec<u8> = (0..4_096_000_u32).map(|n| (n % 251).to_le_bytes()[0]).collect();
        std::fs::write(&path, &content).expect("a file");
        (FileBytes::open(&path).expect("it is there"), content)
    }

    fn format_of_rows(file: &Arc<FileBytes>, store: Arc<dyn ByteStore>) -> Arc<dyn Format> {
        let kinds = [AxisKind::Y, AxisKind::X];
        let axes = kinds.iter().map(|&kind| Axis::new("a", kind)).collect();
        let placed = FlatFileArray {
            info: describe::array("a", "u1".parse().expect("a type"), axes, &[1_000, 4_096], None),
            layout: FlatArray::c_order(0, 1, &[1_000, 4_096]).expect("it fits"),
            store,
            access: Access::Flat,
        };
        Arc::new(FlatFile::new(&[file], HeaderInfo::default(), vec![placed]).expect("a description"))
    }

    /// How reads of rows ended, and what they read.
    fn read_all(format: &Arc<dyn Format>, rows: impl Iterator<Item = u64>) -> Vec<(u64, Result<Vec<u8>>)> {
        let (reads, targets): (Vec<_>, Vec<_>) = rows
            .enumerate()
            .map(|(number, row)| {
                let selection = Selection::of_box(&[row, 0], &[1, 4096]);
                let (target, into) = Target::new(&selection.shape(), 1).expect("memory");
                let request = ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL };
                (SmallRead { number, request, into, cost: 20 << 10 }, (row, target))
            })
            .unzip();
        let mut ends: Vec<_> = block_on(read_together(format, reads).collect());
        ends.sort_by_key(|(number, _)| *number);
        assert!(ends.iter().map(|(number, _)| *number).eq(0..targets.len()), "each ends once");
        let read = |((row, target), (_, end)): ((u64, Target), (usize, Result<()>))| {
            (row, end.and_then(|()| target.into_vec()))
        };
        targets.into_iter().zip(ends).map(read).collect()
    }

    /// Reads rows and checks the bytes; gives what was asked of the system.
    fn read_rows(rows: impl Iterator<Item = u64>) -> (u64, u64) {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, content) = file_of_rows(folder.path());
        let format = format_of_rows(&file, Arc::clone(&file) as Arc<dyn ByteStore>);
        let before = file.counts();
        for (row, read) in read_all(&format, rows) {
            let start = usize::try_from(row * 4096).expect("small");
            assert!(read.expect("it is there") == content[start..start + 4096], "row {row}");
        }
        (file.counts().requests - before.requests, file.counts().bytes - before.bytes)
    }

    /// A file that changes when it was read so often.
    struct Changing {
        file: Arc<FileBytes>,
        after_reads: usize,
        reads: AtomicUsize,
        looks: AtomicUsize,
    }

    impl ByteStore for Changing {
        fn size_bytes(&self) -> u64 {
            ByteStore::size_bytes(&*self.file)
        }

        fn read_at(&self, offset: u64, into: &mut [u8], cancel: &CancelFlag) -> Result<()> {
            self.read_unchecked(offset, into, cancel)?;
            self.check_unchanged()
        }

        fn read_unchecked(&self, offset: u64, into: &mut [u8], _: &CancelFlag) -> Result<()> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            self.file.read_at(offset, into)
        }

        fn check_unchanged(&self) -> Result<()> {
            self.looks.fetch_add(1, Ordering::Relaxed);
            let is_the_same = self.reads.load(Ordering::Relaxed) < self.after_reads;
            is_the_same.then_some(()).ok_or_else(|| Error::new(ErrorKind::Stale, "it changed"))
        }

        fn counts(&self) -> IoCounts {
            self.file.counts()
        }
    }

    #[test]
    fn one_look_shows_for_all_of_a_job_that_the_file_has_not_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, _) = file_of_rows(folder.path());
        let read = |after_reads: usize| {
            let (file, reads, looks) = (Arc::clone(&file), AtomicUsize::new(0), AtomicUsize::new(0));
            let store = Arc::new(Changing { file: Arc::clone(&file), after_reads, reads, looks });
            let format = format_of_rows(&file, Arc::clone(&store) as Arc<dyn ByteStore>);
            let ends = read_all(&format, (0..100).map(|n| n * 3));
            (ends, store.looks.load(Ordering::Relaxed))
        };
        let (ends, looks) = read(usize::MAX);
        assert!(ends.iter().all(|(_, end)| end.is_ok()));
        // A job that keeps its thread for long looks when it gives it back.
        assert!(looks < 50, "{looks} looks for 100 reads");
        // It changed after the first of them: nobody is told what the others read.
        let (ends, _) = read(1);
        let kind = |end: &Result<Vec<u8>>| end.as_ref().err().map(Error::kind);
        assert!(ends.iter().all(|(_, end)| kind(end) == Some(ErrorKind::Stale)), "{ends:?}");
    }

    #[test]
    fn neighbors_come_by_one_request_and_small_gaps_with_them() {
        check_requests((0..1_000).rev(), (5, 1_000 * 4096), "one request per job, no byte twice");
        check_requests((0..200).map(|n| n * 2 % 199), (1, 199 * 4096), "in any order, also the same twice");
        check_requests((0..100).map(|n| n * 2), (1, 199 * 4096), "gaps of a page are read");
        check_requests((0..100).map(|n| n * 3), (100, 100 * 4096), "larger ones are not");
        check_requests(std::iter::once(7), (1, 4096), "what is alone is read alone");
    }

    /// A job that the machine keeps waiting for its whole turn goes on as another one, and reads its window again: then once
    /// more.
    fn check_requests(rows: impl Iterator<Item = u64> + Clone, expected: (u64, u64), why: &str) {
        let found: Vec<_> =
            (0..10).map(|_| read_rows(rows.clone())).take_while(|&found| found != expected).collect();
        assert!(found.len() < 10, "{why}: expected {expected:?} requests and bytes, found {found:?}");
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

        fn read(&self, _: u32, _: u8, _: &Selection, _: Region, _: &CancelFlag) -> Result<()> {
            std::thread::sleep(TURN);
            Ok(())
        }
    }

    struct Urgent(std::sync::mpsc::Sender<()>);

    impl WorkerJob for Urgent {
        fn urgency(&self) -> Urgency {
            Urgency::of(Priority::URGENT)
        }

        fn is_withdrawn(&self) -> bool {
            false
        }

        fn run(self: Box<Self>, _place: QueuePermit) {
            self.0.send(()).expect("somebody waits");
        }
    }

    type Ends = Vec<(usize, Result<()>)>;

    /// A job of so many reads, and their ends.
    fn reads_of(
        format: Arc<dyn Format>,
        count: usize,
        workers: &Workers,
    ) -> (SmallReadBatch, mpsc::Receiver<Ends>) {
        let (sender, ends) = mpsc::channel(count);
        let unread = (0..count).map(|n| small(n, n as u64, 1, Priority::NORMAL)).collect();
        let (reading, unproven, ended, cancel) = (None, Vec::new(), Vec::new(), CancelFlag::default());
        let workers = workers.clone();
        (SmallReadBatch { format, unread, reading, unproven, ended, cancel, sender, workers }, ends)
    }

    /// A format whose first read takes a turn, and all others until the sender is gone.
    struct Gated(Mutex<std::sync::mpsc::Receiver<()>>, AtomicUsize);

    impl Format for Gated {
        fn dataset(&self) -> Arc<Dataset> {
            unreachable!("nobody asks")
        }

        fn access(&self, _array: u32) -> Access {
            Access::Flat
        }

        fn read(&self, _: u32, _: u8, _: &Selection, _: Region, _: &CancelFlag) -> Result<()> {
            if self.1.fetch_add(1, Ordering::SeqCst) == 0 {
                std::thread::sleep(TURN);
            } else {
                self.0.lock().recv().expect_err("nothing is sent");
            }
            Ok(())
        }
    }

    #[test]
    fn what_is_left_of_a_job_keeps_to_the_bound_of_the_queue() {
        let workers = Workers::start(1);
        let others: Vec<_> = (1..MAX_QUEUED_JOBS).map(|_| block_on(workers.permit())).collect();
        let (open, closed) = std::sync::mpsc::channel();
        let format = Arc::new(Gated(Mutex::new(closed), AtomicUsize::new(0)));
        let (job, mut ends) = reads_of(format, 3, &workers);
        workers.submit(Box::new(job), block_on(workers.permit()));
        assert_eq!(block_on(ends.next()).expect("the first end").len(), 1);
        assert!(workers.permit().now_or_never().is_none(), "the rest takes the place that the job had");
        drop(open);
        let rest: Vec<_> = block_on(ends.collect());
        assert_eq!(rest.into_iter().flatten().count(), 2);
        block_on(workers.permit());
        drop(others);
    }

    #[test]
    fn something_urgent_waits_for_a_turn_and_not_for_all_that_are_read_together() {
        let workers = Workers::start(1);
        let (job, mut ends) = reads_of(Arc::new(Slow), 100, &workers);
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
