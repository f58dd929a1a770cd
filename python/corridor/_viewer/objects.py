"""Arrays in memory, or computed on demand, as a data set: described once, and read block by block when a picture needs
them."""

import itertools
import json
import sys
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .. import _native
from .._array import Array
from .._connection_cache import OpenedWith
from .._dataset import Dataset
from .._errors import InvalidError, TooLargeError, UnsupportedError
from .._indexing import Key, parse_key

_Elements = np.ndarray[Any, np.dtype[Any]]
Slices = tuple[slice, ...]
Read = Callable[[Slices], _Elements]

# Maximum size of one computed block: it is computed as a whole even if a picture needs a part of it.
MAX_BLOCK_BYTES = 1 << 30
# Bytes of computed blocks that are kept, so that a block is computed once for the many pieces that are read of it.
KEPT_BLOCK_BYTES = 256 << 20
# Maximum number of elements of a list that is shown as an attribute.
_MAX_ATTRIBUTE_LENGTH = 1000
# Attributes of stored values, which say how they are decoded.
_DECODING = frozenset(
    ("scale_factor", "add_offset", "_FillValue", "missing_value", "valid_range", "valid_min", "valid_max", "_Unsigned")
)
# Kinds of elements that can be drawn: booleans, integers and floats.
_KINDS = "buif"


