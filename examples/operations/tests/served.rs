//! The three operations on a server, called by a client: their results equal those computed here from all elements.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use array::{ErrorKind, Priority, ReadRequest, Result, Selection, Target, Urgency, elements};
use client::directories::UserDirectories;
use client::remote_call::{DynamicCall, Operand};
use client::url::Location;
use node::assemble::{Context, assemble};
use node::memory::{MIN_BUDGET_BYTES, MemoryBudget};
use node::node::{Listen, ServerOptions, open, start};
use node::operations::of_data_server;
use server::identity::IdentityChoice;
use server::public_address::ReverseProxy;
use server::stack::Stack;
use server::token::{Admission, Token};
use tempfile::TempDir;
use tokio::task::JoinSet;
use wire::ops::BlockPlace;

use operations::{CellCounts, IsosurfaceCells, Method, Percentile, Resample};

struct Served {
    stack: Stack,
    place: BlockPlace,
    shape: Vec<u64>,
    _folder: TempDir,
    _task: JoinSet<()>,
}

impl Served {
    /// Starts a server with the minimum memory, so that operations work in several parts.
    async fn start(location: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let context = Context::new(
            UserDirectories::below(folder.path()),
            MemoryBudget::serving(MIN_BUDGET_BYTES),
            None,
        );
        let options = ServerOptions {
            locations: vec![location.parse().unwrap()],
            listen: Listen::At("127.0.0.1:0".parse().unwrap()),
            admission: Admission::Token(Token::random().unwrap()),
            identity: IdentityChoice::Own,
            names: Vec::new(),
            proxies: ReverseProxy::default(),
            explores_folders: false,
            peers: Vec::new(),
            waiting_clients: Vec::new(),
            most_bytes_per_sec: None,
            context: context.clone(),
        };
        let mut registry = of_data_server();
        operations::add_to(&mut registry);
        let node = start(&options, open(&options).await.unwrap(), registry).await.unwrap();
        let url = node.url(&node.exports().all()[0].name);
        let mut task = JoinSet::new();
        task.spawn(node.run());
        let stack = assemble(&Location::Remote(url), &context).await.unwrap();
        let dataset = stack.source.describe().await.unwrap();
        let place = BlockPlace { dataset: dataset.id, generation: dataset.generation, array: 0, level: 0 };
        Self { stack, place, shape: dataset.arrays[0].shape().to_vec(), _folder: folder, _task: task }
    }

    fn of(&self, selection: &str) -> Operand {
        Operand::new(self.place, Some(Selection::parse(selection, &self.shape).unwrap()))
    }

    /// Reads all selected elements, which are `f4`.
    async fn values(&self, selection: &str) -> Vec<f64> {
        let selection = Selection::parse(selection, &self.shape).unwrap();
        let (target, region) = Target::new(&selection.shape(), 4).unwrap();
        let request = ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL };
        self.stack.source.read(request, region).await.unwrap();
        let bytes = target.into_vec().unwrap();
        let order = self.stack.source.describe().await.unwrap().arrays[0].dtype.order();
        elements::<f32>(&bytes, order).map(f64::from).collect()
    }

    async fn call(&self, name: &str, with: &str) -> Result<client::remote_call::DynamicResponse> {
        self.stack.ask(DynamicCall::new(name, self.of(""), with, 1 << 20).unwrap(), normal()).await
    }
}

fn normal() -> Urgency {
    Urgency::of(Priority::NORMAL)
}

const NOISE: &str = "synthetic:noise?shape=96,100,104&dtype=f32";

