"""A viewer outside of notebooks: its link, its view, and pictures of it."""

import html
import sys
import webbrowser
from collections.abc import Mapping
from typing import Any

from .._dataset import Dataset
from .server import Server

_View = dict[str, Any]
# Fields that are kept when another array is shown: camera, colors and surfaces rarely suit another one.
_KEPT = ("v", "time", "background", "shading", "lighting", "occlusion", "depth_cue")


class Viewer:
    """A viewer of one data set, as :func:`corridor.view` returns it outside of notebooks.

    >>> import corridor
    >>> viewer = corridor.view("synthetic:waves?shape=8,8,8&dtype=u8", camera="front")
    >>> viewer.url.startswith("http://127.0.0.1:")
    True
    >>> viewer.screenshot((32, 24))[1:4]
    b'PNG'
    >>> viewer.close()

    Setting :attr:`view`, :attr:`camera`, :attr:`time` or :attr:`array` changes the link and pictures; pages that are open
    already do not change. In a notebook they do.
    """

    def __init__(self, server: Server, view: _View) -> None:
        self._server = server
        self._view = view

    @property
    def url(self) -> str:
        """Link of the viewer for a browser on this machine, with its token: who has it can see the data."""
        return self._server.link(self._view)

    @property
    def dataset(self) -> Dataset:
        """Data set that is shown."""
        return self._server.dataset

    @property
    def view(self) -> _View:
        """The view, as in a link. Fields that an assigned mapping lacks stay unchanged."""
        return dict(self._view)

    @view.setter
    def view(self, view: Mapping[str, Any]) -> None:
        self._view = merged(self._server, self._view, view)

    @property
    def camera(self) -> dict[str, Any] | None:
        """Camera in world space: ``eye``, ``target``, ``up`` and ``projection``. None: one that sees the whole volume. Also
        ``front``, ``back``, ``left``, ``right``, ``top`` or ``bottom`` when assigned."""
        return self._view.get("camera")

    @camera.setter
    def camera(self, camera: Mapping[str, Any] | str | None) -> None:
        self._view = with_camera(self._server, self._view, camera)

    @property
    def time(self) -> int:
        """Index on the time axis."""
        return int(self._view.get("time", 0))

    @time.setter
    def time(self, time: int) -> None:
        self.view = {"time": time}

    @property
    def array(self) -> str:
        """Name of the array that is shown. Another one gets a camera and colors that suit it."""
        return str(self._view.get("array", ""))

    @array.setter
    def array(self, name: str) -> None:
        self._view = with_array(self._server, self._view, name)

    def screenshot(self, size: tuple[int, int] = (1024, 800)) -> bytes:
        """Draw a finished picture of the view: the bytes of a PNG file of ``size`` (width, height) pixels."""
        return self._server.picture(self._view, size)

    def open(self) -> bool:
        """Open the viewer in a browser of this machine; False if there is none."""
        return webbrowser.open(self.url)

    def close(self) -> None:
        """Close the viewer, also for other users of the same location in this process."""
        self._server.close()

    def __repr__(self) -> str:
        name = self.dataset.name
        return f"<corridor.Viewer of {name!r}: {self.url}>" if self._server.is_open else f"<corridor.Viewer of {name!r}, closed>"

    def _repr_html_(self) -> str:
        link = html.escape(self.url, quote=True)
        hint = "" if "anywidget" in sys.modules else " To see it here: <code>pip install 'corridor[notebook]'</code>."
        return f'<p><a href="{link}" target="_blank" rel="noopener">Viewer of {html.escape(self.dataset.name)}</a>.{hint}</p>'


def merged(server: Server, view: _View, fields: Mapping[str, Any]) -> _View:
    """Returns the view with other fields, checked."""
    return server.resolved({**view, **fields}, {}, (1024, 800))


def with_camera(server: Server, view: _View, camera: Mapping[str, Any] | str | None) -> _View:
    """Returns the view from another camera, or from a side by its name."""
    if isinstance(camera, str):
        return server.resolved(view, {"camera": camera}, (1024, 800))
    return merged(server, view, {"camera": camera})


def with_array(server: Server, view: _View, name: str) -> _View:
    """Returns the view of another array."""
    array = server.dataset[name]
    steps = [size for axis, size in zip(array._info["axes"], array.shape, strict=False) if axis.get("kind") == "time"]
    time = min(int(view.get("time", 0)), steps[0] - 1 if steps else 0)
    kept = {field: view[field] for field in _KEPT if field in view}
    return server.resolved({**kept, "time": time, "array": array.name}, {}, (1024, 800))
