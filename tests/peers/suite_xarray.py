"""xarray's own tests of its engines for NetCDF and Zarr: files are written by those engines, and read by `engine="corridor"`.

Where a test opens a file or a store that lies on the disk, it is given Corridor's engine instead; with CORRIDOR_PEERS_SERVED=1
through a server of its own.
"""

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import Any

import peers
import pytest
import xarray as xr
from corridor.xarray import CorridorBackend
from xarray.tests import test_backends, test_backends_datatree

OPENING = ("open_dataset", "load_dataset", "open_dataarray", "load_dataarray", "open_datatree", "load_datatree", "open_groups")
KNOWN = {None, "netcdf4", "h5netcdf", "scipy", "zarr"}
# Parameters of other engines, without effect on what is read.
DROPPED = {
    "auto_complex", "autoclose", "cache_members", "clobber", "consolidated", "diskless", "format", "lock", "mode",
    "persist", "phony_dims", "storage_options", "synchronizer", "zarr_format",
}
OURS = set(inspect.signature(CorridorBackend.open_dataset).parameters)
# No chunks were named.
DEFAULT = object()
running = ExitStack()


def located(path: Any) -> Any:
    """Location of a file: its path, or the URL of a server that has it."""
    if os.environ.get("CORRIDOR_PEERS_SERVED"):
        return peers.served(running, Path(os.fspath(path)))
    return path


def is_on_disk(path: Any) -> bool:
    """True for a file or a store that a test has written."""
    return isinstance(path, (str, os.PathLike)) and "://" not in str(path) and os.path.exists(path)


def by_corridor(function: Callable[..., Any], engine_of: str | None = None) -> Callable[..., Any]:
    """Wraps a function of xarray so that it opens files with Corridor's engine."""

    known = OURS | DROPPED | set(inspect.signature(function).parameters)

    @wraps(function)
    def opened(path: Any, *args: Any, engine: Any = engine_of, **options: Any) -> Any:
        inner = options.get("backend_kwargs") or {}
        asked = {**options, **inner}
        others = asked.keys() - known
        if not is_on_disk(path) or engine not in KNOWN or asked.get("mode", "r") != "r" or others or args:
            return function(path, *args, engine=engine, **options)
        kept = {n: v for n, v in options.items() if n not in DROPPED | {"backend_kwargs"}}
        kept |= {n: v for n, v in inner.items() if n not in DROPPED}
        peers.opened_by_us()
        return function(located(path), engine="corridor", **kept)

    return opened


def open_zarr(store: Any, chunks: Any = DEFAULT, **options: Any) -> Any:
    """Replaces `xarray.open_zarr` for local stores; calls that function for its own options."""
    known = {"group", "decode_cf", "mask_and_scale", "decode_times", "concat_characters", "decode_coords", "drop_variables"}
    if not is_on_disk(store) or set(options) - DROPPED - known:
        return plain_open_zarr(store, **options) if chunks is DEFAULT else plain_open_zarr(store, chunks=chunks, **options)
    return xr.open_dataset(store, engine="zarr", chunks={} if chunks is DEFAULT else chunks, **options)


plain_open_zarr = xr.open_zarr


def take_over() -> None:
    """Gives Corridor's engine to all that the tests open."""
    ours = {name: by_corridor(getattr(xr, name)) for name in OPENING if hasattr(xr, name)} | {"open_zarr": open_zarr}
    for module in (xr, test_backends, test_backends_datatree):
        for name in ours.keys() & vars(module).keys():
            setattr(module, name, ours[name])


if not os.environ.get("CORRIDOR_PEERS_PLAIN"):
    take_over()

globals().update(peers.fixtures_of(test_backends) | peers.fixtures_of(test_backends_datatree))


@pytest.fixture(autouse=True)
def ended_servers() -> Iterator[None]:
    """Servers of a test end with it."""
    yield
    running.close()


class TestNetCDF4(test_backends.TestNetCDF4Data):
    """NetCDF-4."""


class TestNetCDF4Dask(test_backends.TestNetCDF4ViaDaskData):
    """NetCDF-4 in dask's chunks."""


class TestNetCDF3(test_backends.TestNetCDF3ViaNetCDF4Data):
    """NetCDF-3."""


class TestNetCDF4Classic(test_backends.TestNetCDF4ClassicViaNetCDF4Data):
    """NetCDF-4 with the model of NetCDF-3."""


class TestZarr(test_backends.TestZarrDirectoryStore):
    """Zarr 2 and 3."""


class TestNetCDF4Tree(test_backends_datatree.TestNetCDF4DatatreeIO):
    """Groups of NetCDF-4."""


class TestZarrTree(test_backends_datatree.TestZarrDatatreeIO):
    """Groups of Zarr."""
