"""The xarray engine: ``xr.open_dataset("corridor://host/run42.nc")``, lazy, for dask too.

What it gives is what xarray's engine for the file's format gives for the file itself: names, dimensions, types, attributes,
encoding, and values decoded by xarray.
"""

import os
from collections.abc import Callable, Container, Iterable, Mapping
from functools import wraps
from typing import Any, NamedTuple

import xarray as xr
from xarray.backends import BackendEntrypoint
from xarray.backends.common import BACKEND_ENTRYPOINTS
from xarray.backends.store import StoreBackendEntrypoint

from . import _opening
from ._array import Array
from ._dataset import Dataset
from ._errors import MissingGroupError
from ._groups import Group, arrays_in, groups_of, is_catalogue
from ._store import CorridorStore

# Locations that nobody else can open.
_OURS = ("corridor://", "ssh://", "await://", "synthetic:")
# Parameters that are those of `corridor.open`.
_OPENING = ("token", "memory", "rule", "compression", "link", "controller")
# Most groups that an error names.
_MAX_LISTED = 20


class CorridorBackend(BackendEntrypoint):
    """Opens what :func:`corridor.open` opens. Variables are read when their values are needed."""

    description = "Arrays that live elsewhere, through a Corridor server"
    url = "https://github.com/corridor-project/corridor"
    supports_groups = True

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        level: int = 0,
        token: str | None = None,
        memory: str | None = None,
        rule: str = "auto",
        compression: str | None = None,
        link: str | None = None,
        controller: str | None = None,
    ) -> xr.Dataset:
        """As xarray's other engines open a file.

        Variables of volumes that a file places in the world (NIfTI, Analyze, MGH, NRRD) have the attributes
        ``world_from_voxel``, the sixteen numbers of :attr:`corridor.Array.world_from_voxel` row by row, and ``world_units``.

        Parameters
        ----------
        filename_or_obj : str or os.PathLike
            A location as for :func:`corridor.open`. Of one that ends with the name of an array, this one with its
            coordinates; of a server's (``corridor://HOST/``) all data sets as one, merged where they fit together, else
            each with its name in front of those of its variables and dimensions.
        drop_variables, mask_and_scale, decode_times, concat_characters, decode_coords, use_cftime, decode_timedelta
            As for :func:`xarray.open_dataset`.
        group : str, optional
            A group of the file, or a data set of a server: its path.
        level : int
            A coarser resolution; variables that have not so many levels are given at their coarsest.
        token, memory, rule, compression, link, controller
            As for :func:`corridor.open`.

        Returns
        -------
        xarray.Dataset
            Its variables are read when their values are needed; the connection ends with the last of them.

        Warns
        -----
        UserWarning
            For variables that are left out, with the reason.

        Raises
        ------
        corridor.MissingGroupError
            Where there is no such group, naming those that there are.
        """
        way = _opening.Options(token, memory, rule, compression, link, controller)
        decoding = {
            "mask_and_scale": mask_and_scale,
            "decode_times": decode_times,
            "concat_characters": concat_characters,
            "decode_coords": decode_coords,
            "use_cftime": use_cftime,
            "decode_timedelta": decode_timedelta,
        }
        file = _File.open(filename_or_obj, way, level, _names(drop_variables), decoding)
        return file.whole(group)

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        level: int = 0,
        **options: Any,
    ) -> dict[str, xr.Dataset]:
        """Every group as a data set of its own, by its path (:func:`xarray.open_groups`); data sets of a server are groups of
        it. Parameters as for :meth:`open_dataset`; with ``group`` only those in it, by their paths from there."""
        way = _opening.Options(**{name: options.pop(name) for name in _OPENING if name in options})
        file = _File.open(filename_or_obj, way, level, _names(drop_variables), options)
        return file.groups(group)

    def open_datatree(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        **options: Any,
    ) -> Any:
        """Every group as a node of a tree (:func:`xarray.open_datatree`). Parameters as for :meth:`open_groups_as_dict`."""
        found = self.open_groups_as_dict(filename_or_obj, drop_variables=drop_variables, **options)
        tree = xr.DataTree.from_dict(found)
        for path, dataset in found.items():
            tree[path].set_close(dataset._close)
        return tree

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """True for ``corridor://``, ``ssh://``, ``await://`` and ``synthetic:``."""
        return _is_ours(filename_or_obj)


