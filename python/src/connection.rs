//! An open data set as Python holds it: its description, and reads that wait, that come later, or that go many at a time.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use node::array::{Dataset, Error, Result, Source};
use node::assemble::{Context, Stack, assemble};
use node::memory::{Budget, parse_size};
use node::places::Places;
use node::url::Location;
use numpy::PyArray1;
use pyo3::prelude::*;
use tokio::task::AbortHandle;

use crate::errors::{exception, raise};
use crate::runtime::{runtime, wait};
use crate::wanted::Wanted;

/// Reads of one `read_many` that are under way at a time; the rest waits its turn here, not on the server.
const MAX_READS_UNDER_WAY: usize = 16_384;

/// Opens a path, `synthetic:...` or `corridor://...`, or several of the last; `memory` like `512MiB`, a quarter of the
/// machine's if not given.
#[pyfunction]
#[pyo3(signature = (locations, token=None, memory=None))]
#[expect(clippy::needless_pass_by_value, reason = "a list from Python")]
pub(crate) fn open(
    py: Python<'_>,
    locations: Vec<String>,
    token: Option<String>,
    memory: Option<&str>,
) -> PyResult<Connection> {
    let work = prepare(&locations, token, memory).map_err(|e| raise(py, &e))?;
    wait(py, work)
}

/// Everything that can be wrong with the arguments, before anything waits.
fn prepare(
    locations: &[String],
    token: Option<String>,
    memory: Option<&str>,
) -> Result<impl Future<Output = Result<Connection>> + Send + 'static> {
    let locations = locations.iter().map(|text| text.parse()).collect::<Result<_>>()?;
    let (mut location, array) = Location::joined(locations)?.split_array();
    if let (Location::Remote(url), Some(token)) = (&mut location, token) {
        url.set_token(&token);
    }
    let context = context(memory.map_or_else(|| Ok(Budget::default_bytes()), parse_size)?)?;
    Ok(async move {
        let stack = assemble(&location, &context).await?;
        let dataset = stack.source.describe().await?;
        Ok(Connection { stack, dataset, array })
    })
}

/// What data sets of this process are opened with: those of the same budget share it.
fn context(bytes: u64) -> Result<Context> {
    static CONTEXTS: Mutex<BTreeMap<u64, Context>> = Mutex::new(BTreeMap::new());
    let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(context) = contexts.get(&bytes) {
        return Ok(context.clone());
    }
    let context = Context::new(Places::of_user()?, Budget::reading(bytes), None);
    contexts.insert(bytes, context.clone());
    Ok(context)
}

/// A data set that is open.
#[pyclass(frozen, module = "corridor._native")]
pub(crate) struct Connection {
    stack: Stack,
    dataset: Arc<Dataset>,
    array: String,
}

#[pymethods]
impl Connection {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.stack.name
    }

    /// Name of the array that the location ended with; empty if it named none.
    #[getter]
    fn array(&self) -> &str {
        &self.array
    }

    /// The description, as `corridor info --json` prints it.
    fn description(&self, py: Python<'_>) -> PyResult<String> {
        let value = node::describe::json(&self.dataset).map_err(|e| raise(py, &e))?;
        Ok(value.to_string())
    }

    /// Reads one selection; the bytes are the caller's, not copied again.
    fn read<'py>(
        &self,
        py: Python<'py>,
        wanted: Wanted,
        is_decoded: bool,
        tier: u8,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let bytes = wait(py, wanted.read(self.source(), Arc::clone(&self.dataset), is_decoded, tier))?;
        Ok(PyArray1::from_vec(py, bytes))
    }

    /// Reads many selections, pipelined; results in the order of the requests. The first error ends all.
    fn read_many<'py>(
        &self,
        py: Python<'py>,
        wanted: Vec<Wanted>,
        is_decoded: bool,
        tier: u8,
    ) -> PyResult<Vec<Bound<'py, PyArray1<u8>>>> {
        let (source, dataset) = (self.source(), Arc::clone(&self.dataset));
        let work = async move {
            let reads = wanted
                .into_iter()
                .map(move |w| w.read(Arc::clone(&source), Arc::clone(&dataset), is_decoded, tier));
            stream::iter(reads).buffered(MAX_READS_UNDER_WAY).try_collect::<Vec<_>>().await
        };
        let all = wait(py, work)?;
        Ok(all.into_iter().map(|bytes| PyArray1::from_vec(py, bytes)).collect())
    }

    /// Begins a read and returns at once. `done(bytes, None)` or `done(None, exception)` is called later, on another
    /// thread, at most once; never after the reading was cancelled.
    fn begin(
        &self,
        py: Python<'_>,
        wanted: Wanted,
        is_decoded: bool,
        tier: u8,
        done: Py<PyAny>,
    ) -> PyResult<Reading> {
        let read = wanted.read(self.source(), Arc::clone(&self.dataset), is_decoded, tier);
        let runtime = runtime().map_err(|e| raise(py, &e))?;
        let task = runtime.spawn(async move {
            let result = AssertUnwindSafe(read).catch_unwind().await;
            let result = result.unwrap_or_else(|_| Err(Error::internal("a read ended in a panic")));
            // Python's lock is not waited for on a thread that moves other people's bytes.
            let told = tokio::task::spawn_blocking(move || Python::attach(|py| tell(py, &done, result)));
            drop(told.await);
        });
        Ok(Reading(task.abort_handle()))
    }
}

impl Connection {
    fn source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.stack.source)
    }
}

fn tell(py: Python<'_>, done: &Py<PyAny>, result: Result<Vec<u8>, Error>) {
    let told = match result {
        Ok(bytes) => done.call1(py, (PyArray1::from_vec(py, bytes).into_any(), py.None())),
        Err(error) => exception(py, &error).and_then(|e| done.call1(py, (py.None(), e))),
    };
    if let Err(problem) = told {
        problem.write_unraisable(py, Some(done.bind(py)));
    }
}

/// A read that was begun.
#[pyclass(frozen, module = "corridor._native")]
pub(crate) struct Reading(AbortHandle);

#[pymethods]
impl Reading {
    /// Withdraws it, on the server too.
    fn cancel(&self) {
        self.0.abort();
    }
}