@dataclass
class ViewedArray:
    """One array to view."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    read: Read
    """Returns the elements of slices with positive steps, one per axis."""
    dims: tuple[str, ...] | None = None
    attrs: Mapping[Any, Any] = field(default_factory=dict)
    chunk: tuple[int, ...] | None = None
    """Elements per axis of what is computed or decoded together; None if elements cost the same."""
    world: tuple[list[list[float]], str] | None = None


class Coordinate(NamedTuple):
    """Positions along a dimension."""

    attrs: Mapping[Any, Any]
    samples: _Elements


@dataclass
class ViewedObject:
    """Arrays to view, with what is known of them."""

    name: str
    kind: str
    arrays: list[ViewedArray]
    coordinates: dict[str, Coordinate] = field(default_factory=dict)
    attrs: Mapping[Any, Any] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    is_costly: bool = False
    """True if a picture may compute for long."""

    def opened(self, memory: str) -> Dataset:
        """Opens the object as a data set within ``memory``."""
        self._split()
        if not self.arrays:
            reasons = "; ".join(f"`{name}`: {why}" for name, why in self.left_out.items())
            raise UnsupportedError(f"expected an array of numbers, found none{f' ({reasons})' if reasons else ''}")
        arrays = list(self.arrays)

        def read(number: int, ranges: list[tuple[int, int, int]]) -> _Elements:
            array = arrays[number]
            slices = tuple(slice(start, start + (count - 1) * step + 1, step) for start, count, step in ranges)
            return _as_bytes(array.read(slices), array, tuple(count for _, count, _ in ranges))

        connection = _native.open_objects(json.dumps(self._description()), read, memory)
        opened_with: OpenedWith = ((), None, memory, "auto", (None, None, None, None))
        return _Unpicklable(connection, opened_with)

    def _split(self) -> None:
        """Replaces arrays of complex and structured elements by their parts; leaves out what cannot be drawn."""
        found: list[ViewedArray] = []
        for array in self.arrays:
            if not array.shape:
                self.left_out[array.name] = "it has no axes"
            elif 0 in array.shape:
                self.left_out[array.name] = "it has no elements"
            elif parts := _parts(array):
                found += parts
            else:
                self.left_out[array.name] = f"elements of type {array.dtype} cannot be drawn"
        self.arrays = found

    def _description(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "format": self.kind,
            "identity": uuid.uuid4().hex,
            "attributes": _plain(self.attrs),
            "arrays": [
                {
                    "name": array.name,
                    "dtype": array.dtype.str,
                    "shape": array.shape,
                    "dims": array.dims,
                    "attributes": _plain(array.attrs),
                    "chunk": array.chunk,
                    "world": array.world,
                }
                for array in self.arrays
            ],
            "coordinates": {
                name: {"attributes": _plain(coordinate.attrs), "samples": coordinate.samples.tolist()}
                for name, coordinate in self.coordinates.items()
                if np.isfinite(coordinate.samples).all()
            },
            "left_out": self.left_out,
        }


class _Unpicklable(Dataset):
    """A data set of objects of this process."""

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a data set of arrays in this process cannot be pickled; pickle the arrays")


def viewed(x: Any, key: Key | None) -> ViewedObject | None:
    """Returns what to view for an object in this process; None for a location, a data set, or a whole array of one."""
    if isinstance(x, Array):
        return _selection(x, key) if key is not None or x._is_decoded else None
    if key is not None:
        if isinstance(x, Dataset) or not hasattr(x, "__getitem__"):
            raise InvalidError(f"expected a key with an array, found one with {type(x).__name__}")
        x = x[key]
    xarray, dask = sys.modules.get("xarray"), sys.modules.get("dask.array")
    if xarray is not None and isinstance(x, xarray.Dataset):
        return _of_xarray(x, xarray)
    if xarray is not None and isinstance(x, xarray.DataArray):
        name = "data" if x.name is None else str(x.name)
        return _of_xarray(x.drop_vars(name, errors="ignore").to_dataset(name=name), xarray)
    if dask is not None and isinstance(x, dask.Array):
        return ViewedObject("dask", "dask", [_of_dask("data", x)], is_costly=_is_costly(x))
    if isinstance(x, np.ndarray):
        return ViewedObject("numpy", "numpy", [_of_numpy("data", x)])
    if all(hasattr(x, name) for name in ("shape", "dtype", "__getitem__")) and isinstance(x.dtype, np.dtype):
        return _of_other(x)
    if hasattr(x, "__array__") and not isinstance(x, Dataset):
        return ViewedObject(type(x).__name__, "numpy", [_of_numpy("data", np.asarray(x))])
    return None


def _of_numpy(name: str, array: _Elements) -> ViewedArray:
    if isinstance(array, np.ma.MaskedArray):
        return _of_masked(name, array)
    # The object itself, not a copy: a slice of it is a view.
    plain = array.view(np.ndarray)
    return ViewedArray(name, plain.dtype, plain.shape, lambda slices: plain[slices])


def _of_masked(name: str, array: "np.ma.MaskedArray[Any, Any]") -> ViewedArray:
    """Missing elements become NaN, which is not drawn; so integers become floats."""
    dtype = array.dtype if array.dtype.kind == "f" else np.dtype("f4" if array.dtype.itemsize <= 2 else "f8")

    def read(slices: Slices) -> _Elements:
        return np.ma.filled(array[slices].astype(dtype), np.nan)

    return ViewedArray(name, dtype, array.shape, read)


def _of_other(x: Any) -> ViewedObject:
    """An array that is read by slices, such as those of h5py and zarr-python."""
    name = str(getattr(x, "name", "") or "data").strip("/") or "data"
    chunks = getattr(x, "chunks", None)
    is_chunked = isinstance(chunks, tuple) and len(chunks) == len(x.shape) and all(isinstance(c, int) for c in chunks)
    attrs = getattr(x, "attrs", {})
    array = ViewedArray(
        name, x.dtype, tuple(x.shape), lambda slices: np.asarray(x[slices]),
        attrs=dict(attrs) if isinstance(attrs, Mapping) else {}, chunk=chunks if is_chunked else None,
    )  # fmt: skip
    return ViewedObject(name, type(x).__module__.split(".")[0], [array])


class _BlockCache:
    """Computed blocks, the last ones of all arrays of one object; each is computed once, by one thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: OrderedDict[tuple[int, ...], tuple[threading.Lock, list[_Elements]]] = OrderedDict()

    def get(self, key: tuple[int, ...], compute: Callable[[], _Elements]) -> _Elements:
        with self._lock:
            lock, held = self._blocks.setdefault(key, (threading.Lock(), []))
            self._blocks.move_to_end(key)
        with lock:
            if not held:
                held.append(compute())
            block = held[0]
        with self._lock:
            size = sum(part.nbytes for _, blocks in self._blocks.values() for part in blocks)
            # A block that is being computed has no size yet and stays.
            for other in [k for k, (_, blocks) in self._blocks.items() if blocks and k != key]:
                if size <= KEPT_BLOCK_BYTES:
                    break
                size -= sum(part.nbytes for part in self._blocks.pop(other)[1])
        return block


