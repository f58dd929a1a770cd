"""Connections that the process keeps for those who open the same again: what is unpickled, and fsspec's files."""

import threading
import time
from collections import OrderedDict

from . import _native
from ._errors import Error

# Compression, link, controller and meaning.
Way = tuple[str | None, str | None, str | None, str | None]
# Locations, token, memory, rule and way.
OpenedWith = tuple[tuple[str, ...], str | None, str | None, str, Way]
# Which data they were, and in which state: identity and generation of a description.
State = tuple[str, int]

# Most connections that are kept; the one not used for longest goes first.
_MAX_KEPT = 32
# How often at most a server is asked whether its data are others now, seconds.
LOOK_AGAIN_AFTER_SECS = 1.0


class _Place:
    """Where one connection is kept. Whoever opens it holds the lock: others wait instead of opening it too."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.native: _native.Connection | None = None
        self.looked_at = 0.0

    def good(self, must_be_current: bool) -> _native.Connection | None:
        """The connection, unless it found other data or nobody to ask, or its server says that the data are others now."""
        native = self.native
        if native is None or not native.is_sound:
            return None
        if not must_be_current or time.monotonic() - self.looked_at < LOOK_AGAIN_AFTER_SECS:
            return native
        try:
            has_changed = native.has_changed()
        except Error:
            # Opening it again says what is wrong.
            return None
        self.looked_at = time.monotonic()
        return None if has_changed else native


_places: OrderedDict[tuple[OpenedWith, State | None], _Place] = OrderedDict()
_lock = threading.Lock()


def connection(
    opened_with: OpenedWith, state: State | None = None, *, must_be_current: bool = False
) -> _native.Connection:
    """The one that is kept, opened anew where it is no good any more.

    ``state`` is that of the data which whoever asks has seen: one that was opened in another state is not theirs.
    Where it ``must_be_current`` the server is asked, once a second at most, whether the data are others now.
    """
    with _lock:
        place = _places.setdefault((opened_with, state), _Place())
        _places.move_to_end((opened_with, state))
        if len(_places) > _MAX_KEPT:
            _places.popitem(last=False)
    with place.lock:
        native = place.good(must_be_current)
        if native is None:
            native = _native.open(list(opened_with[0]), *opened_with[1:])
            place.native, place.looked_at = native, time.monotonic()
        return native


def forget(location: str) -> None:
    """Forgets those of locations that begin so; whoever uses one keeps it."""
    with _lock:
        for key in [key for key in _places if any(text.startswith(location) for text in key[0][0])]:
            del _places[key]
