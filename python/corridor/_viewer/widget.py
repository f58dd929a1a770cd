"""The viewer as a widget of a notebook. The page's messages pass through the kernel, so no port has to be reachable."""

import base64
import contextlib
import json
import pathlib
import threading
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import anywidget
import traitlets

from .. import _native
from .._dataset import Dataset
from .._errors import Error
from .server import Server
from .viewer import merged, with_array, with_camera

# Bytes for a page that it has not confirmed: two pictures in flight.
WINDOW_BYTES = 4 << 20
# Maximum number of connected pages of one widget: each place where it is displayed has one.
MAX_RELAYS = 16

_View = dict[str, Any]


@dataclass(frozen=True)
class Pick:
    """A click on the picture."""

    array: str
    """Name of the array that is shown."""
    time: int
    """Index on the time axis."""
    ray_origin: tuple[float, float, float]
    """Start of the ray through the place of the click, in world space."""
    ray_direction: tuple[float, float, float]
    """Direction of the ray, of length 1."""
    at: tuple[float, float]
    """Place of the click in the picture: 0, 0 is the left upper corner, 1, 1 the right lower one."""
    hit: str = "nothing"
    """Kind of thing in the picture there: ``"volume"``, ``"extreme"``, ``"surface"``, ``"slice"``, ``"image"`` or ``"nothing"``."""
    position: tuple[float, float, float] | None = None
    """Position in world space of what was hit: the first opaque point; None for nothing."""
    index: tuple[int, ...] | None = None
    """Index of the element there, at full resolution; None for nothing."""
    stored: int | float | None = None
    """The element as it is stored: ``array[index]``; None if it was not read."""
    value: float | None = None
    """The decoded value; None if it is missing, or was not read."""
    units: str = ""
    """Units of the decoded value."""
    coordinates: Mapping[str, float | None] = field(default_factory=dict)
    """Coordinates along the axes by name, None for axes without, and latitude and longitude of a curvilinear grid."""


