//! An open data set for Python: its description, and reads that block, that call back, or that are batched.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use array::{Dataset, Error, Meaning, Priority, Result, Source, Urgency};
use client::dial::ConnectOptionsText;
use client::directories::UserDirectories;
use client::remote_call::{CallProgress, DynamicCall, DynamicResponse, Operand};
use client::reverse;
use client::upstream::Upstream;
use client::url::{Location, Url};
use futures::future::FutureExt;
use node::assemble::{Context, assemble, exports, stack_of};
use node::memory::{MemoryBudget, parse_size};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use server::stack::Stack;
use server::zarr::{self, Bytes, ZarrEntry};
use tokio::task::AbortHandle;

use crate::callbacks;
use crate::errors::{exception, raise};
use crate::reads::{ElementReader, SelectionArgument, StaleFlag};
use crate::runtime::{runtime, wait, wait_and};

/// Compression, link and controller, and meaning of the arrays of files, as text from a user.
type ConnectArguments = (Option<String>, Option<String>, Option<String>, Option<String>);

/// Opens a path, `synthetic:...` or `corridor://...`, or several of the last. `memory` is a size like `512MiB`, by
/// default a quarter of the machine's; `rule` is the relation of several servers. `options`: compression, link,
/// controller, and meaning of the arrays of files.
#[pyfunction]
#[pyo3(signature = (locations, token=None, memory=None, rule="auto", options=(None, None, None, None)))]
#[expect(clippy::needless_pass_by_value, reason = "made for this call")]
pub(crate) fn open(
    py: Python<'_>,
    locations: Vec<String>,
    token: Option<String>,
    memory: Option<&str>,
    rule: &str,
    options: ConnectArguments,
) -> PyResult<Connection> {
    let (compression, link, controller, meaning) = &options;
    let words = ConnectOptionsText {
        link: link.as_deref(),
        controller: controller.as_deref(),
        compression: compression.as_deref(),
        ..ConnectOptionsText::default()
    };
    let meaning = meaning.as_deref().map(meaning_of).transpose().map_err(|e| raise(py, &e))?;
    let work = prepare(&locations, token, memory, rule, words, meaning).map_err(|e| raise(py, &e))?;
    wait(py, work)
}

/// Checks all arguments; returns the work of opening, which waits for the server.
fn prepare(
    locations: &[String],
    token: Option<String>,
    memory: Option<&str>,
    rule: &str,
    words: ConnectOptionsText<'_>,
    meaning: Option<Meaning>,
) -> Result<impl Future<Output = Result<Connection>> + Send + 'static> {
    let locations = locations.iter().map(|text| text.parse()).collect::<Result<_>>()?;
    let (mut location, array) = Location::joined(locations)?.split_array();
    if let Some(token) = token {
        set_token(&mut location, &token)?;
    }
    let reach = words.reach()?;
    let memory_bytes = memory.map_or_else(|| Ok(MemoryBudget::default_bytes()), parse_size)?;
    let shared = contexts(|contexts| contexts.of_budget(memory_bytes))?;
    let context = Context::clone(&shared).sharing(rule.parse()?).reaching(reach).meaning(meaning);
    Ok(async move {
        let stack = assemble(&location, &context).await?;
        let dataset = stack.source.describe().await?;
        let array = if array.is_empty() { stack.array.clone() } else { array };
        Ok(Connection { stack, dataset, array, context: shared, stale: StaleFlag::default() })
    })
}

pub(crate) fn meaning_of(text: &str) -> Result<Meaning> {
    match text {
        "labels" => Ok(Meaning::Labels),
        "intensity" => Ok(Meaning::Intensity),
        _ => Err(Error::invalid(format!("expected the meaning `labels` or `intensity`, found `{text}`"))),
    }
}

/// Sets the token of a location with a server.
fn set_token(location: &mut Location, token: &str) -> Result<()> {
    match location {
        Location::Remote(url) => url.set_token(token),
        Location::Awaited(address) => address.token = Some(token.to_owned()),
        _ => {
            let what = "expected a token with `corridor://` or `await://` only: no other location needs one";
            return Err(Error::invalid(what));
        }
    }
    Ok(())
}

