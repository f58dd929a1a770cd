//! Tests of catalogues: joined descriptions, blocks and reads.

use std::sync::atomic::{AtomicUsize, Ordering};

use array::conformance::{MemorySource, check_source, fetch, one_array};
use array::{AxisKind, Coordinates, DatasetId, Priority, WantHandle, want};

use super::*;

/// One array `a[t, z, y, x]` of bytes that count up from `first`, at times from `origin` on, one apart.
fn steps(times: u64, origin: f64, block: &[u64; 4], first: u8) -> Arc<MemorySource> {
    let shape = [times, 2, 6, 5];
    let mut dataset = one_array("u1".parse().unwrap(), &shape, block);
    dataset.id = DatasetId::of([format!("{times} {origin} {block:?} {first}")]);
    dataset.arrays[0].axes[0].coordinates = Coordinates::Regular { origin, step: 1.0 };
    let count = u8::try_from(shape.iter().product::<u64>() % 251).unwrap();
    let elements: Vec<u8> = (0..shape.iter().product::<u64>())
        .map(|i| u8::try_from(i % 251).unwrap().wrapping_add(first).wrapping_add(count))
        .collect();
    Arc::new(MemorySource::new(dataset, vec![vec![elements.into()]]).unwrap())
}

fn entry(name: &str, source: impl Source) -> CatalogueEntry {
    CatalogueEntry { name: name.into(), source: Arc::new(source) }
}

async fn read(source: &dyn Source, array: u32, text: &str) -> Result<Vec<u8>> {
    let dataset = source.describe().await?;
    let selection = Selection::parse(text, dataset.array(array)?.shape())?;
    let (target, region) = Target::new(&selection.shape(), 1)?;
    source.read(ReadRequest { array, level: 0, selection, priority: Priority::NORMAL }, region).await?;
    target.into_vec()
}

#[tokio::test]
async fn a_series_is_one_array_and_conforms_to_the_source_interface() {
    // Blocks of one time step lie in one data set each; of two, some reach from one into the next.
    for block in [[1, 2, 3, 5], [2, 2, 6, 5], [4, 1, 6, 5]] {
        let all = [steps(3, 0.0, &block, 1), steps(4, 3.0, &block, 77), steps(2, 9.0, &block, 150)];
        let named = ["b", "c", "a"].iter().zip(&all).map(|(name, source)| entry(name, source.clone()));
        let catalogue: Arc<dyn Source> = Arc::new(Catalogue::new(named.collect()).unwrap());
        let dataset = catalogue.describe().await.unwrap();
        assert_eq!((dataset.name.as_str(), dataset.arrays[0].name.as_str()), ("b..a", "a"));
        assert_eq!(dataset.arrays[0].shape(), [9, 2, 6, 5]);
        let times = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 10.0];
        assert_eq!(dataset.arrays[0].axes[0].coordinates, Coordinates::Explicit(times.into()));
        let mut expected = Vec::new();
        for source in &all {
            expected.extend(read(source, 0, "").await.unwrap());
        }
        assert_eq!(read(&catalogue, 0, "").await.unwrap(), expected, "{block:?}");
        let row = |t: usize| &expected[t * 60..(t + 1) * 60];
        assert_eq!(read(&catalogue, 0, "1:9:3").await.unwrap(), [row(1), row(4), row(7)].concat());
        check_source(catalogue).await;
    }
}

#[tokio::test]
async fn data_with_a_nan_fill_value_form_a_series() {
    let of = |times, origin| {
        let mut dataset = (*steps(times, origin, &[1, 2, 6, 5], 1).dataset()).clone();
        dataset.arrays[0].decoding.missing = vec![array::Scalar::Float(f64::NAN)];
        Arc::new(MemorySource::new(dataset, vec![vec![vec![7; 120].into()]]).unwrap())
    };
    let catalogue = Catalogue::new(vec![entry("a", of(2, 0.0)), entry("b", of(2, 2.0))]).unwrap();
    assert_eq!(catalogue.describe().await.unwrap().arrays[0].shape(), [4, 2, 6, 5]);
}

