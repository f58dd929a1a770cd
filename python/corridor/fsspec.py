"""fsspec's protocol ``corridor``: every data set as a Zarr v3 store, for whatever opens files by URL.

>>> import fsspec
>>> fsspec.get_filesystem_class("corridor").__name__
'CorridorFileSystem'

``corridor://HOST[:PORT]`` is a folder of data sets, each a folder of ``zarr.json`` documents and chunks, as the server itself
answers over HTTP. Of a range of bytes only the elements that hold it are fetched. The server's identity and its token are those of the URL's fragment, or of ``token=`` and ``fingerprint=`` in the
storage options; servers of the same user on this machine need neither. To read parts of arrays, :func:`corridor.open` is faster: it
fetches elements, not chunks.
"""

import asyncio
from functools import lru_cache
from typing import Any

from fsspec.asyn import AsyncFileSystem  # type: ignore[import-untyped]
from fsspec.spec import AbstractBufferedFile  # type: ignore[import-untyped]

from . import _native
from ._dataset import Dataset
from ._errors import InvalidError
from ._futures import begun

_SCHEME = "corridor://"


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
            below = f"{host}/{name}/{key}".rstrip("/")
            native = (await self._dataset(host, name))._connection
            found = [_entry(f"{below}/{n}", *what) for n, what in native.zarr_list(key)]
            if not found:
                found = [await self._info(path)]
        return found if detail else [entry["name"] for entry in found]

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        host, name, key = _split(self._strip_protocol(path))
        if not name:
            return _folder(host)
        found = (await self._dataset(host, name))._connection.zarr_look(key)
        if found is None:
            raise FileNotFoundError(f"expected a document, a chunk or a folder, found {key!r} of {name!r}")
        return _entry("/".join(filter(None, (host, name, key))), *found)

    async def _cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        host, name, key = _split(self._strip_protocol(path))
        native = (await self._dataset(host, name))._connection
        future = begun(lambda done: native.begin_zarr(key, _range(native, key, start, end), done), _first)
        raw = await asyncio.wrap_future(future)
        if raw is None:
            raise FileNotFoundError(f"expected a document or a chunk, found {key!r} of {name!r}")
        return raw

    def _open(self, path: str, mode: str = "rb", **options: Any) -> "CorridorFile":
        if mode != "rb":
            raise InvalidError(f"expected the mode 'rb': data sets are read only, found {mode!r}")
        return CorridorFile(self, path, mode, **options)

    async def _dataset(self, host: str, name: str) -> Dataset:
        return await asyncio.to_thread(_opened, self._url(host, name), self._token)

    def _url(self, host: str, name: str) -> str:
        fingerprint = f"#fp={self._fingerprint}" if self._fingerprint else ""
        return f"{_SCHEME}{host}/{name}{fingerprint}"


class CorridorFile(AbstractBufferedFile):  # type: ignore[misc]
    """A document or a chunk that is open: what is read of it is fetched, and some of what follows (``cache_type``)."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        raw: bytes = self.fs.cat_file(self.path, start, end)
        return raw


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


def _entry(path: str, is_folder: bool, size: int) -> dict[str, Any]:
    return _folder(path) if is_folder else {"name": path, "size": size, "type": "file"}


def _range(
    native: _native.Connection, key: str, start: int | None, end: int | None
) -> tuple[int, int] | None:
    """Bytes as fsspec names them, counted from the end too; ``None`` for all."""
    found = None if (start, end) == (None, None) else native.zarr_look(key)
    if found is None:
        return None
    first, last, _ = slice(start, end).indices(found[1])
    return first, max(first, last)


def _first(told: tuple[bytes | None]) -> bytes | None:
    return told[0]
