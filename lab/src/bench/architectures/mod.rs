//! `corridor bench access-architectures`: six ways of asking many small things of a server, over the same operation `read`, so that the
//! choice of this system (bulk inside pipeline) stays proven. `lab/README.md` says what each one is.
//!
//! Read [`Architecture`] first, then the ways in the order of the table. What each costs in messages and round trips is a
//! test in virtual time; here is what it costs in seconds on the link that lies between.

mod architecture;
mod bulk;
mod bulk_in_pipeline;
mod pipeline;
mod pool;
mod synchronous;
mod threaded;

use std::path::Path;
use std::time::Duration;

use array::{Error, Priority, Result, Selection, Urgency};
use bytes::Bytes;
use client::dial::{Dialer, Endpoint};
use client::url::Location;
use futures::future::{BoxFuture, try_join_all};
use wire::ops::{self, BlockPlace, ReadParameters};

use super::access::Field;
use super::options::Options;
use super::process::{LinkSide, RunningProcess};
use super::report::{BenchReport, Better, Case};
use super::wall_clock;
use architecture::{Architecture, ConnectionSource, KeptConnection};

/// Bytes of an answer, as in the classic measurements.
const ANSWER_BYTES: u64 = 24;
/// Time, about, that a way may spend on the round trips of its operations, and again on those of single ones: where round
/// trips are long it does a sample.
const WAITING: Duration = Duration::from_secs(2);
/// Operations of the ways that do many at a time.
const MANY: usize = 300_000;
const QUICK_MANY: usize = 2_000;
/// Operations at most of the others.
const FEW: usize = 5_000;
/// Single operations per run, for the time of one.
const SINGLES: usize = 100;
/// Round trip if none is given: loopback.
const SHORT: Duration = Duration::from_micros(100);
/// Goal for bulk inside pipeline, operations per second.
const SOUGHT_PER_SEC: f64 = 1e6;

/// All ways, from the simplest on.
fn all() -> [Box<dyn Architecture>; 6] {
    [
        Box::new(synchronous::Synchronous),
        Box::new(bulk::BulkRequests),
        Box::new(threaded::Threaded),
        Box::new(pool::ConnectionPool),
        Box::new(pipeline::PlainPipeline),
        Box::new(bulk_in_pipeline::BulkInPipeline),
    ]
}

/// A server of this program, over a real connection.
struct DialedServer(Endpoint);

impl ConnectionSource for DialedServer {
    fn connect(&self) -> BoxFuture<'_, Result<KeptConnection>> {
        Box::pin(async {
            let dialer = Dialer::new(self.0.clone());
            let handle = dialer.client().await?;
            Ok(KeptConnection { handle, _kept: Box::new(dialer) })
        })
    }
}

/// Reads at many positions, and their expected answers.
struct Quiz {
    asks: Vec<Bytes>,
    expected: Vec<Vec<u8>>,
}

impl Quiz {
    /// `count` reads of [`ANSWER_BYTES`] at places without order.
    fn new(field: &Field, place: BlockPlace, count: usize) -> Self {
        let rows = field.shuffled_rows();
        let selections: Vec<Selection> = (0..count)
            .map(|i| {
                let row = rows[i % rows.len()];
                let [_, depth, height, width] = field.shape;
                let x = (i as u64).wrapping_mul(7919) % (width - ANSWER_BYTES);
                let start = [row / (depth * height), row / height % depth, row % height, x];
                Selection::of_box(&start, &[1, 1, 1, ANSWER_BYTES])
            })
            .collect();
        let expected = selections.iter().map(|selection| field.expected(selection)).collect();
        let asks =
            selections.into_iter().map(|selection| ReadParameters { place, selection }.encode()).collect();
        Self { asks, expected }
    }

    fn check(&self, answers: &[Bytes]) -> Result<()> {
        if answers.len() == self.expected.len() && answers.iter().zip(&self.expected).all(|(a, b)| a == b) {
            return Ok(());
        }
        Err(Error::corrupt("expected the bytes of the array in the order of asking, found others"))
    }
}

