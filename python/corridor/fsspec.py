"""fsspec's protocol ``corridor``: every data set as a Zarr v3 store, for programs that open files by URL.

>>> import fsspec
>>> fsspec.get_filesystem_class("corridor").__name__
'CorridorFileSystem'

``corridor://HOST[:PORT]`` is a folder of data sets, each a folder of ``zarr.json`` documents and chunks, the same as over
HTTP. For a range of bytes only the elements that contain it are fetched. The server's fingerprint and token come from the
URL's fragment, or from ``token=`` and ``fingerprint=`` in the storage options; servers of the same user on this machine need
neither. Files opened a second or more after the data changed have the new data; files that were open raise an error. To
read parts of arrays, :func:`corridor.open` is faster: it fetches elements, not chunks.
"""

import asyncio
import os
from collections import OrderedDict
from concurrent.futures import Future
from typing import Any

from fsspec.asyn import AsyncFileSystem  # type: ignore[import-untyped]
from fsspec.callbacks import DEFAULT_CALLBACK  # type: ignore[import-untyped]
from fsspec.spec import AbstractBufferedFile  # type: ignore[import-untyped]

from . import _connection_cache, _native
from ._errors import InvalidError, NotFoundError
from ._futures import start

_SCHEME = "corridor://"
# Bytes per request of a download.
_DOWNLOAD_BYTES = 16 << 20
# Maximum number of data sets whose served states are remembered.
_MAX_REMEMBERED = 1024
# Name of the document that describes a group or an array.
_DOCUMENT = "zarr.json"
# Characters in names of data sets that have another meaning in URLs.
_QUOTED = str.maketrans({"%": "%25", "#": "%23", "?": "%3F", "/": "%2F"})


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
        """``fragment`` is the part of a URL after ``#``; ``token`` overrides a token in it."""
        super().__init__(**options)
        self._token = token
        self._fragment = fragment or (f"fp={fingerprint}" if fingerprint else "")
        self._served_states: OrderedDict[str, set[_connection_cache.State]] = OrderedDict()

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
            found = [_folder(f"{host}/{n.translate(_QUOTED)}") for n in await self._names(host)]
        else:
            below = f"{host}/{name}/{key}".rstrip("/")
            native = await self._connection(host, name, path)
            found = [_entry(native, f"{below}/{n}", *what) for n, what in native.zarr_list(key)]
            if not found:
                found = [await self._info(path)]
        return found if detail else [entry["name"] for entry in found]

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        host, name, key = _split(self._strip_protocol(path))
        if not name:
            if host:
                await self._names(host)
            return _folder(host)
        native = await self._connection(host, name, path)
        found = native.zarr_entry(key)
        if found is None:
            raise _missing(path)
        return _entry(native, "/".join(filter(None, (host, name, key))), *found)

    async def _cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        host, name, key = _split(self._strip_protocol(path))
        native = await self._connection(host, name, path)
        try:
            raw = await asyncio.wrap_future(_start_read(native, key, _range(native, key, start, end)))
        except NotFoundError as error:
            raise self._not_found(f"{host}/{name}", native, path, error) from None
        if raw is None:
            raise _missing(path)
        if key.endswith(_DOCUMENT):
            self._remember(f"{host}/{name}", native.state)
        return raw

    async def _get_file(
        self,
        rpath: str,
        lpath: str | os.PathLike[str],
        callback: Any = DEFAULT_CALLBACK,
        **_: Any,
    ) -> None:
        """Copies one document or chunk, of one state of the data, to a local file; creates a folder for a folder."""
        host, name, key = _split(self._strip_protocol(rpath))
        native = await self._connection(host, name, rpath) if name else None
        found = native.zarr_entry(key) if native is not None else (True, 0)
        if found is None:
            raise _missing(rpath)
        is_folder, size = found
        if native is None or is_folder:
            os.makedirs(lpath, exist_ok=True)
            return
        callback.set_size(size)
        os.makedirs(os.path.dirname(os.path.abspath(lpath)), exist_ok=True)
        # A local file that cannot be opened for writing stays unchanged.
        with open(lpath, "wb") as file:
            try:
                for first in range(0, size, _DOWNLOAD_BYTES):
                    part = first, min(first + _DOWNLOAD_BYTES, size)
                    raw = await asyncio.wrap_future(_start_read(native, key, part))
                    if raw is None:
                        raise _missing(rpath)
                    await asyncio.to_thread(file.write, raw)
                    callback.relative_update(len(raw))
            except BaseException:
                # Incomplete files are removed.
                os.unlink(lpath)
                raise

    def invalidate_cache(self, path: str | None = None) -> None:
        """Reopen the data sets of a path's host, or of all hosts, for files that are opened later."""
        host = _split(self._strip_protocol(path or ""))[0]
        _connection_cache.invalidate(f"{_SCHEME}{host}")
        super().invalidate_cache(path)

    def _open(self, path: str, mode: str = "rb", **options: Any) -> "CorridorFile":
        if mode != "rb":
            raise InvalidError(f"data sets are read only: open them with mode 'rb' instead of {mode!r}")
        return CorridorFile(self, path, mode, **options)

    async def _names(self, host: str) -> list[str]:
        """Returns the names of a server's data sets."""
        if not host:
            raise InvalidError("servers cannot be listed: give a host, `corridor://HOST`")
        names: list[str] = await asyncio.to_thread(_native.list_datasets, self._url(host, ""), self._token)
        return names

    async def _connection(self, host: str, name: str, path: str) -> _native.Connection:
        return await asyncio.to_thread(self._connection_now, host, name, path)

    def _connection_now(self, host: str, name: str, path: str) -> _native.Connection:
        opened_with = ((self._url(host, name),), self._token, None, "auto", (None, None, None, None))
        try:
            return _connection_cache.get(opened_with, must_be_current=True)
        except NotFoundError as error:
            raise self._not_found(f"{host}/{name}", None, path, error) from None

    def _remember(self, dataset: str, state: _connection_cache.State) -> None:
        """Remembers the state of a served document; two states per data set are enough."""
        states = self._served_states.setdefault(dataset, set())
        if len(states) < 2:
            states.add(state)
        self._served_states.move_to_end(dataset)
        if len(self._served_states) > _MAX_REMEMBERED:
            self._served_states.popitem(last=False)

    def _not_found(
        self, dataset: str, native: _native.Connection | None, path: str, error: NotFoundError
    ) -> Exception:
        """Returns the exception for a missing key. Zarr reads a missing chunk as fill values; so if documents of other states
        of the data were served, to which the chunk may belong, it is not a ``FileNotFoundError``."""
        known = self._served_states.get(dataset, set())
        is_of_another_state = bool(known - ({native.state} if native is not None else set()))
        is_document = path.split("#", 1)[0].rstrip("/").endswith(_DOCUMENT)
        return error if is_of_another_state and not is_document else _missing(path)

    def _url(self, host: str, name: str) -> str:
        fragment = f"#{self._fragment}" if self._fragment else ""
        return f"{_SCHEME}{host}/{name}{fragment}"