class ViewerWidget(anywidget.AnyWidget):
    """A viewer of one data set in a notebook, as :func:`corridor.view` returns it there.

    ``view``, ``camera``, ``time`` and ``array`` follow the picture and can be set; ``observe`` calls back when they
    change::

        w = corridor.view("run42.h5")
        w.time = 3
        w.observe(lambda change: print(change.new), "camera")

    Fields that a mapping assigned to ``view`` lacks stay unchanged. ``camera`` may be ``"front"``, ``"back"``, ``"left"``,
    ``"right"``, ``"top"`` or ``"bottom"``. ``height`` is the height in CSS pixels. Assigning an invalid value raises
    :class:`corridor.InvalidError` and changes nothing.

    While a cell runs, pages wait for the kernel, unless the notebook's program handles widgets beside cells (JupyterLab 4.4
    with ipykernel 7 does).
    """

    _esm = pathlib.Path(__file__).with_name("widget.js")

    view = traitlets.Dict().tag(sync=True)
    height = traitlets.Int(480, min=100, max=10_000).tag(sync=True)
    camera = traitlets.Any(None, allow_none=True)
    time = traitlets.Int(0)
    array = traitlets.Unicode("")

    def __init__(self, server: Server, view: _View, height: int) -> None:
        self._server = server
        self._relays: dict[str, _native.PageRelay] = {}
        self._pick_callbacks: list[Callable[[Pick], object]] = []
        # Depth of changes that need no check: from the page, or made here.
        self._trusted = threading.local()
        with self._trust():
            super().__init__(view=view, height=height)
            self._follow()
        self.on_msg(self._receive)

    @property
    def url(self) -> str:
        """Link of the viewer for a browser on the kernel's machine, with its token: who has it can see the data."""
        return self._server.link(self.view)

    @property
    def dataset(self) -> Dataset:
        """Data set that is shown."""
        return self._server.dataset

    def screenshot(self, size: tuple[int, int] = (1024, 800)) -> bytes:
        """Draw a finished picture of the view: the bytes of a PNG file of ``size`` (width, height) pixels."""
        return self._server.picture(self.view, size)

    def on_pick(self, callback: Callable[[Pick], object], remove: bool = False) -> None:
        """Call ``callback`` with a :class:`Pick` when the picture is clicked; with ``remove`` no longer."""
        if remove:
            self._pick_callbacks = [known for known in self._pick_callbacks if known != callback]
        else:
            self._pick_callbacks.append(callback)

    def open(self) -> None:
        """Open the viewer in a browser of the kernel's machine."""
        # The base class calls this when the widget is made.
        if self.comm is None and self._server.is_open:
            super().open()
        else:
            webbrowser.open(self.url)

    def close(self) -> None:
        """Close the viewer and the widget, also for other users of the same location in this process."""
        for relay in list(self._relays.values()):
            relay.close()
        self._relays.clear()
        self._server.close()
        super().close()

    def _repr_mimebundle_(self, **how: Any) -> Any:
        bundle = super()._repr_mimebundle_(**how)
        if bundle is None:
            return None
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        data = {**data, "text/plain": repr(self)}
        poster = self._server.poster(self.view) if self._server.is_open else None
        if poster is not None:
            data["image/png"] = base64.b64encode(poster).decode()
        return data, metadata

    def __repr__(self) -> str:
        return f"<corridor.ViewerWidget of {self.dataset.name!r}>"

    # Changes of the view.

    @contextlib.contextmanager
    def _trust(self) -> Iterator[None]:
        depth = getattr(self._trusted, "depth", 0)
        self._trusted.depth = depth + 1
        try:
            yield
        finally:
            self._trusted.depth = depth

    @property
    def _is_trusted(self) -> bool:
        return getattr(self._trusted, "depth", 0) > 0

    def _follow(self) -> None:
        with self._trust():
            self.camera = self.view.get("camera")
            self.time = int(self.view.get("time", 0))
            self.array = str(self.view.get("array", ""))

    def set_state(self, sync_data: _View) -> None:
        """Takes the state of a page."""
        with self._trust():
            super().set_state(sync_data)

    @traitlets.validate("view")
    def _checked_view(self, proposal: Any) -> _View:
        if self._is_trusted:
            return dict(proposal["value"])
        return merged(self._server, self.view, proposal["value"])

    @traitlets.observe("view")
    def _view_changed(self, _change: Any) -> None:
        self._follow()

    @traitlets.observe("camera", "time", "array")
    def _field_changed(self, change: Any) -> None:
        if self._is_trusted:
            return
        try:
            if change.name == "camera":
                view = with_camera(self._server, self.view, change.new)
            elif change.name == "array":
                view = with_array(self._server, self.view, change.new)
            else:
                view = merged(self._server, self.view, {"time": change.new})
        except BaseException:
            self._follow()
            raise
        with self._trust():
            self.view = view
        self._follow()

    # Messages of pages.

    def _receive(self, _widget: Any, message: Any, buffers: Any) -> None:
        kind = message.get("kind") if isinstance(message, dict) else None
        relay_id = str(message.get("relay", "")) if kind else ""
        relay = self._relays.get(relay_id)
        if kind == "page":
            self._send_page(str(message.get("to", "")))
        elif kind == "open":
            self._connect(relay_id)
        elif kind == "data" and relay is not None and buffers:
            try:
                relay.send(bytes(buffers[0]))
            except (BufferError, Error) as error:
                self._end(relay_id, str(error))
        elif kind == "grant" and relay is not None:
            relay.grant(max(0, int(message.get("bytes", 0))))
        elif kind == "close" and relay is not None:
            self._relays.pop(relay_id, None)
            relay.close()
        elif kind == "pick":
            self._picked(message)

    def _send_page(self, to: str) -> None:
        page = _native.viewer_page()
        if page is None or not self._server.is_open:
            what = "the viewer was closed; run the cell again" if page else "the viewer's page is not part of this build"
            self.send({"kind": "unavailable", "to": to, "reason": what})
            return
        native = self._server.native
        settings = {
            "token": native.token,
            "link": native.page,
            "colormaps": json.loads(_native.viewer_colormaps()),
        }
        self.send({"kind": "page", "to": to, "settings": settings}, buffers=[page.encode()])

    def _connect(self, relay_id: str) -> None:
        if len(self._relays) >= MAX_RELAYS:
            # The oldest page is probably gone: a browser's tab that was closed says nothing.
            self._end(next(iter(self._relays)), "too many pages show this viewer")

        def on_message(data: bytes | None) -> None:
            if data is None:
                self._end(relay_id, "the viewer ended the connection")
            else:
                self.send({"kind": "data", "relay": relay_id}, buffers=[data])

        def on_taken(size: int) -> None:
            self.send({"kind": "taken", "relay": relay_id, "bytes": size})

        try:
            relay = self._server.native.connect(on_message, on_taken, WINDOW_BYTES)
        except Error as error:
            self.send({"kind": "closed", "relay": relay_id, "reason": str(error)})
            return
        self._relays[relay_id] = relay
        self.send({"kind": "opened", "relay": relay_id})

    def _end(self, relay_id: str, reason: str) -> None:
        relay = self._relays.pop(relay_id, None)
        if relay is not None:
            relay.close()
            self.send({"kind": "closed", "relay": relay_id, "reason": reason})

    def _picked(self, message: dict[str, Any]) -> None:
        pick = picked(message)
        for callback in list(self._pick_callbacks):
            callback(pick)


def picked(message: Mapping[str, Any]) -> Pick:
    """Returns the click that a page reports."""
    view, ray = message["view"], message["ray"]
    return Pick(
        str(view.get("array", "")), int(view.get("time", 0)), tuple(ray["origin"]), tuple(ray["direction"]),
        tuple(message["at"]), **_shown(message.get("place")),
    )  # fmt: skip


def _shown(place: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns what the picture shows at the place of a click, as members of :class:`Pick`."""
    if place is None:
        return {}
    shown: dict[str, Any] = {"hit": str(place["hit"])}
    if place.get("position") is not None:
        shown["position"] = tuple(place["position"])
    if place.get("index") is not None:
        shown["index"] = tuple(int(at) for at in place["index"])
    if place.get("stored"):
        shown["stored"] = _number(place["stored"])
    if place.get("value") is not None:
        shown["value"] = float(place["value"])
    return {**shown, "units": str(place.get("units", "")), "coordinates": dict(place.get("coordinates") or {})}


def _number(text: str) -> int | float:
    """Reads a stored number, which is a text so that integers of 64 bits are exact."""
    try:
        return int(text)
    except ValueError:
        return float(text)
