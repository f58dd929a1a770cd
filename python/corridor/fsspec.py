"""fsspec's protocol ``corridor``: every data set as a Zarr v3 store, for whatever opens files by URL.

>>> import fsspec
>>> fsspec.get_filesystem_class("corridor").__name__
'CorridorFileSystem'

``corridor://HOST[:PORT]`` is a folder of data sets, each a folder of ``zarr.json`` documents and chunks, as the server itself
answers over HTTP. The server's identity and its token are those of the URL's fragment, or of ``token=`` and ``fingerprint=`` in the
storage options; servers of the same user on this machine need neither. To read parts of arrays, :func:`corridor.open` is faster: it
fetches elements, not chunks.
"""

import asyncio
import io
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from fsspec.asyn import AsyncFileSystem  # type: ignore[import-untyped]

from . import _native
from ._dataset import Dataset
from ._description import ArrayInfo
from ._errors import InvalidError
from ._futures import begun

_SCHEME = "corridor://"
_DOCUMENT = "zarr.json"
_CHUNKS = "c"


class CorridorFileSystem(AsyncFileSystem):  # type: ignore[misc]
    """The data sets of Corridor servers as read-only files.

    >>> fs = CorridorFileSystem(token="t")
    >>> fs._strip_protocol("corridor://host:9/run.h5/rho/zarr.json#token=t")
    'host:9/run.h5/rho/zarr.json'
    """

    protocol = "corridor"
    root_marker = ""

    def __init__(
        self, *, token: str | None = None, fingerprint: str | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self._token = token
        self._fingerprint = fingerprint

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(p) for p in path]
        text = str(path).split("#", 1)[0]
        return text.removeprefix(_SCHEME).strip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, str]:
        _, _, fragment = path.partition("#")
        parts = dict(part.split("=", 1) for part in fragment.split("&") if "=" in part)
        names = {"token": "token", "fp": "fingerprint"}
        return {name: parts[key] for key, name in names.items() if key in parts}

    async def _ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        host, name, key = _split(self._strip_protocol(path))
        if not name:
            names = await asyncio.to_thread(_native.list_datasets, self._url(host, ""), self._token)
            found = [_folder(f"{host}/{n}") for n in names]
        else:
            dataset = await self._dataset(host, name)
            found = [await self._entry(host, name, dataset, key_) for key_ in _below(dataset, key)]
            if not found:
                found = [await self._info(path)]
        return found if detail else [entry["name"] for entry in found]

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        host, name, key = _split(self._strip_protocol(path))
        if not name:
            return _folder(host)
        dataset = await self._dataset(host, name)
        return await self._entry(host, name, dataset, key)

    async def _cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        host, name, key = _split(self._strip_protocol(path))
        dataset = await self._dataset(host, name)
        raw = await self._bytes(dataset, key)
        if raw is None:
            raise FileNotFoundError(f"expected a document or a chunk, found {key!r} of {name!r}")
        return raw[start:end]

    def _open(self, path: str, mode: str = "rb", **_: Any) -> io.BytesIO:
        if mode != "rb":
            raise InvalidError(f"expected the mode 'rb': data sets are read only, found {mode!r}")
        return io.BytesIO(self.cat_file(path))

    async def _bytes(self, dataset: Dataset, key: str) -> bytes | None:
        native = dataset._connection

        def finished(told: tuple[bytes | None]) -> bytes | None:
            return told[0]

        return await asyncio.wrap_future(
            begun(lambda done: native.begin_zarr(key, done), finished)
        )

    async def _entry(self, host: str, name: str, dataset: Dataset, key: str) -> dict[str, Any]:
        path = "/".join(filter(None, (host, name, key)))
        if key and key.rpartition("/")[2] == _DOCUMENT:
            raw = await self._bytes(dataset, key)
            if raw is not None:
                return {"name": path, "size": len(raw), "type": "file"}
        chunk = _chunk_bytes(dataset, key)
        if chunk is not None:
            return {"name": path, "size": chunk, "type": "file"}
        if any(True for _ in _below(dataset, key)):
            return _folder(path)
        raise FileNotFoundError(f"expected a document, a chunk or a folder, found {key!r} of {name!r}")

    async def _dataset(self, host: str, name: str) -> Dataset:
        return await asyncio.to_thread(_opened, self._url(host, name), self._token)

    def _url(self, host: str, name: str) -> str:
        fingerprint = f"#fp={self._fingerprint}" if self._fingerprint else ""
        return f"{_SCHEME}{host}/{name}{fingerprint}"


@lru_cache(maxsize=32)
def _opened(url: str, token: str | None) -> Dataset:
    return Dataset(_native.open([url], token), ((url,), token, None, "auto", None))


def _split(path: str) -> tuple[str, str, str]:
    """Host, data set and key.

    >>> _split("host:9/run.h5/rho/c/0/1")
    ('host:9', 'run.h5', 'rho/c/0/1')
    """
    host, _, rest = path.partition("/")
    name, _, key = rest.partition("/")
    return host, name, key


def _folder(path: str) -> dict[str, Any]:
    return {"name": path, "size": 0, "type": "directory"}


def _arrays(dataset: Dataset) -> dict[str, ArrayInfo]:
    """Arrays by their path."""
    return {info["name"].strip("/"): info for info in dataset._description["arrays"]}


def _grid(info: ArrayInfo) -> list[int]:
    """Chunks per axis."""
    level = info["levels"][0]
    return [-(-n // b) for n, b in zip(level["shape"], level["block"], strict=True)]


def _chunk_of(dataset: Dataset, key: str) -> tuple[ArrayInfo, list[int]] | None:
    """The array and the first places of a key such as ``rho/c/0/1``, if that is what it is."""
    parts = key.split("/")
    for at, part in enumerate(parts):
        info = _arrays(dataset).get("/".join(parts[:at])) if part == _CHUNKS else None
        if info is None:
            continue
        places, grid = parts[at + 1 :], _grid(info)
        if len(places) <= len(grid) and all(
            p.isdecimal() and int(p) < n for p, n in zip(places, grid, strict=False)
        ):
            return info, [int(p) for p in places]
    return None


def _chunk_bytes(dataset: Dataset, key: str) -> int | None:
    """Size of a chunk; ``None`` if the key names none. A chunk at the edge is as large as any other."""
    found = _chunk_of(dataset, key)
    if found is None or len(found[1]) != len(found[0]["levels"][0]["shape"]):
        return None
    info = found[0]
    return math.prod(info["levels"][0]["block"]) * np.dtype(info["dtype"]).itemsize


def _below(dataset: Dataset, key: str) -> Iterator[str]:
    """Keys directly below a group, an array, or some of an array's chunks."""
    below = f"{key}/" if key else ""
    arrays = _arrays(dataset)
    chunks = _chunk_of(dataset, key)
    if chunks is not None:
        grid = _grid(chunks[0])
        if len(chunks[1]) < len(grid):
            yield from (f"{below}{place}" for place in range(grid[len(chunks[1])]))
        return
    inside = {name.removeprefix(below).split("/")[0] for name in arrays if name.startswith(below)}
    names = sorted(inside - {""})
    if names or key in arrays:
        yield f"{below}{_DOCUMENT}"
    if key in arrays:
        yield f"{below}{_CHUNKS}"
    yield from (f"{below}{name}" for name in names)
