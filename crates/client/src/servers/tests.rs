//! Several servers with faults, in virtual time.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use array::conformance::{MemorySource, check_source, fetch};
use array::{
    Block, BlockKey, Completion, Completions, Content, Dataset, Error, ErrorKind, Generation, Priority,
    ReadEnds, ReadRequest, Region, Result, Selection, Source, Target, Want,
};
use futures::future::BoxFuture;
use futures::stream::{self, FuturesUnordered};
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep, sleep_until, timeout};

use super::scheduler::{HedgeDecision, Scheduler, ServerSet, WorkRequest};
use super::{ReplicaServer, ReplicaSource, Servers, SharingRule};

mod replaced;

/// Behavior of a simulated server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SimulatedMode {
    Up,
    /// All requests fail, also those in flight.
    Down,
    /// Requests are not answered until the mode is `Up` again.
    Silent,
    /// The server describes and reads another state of the data.
    Changed,
}

/// A server at the end of a link: responses are sent one after another at a rate, and each arrives after a latency.
#[derive(Clone)]
struct Simulated {
    here: Arc<MemorySource>,
    changed: Arc<OnceLock<Arc<MemorySource>>>,
    rate_bytes_per_sec: Arc<Mutex<f64>>,
    latency: Duration,
    mode: Arc<watch::Sender<SimulatedMode>>,
    free_at: Arc<Mutex<Instant>>,
    /// Requests begun, and bytes answered.
    asked: Arc<Mutex<(u64, u64)>>,
    /// Row of every array whose reads fail as corrupt.
    broken_row: Arc<Mutex<Option<u64>>>,
    /// Blocks of even numbers are not covered, as in a sparse level.
    is_sparse: bool,
}

impl Simulated {
    fn new(here: &Arc<MemorySource>, rate_bytes_per_sec: f64, latency_millis: u64) -> Self {
        Self {
            here: Arc::clone(here),
            changed: Arc::default(),
            rate_bytes_per_sec: Arc::new(Mutex::new(rate_bytes_per_sec)),
            latency: Duration::from_millis(latency_millis),
            mode: Arc::new(watch::channel(SimulatedMode::Up).0),
            free_at: Arc::new(Mutex::new(Instant::now())),
            asked: Arc::default(),
            broken_row: Arc::default(),
            is_sparse: false,
        }
    }

    fn check_row(&self, request: &ReadRequest) -> Result<()> {
        let broken = *self.broken_row.lock();
        let rows = request.selection.ranges()[0];
        match broken.filter(|&row| rows.within(row, row + 1).1 > 0) {
            Some(row) => Err(Error::corrupt(format!("row {row} is broken"))),
            None => Ok(()),
        }
    }

    fn set(&self, mode: SimulatedMode) {
        self.mode.send_replace(mode);
    }

    fn set_rate(&self, bytes_per_sec: f64) {
        *self.rate_bytes_per_sec.lock() = bytes_per_sec;
    }

    fn asked(&self) -> u64 {
        self.asked.lock().0
    }

    fn answered_bytes(&self) -> u64 {
        self.asked.lock().1
    }

    fn current(&self) -> Arc<MemorySource> {
        if *self.mode.borrow() != SimulatedMode::Changed {
            return Arc::clone(&self.here);
        }
        let changed = self.changed.get_or_init(|| {
            let mut dataset = (*self.here.dataset()).clone();
            dataset.generation = Generation(9);
            let bytes = usize::try_from(dataset.arrays[0].size_bytes()).unwrap();
            Arc::new(MemorySource::new(dataset, vec![vec![vec![0xEE; bytes].into()]]).unwrap())
        });
        Arc::clone(changed)
    }

