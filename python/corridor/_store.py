"""A group of a data set as a store of xarray: variables with stored elements, attributes and encoding. xarray's own coders
decode them, as they do for the engine of each format."""

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

# Attributes by which xarray decodes; if the file has none of them, Corridor decodes.
_CF_CODING = ("scale_factor", "add_offset", "_FillValue", "missing_value")
# Formats whose volumes have one map to world space, which coordinates of axes cannot express.
_WITH_MAP = frozenset({"NIfTI", "Analyze", "MGH", "NRRD"})
# Coordinates that are unknown.
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
        """Returns the attributes of the group."""
        return dict(self._attributes)

    def get_encoding(self) -> dict[str, Any]:
        """Returns the encoding of the group: its unlimited dimensions."""
        return {"unlimited_dims": set(self._group.unlimited)} if self._group.format in NETCDF else {}

    def get_dimensions(self) -> dict[str, int]:
        """Returns the dimensions with their sizes."""
        return {str(dim): size for v in self.get_variables().values() for dim, size in v.sizes.items()}

    def get_variables(self) -> dict[str, xr.Variable]:
        """Returns the variables of the group, and coordinates that a format describes without variables."""
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
    """Elements of an array, read on demand."""

    def __init__(self, array: Array, dtype: np.dtype[Any]) -> None:
        self._array = array
        self.shape = array.shape
        # With the sign of the file; the attribute `_Unsigned` has the meaning.
        self.dtype = dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> np.ndarray:
        elements: np.ndarray = indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.BASIC, self._read
        )
        return elements

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> np.ndarray:
        """Reads without blocking the event loop."""
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
    """Returns the type of the elements for xarray: that of the file, in the host's byte order."""
    if array._text is None:
        return _encoding.stored_dtype(array).newbyteorder("=")
    # Marks strings of any length, so that xarray does not search the values for them.
    vlen: np.dtype[Any] = create_vlen_dtype(str)  # type: ignore[no-untyped-call]
    return vlen if array.dtype.kind == "O" else array.dtype


def _dimension(array: Array, place: int, known: dict[str, tuple[int, Any]], has_own: bool) -> str:
    """Returns a name for an axis that is unique per size and coordinates, as xarray requires; in some formats axes that
    differ share a name. Coordinates are ignored if the format has them as variables (`has_own`)."""
    name, size = array.dims[place], array.shape[place]
    coordinates = _INDEX if has_own else _coordinates(array, place)
    names = chain([name, f"{name}_{size}"], (f"{name}_{size}_{n}" for n in count(2)))
    for candidate in names:
        known_size, known_coordinates = known.get(candidate, (size, _INDEX))
        both = [c for c in (coordinates, known_coordinates) if c != _INDEX]
        if size == known_size and (len(both) < 2 or both[0] == both[1]):
            known[candidate] = (size, both[0] if both else _INDEX)
            return candidate
    raise AssertionError("unreachable: the candidates are endless")


def _coordinates(array: Array, place: int) -> Any:
    return array._info["axes"][place]["coordinates"] if array._level == 0 else _INDEX


def _is_decoded_here(array: Array) -> bool:
    """True if Corridor decodes the array; integers without scaling stay integers, even if some values are missing."""
    if any(name in array._info["attributes"] for name in _CF_CODING):
        return False
    decoding = array._info["decoding"]
    return array.dtype.kind == "f" or (decoding["scale"], decoding["offset"]) != (1, 0)