/// The array `a` of [`steps`] at times 0, 1, ... in `units` by a calendar, and those times as the array `t`.
fn dated(times: u64, units: &str, calendar: &str, dtype: &str) -> Arc<MemorySource> {
    let mut dataset = (*steps(times, 0.0, &[1, 2, 6, 5], 1).dataset()).clone();
    dataset.id = DatasetId::of([units, calendar, dtype]);
    let mut axis = dataset.arrays[0].axes[0].clone();
    axis.units = units.into();
    let mut t = one_array(dtype.parse().unwrap(), &[times], &[times]).arrays.remove(0);
    (t.name, t.units, t.axes) = ("t".into(), units.into(), vec![axis.clone()]);
    t.attributes.insert("calendar".into(), array::Attribute::Text(calendar.into()));
    let elements = |i: u64| array::Scalar::Unsigned(i).to_little_endian(t.dtype.element());
    let values: Vec<u8> = (0..times).flat_map(elements).collect();
    let data = vec![u8::try_from(units.len()).unwrap(); usize::try_from(times).unwrap() * 60];
    dataset.arrays[0].axes[0] = axis;
    dataset.arrays.push(t);
    Arc::new(MemorySource::new(dataset, vec![vec![data.into()], vec![values.into()]]).unwrap())
}

#[tokio::test]
async fn data_sets_with_different_reference_dates_form_a_series() {
    let years = |calendar: &str, dtype: &str| {
        let year = |year: u32| dated(3, &format!("days since {year}-01-01"), calendar, dtype);
        Catalogue::new(vec![entry("c", year(2002)), entry("a", year(2000)), entry("b", year(2001))]).unwrap()
    };
    for (calendar, dtype, later) in
        [("standard", "<i8", [366, 731]), ("noleap", "<i4", [365, 730]), ("360_day", "<f8", [360, 720])]
    {
        let catalogue = years(calendar, dtype);
        let dataset = catalogue.describe().await.unwrap();
        assert_eq!(dataset.name, "a..c");
        let (number, t) = dataset.find("t").unwrap();
        assert_eq!((t.shape(), t.units.as_str()), (&[9][..], "days since 2000-01-01"));
        let expected: Vec<f64> = [0, later[0], later[1]]
            .iter()
            .flat_map(|later| (0..3).map(move |i| f64::from(i + later)))
            .collect();
        assert_eq!(t.axes[0].coordinates, Coordinates::Explicit(expected.clone()));
        assert_eq!(dataset.find("a").unwrap().1.axes[0].coordinates, Coordinates::Explicit(expected.clone()));
        // Values are converted as well: of one read, of many reads, and of blocks.
        let value = |bytes: &[u8]| {
            (0..bytes.len() / t.dtype.size_bytes())
                .map(|i| t.dtype.scalar_at(bytes, i).unwrap().as_f64())
                .collect::<Vec<_>>()
        };
        let request = |text: &str| ReadRequest {
            array: number,
            level: 0,
            selection: Selection::parse(text, t.shape()).unwrap(),
            priority: Priority::NORMAL,
        };
        let target =
            |text: &str| Target::new(&request(text).selection.shape(), t.dtype.size_bytes()).unwrap();
        let (all, into) = target("");
        catalogue.read(request(""), into).await.unwrap();
        assert_eq!(value(&all.into_vec().unwrap()), expected);
        let (some, into) = target("1:9:3");
        let ends: Vec<_> = catalogue.read_many(vec![(request("1:9:3"), into)]).collect().await;
        assert!(matches!(ends[..], [(0, Ok(()))]), "{ends:?}");
        assert_eq!(value(&some.into_vec().unwrap()), [expected[1], expected[4], expected[7]]);
        check_source(Arc::new(catalogue)).await;
    }
}

