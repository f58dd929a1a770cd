"""Text arrays: bytes along one more axis in descriptions and on the network; here elements of the type that the library
of the file's format returns."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

# `characters`: each byte is an element, along an axis that the file has; `bytes`: texts of one length, as bytes; `words`:
# texts of one length, as characters; `objects`: texts of any length.
Kind = Literal["characters", "bytes", "words", "objects"]
# Name of the axis of bytes, which is not an axis of the file.
_NO_AXIS = "bytes"


class Text(NamedTuple):
    """Type of the elements of a text array."""

    kind: Kind
    size_bytes: int
    """Size of the longest text in UTF-8."""
    dtype: np.dtype[Any]

    @property
    def hides_axis(self) -> bool:
        """True if the axis of bytes is not an axis of the file."""
        return self.kind != "characters"

    def elements(self, raw: np.ndarray) -> np.ndarray:
        """Converts bytes along the last axis to strings."""
        if self.kind == "characters":
            return raw.view("S1")
        if self.size_bytes == 0:
            return np.zeros(raw.shape[:-1], self.dtype) if self.kind != "objects" else np.full(raw.shape[:-1], "", object)
        packed = np.ascontiguousarray(raw).view(f"S{self.size_bytes}")[..., 0]
        if self.kind == "bytes":
            return packed.astype(self.dtype, copy=False)
        # Bytes that are not UTF-8 are kept as surrogates, which can be encoded again.
        texts = [one.decode("utf-8", "surrogateescape") for one in packed.ravel().tolist()]
        return np.array(texts, dtype=self.dtype).reshape(packed.shape)


def text_of(info: Mapping[str, Any]) -> Text | None:
    """Returns the element type of a text array; ``None`` for other arrays."""
    if info.get("meaning") != "text":
        return None
    size_bytes = info["levels"][0]["shape"][-1]
    storage = info.get("storage", {})
    dtype = _dtype_of_zarr(storage.get("zarr") or {})
    if dtype is None and storage.get("text") == "fixed":
        dtype = np.dtype(f"S{max(size_bytes, 1)}")
    if dtype is None and (storage.get("text") == "characters" or info["axes"][-1]["name"] != _NO_AXIS):
        return Text("characters", size_bytes, np.dtype("S1"))
    if dtype is None or dtype.kind not in "SU":
        return Text("objects", size_bytes, np.dtype(object))
    return Text("bytes" if dtype.kind == "S" else "words", size_bytes, dtype)


def _dtype_of_zarr(document: Mapping[str, Any]) -> np.dtype[Any] | None:
    """Returns the string type of fixed length in a Zarr document; ``None`` for other types.

    >>> _dtype_of_zarr({"data_type": {"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}}})
    dtype('<U3')
    >>> _dtype_of_zarr({"dtype": "|S4"})
    dtype('S4')
    """
    dtype = document.get("data_type", document.get("dtype"))
    if isinstance(dtype, str):
        return np.dtype(dtype).newbyteorder("=") if dtype.lstrip("<>|=")[:1] in ("S", "U") else None
    if not isinstance(dtype, Mapping):
        return None
    name, length = dtype.get("name"), dtype.get("configuration", {}).get("length_bytes")
    if not isinstance(length, int) or length < 1:
        return None
    if name in ("fixed_length_utf32", "fixed_length_ucs4"):
        return np.dtype(f"U{length // 4}")
    return np.dtype(f"S{length}") if name in ("null_terminated_bytes", "raw_bytes") else None
