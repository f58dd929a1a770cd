//! Link `lossy`: every byte arrives once, possibly out of order, and withdrawn operations leave no state.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use corridor_link as link;
use link::{ClientHandle, ReadSink, quic};
use wire::{Error, Priority, Result, Urgency};

use super::{Mischief, Pair, What, fetch, pair_of, pattern, rate, run};

const ITEM_BYTES: u64 = 1 << 20;

fn lossy(window_bytes: u64, redundancy: bool) -> quic::EndpointOptions {
    quic::EndpointOptions {
        window_bytes,
        bulk: quic::BulkTransport::Lossy { redundancy },
        ..quic::EndpointOptions::default()
    }
}

async fn lossy_pair(mischief: Mischief, redundancy: bool) -> Pair {
    pair_of(mischief, rate("rate=200Mb/s"), lossy(64 << 20, redundancy), Duration::from_millis(10)).await
}

/// Received bytes, each at its offset in the answer.
#[derive(Default)]
struct Came {
    bytes: Vec<Option<u8>>,
    /// Pieces that arrived before earlier ones.
    early: usize,
    end: usize,
}

/// Assembles the items of `bulk` in any order.
struct AnyOrder {
    came: Arc<Mutex<Came>>,
    starts: std::collections::BTreeMap<u32, u64>,
}

impl ReadSink for AnyOrder {
    fn item(&mut self, item: u32, body: Bytes, _: u64) -> Result<()> {
        let start = body.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let start = start.ok_or_else(|| Error::corrupt("expected where it begins"))?;
        assert!(self.starts.insert(item, start).is_none(), "item {item} is told twice");
        Ok(())
    }

    fn piece(&mut self, item: u32, offset: u64, bytes: &[u8], _: bool) -> Result<()> {
        let at = usize::try_from(self.starts[&item] + offset).unwrap();
        let mut came = self.came.lock().unwrap();
        came.early += usize::from(at > came.end);
        came.end = came.end.max(at + bytes.len());
        for (place, byte) in came.bytes[at..].iter_mut().zip(bytes) {
            assert!(place.replace(*byte).is_none(), "a byte of item {item} at {offset} came twice");
        }
        Ok(())
    }

    fn takes_any_order(&self) -> bool {
        true
    }

    fn finish(&mut self) -> Result<()> {
        let missing = self.came.lock().unwrap().bytes.iter().filter(|byte| byte.is_none()).count();
        if missing == 0 { Ok(()) } else { Err(Error::corrupt(format!("{missing} bytes are missing"))) }
    }
}

/// Requests `bytes` in any order, compares every one, and returns the number of pieces that arrived early.
async fn fetch_in_any_order(client: &ClientHandle, bytes: u64) -> usize {
    let size = usize::try_from(bytes).unwrap();
    let came = Arc::new(Mutex::new(Came { bytes: vec![None; size], ..Came::default() }));
    let receiver = AnyOrder { came: Arc::clone(&came), starts: std::collections::BTreeMap::new() };
    let parameters = Bytes::copy_from_slice(&bytes.to_le_bytes());
    let asked = client.receive("bulk", parameters, Urgency::of(Priority::NORMAL), Box::new(receiver)).await;
    asked.unwrap().await.unwrap();
    let came = came.lock().unwrap();
    assert!(came.bytes.iter().zip(&pattern(0, bytes)[..]).all(|(found, expected)| *found == Some(*expected)));
    came.early
}

#[test]
fn every_byte_comes_once_whatever_the_path_does() {
    let mischiefs: [(&str, Mischief); 5] = [
        ("nothing", |_| What::Pass),
        ("loss", |n| if n > 20 && n % 50 == 0 { What::Drop } else { What::Pass }),
        ("replay", |n| if n % 3 == 0 { What::Twice } else { What::Pass }),
        ("reordering", |n| if n > 20 && n % 10 == 0 { What::Late } else { What::Pass }),
        ("forgery, oversize", |n| if n % 7 == 0 { What::Forged } else { What::Pass }),
    ];
    for (name, mischief) in mischiefs {
        for redundancy in [false, true] {
            run(async move {
                let pair = lossy_pair(mischief, redundancy).await;
                let early = fetch_in_any_order(&pair.client, 3 * ITEM_BYTES + 5).await;
                // Answers that need the order get it.
                fetch(&pair.client, 2 * ITEM_BYTES).await;
                fetch(&pair.client, 100).await;
                let (sent, got) = (pair.flow.statistics(), pair.ours.statistics());
                assert_eq!((sent.protocol, got.protocol), ("lossy", "lossy"));
                let (sent, got) = (sent.datagrams.unwrap(), got.datagrams.unwrap());
                assert_eq!(got.datagrams + got.restored, sent.datagrams, "{name}: {sent:?} {got:?}");
                assert_eq!(redundancy, sent.parity > 0, "{name}: {sent:?}");
                assert!(name != "loss" || redundancy || (sent.again > 30 && early > 10), "{early} {sent:?}");
                assert!(name != "loss" || !redundancy || got.restored > 30, "{name}: {got:?}");
                assert_eq!(got.rejected, 0, "{name}");
                drop(pair.tasks);
            });
        }
    }
}

#[test]
fn a_cancelled_operation_returns_its_credit_and_is_not_repaired() {
    let loses: Mischief = |n| if n > 20 && n % 10 == 0 { What::Drop } else { What::Pass };
    run(async move {
        // Smaller than the total of the withdrawn bulk.
        let client = lossy(4 << 20, false);
        let pair = pair_of(loses, rate("rate=400Mb/s"), client, Duration::from_millis(10)).await;
        for n in 0..12 {
            let wanted = fetch_in_any_order(&pair.client, 4 * ITEM_BYTES);
            drop(tokio::time::timeout(Duration::from_millis(15 + n), wanted).await);
        }
        assert!(fetch_in_any_order(&pair.client, 8 * ITEM_BYTES + 77).await > 0);
        let sent = pair.flow.statistics().datagrams.unwrap();
        assert!(sent.void > 0, "{sent:?}");
    });
}

#[test]
fn small_answers_get_through_beside_a_large_one() {
    let loses: Mischief = |n| if n > 20 && n % 50 == 0 { What::Drop } else { What::Pass };
    run(async move {
        let pair = lossy_pair(loses, true).await;
        let client = pair.client.clone();
        tokio::join!(fetch_in_any_order(&client, 6 * ITEM_BYTES), async {
            for size in [10, 3_000, 15_000, 17_000, 40_000] {
                fetch(&client, size).await;
            }
        });
    });
}