    /// Waits for the time that a response of `bytes` takes; fails if the server goes down.
    async fn transfer(&self, bytes: u64) -> Result<()> {
        self.asked.lock().0 += 1;
        let rate = *self.rate_bytes_per_sec.lock();
        let done_at = {
            let mut free_at = self.free_at.lock();
            *free_at = (*free_at).max(Instant::now()) + Duration::from_secs_f64(bytes as f64 / rate);
            *free_at + self.latency
        };
        let mut mode = self.mode.subscribe();
        loop {
            let now = *mode.borrow_and_update();
            match now {
                SimulatedMode::Down => {
                    sleep(self.latency).await;
                    return Err(Error::new(ErrorKind::Unreachable, "the server died"));
                }
                SimulatedMode::Silent => mode.changed().await.expect("the sender lives"),
                SimulatedMode::Up | SimulatedMode::Changed => {
                    tokio::select! {
                        () = sleep_until(done_at) => {
                            self.asked.lock().1 += bytes;
                            return Ok(());
                        }
                        _ = mode.changed() => {}
                    }
                }
            }
        }
    }

    async fn one(&self, key: BlockKey) -> Completion {
        let bytes = self.current().dataset().block(key).map_or(0, |b| b.size_bytes);
        let result = match self.transfer(bytes).await {
            Ok(()) if self.is_sparse && key.index.is_multiple_of(2) => {
                Ok(Arc::new(Block { key, content: Content::NotCovered }))
            }
            Ok(()) => fetch(&*self.current(), &[key]).await.remove(&key).expect("an answer").result,
            Err(error) => Err(error),
        };
        Completion { key, result }
    }
}

impl ReplicaSource for Simulated {
    fn describe_again(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        self.describe()
    }
}

impl Source for Simulated {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        let this = self.clone();
        async move {
            if matches!(*this.mode.borrow(), SimulatedMode::Down | SimulatedMode::Silent) {
                this.transfer(0).await?;
            }
            Ok(this.current().dataset())
        }
        .boxed()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let this = self.clone();
        let answers: FuturesUnordered<_> = wants
            .into_iter()
            .map(|want| {
                let this = this.clone();
                async move {
                    tokio::select! {
                        biased;
                        () = want.cancelled() => None,
                        answer = this.one(want.key()) => Some(answer),
                    }
                }
            })
            .collect();
        answers.filter_map(std::future::ready).boxed()
    }

    fn read(&self, request: ReadRequest, mut into: Region) -> BoxFuture<'static, Result<()>> {
        let this = self.clone();
        async move {
            if let Err(error) = this.transfer(into.size_bytes() as u64).await {
                // Part of the response has arrived, and is not valid.
                into.write_all(&vec![0xDD; into.size_bytes()])?;
                return Err(error);
            }
            this.check_row(&request)?;
            this.current().read(request, into).await
        }
        .boxed()
    }

    /// Answers all reads as one request.
    fn read_many(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        let this = self.clone();
        let bytes = reads.iter().map(|(_, into)| into.size_bytes() as u64).sum();
        let answered = async move {
            let arrived = this.transfer(bytes).await;
            let (current, each) = (this.current(), stream::iter(reads.into_iter().enumerate()));
            each.then(move |(number, (request, into))| {
                let (arrived, row, current) =
                    (arrived.clone(), this.check_row(&request), Arc::clone(&current));
                async move {
                    let arrived = arrived.and(row);
                    let read = async { arrived.and(current.read(request, into).await) };
                    (number, read.await)
                }
            })
        };
        answered.flatten_stream().boxed()
    }
}

const MB: f64 = 1e6;

/// One array of `len` bytes, in blocks of 64 KiB.
fn data(len: u64) -> Arc<MemorySource> {
    let dtype = "<u4".parse().unwrap();
    let elements = (0..u32::try_from(len / 4).expect("a small array"))
        .flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes());
    let elements = elements.collect();
    Arc::new(MemorySource::of_array(dtype, &[len / 4096, 1024], &[16, 1024], elements))
}

fn group(servers: &[Simulated], rule: SharingRule) -> Arc<Servers> {
    let named = servers.iter().enumerate();
    let named =
        named.map(|(n, s)| ReplicaServer { name: format!("server-{n}"), source: Arc::new(s.clone()) });
    Arc::new(Servers::new(named.collect(), rule).unwrap())
}

