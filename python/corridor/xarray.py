"""The xarray engine: ``xr.open_dataset("corridor://host/run42.nc")``, lazy, also with dask.

It returns what xarray's engine for the format returns for the file itself: names, dimensions, types, attributes, encoding,
and values decoded by xarray.
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

# Prefixes of locations that no other engine can open.
_OURS = ("corridor://", "ssh://", "await://", "synthetic:")
# Parameters shared with `corridor.open`.
_OPENING = ("token", "memory", "rule", "compression", "link", "controller")
# Maximum number of groups named by an error.
_MAX_LISTED = 20


class CorridorBackend(BackendEntrypoint):
    """Backend for locations of :func:`corridor.open`. Variables are read when their values are needed."""

    description = "Remote arrays through a Corridor server"
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
        """Open a location as other engines of xarray open a file.

        Variables of volumes that a file places in the world (NIfTI, Analyze, MGH, NRRD) have the attributes
        ``world_from_voxel``, the sixteen numbers of :attr:`corridor.Array.world_from_voxel` row by row, and ``world_units``.

        Parameters
        ----------
        filename_or_obj : str or os.PathLike
            A location as for :func:`corridor.open`. If it ends with the name of an array, the result is this array with its
            coordinates; for a server (``corridor://HOST/``) it has all data sets, merged if they fit together, otherwise
            with the data set's name in front of the names of its variables and dimensions.
        drop_variables, mask_and_scale, decode_times, concat_characters, decode_coords, use_cftime, decode_timedelta
            As for :func:`xarray.open_dataset`.
        group : str, optional
            A group of the file, or a data set of a server: its path.
        level : int
            A coarser resolution; variables with fewer levels are returned at their coarsest one.
        token, memory, rule, compression, link, controller
            As for :func:`corridor.open`.

        Returns
        -------
        xarray.Dataset
            Its variables are read when their values are needed; the connection closes with the last of them.

        Warns
        -----
        UserWarning
            For variables that cannot be read, with the reason.

        Raises
        ------
        corridor.MissingGroupError
            If there is no such group; the error lists the groups.
        """
        open_options = _opening.Options(token, memory, rule, compression, link, controller)
        decoding = {
            "mask_and_scale": mask_and_scale,
            "decode_times": decode_times,
            "concat_characters": concat_characters,
            "decode_coords": decode_coords,
            "use_cftime": use_cftime,
            "decode_timedelta": decode_timedelta,
        }
        file = _File.open(filename_or_obj, open_options, level, _names(drop_variables), decoding)
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
        """Open every group as a data set of its own, by path (:func:`xarray.open_groups`); data sets of a server are groups.
        Parameters as for :meth:`open_dataset`; with ``group``, only the groups in it, by their paths relative to it."""
        open_options = _opening.Options(**{name: options.pop(name) for name in _OPENING if name in options})
        file = _File.open(filename_or_obj, open_options, level, _names(drop_variables), options)
        return file.groups(group)

    def open_datatree(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        **options: Any,
    ) -> Any:
        """Open every group as a node of a tree (:func:`xarray.open_datatree`). Parameters as for :meth:`open_groups_as_dict`."""
        found = self.open_groups_as_dict(filename_or_obj, drop_variables=drop_variables, **options)
        tree = xr.DataTree.from_dict(found)
        for path, dataset in found.items():
            tree[path].set_close(dataset._close)
        return tree

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """True for ``corridor://``, ``ssh://``, ``await://`` and ``synthetic:``."""
        return _is_ours(filename_or_obj)


class _File(NamedTuple):
    """An open data set and the options of its presentation."""

    dataset: Dataset
    found: dict[str, Group]
    only: Array | None
    level: int
    dropped: frozenset[str]
    decoding: Mapping[str, Any]
    source: str

    @classmethod
    def open(
        cls, location: Any, options: _opening.Options, level: int, dropped: frozenset[str], decoding: Mapping[str, Any]
    ) -> "_File":
        text = _located(location)
        opened = _opening.open_location(text, options)
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
        """Opens one array with its coordinates."""
        parent, _, own = array.name.strip("/").rpartition("/")
        named = {*array.dims, *str(array.attrs.get("coordinates", "")).split()}
        inside = arrays_in(self.dataset, parent)
        return self._opened(self.found[parent], {n: a for n, a in inside.items() if n == own or n in named})

    def _merged(self) -> xr.Dataset:
        """Opens the data sets of a catalogue as one; variables and dimensions that do not fit get the data set's name in front."""
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
        """Warns of variables in these groups that cannot be read."""
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
    """Returns a path relative to the group that was requested.

    >>> _shown("", ""), _shown("a/b", ""), _shown("a/b", "a"), _shown("a", "a")
    ('/', '/a/b', 'b', '.')
    """
    if not top:
        return f"/{path}"
    return path.removeprefix(top).strip("/") or "."


def _names(given: str | Iterable[str] | None) -> frozenset[str]:
    return frozenset({given} if isinstance(given, str) else given or ())


def _attributes_of(attributes: Mapping[str, Any], group: str, groups: Container[str]) -> dict[str, Any]:
    """Returns the attributes of one group. In descriptions the group's path is in front of their names.

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
    """True if two data sets share only equal coordinates and dimensions of equal size."""
    if any(merged.sizes.get(dim, size) != size for dim, size in one.sizes.items()):
        return False
    shared = one.variables.keys() & merged.variables.keys()
    are_coordinates = shared <= one.coords.keys() and shared <= merged.coords.keys()
    return are_coordinates and all(_is_same(one[name].variable, merged[name].variable) for name in shared)


def _is_same(one: Any, other: Any) -> bool:
    return bool(one.equals(other))


def _located(location: Any) -> str:
    """Returns a location as a string; paths become absolute, so that other processes can open them."""
    if not isinstance(location, (str, os.PathLike)):
        raise TypeError(f"expected a path or a URL, found {type(location).__name__}; open files are not supported")
    text = os.fspath(location)
    if "://" in text or text.startswith("synthetic:"):
        return text
    return os.path.abspath(os.path.expanduser(text))


def _is_ours(location: Any) -> bool:
    return isinstance(location, str) and location.startswith(_OURS)


def _leave_ours(engine: type[BackendEntrypoint]) -> None:
    """Prevents an engine from claiming locations of Corridor: the engine of netCDF4 claims every URL."""
    claims: Callable[..., bool] = engine.guess_can_open
    if getattr(claims, "leaves_corridor", False):
        return

    @wraps(claims)
    def guess_can_open(self: BackendEntrypoint, filename_or_obj: Any) -> bool:
        return not _is_ours(filename_or_obj) and claims(self, filename_or_obj)

    guess_can_open.leaves_corridor = True  # type: ignore[attr-defined]
    engine.guess_can_open = guess_can_open  # type: ignore[method-assign]


# xarray imports this module when it looks for engines, before it uses any of them.
for _name in ("netcdf4", "h5netcdf"):
    if _name in BACKEND_ENTRYPOINTS:
        _leave_ours(BACKEND_ENTRYPOINTS[_name][1])
