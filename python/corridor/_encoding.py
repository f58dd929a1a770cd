"""``encoding`` of variables, equal to that of xarray's engines for the formats: a variable written with it has the same
types, chunks and codecs."""

import base64
import json
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ._array import Array
from ._description import Filter, Storage

# Formats whose variables, coordinates and CF attributes are those of xarray's own engines.
NETCDF = frozenset({"NetCDF-3", "NetCDF-4", "HDF5"})
ZARR = frozenset({"Zarr", "OME-Zarr"})
# Names in netCDF4 of the compressors of blosc, by their numbers in HDF5's filter.
_BLOSC = ("blosc_lz", "blosc_lz4", "blosc_lz4hc", "blosc_snappy", "blosc_zlib", "blosc_zstd")


def storage_of(array: Array) -> Storage:
    """Returns the storage of an array in its file, from the description; empty if unknown."""
    return array._info.get("storage", {})


def stored_dtype(array: Array) -> np.dtype[Any]:
    """Returns the type of the elements in the file; a description has the type after `_Unsigned` is applied."""
    stored, described = storage_of(array).get("dtype"), np.dtype(array._info["dtype"])
    if stored is not None:
        return np.dtype(stored)
    if "groups" not in array.dataset._description and described.kind == "u":
        # Older servers do not describe the storage; the attribute shows the type.
        if array._info["attributes"].get("_Unsigned") == "true":
            return np.dtype(described.str.replace("u", "i"))
    return described


def encoding_of(array: Array, dims: tuple[str, ...], format: str, source: str) -> dict[str, Any]:
    """Returns the encoding of a variable with these dimensions."""
    if format in ZARR and (document := storage_of(array).get("zarr")) is not None:
        return _zarr_encoding(array, dims, document)
    encoding: dict[str, Any] = {"dtype": _encoded_dtype(array, format)}
    if format in NETCDF and format != "NetCDF-3":
        encoding |= _netcdf_filters(storage_of(array).get("filters", []))
        encoding |= {"contiguous": array.chunks is None, "chunksizes": None}
    if array.chunks is not None:
        encoding["chunksizes"] = array.chunks
        encoding["preferred_chunks"] = dict(zip(dims, array.chunks, strict=True))
    return encoding | {"source": source, "original_shape": array.shape}


def _encoded_dtype(array: Array, format: str) -> Any:
    """Returns the type for the encoding; ``str`` for text of any length, as in netCDF4."""
    if array._text is not None:
        return str if array.dtype.kind == "O" else array.dtype
    dtype = stored_dtype(array)
    return dtype.newbyteorder("=") if format == "NetCDF-3" else dtype


def fit_attributes(attrs: dict[str, Any], encoding: dict[str, Any], dtype: np.dtype[Any], format: str) -> None:
    """Moves and converts attributes of a variable as the engine for its format does."""
    if format in ZARR:
        if "serializer" not in encoding and (fill := encoding.pop("fill_value", None)) is not None:
            # In version 2 the fill value of the store marks missing values.
            attrs["_FillValue"] = fill
        elif "_FillValue" in attrs:
            attrs["_FillValue"] = _fill_value(attrs["_FillValue"], dtype)
        return
    if dtype.kind == "S" and "_FillValue" in attrs:
        attrs["_FillValue"] = np.bytes_(attrs["_FillValue"])
    if "least_significant_digit" in attrs:
        encoding["least_significant_digit"] = attrs.pop("least_significant_digit")


def _fill_value(encoded: Any, dtype: np.dtype[Any]) -> Any:
    """Decodes a fill value as xarray writes it into attributes of Zarr, where floats are strings.

    >>> _fill_value("AAAAAAAA+H8=", np.dtype("f4")), _fill_value(7, np.dtype("i2"))
    (nan, 7)
    """
    try:
        if dtype.kind == "f" and isinstance(encoded, str):
            return struct.unpack("<d", base64.standard_b64decode(encoded))[0]
        if dtype.kind == "c" and isinstance(encoded, (list, tuple)):
            return complex(*(_fill_value(part, np.dtype("f8")) for part in encoded))
        if dtype.kind == "S" and isinstance(encoded, str):
            return base64.standard_b64decode(encoded)
    except (ValueError, struct.error, TypeError):
        pass
    return np.asarray(encoded).item()


def _netcdf_filters(filters: list[Filter]) -> dict[str, Any]:
    """Returns filters in the terms of netCDF4."""
    words: dict[str, Any] = {
        "zlib": False,
        "szip": False,
        "zstd": False,
        "bzip2": False,
        "blosc": False,
        "shuffle": False,
        "complevel": 0,
        "fletcher32": False,
    }
    for packed in filters:
        name, parameters = packed["name"], packed.get("parameters", [])
        if name in ("shuffle", "fletcher32"):
            words[name] = True
        elif name == "szip":
            coding = "nn" if parameters and parameters[0] & 32 else "ec"
            words["szip"] = {"coding": coding, "pixels_per_block": parameters[1] if len(parameters) > 1 else 0}
        elif name == "blosc" and len(parameters) >= 7:
            kind = parameters[6]
            compressor = _BLOSC[kind] if kind < len(_BLOSC) else "blosc_lz"
            words["blosc"] = {"compressor": compressor, "shuffle": parameters[5]}
            words["complevel"] = parameters[4]
        elif name in ("deflate", "zstd", "bzip2"):
            words["zlib" if name == "deflate" else name] = True
            words["complevel"] = parameters[0] if parameters else 0
    return words


def _zarr_encoding(array: Array, dims: tuple[str, ...], document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the encoding in the terms of xarray's engine for Zarr; with codecs only if zarr-python is installed."""
    chunks = array.chunks if array.chunks is not None else array.shape
    encoding: dict[str, Any] = {"chunks": chunks, "preferred_chunks": dict(zip(dims, chunks, strict=True))}
    text = json.dumps(document, sort_keys=True)
    codecs = _codecs(text, str(np.dtype(array._info["dtype"]).name), np.dtype(array._info["dtype"]).str, array.ndim)
    encoding |= codecs or {}
    return encoding


@lru_cache(maxsize=256)
def _codecs(text: str, name: str, typestr: str, axes: int) -> dict[str, Any] | None:
    """Returns the codecs of a Zarr document as objects of zarr-python; equal documents share them."""
    try:
        import zarr
        from zarr.core.buffer import default_buffer_prototype
        from zarr.storage import MemoryStore
    except ImportError:
        return None
    document = json.loads(text)
    is_v3 = document.get("zarr_format") == 3
    # Codecs do not depend on shape and names.
    if is_v3:
        chunk = document["chunk_grid"]["configuration"]["chunk_shape"]
        key, whole = "zarr.json", document | {
            "node_type": "array",
            "shape": chunk,
            "data_type": document.get("data_type", name),
            "chunk_key_encoding": {"name": "default"},
            "attributes": {},
        }
    else:
        key, whole = ".zarray", {"dtype": typestr, "shape": [1] * axes, "chunks": [1] * axes} | document
    encoded = json.dumps(whole).encode()
    store = MemoryStore({key: default_buffer_prototype().buffer.from_bytes(encoded)})
    try:
        made: Any = zarr.open_array(store, mode="r", zarr_format=3 if is_v3 else 2)
    except Exception:
        # Codecs unknown to this installation cannot be written by it either.
        return None
    words = {
        "compressors": made.compressors,
        "filters": made.filters,
        "shards": made.shards,
        "fill_value": made.fill_value,
    }
    if is_v3:
        words["serializer"] = made.serializer
    return words