async fn read(source: &dyn Source, text: &str) -> Result<Vec<u8>> {
    let dataset = source.describe().await?;
    let selection = Selection::parse(text, dataset.arrays[0].shape())?;
    let (target, region) = Target::new(&selection.shape(), 4)?;
    source.read(ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL }, region).await?;
    target.into_vec()
}

/// Blocks of a sparse level may exist on no server; reads are exact nevertheless, because they use coarser levels.
#[tokio::test(start_paused = true)]
async fn reads_of_sparse_levels_are_exact_by_any_rule() {
    let here = data(1 << 20);
    for rule in [SharingRule::Spread, SharingRule::Homes { copies: 2 }] {
        let servers: Vec<_> =
            (0..2).map(|_| Simulated { is_sparse: true, ..Simulated::new(&here, MB, 10) }).collect();
        read_all(&*group(&servers, rule), &here).await;
    }
}

/// Reads everything; returns the time that it took, in seconds.
async fn read_all(source: &dyn Source, expect: &Arc<MemorySource>) -> f64 {
    let begun = Instant::now();
    let found = read(source, "").await.unwrap();
    let took = begun.elapsed().as_secs_f64();
    assert!(found == read(&**expect, "").await.unwrap(), "wrong bytes");
    took
}

#[tokio::test(start_paused = true)]
async fn every_rule_conforms_to_the_source_interface() {
    let rules = [SharingRule::Spread, SharingRule::Homes { copies: 1 }, SharingRule::Homes { copies: 2 }];
    for rule in rules {
        let here = Arc::new(MemorySource::counting("<u2", &[9, 40, 50], &[4, 16, 16]));
        let servers = [5.0, 50.0, 500.0].map(|rate| Simulated::new(&here, rate * MB, 10));
        check_source(group(&servers, rule)).await;
    }
}

/// Reads rows in one call; returns the result of each row.
async fn read_rows(source: &dyn Source, rows: impl Iterator<Item = u64>) -> Vec<(u64, Result<Vec<u8>>)> {
    let (reads, targets): (Vec<_>, Vec<_>) = rows
        .map(|row| {
            let selection = Selection::of_box(&[row, 0], &[1, 1024]);
            let (target, into) = Target::new(&selection.shape(), 4).expect("memory");
            let request = ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL };
            ((request, into), (row, target))
        })
        .unzip();
    let mut ends: Vec<_> = source.read_many(reads).collect().await;
    ends.sort_by_key(|(number, _)| *number);
    assert!(ends.iter().map(|(number, _)| *number).eq(0..targets.len()), "each ends once");
    let bytes = |((row, target), (_, end)): ((u64, Target), (usize, Result<()>))| {
        (row, end.and_then(|()| target.into_vec()))
    };
    targets.into_iter().zip(ends).map(bytes).collect()
}