#[tokio::test]
async fn times_that_cannot_be_converted_are_not_joined() {
    let early = || dated(3, "days since 2000-01-01", "standard", "<i4");
    let cases: [(&str, Arc<MemorySource>); 6] = [
        ("", dated(3, "days since 2001-01-01", "noleap", "<i4")),
        ("", dated(3, "hours since 2001-01-01", "standard", "<i4")),
        ("", dated(3, "days since 2001-01-01", "martian", "<i4")),
        ("are not joined", dated(3, "days since 2001-01-01 00:00:01", "standard", "<i4")),
        ("overlap", dated(3, "days since 2000-01-02", "standard", "<i4")),
        ("", dated(3, "months since 2001-01-01", "standard", "<i4")),
    ];
    for (number, (warning, other)) in cases.into_iter().enumerate() {
        let catalogue = Catalogue::new(vec![entry("x", early()), entry("y", other)]).unwrap();
        let dataset = catalogue.describe().await.unwrap();
        let names: Vec<&str> = dataset.arrays.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(names, ["x/a", "x/t", "y/a", "y/t"], "case {number}");
        assert!(dataset.warnings.concat().contains(warning), "case {number}: {:?}", dataset.warnings);
    }
    // Numbers of days that exceed the type.
    let narrow = |year| dated(3, &format!("days since {year}-01-01"), "standard", "|i1");
    let catalogue = Catalogue::new(vec![entry("x", narrow(2000)), entry("y", narrow(2001))]).unwrap();
    let dataset = catalogue.describe().await.unwrap();
    assert_eq!(dataset.arrays.len(), 4);
    assert!(dataset.warnings.concat().contains("`t` cannot be converted"), "{:?}", dataset.warnings);
}

#[tokio::test]
async fn a_block_of_one_data_set_is_requested_from_it_unchanged() {
    let parts = [steps(4, 0.0, &[2, 2, 6, 5], 1), steps(4, 4.0, &[2, 2, 6, 5], 9)];
    let catalogue = Catalogue::new(vec![entry("a", parts[0].clone()), entry("b", parts[1].clone())]).unwrap();
    let dataset = catalogue.describe().await.unwrap();
    let key = BlockKey { dataset: dataset.id, generation: dataset.generation, array: 0, level: 0, index: 3 };
    let found = fetch(&catalogue, &[key]).await.remove(&key).unwrap().result.unwrap();
    assert_eq!(parts[1].asked(), [parts[1].key(1)]);
    assert!(parts[0].asked().is_empty() && parts[0].reads().is_empty() && parts[1].reads().is_empty());
    let there = fetch(&*parts[1], &[parts[1].key(1)]).await.remove(&parts[1].key(1)).unwrap().result.unwrap();
    assert_eq!((found.key, &found.content), (key, &there.content));
}

#[tokio::test]
async fn data_sets_that_form_no_series_are_listed_separately() {
    let block = [1, 2, 6, 5];
    let early = || steps(3, 0.0, &block, 1);
    let of = |change: fn(&mut Dataset)| {
        let mut dataset = (*steps(2, 3.0, &block, 9).dataset()).clone();
        change(&mut dataset);
        Arc::new(MemorySource::new(dataset, vec![vec![vec![7; 120].into()]]).unwrap())
    };
    let cases: [(&str, Arc<MemorySource>); 5] = [
        ("", of(|d| d.arrays[0].axes[0].units = "hours since 1900-01-01".into())),
        ("", of(|d| d.arrays[0].decoding.scale = 0.5)),
        ("", of(|d| d.arrays[0].name = "b".into())),
        ("", of(|d| d.arrays[0].axes[0].coordinates = Coordinates::Index)),
        (
            "overlap",
            of(|d| d.arrays[0].axes[0].coordinates = Coordinates::Regular { origin: 2.0, step: 1.0 }),
        ),
    ];
    for (number, (warning, other)) in cases.into_iter().enumerate() {
        let name = other.dataset().arrays[0].name.clone();
        let catalogue = Catalogue::new(vec![entry("x", early()), entry("y", other)]).unwrap();
        let dataset = catalogue.describe().await.unwrap();
        let names: Vec<&str> = dataset.arrays.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(names, ["x/a", &format!("y/{name}")], "case {number}");
        assert!(dataset.warnings.concat().contains(warning), "case {number}: {:?}", dataset.warnings);
        assert_eq!(read(&catalogue, 1, "").await.unwrap(), [7; 120], "case {number}");
    }
}

#[tokio::test]
async fn regular_times_of_a_series_stay_regular() {
    let block = [1, 2, 6, 5];
    let catalogue = Catalogue::new(vec![
        entry("late", steps(2, 3.0, &block, 9)),
        entry("early", steps(3, 0.0, &block, 1)),
    ])
    .unwrap();
    let axis = catalogue.describe().await.unwrap().arrays[0].axes[0].clone();
    assert_eq!(axis.coordinates, Coordinates::Regular { origin: 0.0, step: 1.0 });
    assert_eq!(axis.kind, AxisKind::Time);
}

