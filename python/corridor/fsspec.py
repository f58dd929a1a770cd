"""fsspec's protocol ``corridor``: every data set as a Zarr v3 store, for whatever opens files by URL.

>>> import fsspec
>>> fsspec.get_filesystem_class("corridor").__name__
'CorridorFileSystem'

``corridor://HOST[:PORT]`` is a folder of data sets, each a folder of ``zarr.json`` documents and chunks, as the server itself
answers over HTTP. Of a range of bytes only the elements that hold it are fetched. The server's identity and its token are those of the URL's fragment, or of ``token=`` and ``fingerprint=`` in the
storage options; servers of the same user on this machine need neither. Data that changed are seen within a second, by files that are opened
then; one that is open says that it is stale. To read parts of arrays, :func:`corridor.open` is faster: it
fetches elements, not chunks.
"""

import asyncio
from concurrent.futures import Future
from typing import Any

from fsspec.asyn import AsyncFileSystem  # type: ignore[import-untyped]
from fsspec.spec import AbstractBufferedFile  # type: ignore[import-untyped]

from . import _kept, _native
from ._errors import InvalidError
from ._futures import begun

_SCHEME = "corridor://"
# What means something else in a URL than in the name of a data set.
_QUOTED = str.maketrans({"%": "%25", "#": "%23", "?": "%3F"})


class CorridorFileSystem(AsyncFileSystem):  # type: ignore[misc]
    """The data sets of Corridor servers as read-only files.

    >>> fs = CorridorFileSystem(token="t")
    >>> fs._strip_protocol("corridor://host:9/run.h5/rho/zarr.json#token=t")
    'host:9/run.h5/rho/zarr.json'
    """

    protocol = "corridor"
    root_marker = ""

    def __init__(
        self,
        *,
        token: str | None = None,
        fingerprint: str | None = None,
        fragment: str = "",
        **options: Any,
    ) -> None:
        """``fragment`` is what a URL says behind ``#``; ``token`` counts before it."""
        super().__init__(**options)
        self._token = token
        self._fragment = fragment or (f"fp={fingerprint}" if fingerprint else "")

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(p) for p in path]
        text = str(path).split("#", 1)[0]
        return text.removeprefix(_SCHEME).strip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, str]:
        _, _, fragment = path.partition("#")
        return {"fragment": fragment} if fragment else {}

    async def _ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        host, name, key = _split(self._strip_protocol(path))
        if not name:
            names = await asyncio.to_thread(_native.list_datasets, self._url(host, ""), self._token)
            found = [_folder(f"{host}/{n.translate(_QUOTED)}") for n in names]
        else:
            below = f"{host}/{name}/{key}".rstrip("/")
            native = await self._connection(host, name)
            found = [_entry(f"{below}/{n}", *what) for n, what in native.zarr_list(key)]
            if not found:
                found = [await self._info(path)]
        return found if detail else [entry["name"] for entry in found]

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        host, name, key = _split(self._strip_protocol(path))
        if not name:
            return _folder(host)
        found = (await self._connection(host, name)).zarr_look(key)
        if found is None:
            raise _missing(path)
        return _entry("/".join(filter(None, (host, name, key))), *found)

    async def _cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        host, name, key = _split(self._strip_protocol(path))
        native = await self._connection(host, name)
        raw = await asyncio.wrap_future(_begun(native, key, _range(native, key, start, end)))
        if raw is None:
            raise _missing(path)
        return raw

    def invalidate_cache(self, path: str | None = None) -> None:
        """Open the data sets of the host of a path anew, or those of all hosts, for files that are opened later."""
        host = _split(self._strip_protocol(path or ""))[0]
        _kept.forget(f"{_SCHEME}{host}")
        super().invalidate_cache(path)

    def _open(self, path: str, mode: str = "rb", **options: Any) -> "CorridorFile":
        if mode != "rb":
            raise InvalidError(f"expected the mode 'rb': data sets are read only, found {mode!r}")
        return CorridorFile(self, path, mode, **options)

    async def _connection(self, host: str, name: str) -> _native.Connection:
        return await asyncio.to_thread(self._connection_now, host, name)

    def _connection_now(self, host: str, name: str) -> _native.Connection:
        opened_with = ((self._url(host, name),), self._token, None, "auto", (None, None, None, None))
        return _kept.connection(opened_with, must_be_current=True)

    def _url(self, host: str, name: str) -> str:
        fragment = f"#{self._fragment}" if self._fragment else ""
        return f"{_SCHEME}{host}/{name}{fragment}"


class CorridorFile(AbstractBufferedFile):  # type: ignore[misc]
    """A document or a chunk that is open: what is read of it is fetched, and some of what follows (``cache_type``).

    All of it is of one state of the data: where they changed meanwhile, reading raises :class:`corridor.StaleError`.
    """

    def __init__(self, fs: CorridorFileSystem, path: str, mode: str = "rb", **options: Any) -> None:
        host, name, self._key = _split(path)
        self._native = fs._connection_now(host, name)
        found = self._native.zarr_look(self._key)
        if found is None:
            raise _missing(path)
        is_folder, size = found
        if is_folder:
            raise IsADirectoryError(f"expected a document or a chunk, found the folder {path!r}")
        super().__init__(fs, path, mode, **options | {"size": size})

    def _fetch_range(self, start: int, end: int) -> bytes | None:
        part = _range(self._native, self._key, start, end)
        return _begun(self._native, self._key, part).result()


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


def _begun(
    native: _native.Connection, key: str, part: tuple[int, int] | None
) -> "Future[bytes | None]":
    return begun(lambda done: native.begin_zarr(key, part, done), _first)


def _first(told: tuple[bytes | None]) -> bytes | None:
    return told[0]


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(f"expected a document, a chunk or a folder, found {path!r}")
