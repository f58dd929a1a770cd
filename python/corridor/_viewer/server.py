"""Viewing nodes of this process, each shared by all viewers of one location."""

import atexit
import base64
import json
import os
import threading
import warnings
import weakref
from collections.abc import Mapping
from typing import Any

from .. import _native, _opening
from .._array import Array
from .._dataset import Dataset
from .._errors import Error, InvalidError
from .._indexing import Key
from .._picture import _json
from . import png
from .objects import viewed
from .proxy import free_port, public_address

# Memory of a viewing node, unless the caller sets it.
DEFAULT_MEMORY = "1GiB"
# Maximum number of viewing nodes; beyond it the oldest one is closed, as cells of a notebook are run again and again.
MAX_SERVERS = 16
# Size of the picture in a saved notebook, pixels.
POSTER_SIZE = (480, 320)
# Longest wait for that picture.
POSTER_SECS = 10.0

_View = dict[str, Any]

_lock = threading.RLock()
# Open nodes, the oldest first.
_servers: "list[weakref.ref[Server]]" = []
_by_location: "weakref.WeakValueDictionary[tuple[Any, ...], Server]" = weakref.WeakValueDictionary()


class Server:
    """A viewing node on loopback, with the data set that it shows. It ends when it is closed or no longer used."""

    def __init__(
        self,
        dataset: Dataset,
        memory: str,
        device: str,
        view: _View,
        is_costly: bool = False,
        proxy: str | bool = False,
    ) -> None:
        self.dataset = dataset
        self.is_costly = is_costly
        locations, _, _, _, (_, _, _, meaning) = dataset._opened_with
        path = None
        if len(locations) == 1 and os.path.exists(locations[0]):
            path = os.path.abspath(locations[0])
        # A proxy's address contains the port, so it is chosen first.
        port = free_port() if proxy else 0
        address = (port, public_address(proxy, port))
        self._native: _native.ViewServer | None = _native.serve_view(
            dataset._connection, path, meaning, json.dumps(view), memory, device, address
        )

    @property
    def native(self) -> _native.ViewServer:
        """The node.

        Raises :class:`InvalidError` once it is closed."""
        if self._native is None:
            raise InvalidError("the viewer was closed; call `corridor.view` again")
        return self._native

    @property
    def is_open(self) -> bool:
        """False once it is closed."""
        return self._native is not None

    def close(self) -> None:
        """Ends the node and its connections."""
        native, self._native = self._native, None
        if native is not None:
            native.close()

    def __del__(self) -> None:
        self.close()

    def link(self, view: _View) -> str:
        """Returns the link of the page with a view."""
        text = json.dumps(view, separators=(",", ":")).encode()
        return f"{self.native.page}&view={base64.urlsafe_b64encode(text).decode().rstrip('=')}"

    def resolved(self, view: _View | None, keywords: Mapping[str, Any], size: tuple[int, int]) -> _View:
        """Returns a view with the fields that keywords set."""
        return resolved(self.dataset, None, view, keywords, size)

    def picture(self, view: _View, size: tuple[int, int]) -> bytes:
        """Draws a finished picture as PNG."""
        return png.encode(self.dataset.render(view=view, size=size, pixels="rgb"))

    def poster(self, view: _View) -> bytes | None:
        """Draws a small picture for a saved notebook; None if that would compute for long, or fails."""
        if self.is_costly:
            return None
        width, height = POSTER_SIZE
        form = (POSTER_SIZE, "rgb", "auto")
        try:
            drawn = _native.render(self.dataset._connection, None, _json({"view": view}), form, None, POSTER_SECS)
        except Error:
            # The viewer itself shows the reason.
            return None
        return png.encode(drawn[0].reshape(height, width, 3))


def resolved(
    dataset: Dataset, array: str | None, view: _View | None, keywords: Mapping[str, Any], size: tuple[int, int]
) -> _View:
    """Returns the view that keywords describe, which replace fields of ``view``."""
    given = {**({} if view is None else {"view": view}), **keywords}
    found: _View = json.loads(_native.resolve_view(dataset._connection, array, _json(given), size))
    return found


def started(
    x: Any,
    key: Key | None,
    memory: str | None,
    device: str,
    keywords: Mapping[str, Any],
    proxy: str | bool = False,
) -> tuple[Server, _View]:
    """Returns the node for what is to be viewed, started or shared, and the first view."""
    limit = memory or DEFAULT_MEMORY
    size = (1024, 800)
    with _lock:
        if isinstance(x, (str, os.PathLike)) or _is_locations(x):
            if key is not None:
                raise InvalidError("expected a key with an array; open the location first: corridor.open(...)[NAME]")
            found = _opening.open_location(x, _opening.Options())
        elif (objects := viewed(x, key)) is not None:
            dataset = objects.opened(limit)
            view = resolved(dataset, None, None, keywords, size)
            return _kept(Server(dataset, limit, device, view, objects.is_costly, proxy)), view
        elif isinstance(x, (Dataset, Array)):
            found = x
        else:
            raise InvalidError(
                "expected a location, a data set or an array of Corridor, numpy, dask, xarray, h5py or zarr, found "
                f"{type(x).__name__}"
            )
        dataset, name = (found.dataset, found.name) if isinstance(found, Array) else (found, None)
        levels = {"level": found._level} if isinstance(found, Array) and found._level else {}
        view = resolved(dataset, name, None, {**levels, **keywords}, size)
        is_object = not dataset._opened_with[0]
        shared = ("object", id(dataset), proxy) if is_object else (dataset._opened_with, limit, device, proxy)
        server = _by_location.get(shared)
        if server is None or not server.is_open:
            server = _kept(Server(dataset, limit, device, view, proxy=proxy))
            _by_location[shared] = server
        return server, view


def _is_locations(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and bool(x) and all(isinstance(part, str) for part in x)


def _kept(server: Server) -> Server:
    _servers[:] = [ref for ref in _servers if (known := ref()) is not None and known.is_open]
    while len(_servers) >= MAX_SERVERS:
        oldest = _servers.pop(0)()
        if oldest is not None:
            warnings.warn(f"more than {MAX_SERVERS} viewers are open; the oldest one is closed", stacklevel=5)
            oldest.close()
    _servers.append(weakref.ref(server))
    return server


@atexit.register
def _close_all() -> None:
    """Ends all nodes before the interpreter does: they read objects of Python."""
    with _lock:
        for ref in _servers:
            server = ref()
            if server is not None:
                server.close()
        _servers.clear()
