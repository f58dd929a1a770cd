"""Opening of locations, and warnings about what was opened."""

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from . import _native
from ._array import Array
from ._dataset import Dataset
from ._errors import MissingFileError, NotFoundError

# Maximum number of variables that one warning names.
_MAX_NAMED = 10
# Maximum length of a reason in a warning, in characters.
_MAX_REASON = 200


class Options(NamedTuple):
    """Parameters of :func:`corridor.open` other than the location."""

    token: str | None = None
    memory: str | None = None
    rule: str = "auto"
    compression: str | None = None
    link: str | None = None
    controller: str | None = None
    meaning: str | None = None


def open_location(location: str | os.PathLike[str] | Sequence[str], options: Options) -> Dataset | Array:
    """Opens a data set, or the array that the location ends with."""
    locations = [os.fspath(location)] if isinstance(location, (str, os.PathLike)) else list(location)
    token, memory, rule, *link_options = options
    compression, link, controller, meaning = link_options
    opened_with = (tuple(locations), token, memory, rule, (compression, link, controller, meaning))
    try:
        connection = _native.open(locations, *opened_with[1:])
    except NotFoundError as error:
        if any(_is_missing_file(location) for location in locations):
            raise MissingFileError(str(error)) from None
        raise
    dataset = Dataset(connection, opened_with)
    name = connection.array
    return dataset[name] if name else dataset


def warn(dataset: Dataset, left_out: Mapping[str, str]) -> None:
    """Warns of problems found when opening, and of variables that cannot be read, with the reason of each."""
    for sentence in dataset.warnings:
        _warn(f"`{dataset.name}`: {_short(sentence)}")
    named = [f"`{name}` ({_short(what)})" for name, what in list(left_out.items())[:_MAX_NAMED]]
    if named:
        more = len(left_out) - len(named)
        rest = f" and {more} more, see `left_out`" if more else ""
        _warn(f"`{dataset.name}`: left out: {', '.join(named)}{rest}")


def _warn(sentence: str) -> None:
    warnings.warn(sentence, UserWarning, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """Returns the stack level of the first caller outside the package and xarray."""
    inside = tuple(
        os.path.dirname(module.__file__) + os.sep
        for name in ("corridor", "xarray")
        if (module := sys.modules.get(name)) is not None and module.__file__ is not None
    )
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        level, frame = level + 1, frame.f_back
    return level


def _short(text: str) -> str:
    return text if len(text) <= _MAX_REASON else f"{text[:_MAX_REASON]}..."


def _is_missing_file(location: str) -> bool:
    """True for a path that does not exist and does not name an array within an existing file."""
    if "://" in location or location.startswith("synthetic:"):
        return False
    path = Path(location)
    return not path.exists() and not any(parent.is_file() for parent in path.parents)