#[tokio::test(flavor = "multi_thread")]
async fn percentiles_are_those_of_the_sorted_values() {
    let served = Served::start(NOISE).await;
    for selection in ["", "3:90:7, ::2, 5", "0, 0, 0"] {
        let mut sorted = served.values(selection).await;
        sorted.sort_by(f64::total_cmp);
        let q = vec![0.0, 50.0, 100.0];
        let found =
            served.stack.ask(Percentile::asked(served.of(selection), q), normal()).await.unwrap().result;
        let last = sorted.len() - 1;
        let median = f64::midpoint(sorted[last / 2], sorted[last.div_ceil(2)]);
        assert_eq!(found.values, [Some(sorted[0]), Some(median), Some(sorted[last])], "[{selection}]");
        assert_eq!(found.count, sorted.len() as u64);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cell_counts_do_not_depend_on_the_parts_that_are_read() {
    let served = Served::start(NOISE).await;
    for (selection, [nz, ny, nx]) in
        [("", [96, 100, 104]), ("::5, 1:40, ::3", [20, 39, 35]), ("4", [1, 100, 104])]
    {
        let values = served.values(selection).await;
        let isovalues = [0.25, 0.5, 0.9];
        let mut expect = CellCounts { cells: 0, crossed: vec![0; 3] };
        let steps = |n: usize| if n > 1 { [0, 1].as_slice() } else { &[0] };
        for z in 0..(nz - 1).max(1) {
            for y in 0..(ny - 1).max(1) {
                for x in 0..(nx - 1).max(1) {
                    let mut corners = Vec::new();
                    for (dz, dy) in steps(nz).iter().flat_map(|z| steps(ny).iter().map(move |y| (z, y))) {
                        let row = ((z + dz) * ny + y + dy) * nx + x;
                        corners.extend(steps(nx).iter().map(|dx| values[row + dx]));
                    }
                    expect.cells += 1;
                    for (n, &iso) in isovalues.iter().enumerate() {
                        let below = corners.iter().filter(|&&v| v < iso).count();
                        expect.crossed[n] += u64::from(below > 0 && below < corners.len());
                    }
                }
            }
        }
        let ask = IsosurfaceCells::asked(served.of(selection), isovalues.to_vec());
        assert_eq!(served.stack.ask(ask, normal()).await.unwrap().result, expect, "[{selection}]");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mean_over_whole_cells_is_their_mean() {
    let served = Served::start(NOISE).await;
    let values = served.values("").await;
    let ask = Resample::asked(served.of(""), vec![48, 50, 52], Method::Mean, 1 << 20);
    let (what, bytes) = served.stack.ask(ask, normal()).await.unwrap().elements.unwrap();
    assert_eq!((what.dtype.to_string().as_str(), &what.shape[..]), ("<f4", &[48, 50, 52][..]));
    let found: Vec<f32> = elements::<f32>(&bytes, what.dtype.order()).collect();
    for (place, found) in found.into_iter().enumerate() {
        let (z, y, x) = (place / 2600 * 2, place / 52 % 50 * 2, place % 52 * 2);
        let corner = |n: usize| values[((z + n / 4) * 100 + y + n / 2 % 2) * 104 + x + n % 2];
        let mean = (0..8).map(corner).sum::<f64>() / 8.0;
        assert!((f64::from(found) - mean).abs() < 1e-6, "{place}: {found} {mean}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resampling_to_the_same_shape_is_the_identity_and_larger_shapes_are_complete() {
    let served = Served::start(NOISE).await;
    for (method, shape) in [(Method::Mean, [96, 100, 104]), (Method::Linear, [96, 100, 104])] {
        let ask = Resample::asked(served.of(""), shape.to_vec(), method, 8 << 20);
        let (what, bytes) = served.stack.ask(ask, normal()).await.unwrap().elements.unwrap();
        let found: Vec<f64> = elements::<f32>(&bytes, what.dtype.order()).map(f64::from).collect();
        assert_eq!(found, served.values("").await, "{method:?}");
    }
    let ask = Resample::asked(served.of("0, 0, :3"), vec![1, 1, 6], Method::Linear, 1 << 20);
    assert_eq!(served.stack.ask(ask, normal()).await.unwrap().elements.unwrap().1.len(), 24);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_wrong_parameters_say_what_was_expected() {
    let served = Served::start(NOISE).await;
    for (name, with, said) in [
        ("percentile", "{\"q\": 101}", "expected percentages from 0 to 100, found 101"),
        ("percentile", "{\"q\": []}", "expected 1 to 100 percentages, found 0"),
        ("percentile", "{\"p\": 5}", "unknown field `p`, expected `q`"),
        ("isosurface_cells", "{}", "missing field `isovalues`"),
        ("resample", "{\"shape\": [4, 4]}", "expected a shape of 3 axes"),
        ("resample", "{\"shape\": [4, 0, 4]}", "each of at least 1"),
        ("resample", "{\"shape\": [4, 4, 4], \"method\": \"cubic\"}", "expected `mean` or `linear`"),
    ] {
        let error = served.call(name, with).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
    let error = served.call("resample", "{\"shape\": [96, 100, 104]}").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    let error = served.call("median", "{}").await.unwrap_err();
    assert!(error.to_string().contains("\"percentile\""), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_call_stops_its_work_and_other_calls_continue() {
    let served = Served::start("synthetic:noise?shape=2000,2000,2000&dtype=f32").await;
    let ask = Percentile::asked(served.of(""), vec![50.0]);
    let waiting = tokio::time::timeout(Duration::from_millis(300), served.stack.ask(ask, normal()));
    assert!(waiting.await.is_err(), "32 GB cannot be read so fast");
    let ask = Percentile::asked(served.of("0, 0"), vec![50.0]);
    let found = tokio::time::timeout(Duration::from_secs(60), served.stack.ask(ask, normal()));
    assert_eq!(found.await.expect("an answer").unwrap().result.count, 2000);
}
