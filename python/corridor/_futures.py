"""Futures over work that the native module does."""

import itertools
from collections.abc import Callable, Sequence
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
        _settle(future, finished, told, error)

    reading = begin(done)
    future.add_done_callback(lambda f: reading.cancel() if f.cancelled() else None)
    return future


def begun_many(
    begin: Callable[
        [Callable[[int | None, _Told | None, BaseException | None], None]], _native.Reading
    ],
    finished: Sequence[Callable[[_Told], _Result]],
) -> "list[Future[_Result]]":
    """Futures of the parts of what ``begin`` begins; once all of them are cancelled or done, the rest is withdrawn."""
    futures: list[Future[_Result]] = [Future() for _ in finished]

    def done(number: int | None, told: _Told | None, error: BaseException | None) -> None:
        for at in range(len(futures)) if number is None else (number,):
            if not futures[at].done():
                _settle(futures[at], finished[at], told, error)

    reading = begin(done)
    ended = itertools.count(1)

    def count(_: "Future[_Result]") -> None:
        if next(ended) == len(futures):
            reading.cancel()

    for future in futures:
        future.add_done_callback(count)
    return futures


def _settle(
    future: "Future[_Result]",
    finished: Callable[[_Told], _Result],
    told: _Told | None,
    error: BaseException | None,
) -> None:
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