class _File(NamedTuple):
    """A data set that is open, and how it is to be shown."""

    dataset: Dataset
    found: dict[str, Group]
    only: Array | None
    level: int
    dropped: frozenset[str]
    decoding: Mapping[str, Any]
    source: str

    @classmethod
    def open(
        cls, location: Any, way: _opening.Options, level: int, dropped: frozenset[str], decoding: Mapping[str, Any]
    ) -> "_File":
        text = _located(location)
        opened = _opening.opened(text, way)
        dataset, only = (opened.dataset, opened) if isinstance(opened, Array) else (opened, None)
        return cls(dataset, groups_of(dataset), only, level, dropped, decoding, text.split("#", 1)[0])

    def whole(self, path: str | None) -> xr.Dataset:
        """Opens the group at a path; without one the root group, or all data sets of a catalogue."""
        if self.only is not None and path is None:
            return self._around(self.only)
        if path is None and is_catalogue(self.dataset):
            return self._merged()
        group = self._group(path)
        self._warn(group)
        return self._opened(group, arrays_in(self.dataset, group.path))

    def groups(self, path: str | None) -> dict[str, xr.Dataset]:
        """Opens the groups at a path and below it, by their paths from there."""
        top = self._group(path)
        inside = [g for g in self.found.values() if _lies_in(g.path, top.path)]
        self._warn(*inside)
        arrays: dict[str, dict[str, Array]] = {g.path: {} for g in inside}
        for name, array in self.dataset.items():
            parent, _, own = name.strip("/").rpartition("/")
            if parent in arrays:
                arrays[parent][own] = array
        return {_shown(g.path, top.path): self._opened(g, arrays[g.path]) for g in inside}

    def _group(self, path: str | None) -> Group:
        if path is not None and not isinstance(path, str):
            raise ValueError(f"group must be a string or None, found {path!r}")
        group = self.found.get((path or "").strip("/"))
        if group is None:
            listed = [path or "/" for path in list(self.found)[:_MAX_LISTED]]
            more = f" and {len(self.found) - _MAX_LISTED} more" if len(self.found) > _MAX_LISTED else ""
            raise MissingGroupError(f"expected one of the groups {listed}{more}, found {path!r}")
        return group

    def _around(self, array: Array) -> xr.Dataset:
        """One array with what it names as its coordinates."""
        parent, _, own = array.name.strip("/").rpartition("/")
        named = {*array.dims, *str(array.attrs.get("coordinates", "")).split()}
        inside = arrays_in(self.dataset, parent)
        return self._opened(self.found[parent], {n: a for n, a in inside.items() if n == own or n in named})

    def _merged(self) -> xr.Dataset:
        """The data sets of a catalogue, together: those that do not fit have their names in front of all that is theirs."""
        members = [group for group in self.found.values() if group.is_dataset]
        root = self.found[""]
        self._warn(root, *members)
        merged = self._opened(root, arrays_in(self.dataset, ""))
        for group in members:
            one = self._opened(group, arrays_in(self.dataset, group.path))
            if len(members) == 1 or _fits(one, merged):
                merged = merged.merge(one, compat="equals", join="exact", combine_attrs="drop_conflicts")
            else:
                names = {name: f"{group.path}/{name}" for name in (*one.variables, *one.sizes)}
                merged = merged.merge(one.rename(names), combine_attrs="drop_conflicts")
        return merged

    def _opened(self, group: Group, arrays: Mapping[str, Array]) -> xr.Dataset:
        at_level = {
            name: array.level(min(self.level, len(array.levels) - 1))
            for name, array in arrays.items()
            if name not in self.dropped
        }
        store = CorridorStore(
            group,
            at_level,
            _attributes_of(self.dataset.attrs, group.path, self.found),
            dropped=self.dropped,
            is_decoded=bool(self.decoding.get("mask_and_scale", True)),
            source=self.source,
        )
        opened = StoreBackendEntrypoint().open_dataset(store, **self.decoding)
        opened.encoding["source"] = self.source
        return opened

    def _warn(self, *groups: Group) -> None:
        """Warns of variables in these groups that are left out."""
        paths = {group.path for group in groups}
        left = {}
        for name, what in self.dataset.left_out.items():
            parent, _, own = name.strip("/").rpartition("/")
            if parent in paths and own not in self.dropped:
                left[name] = what
        _opening.warn(self.dataset, left)


