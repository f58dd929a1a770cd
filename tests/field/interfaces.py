"""Interfaces that return values: the command line, Python, the xarray engine, Zarr over HTTP."""

import json
import pathlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import xarray as xr
import zarr
from conftest import corridor

import corridor as package

Key = tuple[slice, ...]


@dataclass
class Refused:
    """A variable that is left out, with the reason that a person reads."""

    reason: str


def quoted(name: str) -> str:
    """A name as a selection takes it on the command line."""
    quote = "'" if '"' in name else '"'
    return f"{quote}{name}{quote}" if name else ""


def in_text(key: Key) -> str:
    return ", ".join(f"{k.start}:{k.stop}:{k.step}" for k in key)


class CommandLine:
    """`info --json`, `get` and `get --decoded`: one process for all selections of a file."""

    def __init__(self, home: pathlib.Path, location: str):
        self.home, self.location = home, location
        done = corridor(home, "info", location, "--json")
        assert done.returncode == 0, f"info: {done.stderr}"
        self.described = json.loads(done.stdout)
        self.arrays = {a["name"]: a for a in self.described["arrays"]}
        self.left_out = {entry["name"]: entry["what"] for entry in self.described["left_out"]}

    def read(self, wanted: list[tuple[str, np.dtype, Key, tuple[int, ...]]], decoded: bool) -> list[np.ndarray]:
        """The elements of `(name, dtype, selection, shape)`, in this order."""
        listing, out = self.home / "selections.txt", self.home / "values.raw"
        listing.write_text("".join(f"{quoted(name)}[{in_text(key)}]\n" if key else f"{quoted(name)}[]\n"
                                   for name, _, key, _ in wanted))
        more = ["--decoded"] if decoded else []
        done = corridor(self.home, "get", self.location, "--selections", str(listing), *more, "-o", str(out))
        assert done.returncode == 0, f"get: {done.stderr}"
        data, at, found = out.read_bytes(), 0, []
        for _, dtype, _, shape in wanted:
            size = dtype.itemsize * int(np.prod(shape))
            found.append(np.frombuffer(data[at : at + size], dtype).reshape(shape))
            at += size
        assert at == len(data), f"expected {at} bytes, found {len(data)}"
        return found


def by_python(location: str) -> tuple[Callable[[str, bool], object], "package.Dataset"]:
    """Arrays of :func:`corridor.open` by name, stored or decoded; a :class:`Refused` for one that is left out."""
    opened = package.open(location)
    dataset = opened if isinstance(opened, package.Dataset) else opened.dataset

    def array(name: str, decoded: bool):
        name = name or next(iter(dataset), "")
        if name not in dataset:
            return Refused(dataset.left_out.get(name, "not there, and not named as left out"))
        return dataset[name].decoded if decoded else dataset[name]

    return array, dataset


def by_engine(location: str, group: str) -> xr.Dataset:
    """A group as xarray's engine gives it, with times as numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return xr.open_dataset(location, engine="corridor", group=group or None, decode_times=False,
                               decode_timedelta=False, decode_coords=False, concat_characters=False)


def by_http(zarr_url: str, token: str) -> zarr.Group:
    """The data set as zarr-python opens it over HTTP."""
    headers = {"headers": {"Authorization": f"Bearer {token}"}}
    return zarr.open_group(zarr_url, mode="r", storage_options=headers)


def xarray_by_http(zarr_url: str, token: str, group: str) -> xr.Dataset:
    """A group as xarray opens it over HTTP, with times as numbers."""
    headers = {"headers": {"Authorization": f"Bearer {token}"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return xr.open_zarr(zarr_url, group=group or None, storage_options=headers, decode_times=False,
                            decode_timedelta=False, decode_coords=False, chunks=None)