#[tokio::test(start_paused = true)]
async fn small_reads_of_one_call_share_requests() {
    let here = data(32 << 20);
    let whole = read(&*here, "").await.unwrap();
    for rule in [SharingRule::Spread, SharingRule::Homes { copies: 2 }] {
        let servers = [10.0, 10.0, 10.0].map(|rate| Simulated::new(&here, rate * MB, 20));
        let group = group(&servers, rule);
        let begun = Instant::now();
        let (ends, ()) = tokio::join!(read_rows(&*group, (0..8192).map(|n| n * 5 % 8192)), async {
            sleep(Duration::from_millis(300)).await;
            servers[0].set(SimulatedMode::Down);
        });
        for (row, end) in ends {
            let start = usize::try_from(row * 4096).unwrap();
            assert!(end.unwrap() == whole[start..start + 4096], "row {row}");
        }
        let (asked, took) =
            (servers.iter().map(Simulated::asked).sum::<u64>(), begun.elapsed().as_secs_f64());
        if rule == SharingRule::Spread {
            assert!(asked < 8192 / 20, "asked {asked} times for 8,192 reads");
            assert!(took < 2.5, "{took} s; 34 MB at 20 MB/s, and 30 at first");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_that_fails_does_not_affect_others_of_its_call() {
    let here = data(4 << 20);
    let whole = read(&*here, "").await.unwrap();
    let servers = [10.0, 10.0].map(|rate| Simulated::new(&here, rate * MB, 20));
    servers.iter().for_each(|server| *server.broken_row.lock() = Some(77));
    let group = group(&servers, SharingRule::Spread);
    let rows = (0..1024).chain([1 << 40]);
    for (row, end) in read_rows(&*group, rows).await {
        let start = usize::try_from(row * 4096).unwrap();
        match row {
            77 => assert_eq!(end.unwrap_err().kind(), ErrorKind::Corrupt),
            1024.. => assert_eq!(end.unwrap_err().kind(), ErrorKind::Invalid),
            _ => assert!(end.unwrap() == whole[start..start + 4096], "row {row}"),
        }
    }
    servers.iter().for_each(|server| server.set(SimulatedMode::Down));
    let ends = timeout(Duration::from_secs(60), read_rows(&*group, 0..100)).await.expect("an end");
    assert!(ends.iter().all(|(_, end)| end.as_ref().is_err_and(|e| e.kind() == ErrorKind::Unreachable)));
}

#[tokio::test(start_paused = true)]
async fn no_read_of_a_call_mixes_two_states() {
    let here = data(32 << 20);
    let whole = read(&*here, "").await.unwrap();
    let servers = [10.0, 10.0].map(|rate| Simulated::new(&here, rate * MB, 20));
    let group = group(&servers, SharingRule::Spread);
    // Small reads of single rows, and large reads.
    let rows = read_rows(&*group, 0..8192);
    let large = async {
        let reads = (0..200).map(|n| {
            let selection = Selection::of_box(&[n * 32, 0], &[32, 1024]);
            let (target, into) = Target::new(&selection.shape(), 4).expect("memory");
            let request = ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL };
            ((request, into), target)
        });
        let (reads, targets): (Vec<_>, Vec<_>) = reads.unzip();
        let ends: BTreeMap<_, _> = group.read_many(reads).collect::<Vec<_>>().await.into_iter().collect();
        let bytes = targets.into_iter().zip(ends.into_values());
        bytes.map(|(target, end)| end.and_then(|()| target.into_vec())).collect::<Vec<_>>()
    };
    let (rows, large, ()) = tokio::join!(rows, large, async {
        sleep(Duration::from_millis(500)).await;
        servers.iter().for_each(|server| server.set(SimulatedMode::Changed));
    });
    let large = large.into_iter().enumerate().map(|(n, end)| (n * 32 * 4096, end));
    let rows = rows.into_iter().map(|(row, end)| (usize::try_from(row).unwrap() * 4096, end));
    let (mut read, mut stale) = (0, 0);
    for (start, end) in rows.chain(large) {
        match end {
            Ok(bytes) => {
                assert!(bytes == whole[start..start + bytes.len()], "another state, at {start}");
                read += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Stale, "{error}");
                stale += 1;
            }
        }
    }
    assert!(read > 100 && stale > 100, "{read} and {stale}");
}

#[tokio::test(start_paused = true)]
async fn rates_of_servers_add_up() {
    let here = data(64 << 20);
    for rates in [&[10.0][..], &[10.0, 10.0], &[10.0, 10.0, 10.0, 10.0], &[20.0, 10.0, 5.0, 1.0]] {
        let servers: Vec<_> = rates.iter().map(|rate| Simulated::new(&here, rate * MB, 20)).collect();
        let took = read_all(&*group(&servers, SharingRule::Spread), &here).await;
        let ideal = (64 << 20) as f64 / (rates.iter().sum::<f64>() * MB);
        assert!(took < ideal / 0.9, "{rates:?}: {took} s instead of {ideal}");
        let answered: u64 = servers.iter().map(Simulated::answered_bytes).sum();
        assert!(answered as f64 <= (64 << 20) as f64 * 1.06, "{rates:?}: {answered} bytes were answered");
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_read_does_not_wait_for_a_slow_server_at_its_end() {
    let here = data(8 << 20);
    let servers = [20.0, 10.0, 5.0, 0.5].map(|rate| Simulated::new(&here, rate * MB, 20));
    let took = read_all(&*group(&servers, SharingRule::Spread), &here).await;
    let ideal = (8 << 20) as f64 / (35.5 * MB);
    // The rates are measured in that time, too.
    assert!(took < 2.5 * ideal, "{took} s instead of {ideal}");
}

#[tokio::test(start_paused = true)]
async fn work_moves_away_from_a_server_that_becomes_slow() {
    let here = data(64 << 20);
    let servers = [10.0, 10.0, 10.0].map(|rate| Simulated::new(&here, rate * MB, 20));
    let slow = servers[1].clone();
    let group = group(&servers, SharingRule::Spread);
    let (took, ()) = tokio::join!(read_all(&*group, &here), async {
        sleep(Duration::from_millis(700)).await;
        slow.set_rate(0.05 * MB);
    });
    assert!(took < 4.5, "{took} s; 67 MB at 20 MB/s and the first 0.7 s at 30");
}

#[tokio::test(start_paused = true)]
async fn reads_succeed_without_a_failed_server_which_is_used_again_when_it_returns() {
    let here = data(32 << 20);
    let servers = [10.0, 10.0].map(|rate| Simulated::new(&here, rate * MB, 20));
    let group = group(&servers, SharingRule::Spread);
    let (_, ()) = tokio::join!(read_all(&*group, &here), async {
        sleep(Duration::from_millis(500)).await;
        servers[0].set(SimulatedMode::Down);
    });
    let away = group.states()[0].away.clone().unwrap();
    assert_eq!(away.kind(), ErrorKind::Unreachable, "{away}");
    let before = servers[0].answered_bytes();
    sleep(Duration::from_secs(60)).await;
    let checks = servers[0].asked();
    servers[0].set(SimulatedMode::Up);
    sleep(Duration::from_secs(11)).await;
    assert!(servers[0].asked() - checks <= 2 && checks < 40, "checked {checks} times in a minute");
    read_all(&*group, &here).await;
    assert!(servers[0].answered_bytes() - before > 10 << 20, "it is used again");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_not_waited_for() {
    let here = data(32 << 20);
    let servers = [10.0, 10.0].map(|rate| Simulated::new(&here, rate * MB, 20));
    let group = group(&servers, SharingRule::Spread);
    let (took, ()) = tokio::join!(read_all(&*group, &here), async {
        sleep(Duration::from_millis(500)).await;
        servers[0].set(SimulatedMode::Silent);
    });
    assert!(took < 6.0, "{took} s; 3.3 s for one server alone, and 2 s to notice");
    assert_eq!(group.states()[0].away.as_ref().unwrap().kind(), ErrorKind::TimedOut);
    servers[0].set(SimulatedMode::Up);
    sleep(Duration::from_secs(11)).await;
    assert_eq!(group.states()[0].away, None);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_waited_for_if_it_is_the_only_one() {
    let here = data(1 << 20);
    let servers = [Simulated::new(&here, 10.0 * MB, 20)];
    let group = group(&servers, SharingRule::Spread);
    read_all(&*group, &here).await;
    let (_, ()) = tokio::join!(read_all(&*group, &here), async {
        servers[0].set(SimulatedMode::Silent);
        sleep(Duration::from_secs(600)).await;
        servers[0].set(SimulatedMode::Up);
    });
}

#[tokio::test(start_paused = true)]
async fn without_servers_the_error_names_each_server_and_its_reason() {
    let here = data(8 << 20);
    let servers = [10.0, 10.0].map(|rate| Simulated::new(&here, rate * MB, 20));
    let group = group(&servers, SharingRule::Spread);
    let (result, ()) = tokio::join!(read(&*group, ""), async {
        sleep(Duration::from_millis(100)).await;
        servers.iter().for_each(|s| s.set(SimulatedMode::Down));
    });
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    for part in ["`server-0`: the server died", "`server-1`: the server died"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let block = here.key(0);
    assert!(timeout(Duration::from_secs(1), fetch(&*group, &[block])).await.unwrap()[&block].result.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_server_with_another_state_is_not_used() {
    let here = data(8 << 20);
    let servers = [10.0, 10.0, 10.0].map(|rate| Simulated::new(&here, rate * MB, 20));
    servers[2].set(SimulatedMode::Changed);
    let group = group(&servers, SharingRule::Spread);
    let (_, ()) = tokio::join!(read_all(&*group, &here), async {
        sleep(Duration::from_millis(150)).await;
        servers[1].set(SimulatedMode::Changed);
    });
    for n in [1, 2] {
        let away = group.states()[n].away.clone().unwrap();
        assert_eq!(away.kind(), ErrorKind::Stale);
        assert!(away.to_string().contains("as on the other servers"), "{away}");
    }
    // After the last one has changed, the data are stale once, and are then the new data.
    servers[0].set(SimulatedMode::Changed);
    assert_eq!(read(&*group, "").await.unwrap_err().kind(), ErrorKind::Stale);
    assert!(read(&*group, "0:3").await.unwrap().iter().all(|&b| b == 0xEE));
    assert!(group.states().iter().all(|s| s.away.is_none()));
}

#[tokio::test(start_paused = true)]
async fn blocks_are_answered_by_their_homes() {
    let here = data(8 << 20);
    let servers = [10.0, 10.0, 10.0, 10.0].map(|rate| Simulated::new(&here, rate * MB, 20));
    let group = group(&servers, SharingRule::Homes { copies: 2 });
    let keys: Vec<BlockKey> = (0..128).map(|n| here.key(n)).collect();
    fetch(&*group, &keys).await;
    let first: Vec<u64> = servers.iter().map(Simulated::asked).collect();
    assert!(first.iter().sum::<u64>() == 128 && first.iter().all(|n| *n > 16), "{first:?}");
    fetch(&*group, &keys).await;
    let second: Vec<u64> = servers.iter().map(Simulated::asked).collect();
    assert!(
        first.iter().zip(&second).all(|(a, b)| a * 2 == *b),
        "the same homes again: {first:?}, {second:?}"
    );
    servers[3].set(SimulatedMode::Down);
    assert!(fetch(&*group, &keys).await.values().all(|c| c.result.is_ok()), "the second homes answer");
    servers[2].set(SimulatedMode::Down);
    let answers = fetch(&*group, &keys).await;
    let lost = answers.values().filter(|c| c.result.is_err()).count();
    assert!(lost > 0 && lost < 64, "{lost} blocks have both homes there");
}

#[tokio::test(start_paused = true)]
async fn late_requests_are_sent_to_another_server_too() {
    let here = data(32 << 20);
    let servers = [100.0, 100.0].map(|rate| Simulated::new(&here, rate * MB, 5));
    let group = group(&servers, SharingRule::Spread);
    let keys: Vec<BlockKey> = (0..512).map(|n| here.key(n)).collect();
    fetch(&*group, &keys).await;
    let before = servers[0].asked() + servers[1].asked();
    let begun = Instant::now();
    for chunk in keys.chunks(8) {
        let (answers, ()) = tokio::join!(fetch(&*group, chunk), async {
            if chunk[0].index % 128 == 0 {
                // Silent for a time that is too short to count.
                servers[0].set(SimulatedMode::Silent);
                sleep(Duration::from_millis(1500)).await;
                servers[0].set(SimulatedMode::Up);
            }
        });
        assert!(answers.values().all(|c| c.result.is_ok()));
    }
    let took = begun.elapsed();
    let extra = servers[0].asked() + servers[1].asked() - before - 512;
    assert!(extra > 0 && extra <= 8 + 26, "{extra} second requests of 512");
    assert!(took < Duration::from_secs(7), "{took:?}");
}

/// Reproducible pseudorandom numbers.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("an index")
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[tokio::test(start_paused = true)]
async fn results_are_exact_while_all_servers_but_one_fail_at_random() {
    let here = data(2 << 20);
    let whole = read(&*here, "").await.unwrap();
    for seed in 0..80 {
        let mut random = RandomNumbers(seed);
        let count = 1 + random.below(5);
        let servers: Vec<_> = (0..count)
            .map(|_| Simulated::new(&here, (1 + random.below(50)) as f64 * MB / 2.0, random.below(80)))
            .collect();
        let rule = match random.below(3) {
            0 => SharingRule::Homes { copies: servers.len() },
            _ => SharingRule::Spread,
        };
        let group = group(&servers, rule);
        let healthy = random.index(servers.len());
        let faults = async {
            loop {
                sleep(Duration::from_millis(random.below(400))).await;
                let member = random.index(servers.len());
                let modes = [
                    SimulatedMode::Up,
                    SimulatedMode::Up,
                    SimulatedMode::Down,
                    SimulatedMode::Silent,
                    SimulatedMode::Changed,
                    SimulatedMode::Down,
                ];
                let mode = modes[random.index(modes.len())];
                if member != healthy {
                    servers[member].set(mode);
                }
            }
        };
        let work = async {
            for text in ["", "5:400, ::3", "::7, 100:", "500:, 3:5"] {
                let expect = read(&*here, text).await.unwrap();
                assert!(read(&*group, text).await.unwrap() == expect, "seed {seed}: [{text}]");
            }
            for (row, end) in read_rows(&*group, (0..512).map(|n| n * 3 % 512)).await {
                let start = usize::try_from(row * 4096).unwrap();
                assert!(end.unwrap() == whole[start..start + 4096], "seed {seed}: row {row}");
            }
            let keys: Vec<BlockKey> = (0..32).map(|n| here.key(n)).collect();
            let answers = fetch(&*group, &keys).await;
            for key in keys {
                let block = answers[&key].result.as_ref().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
                let Content::Data { bytes, .. } = &block.content else { panic!("not covered") };
                let at = usize::try_from(key.index).unwrap() << 16;
                assert!(bytes[..] == whole[at..at + (1 << 16)], "seed {seed}: {key:?}");
            }
        };
        tokio::select! {
            () = work => {}
            () = faults => unreachable!("the loop does not end"),
            () = sleep(Duration::from_secs(3600)) => panic!("seed {seed}: no progress"),
        }
    }
}

#[test]
fn a_silent_server_without_a_substitute_is_checked_seldom() {
    let mut scheduler = Scheduler::new(1);
    scheduler.returned(0);
    let mut now = Duration::ZERO;
    let ask = |scheduler: &mut Scheduler, now| {
        let may = ServerSet::all(1);
        let need = WorkRequest {
            priority: Priority::NORMAL,
            bytes: 1000,
            is_one_piece: true,
            may,
            is_second: false,
        };
        scheduler.ask(need);
        scheduler.assign(now)[0].1.expect("the server has room")
    };
    // Some responses are late, so that lateness is usual, and silence is detected before it.
    for n in 0..128u64 {
        let assigned = ask(&mut scheduler, now);
        now += Duration::from_millis(if n % 8 == 0 { 1900 } else { 10 });
        scheduler.finished(&assigned, now);
    }
    let assigned = ask(&mut scheduler, now);
    let (end, mut checks) = (now + Duration::from_secs(60), 0);
    while now < end {
        checks += 1;
        match scheduler.late(&assigned, ServerSet::NONE, ServerSet::NONE, now) {
            // A timer has ticks of a millisecond.
            HedgeDecision::NotYet(then) => now = then.max(now + Duration::from_millis(1)),
            HedgeDecision::Silent => {}
            HedgeDecision::AskAnother => unreachable!("there is no other server"),
        }
    }
    assert!(checks < 100, "checked {checks} times in a minute");
}