/// Lists the names of the data sets of the server of a URL.
#[pyfunction]
#[pyo3(signature = (url, token=None))]
pub(crate) fn list_datasets(py: Python<'_>, url: &str, token: Option<&str>) -> PyResult<Vec<String>> {
    let prepare = || {
        let mut url: Url = url.parse()?;
        if let Some(token) = token {
            url.set_token(token);
        }
        Ok::<_, Error>((url, contexts(|contexts| contexts.any.clone())?))
    };
    let (url, context) = prepare().map_err(|e| raise(py, &e))?;
    let entries = wait(py, async move { exports(&url, &context).await })?;
    Ok(entries.into_iter().map(|entry| entry.name).collect())
}

/// Contexts with which this process opens data sets.
struct Contexts {
    /// Context for requests that read no data, with the settings common to all contexts.
    any: Context,
    /// Contexts of open data sets by memory budget, in bytes; data sets with the same budget share one.
    open: BTreeMap<u64, Weak<Context>>,
}

/// Calls `of` with the contexts of the process, which are created on first use, and returns its result.
fn contexts<T>(of: impl FnOnce(&mut Contexts) -> T) -> Result<T> {
    static CONTEXTS: Mutex<Option<Contexts>> = Mutex::new(None);
    let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(of(match &mut *contexts {
        Some(contexts) => contexts,
        none => none.insert(Contexts::of_user()?),
    }))
}

impl Contexts {
    fn of_user() -> Result<Self> {
        let budget = MemoryBudget::reading(MemoryBudget::default_bytes());
        let any = Context::new(UserDirectories::of_user()?, budget, None)
            .with_on_await(Arc::new(print_awaiting_url));
        Ok(Self { any, open: BTreeMap::new() })
    }

    fn of_budget(&mut self, bytes: u64) -> Arc<Context> {
        self.open.retain(|_, context| context.strong_count() > 0);
        if let Some(context) = self.open.get(&bytes).and_then(Weak::upgrade) {
            return context;
        }
        let context = Arc::new(self.any.within(MemoryBudget::reading(bytes)));
        self.open.insert(bytes, Arc::downgrade(&context));
        context
    }
}

/// Prints the URL at which this process waits for a server to Python's own standard error, which notebooks show.
fn print_awaiting_url(url: &Url) {
    let text = format!("{}\n", reverse::hint(url));
    let written =
        Python::attach(|py| py.import("sys")?.getattr("stderr")?.call_method1("write", (text,)).map(drop));
    // An error of this output cannot be reported.
    drop(written);
}

/// An open data set.
#[pyclass(frozen, weakref, module = "corridor._native")]
pub(crate) struct Connection {
    stack: Stack,
    dataset: Arc<Dataset>,
    array: String,
    /// Context with which the data set was opened; its budget also limits the array in an operation's response.
    context: Arc<Context>,
    stale: StaleFlag,
}

#[pymethods]
impl Connection {
    /// Name of the data set.
    #[getter]
    fn name(&self) -> &str {
        &self.stack.name
    }

    /// Name of the array at the end of the location; empty if there is none.
    #[getter]
    fn array(&self) -> &str {
        &self.array
    }

    /// False after a request found that the data have changed or that the server cannot be reached.
    #[getter]
    fn is_sound(&self) -> bool {
        !self.stale.is_set()
    }

    /// Identity and generation of the data at the time of opening.
    #[getter]
    fn state(&self) -> (String, u32) {
        (self.dataset.id.to_string(), self.dataset.generation.0)
    }

    /// Asks the server whether the data differ from the description.
    fn has_changed(&self, py: Python<'_>) -> PyResult<bool> {
        let (stack, known) = (self.stack.clone(), Arc::clone(&self.dataset));
        wait(py, async move {
            let now = stack.described_now().await?;
            Ok((now.id, now.generation) != (known.id, known.generation))
        })
    }

    /// Description, as `corridor info --json` prints it.
    fn description(&self, py: Python<'_>) -> PyResult<String> {
        let value = node::describe::json(&self.dataset).map_err(|e| raise(py, &e))?;
        Ok(value.to_string())
    }

