"""Arrays that live somewhere else, read as numpy reads them.

>>> import corridor
>>> data = corridor.open("synthetic:linear?shape=4,5,6&dtype=u8")
>>> data
<corridor.Dataset 'linear' (synthetic), 1 array>
  linear  uint8 (z: 4, y: 5, x: 6), 120 bytes
>>> data["linear"][1:3, ::2, -1].shape
(2, 3)

A location is a path, ``synthetic:...``, ``ssh://[USER@]HOST/PATH``, ``await://ADDRESS:PORT/DATASET`` (a server connects here: ``corridor serve --to``) or ``corridor://HOST[:PORT]/DATASET[/ARRAY]``. Axes are in C order, last fastest.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _native
from ._array import Array
from ._dataset import Dataset
from ._errors import (
    BusyError,
    CorruptError,
    DeniedError,
    Error,
    InternalError,
    InvalidError,
    MissingFileError,
    NotFoundError,
    StaleError,
    StorageError,
    TimedOutError,
    TooLargeError,
    UnreachableError,
    UnsupportedError,
    WithdrawnError,
)
from ._many import read_many, read_many_async, submit_many

__version__: str = _native.VERSION

__all__ = [
    "Array",
    "BusyError",
    "CorruptError",
    "Dataset",
    "DeniedError",
    "Error",
    "InternalError",
    "InvalidError",
    "MissingFileError",
    "NotFoundError",
    "StaleError",
    "StorageError",
    "TimedOutError",
    "TooLargeError",
    "UnreachableError",
    "UnsupportedError",
    "WithdrawnError",
    "open",
    "read_many",
    "read_many_async",
    "submit_many",
]


def open(
    location: str | os.PathLike[str] | Sequence[str],
    *,
    token: str | None = None,
    memory: str | None = None,
    rule: str = "auto",
    compression: str | None = None,
) -> Any:
    """Open what a location names: a :class:`Dataset`, or its :class:`Array` where the location ends with its name.

    Several URLs are servers of the same data, read all at once; one that dies is not missed, one that holds other data is
    left out. Where they name no data set (``corridor://HOST/``), servers of different ones are one catalogue, in which data
    sets that follow one another in time are one array. ``rule`` says what they have: ``"replicated"``, all the same;
    ``"blocks"``, all the same, of which each keeps a part in its memory; ``"files"``, data sets of their own; or ``"auto"``, as
    they say themselves.

    ``token`` stands in for one in the URL's fragment; servers of the same user on this machine need none. ``memory``
    bounds what reading takes besides the results (``"512MiB"``), for all data sets opened with the same value together;
    without it a quarter of the machine's. ``compression`` is of data on their way from a server: ``"auto"`` (the default:
    where the server measures that they come sooner), ``"none"``, ``"lz4"`` or ``"zstd"``.

    >>> import corridor
    >>> corridor.open("synthetic:noise?shape=2,2,2&dtype=u8")["noise"].dtype
    dtype('uint8')

    Raises :class:`NotFoundError`, :class:`DeniedError`, :class:`UnreachableError`, :class:`InvalidError` and others
    below :class:`Error`.
    """
    locations = [os.fspath(location)] if isinstance(location, (str, os.PathLike)) else list(location)
    opened_with = (tuple(locations), token, memory, rule, compression)
    try:
        connection = _native.open(locations, token, memory, rule, compression)
    except NotFoundError as error:
        if any(_is_missing_file(location) for location in locations):
            raise MissingFileError(str(error)) from None
        raise
    dataset = Dataset(connection, opened_with)
    name = dataset._connection.array
    return dataset[name] if name else dataset


def _is_missing_file(location: str) -> bool:
    """True for a path that is not there, and does not name an array within a file that is."""
    if "://" in location or location.startswith("synthetic:"):
        return False
    path = Path(location)
    return not path.exists() and not any(parent.is_file() for parent in path.parents)
