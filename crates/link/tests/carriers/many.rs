//! Thousands of operations requested together, whose answers are taken together.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use link::{Item, OpEvent, ReadSink, Reply, SinkRequest};
use wire::{ClientConfig, Error, ErrorKind, Priority, ServerConfig, Urgency};

use super::*;

/// Answers of 20,000 operations in one set; every seventh is withdrawn before its end.
#[test]
fn many_operations_share_one_stream() {
    many_by_one_stream(20_000, ClientConfig::default());
}

/// A window that is not a multiple of 8 bytes ends within an answer, which then arrives in two pieces.
#[test]
fn answers_are_cut_where_the_credit_ends() {
    let pieces = many_by_one_stream(2_000, ClientConfig { window_bytes: 1_003, ..ClientConfig::default() });
    assert!(pieces > 0, "no answer was cut");
}

/// Returns the number of pieces that were not a whole answer.
fn many_by_one_stream(many_operations: u64, config: ClientConfig) -> usize {
    let cut = AtomicUsize::new(0);
    on_all(async |kind| {
        let pair = pair(kind, config.clone(), answer).await;
        pair.client.welcomed().await.unwrap();
        let many = pair.client.request_set();
        let urgency = Urgency::of(Priority::NORMAL);
        let mut waiting: VecDeque<Bytes> =
            (0..many_operations).map(|n| Bytes::from(n.to_le_bytes().to_vec())).collect();
        let (mut sent, mut withdrawn) = (BTreeMap::new(), BTreeSet::new());
        let (mut said, mut done) = (Vec::new(), 0);
        while done + (withdrawn.len() as u64) < many_operations {
            let before = many_operations - waiting.len() as u64;
            for (op, n) in many.request("echo", &mut waiting, urgency).unwrap().into_iter().zip(before..) {
                if n % 7 == 0 {
                    many.cancel(op);
                    withdrawn.insert(op);
                } else {
                    sent.insert(op, Bytes::from(n.to_le_bytes().to_vec()));
                }
            }
            many.next(&mut said).await;
            // Operations that were withdrawn too late still report what had arrived.
            for (op, what) in said.drain(..).filter(|(op, _)| !withdrawn.contains(op)) {
                match what {
                    OpEvent::Reply(Reply::Item { body, .. }) => assert_eq!(body, sent[&op]),
                    OpEvent::Reply(Reply::Piece { offset, bytes, complete, .. }) => {
                        check_piece(&sent[&op], offset, &bytes, complete);
                        cut.fetch_add(usize::from(!complete), Ordering::Relaxed);
                    }
                    OpEvent::Whole(Item { body, bulk }) => {
                        let said = sent.remove(&op).expect("each ends once");
                        assert_eq!((&body, &bulk), (&said, &said));
                        done += 1;
                    }
                    OpEvent::Done => {
                        sent.remove(&op).expect("each ends once");
                        done += 1;
                    }
                    OpEvent::Failed(error) => panic!("{kind:?}: {error}"),
                }
            }
        }
        assert!(!many.next(&mut said).await && said.is_empty(), "nothing is in flight");
    });
    cut.into_inner()
}

/// Checks a piece of `answer`, which arrives at once unless the credit ends within it.
fn check_piece(answer: &[u8], offset: u64, bytes: &[u8], complete: bool) {
    let from = usize::try_from(offset).unwrap();
    let to = from + bytes.len();
    assert_eq!((bytes, complete), (&answer[from..to], to == answer.len()));
}

/// Parameters that are too long end a call; operations that were started before still answer.
#[test]
fn operations_started_before_a_refusal_are_answered() {
    on_all(|kind| async move {
        let pair = pair(kind, ClientConfig::default(), answer).await;
        pair.client.welcomed().await.unwrap();
        let many = pair.client.request_set();
        let fine = Bytes::from(7u64.to_le_bytes().to_vec());
        let too_long = Bytes::from(vec![0; (1 << 20) + 1]);
        let mut waiting = VecDeque::from([fine.clone(), fine, too_long]);
        let refused = many.request("echo", &mut waiting, Urgency::of(Priority::NORMAL)).unwrap_err();
        assert_eq!((refused.kind(), waiting.len()), (ErrorKind::TooLarge, 1), "{kind:?}");
        let (mut said, mut wholes) = (Vec::new(), 0);
        while many.next(&mut said).await {
            wholes +=
                said.drain(..).filter(|(_, what)| matches!(what, OpEvent::Whole(_) | OpEvent::Done)).count();
        }
        assert_eq!(wholes, 2, "{kind:?}");
    });
}

/// Counts the bytes of one answer as they arrive, or rejects it.
struct Taking {
    expected: Bytes,
    taken_bytes: Arc<AtomicUsize>,
    refuses: bool,
}

impl ReadSink for Taking {
    fn item(&mut self, _item: u32, body: Bytes, bulk_bytes: u64) -> wire::Result<()> {
        assert_eq!((&body, bulk_bytes), (&self.expected, 8));
        if self.refuses { Err(Error::corrupt("expected something else")) } else { Ok(()) }
    }

    fn piece(&mut self, _item: u32, offset: u64, bytes: &[u8], complete: bool) -> wire::Result<()> {
        check_piece(&self.expected, offset, bytes, complete);
        self.taken_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        Ok(())
    }

    fn finish(&mut self) -> wire::Result<()> {
        Ok(())
    }
}

fn sink_request(n: usize, taken_bytes: &Arc<AtomicUsize>) -> SinkRequest {
    let parameters = Bytes::from((n as u64).to_le_bytes().to_vec());
    let taken_bytes = Arc::clone(taken_bytes);
    let sink = Box::new(Taking { expected: parameters.clone(), taken_bytes, refuses: n.is_multiple_of(7) });
    SinkRequest { parameters, urgency: Urgency::of(Priority::NORMAL), expected_bytes: 8, sink }
}