pub(super) async fn run(program: &Path, options: &Options) -> Result<BenchReport> {
    let mut report = BenchReport::here("access-architectures", options.link.clone());
    let folder = tempfile::tempdir()?;
    let field = Field::write(folder.path(), true)?;
    let description = field.description.to_string_lossy();
    let served = RunningProcess::start_at(&LinkSide::of(options), program, &["serve", &description]).await?;
    let Location::Remote(url) = served.text("url")?.parse()? else {
        return Err(Error::internal("a server that printed no URL"));
    };
    let site = DialedServer(Endpoint::of(&url, 64 << 20)?);
    let place = place(&site, &url.dataset).await?;
    let runs = options.runs.unwrap_or(if options.is_quick { 1 } else { 3 });
    let round_trip = options.link.rtt.map_or(SHORT, Duration::from_secs_f64);
    for way in all() {
        let mut doing = Doing::begin(&*way, &site, round_trip * way.round_trips(), options.is_quick).await?;
        for _ in 0..runs {
            doing.many(&field, place).await?;
            doing.singles(&field, place).await?;
        }
        report.cases.extend(doing.report(options.link.rtt));
    }
    Ok(report)
}

/// Measurements of a way.
struct Doing<'a> {
    way: &'a dyn Architecture,
    site: &'a dyn ConnectionSource,
    kept: Vec<KeptConnection>,
    operations: usize,
    singles: usize,
    rates: Vec<f64>,
    single_secs: Vec<f64>,
}

impl<'a> Doing<'a> {
    /// `waiting` is the least time that an operation waits.
    async fn begin(
        way: &'a dyn Architecture,
        site: &'a dyn ConnectionSource,
        waiting: Duration,
        is_quick: bool,
    ) -> Result<Self> {
        let kept = try_join_all((0..way.kept_connections()).map(|_| site.connect())).await?;
        let operations = operations(way.most_under_way(), waiting, is_quick);
        let singles = operations_in_a_row(waiting, is_quick).min(SINGLES);
        Ok(Self { way, site, kept, operations, singles, rates: Vec::new(), single_secs: Vec::new() })
    }

    async fn many(&mut self, field: &Field, place: BlockPlace) -> Result<()> {
        let secs = self.seconds(&Quiz::new(field, place, self.operations)).await?;
        self.rates.push(self.operations as f64 / secs);
        Ok(())
    }

    async fn singles(&mut self, field: &Field, place: BlockPlace) -> Result<()> {
        let one = Quiz::new(field, place, 1);
        let mut secs = 0.0;
        for _ in 0..self.singles {
            secs += self.seconds(&one).await?;
        }
        self.single_secs.push(secs / self.singles as f64);
        Ok(())
    }

    async fn seconds(&self, quiz: &Quiz) -> Result<f64> {
        let start = wall_clock::now();
        let answers = self.way.run(self.site, &self.kept, &quiz.asks).await?;
        let secs = start.elapsed().as_secs_f64();
        quiz.check(&answers)?;
        Ok(secs)
    }

    fn report(self, round_trip_secs: Option<f64>) -> [Case; 2] {
        let name = self.way.name();
        let mut rate = Case::measured(&format!("{name}: operations"), "1/s", Better::Higher, self.rates)
            .with("operations", self.operations)
            .with("answer_bytes", ANSWER_BYTES);
        if self.operations < MANY {
            rate = rate.with("sample_of", MANY);
        }
        if name == bulk_in_pipeline::NAME {
            rate = rate.aiming(SOUGHT_PER_SEC);
        }
        let one = Case::measured(&format!("{name}: one operation"), "s", Better::Lower, self.single_secs)
            .limited(round_trip_secs.unwrap_or(0.0), "one round trip");
        [rate, one]
    }
}

/// Number of operations that take about [`WAITING`] with so many in flight, each of which waits so long.
fn operations(under_way: usize, waiting: Duration, is_quick: bool) -> usize {
    let most = match (under_way >= bulk::GATHERED, is_quick) {
        (true, true) => return QUICK_MANY,
        (true, false) => MANY,
        (false, _) => FEW,
    };
    operations_in_a_row(waiting, is_quick).saturating_mul(under_way).min(most)
}

/// Number of operations that take about [`WAITING`] one after another.
fn operations_in_a_row(waiting: Duration, is_quick: bool) -> usize {
    let fitting = WAITING.as_micros() / waiting.as_micros().max(1);
    if is_quick { 2 } else { usize::try_from(fitting).unwrap_or(usize::MAX).max(2) }
}

/// Finds the place of the array `name` on the server.
async fn place(site: &DialedServer, name: &str) -> Result<BlockPlace> {
    let connection = site.connect().await?;
    let ask = ops::DescribeParameters { name: name.to_owned() };
    let item = connection.handle.call(ops::DESCRIBE, ask.encode(), Urgency::of(Priority::NORMAL)).await?;
    let dataset = ops::decode_dataset(&item.body)?;
    Ok(BlockPlace { dataset: dataset.id, generation: dataset.generation, array: 0, level: 0 })
}

#[cfg(test)]
mod tests;
