"""The xarray engine: ``xr.open_dataset("corridor://host/run42.nc", engine="corridor")``, lazy, for dask too."""

import warnings
from collections.abc import Iterable
from itertools import chain, count
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

import corridor

from ._array import Array

# Attributes by which xarray itself decodes; where the file has none of them, Corridor decodes.
_CF_CODING = ("scale_factor", "add_offset", "_FillValue", "missing_value")
# Formats whose files place a volume in the world by one map, which coordinates of its axes cannot say.
_WITH_MAP = ("NIfTI", "Analyze", "MGH", "NRRD")
# Coordinates of which nothing is known.
_INDEX = "index"


class CorridorBackend(BackendEntrypoint):
    """Opens what :func:`corridor.open` opens. Variables are read when their values are needed."""

    description = "Arrays that live elsewhere, through a Corridor server"
    url = "https://github.com/corridor-project/corridor"

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        concat_characters: bool = True,
        decode_coords: bool = True,
        use_cftime: bool | None = None,
        decode_timedelta: bool | None = None,
        group: str | None = None,
        level: int = 0,
        token: str | None = None,
        memory: str | None = None,
        rule: str = "auto",
        compression: str | None = None,
        link: str | None = None,
        controller: str | None = None,
    ) -> xr.Dataset:
        """As xarray's other engines. ``level``: a coarser resolution; ``group``: only arrays below this path.

        Variables of volumes that a file places in the world (NIfTI, Analyze, MGH, NRRD) have the attributes
        ``world_from_voxel``, the sixteen numbers of :attr:`corridor.Array.world_from_voxel` row by row, and ``world_units``.
        """
        opened = corridor.open(
            str(filename_or_obj),
            token=token,
            memory=memory,
            rule=rule,
            compression=compression,
            link=link,
            controller=controller,
        )
        dataset = opened.dataset if isinstance(opened, Array) else opened
        arrays = [opened] if isinstance(opened, Array) else list(dataset.values())
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        chosen = {name: a for name, a in _below(arrays, group).items() if name not in dropped}
        raw = _dataset({name: _at(a, level) for name, a in chosen.items()}, mask_and_scale)
        raw.attrs = _attributes_of(dataset.attrs, group)
        decoded = xr.decode_cf(
            raw,
            concat_characters=concat_characters,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            decode_coords=decode_coords,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )
        decoded.encoding["source"] = str(filename_or_obj).split("#", 1)[0]
        return decoded

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """True for ``corridor://``, ``ssh://``, ``await://`` and ``synthetic:``."""
        return isinstance(filename_or_obj, str) and filename_or_obj.startswith(
            ("corridor://", "ssh://", "await://", "synthetic:")
        )


class _Lazy(BackendArray):
    """An array's values, when they are asked for."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> np.ndarray:
        elements: np.ndarray = indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.BASIC, self.array.__getitem__
        )
        return elements


def _prefix(group: str | None) -> str:
    """What the names of all that lies in a group begin with."""
    path = (group or "").strip("/")
    return f"{path}/" if path else ""


def _below(arrays: list[Array], group: str | None) -> dict[str, Array]:
    """Arrays directly below a group, by their own name."""
    prefix = _prefix(group)
    inside = {a.name.strip("/"): a for a in arrays}
    found = {
        name.removeprefix(prefix): a
        for name, a in inside.items()
        if name.startswith(prefix) and "/" not in name.removeprefix(prefix)
    }
    if not found:
        groups = sorted({name.rpartition("/")[0] or "/" for name in inside})
        raise corridor.InvalidError(f"expected one of the groups {groups}, found {group or '/'!r}")
    return found


def _attributes_of(attributes: dict[str, Any], group: str | None) -> dict[str, Any]:
    """Those of one group: Corridor names those of other groups by their paths."""
    prefix = _prefix(group)
    own = {name.removeprefix(prefix): value for name, value in attributes.items() if name.startswith(prefix)}
    return {name: value for name, value in own.items() if "/" not in name}


def _at(array: Array, level: int) -> Array:
    """An array at the level asked for, if it has so many; a coordinate stays as it is."""
    return array.level(min(level, len(array.levels) - 1))


def _dataset(arrays: dict[str, Array], mask_and_scale: bool) -> xr.Dataset:
    known: dict[str, tuple[int, Any]] = {}
    variables: dict[str, xr.Variable] = {}
    for name, array in arrays.items():
        dims = tuple(_dimension(array, place, known) for place in range(array.ndim))
        variables[name] = _variable(array, dims, mask_and_scale)
        for place, dim in enumerate(dims):
            if dim not in arrays and dim not in variables and _has_coordinates(array, place):
                units = array._info["axes"][place]["units"]
                attrs = {"units": units} if units else {}
                variables[dim] = xr.Variable((dim,), array.coordinates(place), attrs)
    return xr.Dataset(variables)


def _dimension(array: Array, place: int, known: dict[str, tuple[int, Any]]) -> str:
    """A name for an axis: in some formats axes of several sizes, or of several coordinates, share one; in xarray a name
    has one of each."""
    name, size, coordinates = array.dims[place], array.shape[place], _coordinates(array, place)
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


def _has_coordinates(array: Array, place: int) -> bool:
    return bool(_coordinates(array, place) != _INDEX)


def _is_decoded_here(array: Array) -> bool:
    """Not integers that nothing scales: what only the format's library takes for missing would make doubles of them."""
    decoding = array._info["decoding"]
    return array.dtype.kind == "f" or (decoding["scale"], decoding["offset"]) != (1, 0)


def _variable(array: Array, dims: tuple[str, ...], mask_and_scale: bool) -> xr.Variable:
    attrs = array.attrs
    for name in _CF_CODING:
        # JSON has no NaN: it is said in words.
        if isinstance(attrs.get(name), str) and array.dtype.kind in "iuf":
            try:
                attrs[name] = np.array(attrs[name], dtype=array.dtype)[()]
            except ValueError:
                # An integer is never NaN: the attribute says nothing.
                warnings.warn(
                    f"`{array.name}`: {name} is {attrs[name]}, which no {array.dtype} is; it is left out", stacklevel=3
                )
                del attrs[name]
    if mask_and_scale and _is_decoded_here(array) and not any(name in attrs for name in _CF_CODING):
        array = array.decoded
    if array.units:
        attrs.setdefault("units", array.units)
    if array.dataset.format in _WITH_MAP:
        # A list, which every file format takes; a matrix again by `.reshape(4, 4)`.
        attrs["world_from_voxel"] = array.world_from_voxel.ravel()
        attrs["world_units"] = array.world_units
    encoding: dict[str, Any] = {"dtype": np.dtype(array._info["dtype"])}
    if array.chunks:
        encoding["chunksizes"] = array.chunks
        encoding["preferred_chunks"] = dict(zip(dims, array.chunks, strict=True))
    return xr.Variable(dims, indexing.LazilyIndexedArray(_Lazy(array)), attrs, encoding)
