"""The parts of a description (`corridor info --json`) that the package reads, as types, and their reading."""

import json
from typing import Any, Literal, NotRequired, TypedDict
from weakref import WeakKeyDictionary

from . import _native


class Regular(TypedDict):
    """Sample `i` lies at `origin + i * step`."""

    origin: float
    step: float


class Coordinates(TypedDict, total=False):
    """Where samples lie; one of the two."""

    regular: Regular
    explicit: list[float]


class Axis(TypedDict):
    """One axis of an array."""

    name: str
    units: str
    coordinates: Literal["index"] | Coordinates


class Level(TypedDict):
    """One resolution."""

    shape: list[int]
    block: list[int]
    chunk: NotRequired[list[int] | None]


class Decoding(TypedDict):
    """How stored values become the meant ones."""

    output: str
    scale: float
    offset: float


class ArrayInfo(TypedDict):
    """One array."""

    name: str
    dtype: str
    axes: list[Axis]
    units: str
    attributes: dict[str, Any]
    decoding: Decoding
    levels: list[Level]


class LeftOut(TypedDict):
    """A variable that cannot be read as an array."""

    name: str
    what: str


class Description(TypedDict):
    """A data set."""

    id: str
    generation: int
    format: str
    arrays: list[ArrayInfo]
    attributes: dict[str, Any]
    warnings: list[str]
    left_out: list[LeftOut]


_read: WeakKeyDictionary[_native.Connection, Description] = WeakKeyDictionary()


def described(connection: _native.Connection) -> Description:
    """What a connection describes, read once for all who share it: each task of a worker process unpickles a data set."""
    description = _read.get(connection)
    if description is None:
        description = _read[connection] = json.loads(connection.description())
    return description
