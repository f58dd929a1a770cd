//! Many reads at a time, of one data set or several: all are requested at once.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use array::{Error, Result};
use futures::future::FutureExt;
use futures::stream::StreamExt;
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::callbacks;
use crate::connection::{Connection, Reading};
use crate::errors::{exception, raise};
use crate::reads::{ElementReader, SelectionArgument, read_each};
use crate::runtime::{runtime, wait};

/// One of many reads: its data set, its selection, and whether its values are decoded.
#[derive(FromPyObject)]
pub(crate) struct ReadArgument(Py<Connection>, SelectionArgument, bool);

fn readers(requests: Vec<ReadArgument>, tier: u8) -> Vec<(ElementReader, SelectionArgument)> {
    let reader =
        |ReadArgument(connection, wanted, is_decoded)| (connection.get().reader(is_decoded, tier), wanted);
    requests.into_iter().map(reader).collect()
}

/// Reads many selections; results are in the order of the requests. The first error cancels all.
#[pyfunction]
pub(crate) fn read_many(
    py: Python<'_>,
    requests: Vec<ReadArgument>,
    tier: u8,
) -> PyResult<Vec<Bound<'_, PyArray1<u8>>>> {
    let count = requests.len();
    let each = read_each(readers(requests, tier));
    let all = wait(py, async move {
        let mut each = pin!(each);
        let mut all: Vec<Option<Vec<u8>>> = vec![None; count];
        while let Some((number, elements)) = each.next().await {
            all[number] = Some(elements?);
        }
        all.into_iter().map(|one| one.ok_or_else(unfinished)).collect::<Result<Vec<_>>>()
    })?;
    Ok(all.into_iter().map(|bytes| PyArray1::from_vec(py, bytes)).collect())
}

/// Begins many reads and returns at once. `done(number, bytes, None)` or `done(number, None, exception)` is called as
/// they complete, on other threads. After an internal error `done(None, None, exception)` is called once, for all reads
/// that have not completed. `done` is not called after the reads were cancelled.
#[pyfunction]
pub(crate) fn begin_many(
    py: Python<'_>,
    requests: Vec<ReadArgument>,
    tier: u8,
    done: Py<PyAny>,
) -> PyResult<Reading> {
    let runtime = runtime().map_err(|e| raise(py, &e))?;
    let each = read_each(readers(requests, tier));
    let done = Arc::new(done);
    let task = runtime.spawn(async move {
        let work = async {
            let mut each = pin!(each);
            while let Some((number, elements)) = each.next().await {
                call(&done, Some(number), elements).await;
            }
        };
        if AssertUnwindSafe(work).catch_unwind().await.is_err() {
            call(&done, None, Err(unfinished())).await;
        }
    });
    Ok(Reading::of(task.abort_handle()))
}

async fn call(done: &Arc<Py<PyAny>>, number: Option<usize>, elements: Result<Vec<u8>>) {
    let done = Arc::clone(done);
    callbacks::run(move |py| {
        let called = match elements {
            Ok(bytes) => done.call1(py, (number, PyArray1::from_vec(py, bytes), py.None())),
            Err(error) => exception(py, &error).and_then(|e| done.call1(py, (number, py.None(), e))),
        };
        if let Err(problem) = called {
            problem.write_unraisable(py, Some(done.bind(py)));
        }
    })
    .await;
}

fn unfinished() -> Error {
    Error::internal("expected every read to complete, found one that did not")
}
