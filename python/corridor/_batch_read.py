"""Batch reads: many selections of arrays of one or several data sets, requested together."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial

import numpy as np

from . import _native
from ._array import ORDINARY, Array
from ._futures import start_many
from ._indexing import Key, parse_key


def read_many(wanted: Iterable[tuple[Array, Key]]) -> list[np.ndarray]:
    """Read many selections of arrays of one or several data sets, all at once; results in the order given.

    >>> import corridor
    >>> a = corridor.open("synthetic:linear?shape=4,5,6&dtype=u8")["linear"]
    >>> [part.shape for part in corridor.read_many([(a, 0), (a, (slice(2), ..., 1))])]
    [(5, 6), (2, 5)]

    The first error ends the whole batch; with :func:`submit_many` each read has an error of its own.
    """
    requests, convert = _prepare(wanted)
    results = _native.read_many(requests, ORDINARY)
    return [function(elements) for function, elements in zip(convert, results, strict=True)]


def submit_many(wanted: Iterable[tuple[Array, Key]]) -> "list[Future[np.ndarray]]":
    """Begin many reads and return at once; the futures, in the order given, are done as their elements arrive.

    >>> import corridor
    >>> a = corridor.open("synthetic:linear?shape=4,5,6&dtype=u8")["linear"]
    >>> [part.result().shape for part in corridor.submit_many([(a, 0), (a, (..., 1))])]
    [(5, 6), (4, 5)]

    A batch costs less than the same number of calls of :meth:`Array.submit`. Reads in progress are cancelled once all
    futures that are not done are cancelled.
    """
    requests, convert = _prepare(wanted)
    return start_many(lambda done: _native.begin_many(requests, ORDINARY, done), convert)


async def read_many_async(wanted: Iterable[tuple[Array, Key]]) -> list[np.ndarray]:
    """:func:`read_many` without blocking the event loop; cancelling the task cancels the reads.

    >>> import asyncio, corridor
    >>> a = corridor.open("synthetic:linear?shape=4,5,6&dtype=u8")["linear"]
    >>> [part.shape for part in asyncio.run(corridor.read_many_async([(a, 0), (a, 1)]))]
    [(5, 6), (5, 6)]
    """
    futures = submit_many(wanted)
    try:
        return await asyncio.gather(*map(asyncio.wrap_future, futures))
    finally:
        # After an error the other results are not needed.
        for future in futures:
            future.cancel()


def _prepare(
    selections: Iterable[tuple[Array, Key]],
) -> "tuple[list[_native.ReadRequest], list[Callable[[np.ndarray], np.ndarray]]]":
    """Returns the requests for the native module, and for each a function that converts the elements into its result."""
    requests: list[_native.ReadRequest] = []
    convert: list[Callable[[np.ndarray], np.ndarray]] = []
    for array, key in selections:
        selection = parse_key(key, array.shape)
        requests.append((array._dataset._connection, array._request(selection), array._is_decoded))
        convert.append(partial(array._result, selection))
    return requests, convert
