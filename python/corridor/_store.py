"""A group of a data set as xarray sees a file: variables with their elements as stored, with attributes and encoding.
What is meant by them, xarray's own coders decode, as they do for the engines of each format."""

from collections.abc import Iterable, Mapping
from itertools import chain, count
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.backends.common import AbstractDataStore
from xarray.coding.strings import create_vlen_dtype
from xarray.core import indexing

from . import _encoding
from ._array import Array
from ._encoding import NETCDF, ZARR
from ._groups import Group

# Attributes by which xarray itself decodes; where the file has none of them, Corridor decodes.
_CF_CODING = ("scale_factor", "add_offset", "_FillValue", "missing_value")
# Formats whose files place a volume in the world by one map, which coordinates of its axes cannot say.
_WITH_MAP = frozenset({"NIfTI", "Analyze", "MGH", "NRRD"})
# Coordinates of which nothing is known.
_INDEX = "index"


class CorridorStore(AbstractDataStore):
    """Variables and attributes of one group."""

    def __init__(
        self,
        group: Group,
        arrays: Mapping[str, Array],
        attributes: Mapping[str, Any],
        *,
        dropped: Iterable[str] = (),
        is_decoded: bool,
        source: str,
    ) -> None:
        self._group = group
        self._arrays = arrays
        self._attributes = attributes
        self._dropped = frozenset(dropped)
        self._is_decoded = is_decoded
        self._source = source

    def get_attrs(self) -> dict[str, Any]:
        """Those of the group."""
        return dict(self._attributes)

    def get_encoding(self) -> dict[str, Any]:
        """Which dimensions may grow."""
        return {"unlimited_dims": set(self._group.unlimited)} if self._group.format in NETCDF else {}

    def get_dimensions(self) -> dict[str, int]:
        """Their sizes."""
        return {str(dim): size for v in self.get_variables().values() for dim, size in v.sizes.items()}

    def get_variables(self) -> dict[str, xr.Variable]:
        """All of the group, and coordinates that a format has not as variables but describes."""
        known: dict[str, tuple[int, Any]] = {}
        variables: dict[str, xr.Variable] = {}
        has_own = self._group.format in NETCDF - {"HDF5"} | ZARR
        for name, array in self._arrays.items():
            dims = tuple(_dimension(array, place, known, has_own) for place in range(array.ndim))
            variables[name] = self._variable(array, dims)
            if has_own:
                continue
            for place, dim in enumerate(dims):
                is_taken = dim in self._arrays or dim in variables or dim in self._dropped
                if not is_taken and _coordinates(array, place) != _INDEX:
                    units = array._info["axes"][place]["units"]
                    attrs = {"units": units} if units else {}
                    variables[dim] = xr.Variable((dim,), array.coordinates(place), attrs)
        return variables

    def _variable(self, array: Array, dims: tuple[str, ...]) -> xr.Variable:
        attrs = array.attrs
        format = self._group.format
        encoding = _encoding.encoding_of(array, dims, format, self._source)
        if format in NETCDF | ZARR:
            data = _Lazy(array, _dtype(array))
            _encoding.fit_attributes(attrs, encoding, data.dtype, format)
        else:
            if self._is_decoded and _is_decoded_here(array):
                array = array.decoded
            if array.units:
                attrs.setdefault("units", array.units)
            if format in _WITH_MAP:
                # A list, which every file format takes; a matrix again by `.reshape(4, 4)`.
                attrs["world_from_voxel"] = array.world_from_voxel.ravel()
                attrs["world_units"] = array.world_units
            data = _Lazy(array, array.dtype)
        return xr.Variable(dims, indexing.LazilyIndexedArray(data), attrs, encoding)


class _Lazy(BackendArray):
    """An array's values, when they are asked for."""

    def __init__(self, array: Array, dtype: np.dtype[Any]) -> None:
        self._array = array
        self.shape = array.shape
        # Of the sign that the file has: what is meant by it is said by an attribute.
        self.dtype = dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> np.ndarray:
        elements: np.ndarray = indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.BASIC, self._read
        )
        return elements

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> np.ndarray:
        """Without blocking the event loop."""
        elements: np.ndarray = await indexing.async_explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.BASIC, self._read_async
        )
        return elements

    def _read(self, key: Any) -> np.ndarray:
        return self._as_stored(self._array[key])

    async def _read_async(self, key: Any) -> np.ndarray:
        return self._as_stored(await self._array.read_async(key))

    def _as_stored(self, elements: np.ndarray) -> np.ndarray:
        found = np.asarray(elements, dtype=self._array.dtype)
        return found if found.dtype == self.dtype else found.view(self.dtype)


def _dtype(array: Array) -> np.dtype[Any]:
    """The type in which xarray gets elements: that of the file, in the host's byte order."""
    if array._text is None:
        return _encoding.stored_dtype(array).newbyteorder("=")
    # Texts of any length; so that xarray does not look for them in the values.
    vlen: np.dtype[Any] = create_vlen_dtype(str)  # type: ignore[no-untyped-call]
    return vlen if array.dtype.kind == "O" else array.dtype


def _dimension(array: Array, place: int, known: dict[str, tuple[int, Any]], has_own: bool) -> str:
    """A name for an axis: in some formats axes of several sizes, or of several coordinates, share one; in xarray a name
    has one of each. Where coordinates are variables (`has_own`) they are not looked at."""
    name, size = array.dims[place], array.shape[place]
    coordinates = _INDEX if has_own else _coordinates(array, place)
    names = chain([name, f"{name}_{size}"], (f"{name}_{size}_{n}" for n in count(2)))
    for candidate in names:
        known_size, known_coordinates = known.get(candidate, (size, _INDEX))
        both = [c for c in (coordinates, known_coordinates) if c != _INDEX]
        if size == known_size and (len(both) < 2 or both[0] == both[1]):
            known[candidate] = (size, both[0] if both else _INDEX)
            return candidate
    raise AssertionError("names never end")


def _coordinates(array: Array, place: int) -> Any:
    return array._info["axes"][place]["coordinates"] if array._level == 0 else _INDEX


def _is_decoded_here(array: Array) -> bool:
    """Not integers that nothing scales: what only the format's library takes for missing would make doubles of them."""
    if any(name in array._info["attributes"] for name in _CF_CODING):
        return False
    decoding = array._info["decoding"]
    return array.dtype.kind == "f" or (decoding["scale"], decoding["offset"]) != (1, 0)