def _of_dask(name: str, array: Any) -> ViewedArray:
    """An array of dask, of which a block is computed when a picture needs a part of it."""
    if any(np.isnan(size) for sizes in array.chunks for size in sizes):
        raise InvalidError(f"`{name}` has blocks of unknown size; call `compute_chunk_sizes()` first")
    chunk = tuple(max(sizes) for sizes in array.chunks)
    size_bytes = int(np.prod(chunk, dtype=object)) * array.dtype.itemsize
    if size_bytes > MAX_BLOCK_BYTES:
        raise TooLargeError(
            f"expected blocks of at most {MAX_BLOCK_BYTES >> 20} MiB, each computed as a whole, found {size_bytes >> 20} MiB "
            f"in `{name}`; call `rechunk('auto')`, or view a selection"
        )
    edges = [np.concatenate(([0], np.cumsum(sizes))) for sizes in array.chunks]
    cache = _BlockCache()

    def block(index: tuple[int, ...]) -> _Elements:
        return cache.get(index, lambda: np.asarray(array.blocks[index].compute()))

    def read(slices: Slices) -> _Elements:
        places = [_cut(piece, edge) for piece, edge in zip(slices, edges, strict=True)]
        shape = tuple(sum(count for _, _, count in axis) for axis in places)
        out = np.empty(shape, array.dtype)
        starts = [np.concatenate(([0], np.cumsum([count for _, _, count in axis]))) for axis in places]
        for which in itertools.product(*(range(len(axis)) for axis in places)):
            parts = [axis[i] for axis, i in zip(places, which, strict=True)]
            into = tuple(slice(start[i], start[i + 1]) for start, i in zip(starts, which, strict=True))
            out[into] = block(tuple(number for number, _, _ in parts))[tuple(inside for _, inside, _ in parts)]
        return out

    return ViewedArray(name, array.dtype, tuple(array.shape), read, chunk=tuple(max(1, size) for size in chunk))


