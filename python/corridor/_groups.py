"""Groups of a data set: groups of the file, or the data sets of a catalogue."""

from typing import NamedTuple

from ._array import Array
from ._dataset import Dataset
from ._description import GroupInfo

# Beginning of the format of several data sets described as one.
_CATALOGUE = "catalogue of "


class Group(NamedTuple):
    """A group, and the format of its data set."""

    path: str
    """Without slashes at its ends; empty for the root."""
    format: str
    unlimited: frozenset[str] = frozenset()
    """Its unlimited dimensions."""
    is_dataset: bool = False
    """True for a data set of a catalogue."""


def groups_of(dataset: Dataset) -> dict[str, Group]:
    """Returns all groups by path, parents first, including groups that appear only in names of arrays."""
    description = dataset._description
    described = {group["path"].strip("/"): group for group in description.get("groups", [])}
    names = [array["name"] for array in description["arrays"]] + [left["name"] for left in description["left_out"]]
    below = {name.strip("/").rpartition("/")[0] for name in names}
    paths = {""}
    for path in [*described, *sorted(below)]:
        parts = path.split("/") if path else []
        paths.update("/".join(parts[: depth + 1]) for depth in range(len(parts)))
    found: dict[str, Group] = {}
    order = {path: place for place, path in enumerate(described)}
    for path in sorted(paths, key=lambda path: (order.get(path, len(order)), path)):
        _add(found, path, described, description["format"])
    return found


def _add(found: dict[str, Group], path: str, described: dict[str, GroupInfo], whole: str) -> None:
    if path in found:
        return
    parent = path.rpartition("/")[0]
    if path:
        _add(found, parent, described, whole)
    own = described.get(path, {"path": path})
    of_parent = found[parent].format if path else whole
    found[path] = Group(
        path,
        own.get("format") or of_parent,
        frozenset(own.get("unlimited", ())),
        bool(own.get("format")) and bool(path),
    )


def own_name(name: str, group: str) -> str | None:
    """Returns the name relative to a group; ``None`` if the array is not directly in it.

    >>> own_name("grid/rho", "grid"), own_name("grid/rho", ""), own_name("/t", "")
    ('rho', None, 't')
    """
    parent, _, own = name.strip("/").rpartition("/")
    return own if parent == group else None


def arrays_in(dataset: Dataset, group: str) -> dict[str, Array]:
    """Returns the arrays directly in a group, by relative name."""
    found = ((own_name(name, group), array) for name, array in dataset.items())
    return {own: array for own, array in found if own is not None}


def is_catalogue(dataset: Dataset) -> bool:
    """True for several data sets described as one."""
    return dataset.format.startswith(_CATALOGUE)