/// Source that can be replaced by another one.
#[derive(Clone)]
struct ReplaceableSource(Arc<Mutex<Arc<MemorySource>>>);

impl ReplaceableSource {
    fn now(&self) -> Arc<MemorySource> {
        self.0.lock().clone()
    }
}

impl Source for ReplaceableSource {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        self.now().describe()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        self.now().blocks(wants)
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        self.now().read(request, into)
    }
}

fn urgent(key: BlockKey) -> (Want, WantHandle) {
    want(key, Urgency::of(Priority::NORMAL))
}

#[tokio::test]
async fn a_data_set_that_changes_makes_all_of_the_catalogue_stale() {
    let block = [2, 2, 6, 5];
    let changing = ReplaceableSource(Arc::new(Mutex::new(steps(4, 4.0, &block, 9))));
    let entries = || vec![entry("a", steps(4, 0.0, &block, 1)), entry("b", changing.clone())];
    for is_read in [true, false] {
        let catalogue = Catalogue::new(entries()).unwrap();
        let before = catalogue.describe().await.unwrap();
        *changing.0.lock() = steps(4, 4.0, &block, if is_read { 50 } else { 60 });
        let error = if is_read {
            read(&catalogue, 0, "5").await.unwrap_err()
        } else {
            let key =
                BlockKey { dataset: before.id, generation: before.generation, array: 0, level: 0, index: 3 };
            let (want, _handle) = urgent(key);
            catalogue.blocks(vec![want]).next().await.unwrap().result.unwrap_err()
        };
        assert_eq!(error.kind(), ErrorKind::Stale, "{error}");
        assert!(error.to_string().contains("`b`"), "{error}");
        let after = catalogue.describe().await.unwrap();
        assert_ne!(after.id, before.id);
        let expected = read(&changing, 0, "1").await.unwrap();
        assert_eq!(read(&catalogue, 0, "5").await.unwrap(), expected, "the new data");
    }
}

/// Source that counts calls of `read_many`.
struct GroupedSource(ReplaceableSource, Arc<AtomicUsize>);

impl Source for GroupedSource {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        self.0.describe()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        self.0.blocks(wants)
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        self.0.read(request, into)
    }

    fn read_many(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.now().read_many(reads)
    }
}

#[tokio::test]
async fn many_reads_call_each_data_set_once_and_have_separate_results() {
    let block = [2, 2, 6, 5];
    let asked = Arc::new(AtomicUsize::new(0));
    let parts: Vec<ReplaceableSource> = [(3, 0.0, 1), (4, 3.0, 77), (2, 7.0, 150)]
        .map(|(times, origin, first)| {
            ReplaceableSource(Arc::new(Mutex::new(steps(times, origin, &block, first))))
        })
        .into();
    let entries = parts.iter().zip(["a", "b", "c"]);
    let entries = entries.map(|(part, name)| entry(name, GroupedSource(part.clone(), Arc::clone(&asked))));
    let catalogue = Catalogue::new(entries.collect()).unwrap();
    let texts = ["0", "1, 0", "2:5", "8", "", "3:7:2", "4, 1, 2:4", "0:0", "5, 0:0"];
    let many = async |texts: &[&str]| {
        let mut reads = Vec::new();
        let mut targets = Vec::new();
        for text in texts {
            let selection = Selection::parse(text, &[9, 2, 6, 5]).unwrap();
            let (target, into) = Target::new(&selection.shape(), 1).unwrap();
            reads.push((ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL }, into));
            targets.push(target);
        }
        // An invalid read.
        let selection = Selection::of_box(&[9, 0, 0, 0], &[1, 1, 1, 1]);
        let (_target, into) = Target::new(&selection.shape(), 1).unwrap();
        reads.push((ReadRequest { array: 0, level: 0, selection, priority: Priority::NORMAL }, into));
        let mut ends: Vec<_> = catalogue.read_many(reads).collect().await;
        ends.sort_by_key(|(number, _)| *number);
        assert!(ends.iter().map(|(number, _)| *number).eq(0..=texts.len()), "each ends once");
        assert_eq!(ends.pop().unwrap().1.unwrap_err().kind(), ErrorKind::Invalid);
        let read = |(target, (_, end)): (Target, (usize, Result<()>))| end.and_then(|()| target.into_vec());
        targets.into_iter().zip(ends).map(read).collect::<Vec<_>>()
    };
    let found = many(&texts).await;
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    for (text, found) in texts.iter().zip(found) {
        assert_eq!(found.unwrap(), read(&catalogue, 0, text).await.unwrap(), "[{text}]");
    }
    // One data set changes: only reads that touch it are stale.
    *parts[1].0.lock() = steps(4, 3.0, &block, 50);
    let found = many(&["0", "2:5", "4", "8"]).await;
    let kinds: Vec<_> = found.iter().map(|end| end.as_ref().err().map(Error::kind)).collect();
    let stale = Some(ErrorKind::Stale);
    assert_eq!(kinds, [None, stale, stale, None], "{found:?}");
    assert_eq!(many(&["4"]).await.remove(0).unwrap(), read(&parts[1], 0, "1").await.unwrap(), "the new data");
}

