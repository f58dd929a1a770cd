//! Data sets whose elements are in objects of Python: numpy, dask, xarray and similar arrays, read block by block.

use std::sync::Arc;

use array::{Error, ErrorKind, Region, Result, Selection};
use node::memory::{MemoryBudget, parse_size};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use store::{CancelFlag, ObjectReader, ObjectsDescription, open_objects as open_source};

use crate::connection::Connection;
use crate::errors::raise;
use crate::runtime::wait;

/// Opens objects that `description` (JSON) lists as a data set. `read(number, [(start, count, step), ...])` returns the
/// elements of a selection of one of them as bytes in C order; it is called on other threads.
#[pyfunction]
#[pyo3(signature = (description, read, memory=None))]
pub(crate) fn open_objects(
    py: Python<'_>,
    description: &str,
    read: Py<PyAny>,
    memory: Option<&str>,
) -> PyResult<Connection> {
    let prepare = || {
        let described: ObjectsDescription = serde_json::from_str(description)
            .map_err(|e| Error::invalid(format!("expected a description of objects in JSON: {e}")))?;
        let memory_bytes = memory.map_or_else(|| Ok(MemoryBudget::default_bytes()), parse_size)?;
        Ok::<_, Error>((described, memory_bytes))
    };
    let (described, memory_bytes) = prepare().map_err(|e| raise(py, &e))?;
    let reader = Arc::new(PythonReader(read));
    wait(py, async move {
        let name = described.name.clone();
        Connection::of_source(
            name,
            move |context| open_source(&described, reader, &context.scratch_options()),
            memory_bytes,
        )
        .await
    })
}

/// Callback that reads elements.
struct PythonReader(Py<PyAny>);

impl ObjectReader for PythonReader {
    fn read(&self, array: u32, selection: &Selection, mut into: Region, cancel: &CancelFlag) -> Result<()> {
        let ranges: Vec<(u64, u64, u64)> =
            selection.ranges().iter().map(|range| (range.start, range.count, range.step)).collect();
        let read = |py: Python<'_>| {
            // The wait for Python's lock may be long.
            cancel.check()?;
            let failed = |e: PyErr| {
                Error::new(ErrorKind::Io, format!("an object of Python could not be read: {}", e.value(py)))
            };
            let elements = self.0.call1(py, (array, ranges)).map_err(failed)?;
            let elements: PyReadonlyArray1<'_, u8> =
                elements.extract(py).map_err(|e| failed(PyErr::from(e)))?;
            let bytes = elements
                .as_slice()
                .map_err(|_| Error::internal("expected the elements of an object as contiguous bytes"))?;
            into.write_all(bytes)
        };
        let ending = || Error::new(ErrorKind::Unreachable, "Python is shutting down");
        Python::try_attach(read).unwrap_or_else(|| Err(ending()))
    }
}