class CorridorFile(AbstractBufferedFile):  # type: ignore[misc]
    """An open document or chunk: reads fetch what is needed, and some bytes ahead (``cache_type``).

    All bytes are of one state of the data: if the data change, reading raises :class:`corridor.StaleError`.
    """

    def __init__(self, fs: CorridorFileSystem, path: str, mode: str = "rb", **options: Any) -> None:
        host, name, self._key = _split(path)
        self._native = fs._connection_now(host, name, path)
        found = self._native.zarr_entry(self._key)
        if found is None:
            raise _missing(path)
        is_folder, size = found
        if is_folder:
            raise IsADirectoryError(f"{path!r} is a folder, not a document or chunk")
        super().__init__(fs, path, mode, **options | {"size": size})

    def _fetch_range(self, start: int, end: int) -> bytes | None:
        part = _range(self._native, self._key, start, end)
        return _start_read(self._native, self._key, part).result()


def _split(path: str) -> tuple[str, str, str]:
    """Splits a path into host, data set and key.

    >>> _split("host:9/run.h5/rho/c/0/1")
    ('host:9', 'run.h5', 'rho/c/0/1')
    """
    host, _, rest = path.partition("/")
    name, _, key = rest.partition("/")
    return host, name, key


def _folder(path: str) -> dict[str, Any]:
    return {"name": path, "size": 0, "type": "directory"}


def _entry(native: _native.Connection, path: str, is_folder: bool, size: int) -> dict[str, Any]:
    if is_folder:
        return _folder(path)
    # Caches detect by the tag that the file has changed.
    tag = "-".join(map(str, native.state))
    return {"name": path, "size": size, "type": "file", "ETag": tag}


def _range(
    native: _native.Connection, key: str, start: int | None, end: int | None
) -> tuple[int, int] | None:
    """Converts a range of fsspec, possibly negative, to first and last byte; ``None`` for all bytes."""
    found = None if (start, end) == (None, None) else native.zarr_entry(key)
    if found is None:
        return None
    first, last, _ = slice(start, end).indices(found[1])
    return first, max(first, last)


def _start_read(
    native: _native.Connection, key: str, part: tuple[int, int] | None
) -> "Future[bytes | None]":
    return start(lambda done: native.begin_zarr(key, part, done), _first)


def _first(answer: tuple[bytes | None]) -> bytes | None:
    return answer[0]


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(f"no document, chunk or folder {path!r}")
