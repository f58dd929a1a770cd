"""Programs that take part in a viewing session, as people do with the page of ``corridor view``."""

import contextlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from . import _native
from ._errors import BusyError, DeniedError, Error, InvalidError, TimedOutError

# Longest time to wait for an answer of the viewing node, seconds.
_ANSWER_SECS = 10.0
# Most views of a recording, as `corridor session record`: an hour at five per second.
_MAX_RECORDED = 18_000

View = dict[str, Any]


@dataclass(frozen=True)
class Participant:
    """Somebody in a session."""

    name: str
    """Name, as shown to the others."""
    role: str
    """``"own"``, ``"steer"`` or ``"watch"``."""
    color: str
    """Color, ``#rrggbb``."""
    follows: str | None
    """Name of the participant whose view they see; None for their own."""
    presents: bool
    """They present to all."""
    is_away: bool
    """Their connection broke; they may come back."""
    is_you: bool
    """It is this program."""


@dataclass(frozen=True)
class Note:
    """Note pinned to a view, and perhaps to a place."""

    text: str
    """Text of the note."""
    author: str
    """Name of its author at that time."""
    place: tuple[float, float, float] | None
    """Point in world space."""
    view: View
    """View in which it was pinned: what differs from the usual one, with array and time."""
    time_millis: int
    """Time of the last change, milliseconds since 1970 UTC."""