def _lies_in(path: str, top: str) -> bool:
    return not top or path == top or path.startswith(f"{top}/")


def _shown(path: str, top: str) -> str:
    """A path as those who ask for groups get it.

    >>> _shown("", ""), _shown("a/b", ""), _shown("a/b", "a"), _shown("a", "a")
    ('/', '/a/b', 'b', '.')
    """
    if not top:
        return f"/{path}"
    return path.removeprefix(top).strip("/") or "."


def _names(given: str | Iterable[str] | None) -> frozenset[str]:
    return frozenset({given} if isinstance(given, str) else given or ())


def _attributes_of(attributes: Mapping[str, Any], group: str, groups: Container[str]) -> dict[str, Any]:
    """Attributes of one group: Corridor puts the paths of groups in front of the names of their attributes.

    >>> _attributes_of({"title": 1, "m/s": 2, "a/title": 3}, "", {"", "a"}), _attributes_of({"a/title": 3}, "a", {"", "a"})
    ({'title': 1, 'm/s': 2}, {'title': 3})
    """
    prefix = f"{group}/" if group else ""

    def is_own(name: str) -> bool:
        ends = (place for place, letter in enumerate(name) if letter == "/")
        return not any(f"{prefix}{name[:end]}" in groups for end in ends)

    inside = {name.removeprefix(prefix): value for name, value in attributes.items() if name.startswith(prefix)}
    return {name: value for name, value in inside.items() if is_own(name)}


def _fits(one: xr.Dataset, merged: xr.Dataset) -> bool:
    """Whether two data sets share nothing but coordinates that are equal, and dimensions of the same sizes."""
    if any(merged.sizes.get(dim, size) != size for dim, size in one.sizes.items()):
        return False
    shared = one.variables.keys() & merged.variables.keys()
    are_coordinates = shared <= one.coords.keys() and shared <= merged.coords.keys()
    return are_coordinates and all(_is_same(one[name].variable, merged[name].variable) for name in shared)


def _is_same(one: Any, other: Any) -> bool:
    return bool(one.equals(other))


def _located(location: Any) -> str:
    """A location as text; paths are absolute, for processes that work elsewhere."""
    if not isinstance(location, (str, os.PathLike)):
        raise TypeError(f"expected a path or a URL, found {type(location).__name__}; files that are open cannot be sent")
    text = os.fspath(location)
    if "://" in text or text.startswith("synthetic:"):
        return text
    return os.path.abspath(os.path.expanduser(text))


def _is_ours(location: Any) -> bool:
    return isinstance(location, str) and location.startswith(_OURS)


def _leave_ours(engine: type[BackendEntrypoint]) -> None:
    """Keeps an engine from claiming locations of Corridor: netCDF4's claims every URL, before other engines are asked."""
    claims: Callable[..., bool] = engine.guess_can_open
    if getattr(claims, "leaves_corridor", False):
        return

    @wraps(claims)
    def guess_can_open(self: BackendEntrypoint, filename_or_obj: Any) -> bool:
        return not _is_ours(filename_or_obj) and claims(self, filename_or_obj)

    guess_can_open.leaves_corridor = True  # type: ignore[attr-defined]
    engine.guess_can_open = guess_can_open  # type: ignore[method-assign]


# This module is loaded when xarray looks for its engines, before it asks any of them.
for _name in ("netcdf4", "h5netcdf"):
    if _name in BACKEND_ENTRYPOINTS:
        _leave_ours(BACKEND_ENTRYPOINTS[_name][1])
