"""Many reads at a time, of arrays of one or several data sets: all are asked at once."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial

import numpy as np

from . import _native
from ._array import ORDINARY, Array
from ._futures import begun_many
from ._indexing import Key, pick


def read_many(wanted: Iterable[tuple[Array, Key]]) -> list[np.ndarray]:
    """Read many selections of arrays of one or several data sets, all at once; results in the order given.

    >>> import corridor
    >>> a = corridor.open("synthetic:linear?shape=4,5,6&dtype=u8")["linear"]
    >>> [part.shape for part in corridor.read_many([(a, 0), (a, (slice(2), ..., 1))])]
    [(5, 6), (2, 5)]

    The first error ends all; :func:`submit_many` tells of each by itself.
    """
    asked, finished = _prepared(wanted)
    told = _native.read_many(asked, ORDINARY)
    return [finish(elements) for finish, elements in zip(finished, told, strict=True)]


def submit_many(wanted: Iterable[tuple[Array, Key]]) -> "list[Future[np.ndarray]]":
    """Begin many reads and return at once; the futures, in the order given, are done as their elements arrive.

    >>> import corridor
    >>> a = corridor.open("synthetic:linear?shape=4,5,6&dtype=u8")["linear"]
    >>> [part.result().shape for part in corridor.submit_many([(a, 0), (a, (..., 1))])]
    [(5, 6), (4, 5)]

    They cost less than as many calls of :meth:`Array.submit`. What is under way is withdrawn once all that are not done are
    cancelled.
    """
    asked, finished = _prepared(wanted)
    return begun_many(lambda done: _native.begin_many(asked, ORDINARY, done), finished)


async def read_many_async(wanted: Iterable[tuple[Array, Key]]) -> list[np.ndarray]:
    """:func:`read_many` without blocking the event loop; cancelling the task withdraws the reads.

    >>> import asyncio, corridor
    >>> a = corridor.open("synthetic:linear?shape=4,5,6&dtype=u8")["linear"]
    >>> [part.shape for part in asyncio.run(corridor.read_many_async([(a, 0), (a, 1)]))]
    [(5, 6), (5, 6)]
    """
    futures = submit_many(wanted)
    try:
        return await asyncio.gather(*map(asyncio.wrap_future, futures))
    finally:
        # After an error nobody takes the others.
        for future in futures:
            future.cancel()


def _prepared(
    wanted: Iterable[tuple[Array, Key]],
) -> "tuple[list[_native.Asked], list[Callable[[np.ndarray], np.ndarray]]]":
    """What the native module is asked, and what makes the result of each answer."""
    asked: list[_native.Asked] = []
    finished: list[Callable[[np.ndarray], np.ndarray]] = []
    for array, key in wanted:
        picked = pick(key, array.shape)
        asked.append((array._dataset._connection, array._wanted(picked), array._is_decoded))
        finished.append(partial(array._finished, picked))
    return asked, finished