#[test]
fn a_catalogue_has_a_bounded_number_of_data_sets() {
    let many = |count| (0..count).map(|n| entry(&n.to_string(), steps(1, 0.0, &[1, 2, 6, 5], 0))).collect();
    assert!(Catalogue::new(many(MAX_DATASETS)).is_ok());
    assert_eq!(Catalogue::new(many(MAX_DATASETS + 1)).err().unwrap().kind(), ErrorKind::TooLarge);
    assert_eq!(Catalogue::new(Vec::new()).err().unwrap().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn series_with_too_many_time_steps_are_refused() {
    let empty = |times: u64, origin: f64| {
        let mut dataset = one_array("u1".parse().unwrap(), &[times, 0, 1, 1], &[1, 1, 1, 1]);
        dataset.id = DatasetId::of([format!("{times} {origin}")]);
        dataset.arrays[0].axes[0].coordinates = Coordinates::Regular { origin, step: 1.0 };
        Arc::new(MemorySource::new(dataset, vec![vec![Vec::new().into()]]).unwrap())
    };
    let entries = vec![entry("a", empty(1 << 63, 0.0)), entry("b", empty(1 << 63, 1e19))];
    let error = Catalogue::new(entries).unwrap().describe().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
}

#[tokio::test(start_paused = true)]
async fn all_waiting_callers_get_the_error_of_a_data_set_that_does_not_answer() {
    struct Stalling;
    impl Source for Stalling {
        fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
            futures::future::pending().boxed()
        }
        fn blocks(&self, _: Vec<Want>) -> Completions {
            stream::empty().boxed()
        }
        fn read(&self, _: ReadRequest, _: Region) -> BoxFuture<'static, Result<()>> {
            futures::future::pending().boxed()
        }
    }
    let catalogue =
        Catalogue::new(vec![entry("good", steps(1, 0.0, &[1, 1, 1, 1], 1)), entry("stalling", Stalling)])
            .unwrap();
    let begun = tokio::time::Instant::now();
    let errors = futures::future::join_all((0..5).map(|_| catalogue.describe())).await;
    for error in errors {
        let error = error.unwrap_err();
        assert!(error.kind() == ErrorKind::TimedOut && error.to_string().contains("stalling"), "{error}");
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "the five callers share one attempt");
}

#[tokio::test]
async fn the_total_size_of_the_descriptions_is_bounded() {
    let long = |n: u32| {
        let mut dataset = one_array("u1".parse().unwrap(), &[1, 1, 1, 1], &[1, 1, 1, 1]);
        dataset.id = DatasetId::of([format!("{n}")]);
        dataset
            .attributes
            .insert("history".into(), array::Attribute::Text("x".repeat(MAX_DESCRIBED_BYTES / 3)));
        entry(&format!("run{n}"), MemorySource::new(dataset, vec![vec![vec![0].into()]]).unwrap())
    };
    let describe = |count| {
        let catalogue = Catalogue::new((0..count).map(long).collect()).unwrap();
        async move { catalogue.describe().await }
    };
    assert!(describe(2).await.is_ok());
    let error = describe(4).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.message().contains("run2"), "{error}");
}
