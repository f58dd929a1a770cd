"""Cache of connections that several users in the process share: unpickled data sets, and files of fsspec."""

import threading
import time
from collections import OrderedDict

from . import _native
from ._errors import Error

# Compression, link, controller and meaning.
LinkOptions = tuple[str | None, str | None, str | None, str | None]
# Locations, token, memory, rule and link options.
OpenedWith = tuple[tuple[str, ...], str | None, str | None, str, LinkOptions]
# State of data: identity and generation of a description.
State = tuple[str, int]

# Maximum number of connections in the cache; the least recently used one is dropped first.
_MAX_CONNECTIONS = 32
# Minimum interval of requests to a server whether its data have changed, in seconds.
CHECK_INTERVAL_SECS = 1.0


class _Entry:
    """A cached connection. Its lock is held while it is opened, so that other threads wait instead of opening it too."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.native: _native.Connection | None = None
        self.checked_at = 0.0

    def usable(self, must_be_current: bool) -> _native.Connection | None:
        """Returns the connection, unless it is broken or, if ``must_be_current``, its server reports that the data have changed."""
        native = self.native
        if native is None or not native.is_sound:
            return None
        if not must_be_current or time.monotonic() - self.checked_at < CHECK_INTERVAL_SECS:
            return native
        try:
            has_changed = native.has_changed()
        except Error:
            # Opening the connection again raises the error.
            return None
        self.checked_at = time.monotonic()
        return None if has_changed else native


_entries: OrderedDict[tuple[OpenedWith, State | None], _Entry] = OrderedDict()
_lock = threading.Lock()


def get(
    opened_with: OpenedWith, state: State | None = None, *, must_be_current: bool = False
) -> _native.Connection:
    """Returns the cached connection; opens a new one if there is none that can be used.

    ``state`` is the state of the data that the caller has seen: connections opened in other states are not shared with it.
    With ``must_be_current`` a request to the server, at most one per second, finds out whether the data have changed.
    """
    with _lock:
        entry = _entries.setdefault((opened_with, state), _Entry())
        _entries.move_to_end((opened_with, state))
        if len(_entries) > _MAX_CONNECTIONS:
            _entries.popitem(last=False)
    with entry.lock:
        native = entry.usable(must_be_current)
        if native is None:
            native = _native.open(list(opened_with[0]), *opened_with[1:])
            entry.native, entry.checked_at = native, time.monotonic()
        return native


def invalidate(location: str) -> None:
    """Drops the connections whose location begins with ``location``; their present users keep them."""
    with _lock:
        for key in [key for key in _entries if any(text.startswith(location) for text in key[0][0])]:
            del _entries[key]
