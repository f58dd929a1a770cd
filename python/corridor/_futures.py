"""Futures of work that the native module does."""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from . import _native

_Answer = TypeVar("_Answer")
_Result = TypeVar("_Result")


def start(
    begin: Callable[[Callable[[_Answer | None, BaseException | None], None]], _native.Reading],
    convert: Callable[[_Answer], _Result],
) -> "Future[_Result]":
    """Returns a future of the work that ``begin`` starts; cancelling the future cancels the work."""
    future: Future[_Result] = Future()

    def done(answer: _Answer | None, error: BaseException | None) -> None:
        _settle(future, convert, answer, error)

    reading = begin(done)
    future.add_done_callback(lambda f: reading.cancel() if f.cancelled() else None)
    return future


def start_many(
    begin: Callable[
        [Callable[[int | None, _Answer | None, BaseException | None], None]], _native.Reading
    ],
    convert: Sequence[Callable[[_Answer], _Result]],
) -> "list[Future[_Result]]":
    """Returns futures of the items of work that ``begin`` starts; once all are done or cancelled, the rest is cancelled."""
    futures: list[Future[_Result]] = [Future() for _ in convert]

    def done(number: int | None, answer: _Answer | None, error: BaseException | None) -> None:
        # Without a number the answer is for all futures that are left.
        for index in range(len(futures)) if number is None else (number,):
            if not futures[index].done():
                _settle(futures[index], convert[index], answer, error)

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
    convert: Callable[[_Answer], _Result],
    answer: _Answer | None,
    error: BaseException | None,
) -> None:
    if not future.set_running_or_notify_cancel():
        return
    if error is not None:
        future.set_exception(error)
        return
    assert answer is not None
    try:
        future.set_result(convert(answer))
    except Exception as problem:  # noqa: BLE001: callers that wait must get the error
        future.set_exception(problem)
