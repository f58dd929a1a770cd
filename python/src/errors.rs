//! Errors as Python exceptions; `corridor/_errors.py` maps kinds to classes.

use array::{Error, Retry};
use pyo3::prelude::*;

/// Returns the exception for an error.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    match exception(py, error) {
        Ok(exception) => PyErr::from_value(exception),
        Err(problem) => problem,
    }
}

/// Returns the exception as a value, as callbacks get it.
pub(crate) fn exception<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let make = py.import("corridor._errors")?.getattr("make")?;
    make.call1((error.kind().code(), error.to_string(), error.retry() == Retry::MayHelp))
}