#[test]
fn thousands_of_answers_are_taken_where_they_arrive_and_each_ends_once() {
    on_all(|kind| async move {
        const MANY: usize = 20_000;
        let config = ServerConfig { most_operations: 1_000, ..ServerConfig::default() };
        let pair = pair_of(kind, ClientConfig::default(), config, answer).await;
        pair.client.welcomed().await.unwrap();
        let taken_bytes = Arc::new(AtomicUsize::new(0));
        let asks = (0..MANY).map(|n| sink_request(n, &taken_bytes));
        let mut ends = Box::pin(pair.client.receive_many("echo", asks));
        let mut ended = vec![0; MANY];
        while let Some((n, end)) = ends.next().await {
            ended[n] += 1;
            assert_eq!(end.is_err(), n.is_multiple_of(7), "{kind:?}: {n} {end:?}");
        }
        assert!(ended.iter().all(|&times| times == 1), "{kind:?}");
        let wanted = (0..MANY).filter(|n: &usize| !n.is_multiple_of(7)).count();
        assert_eq!(taken_bytes.load(Ordering::Relaxed), 8 * wanted, "{kind:?}");
        let asks = (0..10).map(|n| sink_request(n, &taken_bytes));
        // These operations answer notes only, so nothing arrives before they are dropped.
        let mut dropped = Box::pin(pair.client.receive_many("converse", asks));
        assert!(futures::poll!(dropped.next()).is_pending());
        drop((ends, dropped));
        pair.client.close(Error::cancelled());
        let asks = (0..10).map(|n| sink_request(n, &taken_bytes));
        let late: Vec<_> = pair.client.receive_many("echo", asks).collect().await;
        assert!(late.len() == 10 && late.iter().all(|(_, end)| end.is_err()), "{kind:?}");
    });
}

/// Operations that end together are reported together: the stream is polled once for each frame of answers, not for each
/// operation.
#[tokio::test]
async fn a_thousand_answers_that_arrive_together_wake_their_asker_a_few_times() {
    const MANY: usize = 1_000;
    let pair = pair(Kind::Local, ClientConfig::default(), answer).await;
    pair.client.welcomed().await.unwrap();
    let taken_bytes = Arc::new(AtomicUsize::new(0));
    let asks =
        (1..).filter(|n: &usize| !n.is_multiple_of(7)).take(MANY).map(|n| sink_request(n, &taken_bytes));
    let mut ends = Box::pin(pair.client.receive_many("echo", asks));
    let (mut polls, mut ended) = (0, 0);
    poll_fn(|cx| {
        polls += 1;
        loop {
            match ends.poll_next_unpin(cx) {
                Poll::Ready(Some((_, end))) => {
                    end.unwrap();
                    ended += 1;
                }
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
    assert_eq!(ended, MANY);
    assert!(polls <= 10, "found {polls} polls");
}

/// Reads many streams in the order of the requests: the first is answered last, after all others.
#[tokio::test(start_paused = true)]
async fn streams_may_be_taken_in_the_order_of_asking_when_the_first_is_answered_last() {
    const MANY: u64 = 20_000;
    let (client, connection, _driven) = connected().await;
    connection.hello().await.unwrap();
    connection.accept();
    client.welcomed().await.unwrap();
    let ask = |n: u64| {
        client.try_request("echo", n.to_le_bytes().to_vec().into(), Urgency::of(Priority::NORMAL)).unwrap()
    };
    let streams: Vec<_> = (0..MANY).map(ask).collect();
    let first_last = async {
        let first = connection.next().await.unwrap();
        for _ in 1..MANY {
            let operation = connection.next().await.unwrap();
            operation.answer(operation.parameters(), operation.parameters()).await.unwrap();
        }
        first.answer(first.parameters(), first.parameters()).await.unwrap();
    };
    let in_order = async {
        for (n, stream) in (0..MANY).zip(streams) {
            let Item { body, bulk } = stream.only_item().await.unwrap();
            let asked = n.to_le_bytes();
            assert_eq!((&body[..], &bulk[..]), (&asked[..], &asked[..]));
        }
    };
    tokio::join!(first_last, in_order);
}

/// Requests that are ready together are sent in one write, and so are answers.
#[tokio::test]
async fn a_thousand_operations_are_a_few_writes() {
    const MANY: usize = 1000;
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let writes = Arc::new(AtomicUsize::new(0));
    let ours = tcp::over(Writes { inner: ours, count: Arc::clone(&writes) }, "server");
    let mut tasks = JoinSet::new();
    let (client, driver) = link::connect(ours, ClientConfig::default()).unwrap();
    tasks.spawn(driver);
    let (connection, driver) = link::serve(tcp::over(theirs, "client"), ServerConfig::default()).unwrap();
    tasks.spawn(driver);
    tasks.spawn(answer_all(connection, answer));
    client.welcomed().await.unwrap();
    let before = writes.load(Ordering::Relaxed);
    let many = client.request_set();
    let mut parameters = vec![Bytes::from_static(b"0123456789abcdef01234567"); MANY].into();
    let ops = many.request("echo", &mut parameters, Urgency::of(Priority::NORMAL)).unwrap();
    assert_eq!(ops.len(), MANY);
    let (mut said, mut done) = (Vec::new(), 0);
    while many.next(&mut said).await {
        done += said.drain(..).filter(|(_, what)| matches!(what, OpEvent::Whole(_) | OpEvent::Done)).count();
    }
    assert_eq!((done, writes.load(Ordering::Relaxed) - before), (MANY, 1));
}