class Session:
    """A program's place in a viewing session; see :func:`corridor.session`.

    The state (:attr:`view`, :attr:`participants`, :attr:`notes`) is kept up to date by a thread of its own. Methods raise
    :class:`corridor.DeniedError` for what the role of the link does not allow, :class:`corridor.UnreachableError` once the
    session has ended, and :class:`corridor.TimedOutError` if the node does not answer within 10 s.
    """

    def __init__(self, link: _native.SessionLink) -> None:
        self._link = link
        # Number of the newest message that was there before the present method.
        self._marked = 0
        # What the last call of `wait` returned for.
        self._known = self._visible()

    # State.

    @property
    def view(self) -> View:
        """The view that this program sees: its own, or that of whom it follows. Fields are those of docs/view.md. Setting it
        shows the given fields to everybody, as :meth:`set`; others stay unchanged."""
        view: View = self._state()["view"]
        return view

    @view.setter
    def view(self, fields: Mapping[str, Any]) -> None:
        self.set(fields)

    @property
    def time(self) -> int:
        """Index on the time axis. Setting it shows that time step to everybody."""
        return int(self.view.get("time", 0))

    @time.setter
    def time(self, index: int) -> None:
        self.set(time=int(index))

    @property
    def camera(self) -> dict[str, Any] | None:
        """Camera in world space: ``eye``, ``target``, ``up`` and ``projection``; None before the node has chosen one. Setting
        it shows everybody the view of that camera; None: one that sees the whole volume."""
        return self.view.get("camera")

    @camera.setter
    def camera(self, camera: Mapping[str, Any] | None) -> None:
        self.set(camera=camera)

    @property
    def array(self) -> str:
        """Name of the array that is shown. Setting it shows another one to everybody."""
        return str(self.view.get("array", ""))

    @array.setter
    def array(self, name: str) -> None:
        # Camera and transfer function rarely suit another array; the node chooses new ones.
        self.set(array=name, camera=None, transfer=None, level=None, surfaces=[], slices=[], at={})

    @property
    def role(self) -> str:
        """Own role: ``"own"``, ``"steer"`` or ``"watch"``."""
        return str(self._state()["role"])

    @property
    def participants(self) -> list[Participant]:
        """Everybody in the session, in order of arrival, with this program."""
        state = self._state()
        names = {person["id"]: person["name"] for person in state["people"]}
        return [
            Participant(
                person["name"], person["role"], person.get("color", ""), names.get(person.get("follows")),
                bool(person.get("presents")), bool(person.get("away")), person["id"] == state["you"],
            )
            for person in state["people"]
        ]  # fmt: skip

    @property
    def leader(self) -> str | None:
        """Name of the participant whose view this program sees; None for its own."""
        state = self._state()
        return next((person["name"] for person in state["people"] if person["id"] == state["leader"]), None)

    @property
    def notes(self) -> list[Note]:
        """Notes of the session, in order of creation."""
        return [
            Note(
                note["text"], note["author"]["name"], None if note["place"] is None else tuple(note["place"]),
                dict(note["view"]), int(note["at_millis"]),
            )
            for note in self._state()["notes"] or []
        ]  # fmt: skip

    # Changes.

    def set(self, view: Mapping[str, Any] | None = None, /, *, everybody: bool = True, **fields: Any) -> None:
        """Change fields of the view, ``session.set(time=3)``, named as in docs/view.md; others stay unchanged.

        Everybody sees the change: this program presents it, and ends presenting unless it was presenting before
        (:meth:`presenting`). With ``everybody=False`` only the own view changes, which followers see. Returns when the node
        has accepted the change.

        Raises :class:`InvalidError` for a view that does not fit the data, :class:`BusyError` while somebody else presents.
        """
        change = {**(view or {}), **fields}
        if not change:
            return
        self._check_steers()
        if not everybody or self._state()["presents"]:
            self._mark()
            number = self._send("change", view=change)
            # Without a picture within the time, the data are slow; a refusal would have come.
            self._until(lambda state: state["drawn"] >= number, InvalidError, is_required=False)
            return
        self.present()
        self._mark()
        try:
            self._send("change", view=change)
        finally:
            # The node handles both in order: a refusal of the view comes before the end of the presentation.
            self._send("end_presenting")
            self._until(lambda state: not state["presents"], InvalidError)

    @contextlib.contextmanager
    def presenting(self) -> Iterator[Self]:
        """Present to all within a block, in which each :meth:`set` is seen at once by everybody who does not opt out::

            with session.presenting():
                for step in range(100):
                    session.time = step
        """
        self.present()
        try:
            yield self
        finally:
            self.end_presenting()

    def present(self) -> None:
        """Present the own view to all, until :meth:`end_presenting`.

        Raises :class:`BusyError` while somebody else presents."""
        state = self._state()
        if state["presents"]:
            return
        others = [person["name"] for person in state["people"] if person.get("presents")]
        if others and state["role"] != "own":
            raise BusyError(f"{others[0]} presents; ask them to hand over or to end it")
        self._mark()
        self._send("present")
        self._until(lambda state: bool(state["presents"]), DeniedError)

    def end_presenting(self) -> None:
        """End presenting; others keep the view that they see."""
        if self._state()["presents"]:
            self._mark()
            self._send("end_presenting")
            self._until(lambda state: not state["presents"], DeniedError)

    def hand_over(self, name: str) -> None:
        """Let another participant present to all; for the presenter and owners."""
        self._mark()
        self._send("hand_over", name=name)
        self._until(lambda state: _presents(state, name), DeniedError)

    def remove(self, name: str) -> None:
        """Remove another participant; for owners. If they came as a guest, the link by which they came is replaced."""
        state = self._state()
        ids = {person["id"] for person in state["people"] if person["name"] == name and person["id"] != state["you"]}
        self._mark()
        self._send("remove", name=name)
        # Of several with one name the first is removed.
        self._until(lambda state: not ids <= {person["id"] for person in state["people"]}, DeniedError)

    def follow(self, name: str | None = None) -> None:
        """See the view of another participant from now on; without a name that of the presenter, else of the first other who
        may change the view. Any change of the own view ends it."""
        self._mark()
        self._send("follow", name=name)
        wanted = _leader(self._state(), name)
        self._until(lambda state: state["leader"] == wanted, InvalidError)

    def stop_following(self) -> None:
        """See the own view again."""
        self._mark()
        self._send("stop_following")
        self._until(lambda state: state["leader"] is None, InvalidError)

    def point(self, place: Sequence[float] | None, *, laser: bool = False) -> None:
        """Show the program's pointer at a place in world space; None hides it. ``laser`` draws everybody's attention. The
        pointer disappears when the program leaves."""
        self._send("point", place=None if place is None else _point(place), laser=laser)

    def add_note(self, text: str, place: Sequence[float] | None = None) -> None:
        """Pin a note to the view that this program sees, and optionally to a place in world space."""
        self._check_steers()
        self._mark()
        self._send("add_note", text=text, place=None if place is None else _point(place))
        self._until(lambda state: bool(state["is_heard"]), InvalidError)

    # Waiting.

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until something has changed since the last call: the view, the participants or the notes. Returns False after
        ``timeout`` seconds without a change."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            version = self._state()["version"]
            seen = self._visible()
            if seen != self._known:
                self._known = seen
                return True
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self._link.wait(version, left):
                return False

    def views(self, timeout: float | None = None) -> Iterator[View]:
        """Iterate over the views that this program sees, the present one first: each change of its own view, or of whom it
        follows. Views that are replaced while the loop's body runs are skipped. Ends after ``timeout`` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        shown: View | None = None
        while True:
            state = self._state()
            if state["view"] != shown:
                shown = state["view"]
                yield dict(shown or {})
                continue
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return
            self._link.wait(state["version"], left)

    def record(self, seconds: float, *, rate: float = 5.0, leader: str | None = None) -> list[View]:
        """Follow somebody for a time (see :meth:`follow`) and return the views that they show, at most ``rate`` per second, and
        the last one. Written as JSON, they are a path for ``corridor render --journey``."""
        if not rate > 0:
            raise InvalidError(f"expected a rate above 0, found {rate}")
        self.follow(leader)
        recorded: list[View] = []
        newest: View | None = None
        last = -float("inf")
        for view in self.views(seconds):
            if view.get("camera") is None:
                continue
            newest = view
            if time.monotonic() - last >= 1 / rate:
                if len(recorded) >= _MAX_RECORDED:
                    break
                last = time.monotonic()
                recorded.append(view)
        # The place where the movement ended.
        if newest is not None and newest != recorded[-1]:
            recorded.append(newest)
        return recorded

    # The end.

    def close(self) -> None:
        """Leave the session."""
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        people = self.participants
        return f"<corridor.Session with {len(people)} participant{'' if len(people) == 1 else 's'}, role {self.role!r}>"

    # Access to the thread that takes part.

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self._link.state())
        return state

    def _visible(self) -> tuple[Any, ...]:
        state = self._state()
        return state["view"], state["people"], state["notes"]

    def _send(self, action: str, **parameters: Any) -> int:
        return self._link.send(json.dumps({"do": action, **parameters}))

    def _mark(self) -> None:
        messages = self._state()["messages"]
        self._marked = messages[-1][0] if messages else 0

    def _check_steers(self) -> None:
        if self.role == "watch":
            raise DeniedError("this link only allows watching; use one for the role `steer`")

    def _until(
        self, is_done: Callable[[dict[str, Any]], bool], refusal: type[Error], *, is_required: bool = True
    ) -> None:
        """Waits for a state; warnings of the node since the mark are raised."""
        deadline = time.monotonic() + _ANSWER_SECS
        while True:
            state = self._state()
            warnings = [text for number, text, is_warning in state["messages"] if is_warning and number > self._marked]
            if warnings:
                raise refusal(warnings[0])
            left = deadline - time.monotonic()
            if is_done(state) or (left <= 0 and not is_required):
                return
            if left <= 0:
                raise TimedOutError(f"the node did not answer within {_ANSWER_SECS:.0f} s")
            self._link.wait(state["version"], left)


def session(url: str, *, name: str = "program", fingerprint: str | None = None) -> Session:
    """Take part in a viewing session: the one of the page at ``url``, the link that ``corridor view`` prints.

    The program appears under ``name`` among the participants, with the role of the link (``--invite steer`` for a link with
    fewer rights). ``fingerprint`` is that of the server's certificate, if it is self-signed: ``sha256:`` and 64 hexadecimal
    digits. Use the result as a context manager, or call :meth:`Session.close`.

    >>> import corridor
    >>> viewer = corridor.view("synthetic:waves?shape=8,8,8&dtype=u8&steps=4")
    >>> with corridor.session(viewer.url, name="simulation") as s:
    ...     s.time = 3
    ...     s.add_note("the last step")
    ...     s.view["time"], [note.text for note in s.notes], s.role
    (3, ['the last step'], 'own')
    >>> viewer.close()

    Raises :class:`DeniedError` without the right token, :class:`UnreachableError` if there is no session, and
    :class:`InvalidError` for another link.
    """
    return Session(_native.join_session(url, name, fingerprint))


def _point(place: Sequence[float]) -> list[float]:
    point = [float(number) for number in place]
    if len(point) != 3 or not all(math.isfinite(number) for number in point):
        raise InvalidError(f"expected a place of three finite numbers, found {place!r}")
    return point


def _presents(state: Mapping[str, Any], name: str) -> bool:
    return any(person["name"] == name and person.get("presents") for person in state["people"])


def _leader(state: Mapping[str, Any], name: str | None) -> int | None:
    """Returns the number of whom `follow` means, by the rule of the native module."""
    others = [person for person in state["people"] if person["id"] != state["you"]]
    if name is not None:
        found = [person for person in others if person["name"] == name]
    else:
        found = [person for person in others if person.get("presents")]
        found = found or [person for person in others if person["role"] != "watch"]
    return found[0]["id"] if found else None