    /// Reads one selection; the bytes belong to the caller, without another copy.
    fn read<'py>(
        &self,
        py: Python<'py>,
        wanted: SelectionArgument,
        is_decoded: bool,
        tier: u8,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let bytes = wait(py, self.reader(is_decoded, tier).read(wanted))?;
        Ok(PyArray1::from_vec(py, bytes))
    }

    /// Begins a read and returns at once. `done(bytes, None)` or `done(None, exception)` is called later, on another
    /// thread, at most once; not after the read was cancelled.
    fn begin(
        &self,
        py: Python<'_>,
        wanted: SelectionArgument,
        is_decoded: bool,
        tier: u8,
        done: Py<PyAny>,
    ) -> PyResult<Reading> {
        let read = self.reader(is_decoded, tier).read(wanted);
        begin(py, read, |py, bytes| Ok(PyArray1::from_vec(py, bytes).into_any()), done)
    }

    /// Looks up a key of the data set as a Zarr store: whether it is a folder, and the size of a file in bytes.
    fn zarr_entry(&self, py: Python<'_>, key: &str) -> PyResult<Option<(bool, u64)>> {
        let found = zarr::look_up(&self.dataset, key).map_err(|e| raise(py, &e))?;
        Ok(found.map(entry_to_python))
    }

    /// Lists all entries directly below a key: the name, whether it is a folder, and the size of a file in bytes. Empty
    /// if the key is not a folder.
    fn zarr_list(&self, py: Python<'_>, key: &str) -> PyResult<Vec<(String, (bool, u64))>> {
        let found = py.detach(|| zarr::list(&self.dataset, key)).map_err(|e| raise(py, &e))?;
        Ok(found.into_iter().map(|(name, entry)| (name, entry_to_python(entry))).collect())
    }

    /// Begins to fetch a document or a chunk of the data set as a Zarr store, or its bytes from the first number up to
    /// the second; `done` as for `begin`, with a tuple of the bytes, or of `None` if there is no such object.
    fn begin_zarr(
        &self,
        py: Python<'_>,
        key: String,
        bytes: Option<(u64, u64)>,
        done: Py<PyAny>,
    ) -> PyResult<Reading> {
        let (source, dataset) = (Arc::clone(&self.stack.source), Arc::clone(&self.dataset));
        let stale = self.stale.clone();
        let work = async move {
            stale.note(zarr::read(&*source, &dataset, &key, bytes.map(|(first, last)| first..last)).await)
        };
        begin(py, work, bytes_to_python, done)
    }

    /// Calls an operation of any name on the server and waits for its response; `progress(done, total)` is called
    /// periodically. `with` is JSON.
    fn call<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        wanted: SelectionArgument,
        with: &str,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let latest_progress = Arc::new(Mutex::new(None));
        let work =
            self.remote_call(name, wanted, with, Arc::clone(&latest_progress)).map_err(|e| raise(py, &e))?;
        let report = || {
            let latest = latest_progress.lock().unwrap_or_else(PoisonError::into_inner).take();
            match (&progress, latest) {
                (Some(progress), Some(CallProgress { done, total })) => {
                    progress.call1((done, total)).map(drop)
                }
                _ => Ok(()),
            }
        };
        let response = wait_and(py, work, report)?;
        report()?;
        response_to_python(py, response)
    }

    /// Begins a call of an operation and returns at once; `done` as for `begin`.
    fn begin_call(
        &self,
        py: Python<'_>,
        name: &str,
        wanted: SelectionArgument,
        with: &str,
        done: Py<PyAny>,
    ) -> PyResult<Reading> {
        let work = self.remote_call(name, wanted, with, Arc::default()).map_err(|e| raise(py, &e))?;
        begin(py, work, response_to_python, done)
    }
}

impl Connection {
    /// Returns the stack from which pictures are drawn, and the memory for their blocks, in bytes.
    pub(crate) fn to_draw(&self) -> (Stack, u64) {
        (self.stack.clone(), MemoryBudget::viewing(self.context.budget.whole).render)
    }

    /// Returns the stack and the context with which it was opened.
    pub(crate) fn opened(&self) -> (Stack, Arc<Context>) {
        (self.stack.clone(), Arc::clone(&self.context))
    }

