"""Futures over work that the native module does."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from . import _native

_Told = TypeVar("_Told")
_Result = TypeVar("_Result")


def begun(
    begin: Callable[[Callable[[_Told | None, BaseException | None], None]], _native.Reading],
    finished: Callable[[_Told], _Result],
) -> "Future[_Result]":
    """A future of what ``begin`` begins; cancelling it withdraws the work."""
    future: Future[_Result] = Future()

    def done(told: _Told | None, error: BaseException | None) -> None:
        if not future.set_running_or_notify_cancel():
            return
        if error is not None:
            future.set_exception(error)
            return
        assert told is not None
        try:
            future.set_result(finished(told))
        except Exception as problem:  # noqa: BLE001: whoever waits must hear of it
            future.set_exception(problem)

    reading = begin(done)
    future.add_done_callback(lambda f: reading.cancel() if f.cancelled() else None)
    return future
