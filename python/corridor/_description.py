"""Descriptions of data sets (`corridor info --json`) as typed dictionaries: the fields that the package uses."""

import json
from typing import Any, Literal, NotRequired, TypedDict
from weakref import WeakKeyDictionary

import numpy as np

from . import _native


class Regular(TypedDict):
    """Sample `i` lies at `origin + i * step`."""

    origin: float
    step: float


class Coordinates(TypedDict, total=False):
    """Coordinates of samples; exactly one of the two fields."""

    regular: Regular
    explicit: list[float]


class Axis(TypedDict):
    """One axis of an array."""

    name: str
    units: str
    coordinates: Literal["index"] | Coordinates
    kind: NotRequired[str]


class Level(TypedDict):
    """One resolution."""

    shape: list[int]
    block: list[int]
    chunk: NotRequired[list[int] | None]
    world_from_voxel: list[list[float]]


class Decoding(TypedDict):
    """Conversion of stored values to decoded ones."""

    output: str
    scale: float
    offset: float


class Filter(TypedDict):
    """A filter of HDF5."""

    name: str
    parameters: NotRequired[list[int]]


class Storage(TypedDict, total=False):
    """Storage of an array in its file."""

    dtype: str
    unlimited: list[int]
    filters: list[Filter]
    text: str
    zarr: dict[str, Any]


class ArrayInfo(TypedDict):
    """One array."""

    name: str
    dtype: str
    axes: list[Axis]
    units: str
    attributes: dict[str, Any]
    attribute_types: NotRequired[dict[str, str]]
    decoding: Decoding
    meaning: str
    levels: list[Level]
    world_units: str
    storage: NotRequired[Storage]


class GroupInfo(TypedDict):
    """A group of a file, or a data set of a catalogue."""

    path: str
    format: NotRequired[str]
    unlimited: NotRequired[list[str]]


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
    attribute_types: NotRequired[dict[str, str]]
    warnings: list[str]
    left_out: list[LeftOut]
    groups: NotRequired[list[GroupInfo]]


_read: WeakKeyDictionary[_native.Connection, Description] = WeakKeyDictionary()


def described(connection: _native.Connection) -> Description:
    """Returns the description of a connection, parsed once for all users of the connection."""
    description = _read.get(connection)
    if description is None:
        description = json.loads(connection.description())
        for owner in (description, *description["arrays"]):
            owner["attributes"] = _typed(owner["attributes"], owner.get("attribute_types", {}))
        _read[connection] = description
    return description


def _typed(attributes: dict[str, Any], types: dict[str, str]) -> dict[str, Any]:
    """Converts attributes with a numeric type to numpy values, as netCDF4 returns them; leaves others as in JSON."""
    return {name: _of_type(value, types.get(name)) for name, value in attributes.items()}


def _of_type(value: Any, dtype: str | None) -> Any:
    if dtype is None:
        return value
    if dtype == "number":
        return [_number(v) for v in value] if isinstance(value, list) else _number(value)
    if isinstance(value, list):
        return np.array([float(v) if isinstance(v, str) else v for v in value], dtype=dtype)
    return np.dtype(dtype).type(value)


def _number(value: Any) -> Any:
    """Converts numbers that JSON holds as strings, such as "NaN"."""
    return float(value) if isinstance(value, str) else value
