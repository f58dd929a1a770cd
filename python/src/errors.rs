//! The project's error as a Python exception; which class stands for which kind is said in `corridor/_errors.py`.

use array::{Error, Retry};
use pyo3::prelude::*;

/// The exception for an error.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    match exception(py, error) {
        Ok(exception) => PyErr::from_value(exception),
        Err(problem) => problem,
    }
}

/// The exception as a value, as callbacks get it.
pub(crate) fn exception<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let make = py.import("corridor._errors")?.getattr("make")?;
    make.call1((error.kind().code(), error.to_string(), error.retry() == Retry::MayHelp))
}
