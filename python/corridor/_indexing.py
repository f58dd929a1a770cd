"""Basic indexing as numpy defines it, converted to start, count and step per axis."""

import operator
from types import EllipsisType
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from ._errors import InvalidError

Index = SupportsIndex | slice | EllipsisType
Key = Index | tuple[Index, ...]


class Selection(NamedTuple):
    """A key applied to a shape."""

    ranges: list[tuple[int, int, int]]
    """Start, count and positive step per axis."""
    view_key: tuple[Index, ...]
    """Index that turns the elements read into the result by reversing and dropping axes; a view, never a copy. It has an
    ellipsis if the key had one: numpy then returns an array even if no axis is left."""

    @property
    def is_reversed(self) -> bool:
        """True if some axis is reversed after reading."""
        return any(isinstance(entry, slice) and entry.step == -1 for entry in self.view_key)

    def shape(self) -> tuple[int, ...]:
        """Returns the number of elements read per axis."""
        return tuple(count for _, count, _ in self.ranges)

    def view(self, elements: np.ndarray) -> np.ndarray:
        """Returns the result, given the elements read in C order."""
        return elements.reshape(self.shape())[self.view_key]


def parse_key(key: Key, shape: tuple[int, ...]) -> Selection:
    """Applies numpy's basic indexing: integers, slices with any step, one ellipsis.

    >>> parse_key(np.s_[1:7:2, -1], (8, 3, 5)).ranges
    [(1, 3, 2), (2, 1, 1), (0, 5, 1)]
    """
    given = key if isinstance(key, tuple) else (key,)
    entries = _without_ellipsis(given, len(shape))
    ranges: list[tuple[int, int, int]] = []
    view_key: list[Index] = []
    for axis, (entry, size) in enumerate(zip(entries, shape, strict=True)):
        chosen, after = _axis(entry, size, axis)
        ranges.append(chosen)
        view_key.append(after)
    if any(entry is Ellipsis for entry in given):
        view_key.append(...)
    return Selection(ranges, tuple(view_key))


def _without_ellipsis(entries: tuple[Any, ...], axes: int) -> tuple[Any, ...]:
    places = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if len(places) > 1:
        raise InvalidError("expected at most one `...` in a selection")
    at = places[0] if places else len(entries)
    before, after = entries[:at], entries[at + 1 :]
    missing = axes - len(before) - len(after)
    if missing < 0:
        given = len(before) + len(after)
        raise IndexError(f"expected at most {axes} indices, found {given}")
    return before + (slice(None),) * missing + after


def _axis(entry: Any, size: int, axis: int) -> tuple[tuple[int, int, int], int | slice]:
    if isinstance(entry, slice):
        chosen = range(*entry.indices(size))
        if chosen.step < 0:
            chosen = chosen[::-1]
            return (chosen.start if chosen else 0, len(chosen), _step(chosen)), slice(None, None, -1)
        return (chosen.start if chosen else 0, len(chosen), _step(chosen)), slice(None)
    if entry is None or isinstance(entry, (bool, np.bool_, list, np.ndarray)):
        raise TypeError(
            f"expected an integer, a slice or `...` on axis {axis}, found {type(entry).__name__}; "
            "read a slice first and index the numpy array, or open the data with xarray"
        )
    index = operator.index(entry)
    if not -size <= index < size:
        raise IndexError(f"expected an index below {size} on axis {axis}, found {index}")
    return (index % size, 1, 1), 0


def _step(chosen: range) -> int:
    return chosen.step if len(chosen) > 1 else 1
