"""A data set: its arrays by name."""

from collections.abc import Iterator, Mapping
from typing import Any, Self, Unpack

import numpy as np

from . import _connection_cache, _html, _native
from ._array import Array
from ._description import described
from ._errors import InvalidError, NotFoundError
from ._connection_cache import OpenedWith, State
from ._picture import PictureOptions, SlabPictureOptions, drawn, drawn_with_slabs
from ._slabs import Slabs

# Maximum number of arrays listed by `repr`.
_MAX_LISTED = 40


class Dataset(Mapping[str, Array]):
    """An open data set: a mapping from names to :class:`Array`.

    >>> import corridor
    >>> data = corridor.open("synthetic:waves?shape=8,8,8&dtype=f32")
    >>> list(data), len(data), "waves" in data
    (['waves'], 1, True)
    """

    def __init__(self, connection: _native.Connection, opened_with: OpenedWith) -> None:
        self._open: _native.Connection | None = connection
        self._name = connection.name
        self._opened_with = opened_with
        self._description = described(connection)
        infos = self._description["arrays"]
        self._numbers = {info["name"]: number for number, info in enumerate(infos)}

    @property
    def _connection(self) -> _native.Connection:
        if self._open is None:
            raise InvalidError("the data set was closed; open it again")
        return self._open

    def close(self) -> None:
        """Close the connection once reads in progress have ended. Connections that are no longer used close by themselves,
        so this is seldom needed. Unpickled data sets share one connection, which the process keeps open.

        >>> import corridor
        >>> with corridor.open("synthetic:waves?shape=8,8,8&dtype=f32") as data:
        ...     elements = data["waves"][0]
        >>> data["waves"][0]
        Traceback (most recent call last):
        corridor._errors.InvalidError: the data set was closed; open it again
        """
        self._open = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """Name by which the server exports the data set."""
        return self._name

    @property
    def locations(self) -> tuple[str, ...]:
        """Locations by which the data set was opened: several for servers with the same data, none for values of this
        process."""
        return self._opened_with[0]

    @property
    def format(self) -> str:
        """Format of the file or store."""
        return self._description["format"]

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the file as a whole."""
        return dict(self._description["attributes"])

    @property
    def warnings(self) -> list[str]:
        """Warnings about the data set."""
        return list(self._description["warnings"])

    @property
    def left_out(self) -> dict[str, str]:
        """Variables that cannot be read as arrays, each with the reason."""
        return {left["name"]: left["what"] for left in self._description["left_out"]}

    def __getitem__(self, name: str) -> Array:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers.get(name.strip("/"))
        if number is None:
            if (reason := self.left_out.get(name.strip("/"))) is not None:
                raise _MissingArray(f"`{name}` is left out: {reason}")
            listed = ", ".join(list(self._numbers)[:_MAX_LISTED]) or "none"
            raise _MissingArray(f"expected the name of an array ({listed}), found {name!r}")
        return Array(self, number, self._description["arrays"][number], 0, False)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def render(self, **how: Unpack[PictureOptions]) -> np.ndarray[Any, np.dtype[Any]]:
        """Draw a finished picture of the first volume in it, as :func:`corridor.render` does.

        >>> import corridor
        >>> data = corridor.open("synthetic:waves?shape=16,16,16&dtype=u8")
        >>> data.render(size=(32, 24), camera="front").shape
        (24, 32, 3)
        """
        return drawn(self, None, **how)

    def render_with_slabs(
        self, **how: Unpack[SlabPictureOptions]
    ) -> tuple[np.ndarray[Any, np.dtype[Any]], Slabs]:
        """Draw a finished picture and its slabs, as :func:`corridor.render_with_slabs` does."""
        return drawn_with_slabs(self, None, **how)

    def __reduce__(self) -> tuple[Any, ...]:
        state = self._description["id"], self._description["generation"]
        return _unpickle, (self._opened_with, state)

    def __repr__(self) -> str:
        count = f"{len(self)} array" + ("" if len(self) == 1 else "s")
        lines = [f"<corridor.Dataset {self.name!r} ({self.format}), {count}>"]
        width = max((len(name) for name in self), default=0)
        for name in list(self)[:_MAX_LISTED]:
            array = self[name]
            units = f" [{array.units}]" if array.units else ""
            lines.append(f"  {name:<{width}}  {array._summary()}{units}")
        if len(self) > _MAX_LISTED:
            lines.append(f"  ... and {len(self) - _MAX_LISTED} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return _html.of_dataset(self)


class _MissingArray(NotFoundError, KeyError):
    """No array of this name; a `KeyError`, as for other mappings."""


def _unpickle(opened_with: OpenedWith, state: State) -> Dataset:
    """Unpickles a data set, by one connection per process rather than one per task."""
    return Dataset(_connection_cache.get(opened_with, state), opened_with)