    /// Opens a source of this process as a data set called `name`, within `memory_bytes`.
    pub(crate) async fn of_source(
        name: String,
        open: impl FnOnce(&Context) -> Result<Arc<dyn Source>> + Send + 'static,
        memory_bytes: u64,
    ) -> Result<Self> {
        let context = contexts(|contexts| contexts.of_budget(memory_bytes))?;
        let source = open(&context)?;
        let dataset = source.describe().await?;
        let stack = stack_of(name, source, Upstream::Here, &context);
        Ok(Self { stack, dataset, array: String::new(), context, stale: StaleFlag::default() })
    }

    pub(crate) fn reader(&self, is_decoded: bool, tier: u8) -> ElementReader {
        let (source, dataset) = (Arc::clone(&self.stack.source), Arc::clone(&self.dataset));
        let priority = Priority { tier, weight: 0.0 };
        ElementReader { source, dataset, is_decoded, priority, stale: self.stale.clone() }
    }

    /// Returns a call of an operation; its latest progress is stored in `latest_progress`.
    fn remote_call(
        &self,
        name: &str,
        wanted: SelectionArgument,
        with: &str,
        latest_progress: Arc<Mutex<Option<CallProgress>>>,
    ) -> Result<impl Future<Output = Result<DynamicResponse>> + Send + 'static> {
        let (place, selection) = wanted.place(&self.dataset)?;
        let mut call =
            DynamicCall::new(name, Operand::new(place, Some(selection)), with, self.context.budget.whole)?;
        call.on_progress = Arc::new(move |progress| {
            *latest_progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
        });
        let (stack, stale) = (self.stack.clone(), self.stale.clone());
        Ok(async move { stale.note(stack.call(call, Urgency::of(Priority::NORMAL)).await) })
    }
}

/// Begins `work` and returns at once; `convert` converts its result to the first argument of `done`.
fn begin<T: Send + 'static>(
    py: Python<'_>,
    work: impl Future<Output = Result<T>> + Send + 'static,
    convert: impl for<'py> FnOnce(Python<'py>, T) -> PyResult<Bound<'py, PyAny>> + Send + 'static,
    done: Py<PyAny>,
) -> PyResult<Reading> {
    let runtime = runtime().map_err(|e| raise(py, &e))?;
    let task = runtime.spawn(async move {
        let result = AssertUnwindSafe(work).catch_unwind().await;
        let result = result.unwrap_or_else(|_| Err(Error::internal("a read ended in a panic")));
        callbacks::run(move |py| {
            let called = match result {
                Ok(value) => convert(py, value).and_then(|value| done.call1(py, (value, py.None()))),
                Err(error) => exception(py, &error).and_then(|e| done.call1(py, (py.None(), e))),
            };
            if let Err(problem) = called {
                problem.write_unraisable(py, Some(done.bind(py)));
            }
        })
        .await;
    });
    Ok(Reading::of(task.abort_handle()))
}

fn entry_to_python(entry: ZarrEntry) -> (bool, u64) {
    match entry {
        ZarrEntry::Folder => (true, 0),
        ZarrEntry::File { size_bytes } => (false, size_bytes),
    }
}

/// Converts optional bytes to a Python object.
fn bytes_to_python(py: Python<'_>, bytes: Option<Bytes>) -> PyResult<Bound<'_, PyAny>> {
    (bytes.map(|bytes| PyBytes::new(py, &bytes)),).into_pyobject(py).map(Bound::into_any)
}

/// Converts a response to a Python object: the result as JSON, and the array's type, shape and elements if there is
/// one.
fn response_to_python(py: Python<'_>, response: DynamicResponse) -> PyResult<Bound<'_, PyAny>> {
    let elements = response
        .elements
        .map(|(what, bytes)| (what.dtype.to_string(), what.shape, PyArray1::from_vec(py, bytes)));
    (response.result.to_string(), elements).into_pyobject(py).map(Bound::into_any)
}

/// One or several reads in progress, or a call.
#[pyclass(frozen, module = "corridor._native")]
pub(crate) struct Reading(AbortHandle);

impl Reading {
    pub(crate) fn of(task: AbortHandle) -> Self {
        Self(task)
    }
}

#[pymethods]
impl Reading {
    /// Cancels the work, on the server too.
    fn cancel(&self) {
        self.0.abort();
    }
}