def _cut(piece: slice, edges: _Elements) -> list[tuple[int, slice, int]]:
    """Cuts a slice by blocks: the number of each block, the slice inside of it, and its number of elements.

    >>> _cut(slice(1, 10, 3), np.array([0, 3, 5, 10]))
    [(0, slice(1, 3, 3), 1), (1, slice(1, 2, 3), 1), (2, slice(2, 5, 3), 1)]
    """
    found = []
    for number, (low, high) in enumerate(itertools.pairwise(edges.tolist())):
        first = max(piece.start, piece.start - (piece.start - low) // piece.step * piece.step)
        chosen = range(first, min(high, piece.stop), piece.step)
        if chosen:
            found.append((number, slice(chosen.start - low, chosen.stop - low, piece.step), len(chosen)))
    return found


def _is_costly(array: Any) -> bool:
    return int(np.prod(array.shape, dtype=object)) * int(array.dtype.itemsize) > KEPT_BLOCK_BYTES


def _of_xarray(dataset: Any, xarray: Any) -> ViewedObject:
    """Variables with their names, dimensions, coordinates, units and other attributes."""
    viewed = ViewedObject("xarray", "xarray", [], attrs=dataset.attrs)
    for name in [*dataset.data_vars, *(name for name in dataset.coords if dataset[name].ndim > 1)]:
        variable = dataset[name].variable
        try:
            array = _of_variable(str(name), variable)
        except (InvalidError, TooLargeError) as error:
            viewed.left_out[str(name)] = str(error)
            continue
        axes = set(variable.dims)
        others = [c for c in dataset.coords if c not in dataset.dims and dataset[c].ndim > 0 and axes >= set(dataset[c].dims)]
        positions = {"coordinates": " ".join(map(str, others))} if others and name in dataset.data_vars else {}
        array.attrs = {**positions, **variable.attrs}
        viewed.is_costly |= array.chunk is not None and _is_costly(variable)
        viewed.arrays.append(array)
    for dim in dataset.dims:
        if dim in dataset.coords and dataset[dim].dims == (dim,):
            coordinate = _coordinate(dataset[dim].variable, xarray)
            if coordinate is not None:
                viewed.coordinates[str(dim)] = coordinate
    return viewed


def _of_variable(name: str, variable: Any) -> ViewedArray:
    dask = sys.modules.get("dask.array")
    if dask is not None and isinstance(variable._data, dask.Array):
        array = _of_dask(name, variable._data)
    else:
        chunk = None if variable._in_memory else variable.encoding.get("chunksizes")
        is_known = isinstance(chunk, tuple) and len(chunk) == variable.ndim
        array = ViewedArray(
            name, variable.dtype, tuple(variable.shape), lambda slices: np.asarray(variable[slices].values),
            chunk=chunk if is_known else None,
        )  # fmt: skip
    array.dims = tuple(str(dim) for dim in variable.dims)
    return array


def _coordinate(variable: Any, xarray: Any) -> Coordinate | None:
    """Returns the positions of a dimension as numbers; times as CF encodes them. None for texts and the like."""
    try:
        encoded = xarray.conventions.encode_cf_variable(variable.copy(deep=False))
        samples = np.asarray(encoded.values, dtype=np.float64)
    except (ValueError, TypeError):
        return None
    return Coordinate(encoded.attrs, samples)


def _selection(array: Array, key: Key | None) -> ViewedObject:
    """A selection of an array of a data set, which is read when a picture needs it. Axes of integers keep one element."""
    selection = parse_key(... if key is None else key, array.shape)
    if selection.is_reversed:
        raise InvalidError("expected positive steps in the selection to view")
    if array._text is not None:
        raise UnsupportedError(f"`{array.name}` holds text, which is not drawn")
    decoded, ranges = array.decoded, selection.ranges

    def read(slices: Slices) -> _Elements:
        whole = tuple(
            slice(start + s.start * step, start + (s.stop - 1) * step + 1, s.step * step)
            for s, (start, _, step) in zip(slices, ranges, strict=True)
        )
        return decoded[whole]

    axes = array._info["axes"]
    coordinates = {}
    if array._level == 0:
        for axis, (start, count, step) in zip(axes, ranges, strict=True):
            if axis["coordinates"] != "index" or axis["units"]:
                samples = array.coordinates(axis["name"])[start : start + (count - 1) * step + 1 : step]
                coordinates[axis["name"]] = Coordinate({"units": axis["units"]}, np.asarray(samples, np.float64))
    shape = selection.shape()
    # Values are decoded when they are read.
    attrs = {name: value for name, value in array.attrs.items() if name not in _DECODING} | {"units": array.units}
    viewed = ViewedArray(
        array.name, decoded.dtype, shape, read, dims=array.dims, attrs=attrs,
        chunk=tuple(min(size, chunk) for size, chunk in zip(shape, array.chunks, strict=True)) if array.chunks else None,
        world=(_world(array, ranges), array.world_units),
    )  # fmt: skip
    return ViewedObject(array.name, array.dataset.format, [viewed], coordinates, is_costly=_is_costly(viewed))


def _world(array: Array, ranges: list[tuple[int, int, int]]) -> list[list[float]]:
    """Returns the map from voxels (x, y, z) of a selection to world space: three rows of four numbers."""
    of_selection = np.eye(4)
    for column, kind in enumerate("zyx"):
        for axis, (start, _, step) in zip(array._info["axes"], ranges, strict=True):
            if axis.get("kind") == kind:
                of_selection[column, column], of_selection[column, 3] = step, start
    rows: list[list[float]] = (array.world_from_voxel @ of_selection)[:3, [2, 1, 0, 3]].tolist()
    return rows


def _parts(array: ViewedArray) -> list[ViewedArray]:
    """Returns the array if its elements are numbers, or its parts that are; empty if there are none."""
    dtype, read = array.dtype, array.read
    if dtype.kind in _KINDS and dtype.itemsize <= 8:
        return [array]
    named: list[tuple[str, np.dtype[Any], Read]] = []
    if dtype.kind == "c" and dtype.itemsize <= 16:
        part = np.dtype(f"f{dtype.itemsize // 2}")
        named = [(".r", part, lambda slices: read(slices).real), (".i", part, lambda slices: read(slices).imag)]
    for name in dtype.names or ():
        field_dtype = dtype[name]
        if field_dtype.kind in _KINDS and field_dtype.shape == ():
            named.append((f".{name}", field_dtype, lambda slices, name=name: read(slices)[name]))  # type: ignore[misc]
    return [
        ViewedArray(array.name + ending, part, array.shape, get, array.dims, array.attrs, array.chunk, array.world)
        for ending, part, get in named
    ]


def _as_bytes(elements: _Elements, array: ViewedArray, shape: tuple[int, ...]) -> _Elements:
    if elements.shape != shape:
        raise InvalidError(f"expected elements of shape {shape} of `{array.name}`, found {elements.shape}")
    together = np.ascontiguousarray(elements, dtype=array.dtype)
    return together.reshape(-1).view(np.uint8)


def _plain(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Returns attributes as JSON holds them; leaves out numbers that it lacks."""
    found = {str(name): _plain_value(value) for name, value in attrs.items()}
    return {name: value for name, value in found.items() if value is not None}


def _plain_value(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, Mapping):
        return _plain(value)
    if isinstance(value, Iterable):
        found = [_plain_value(part) for part in itertools.islice(value, _MAX_ATTRIBUTE_LENGTH)]
        return None if any(part is None for part in found) else found
    return str(value)
