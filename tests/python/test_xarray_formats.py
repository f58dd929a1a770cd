"""The xarray engine compared with the engine for the file's format: contents, attributes and encoding."""

import pathlib
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import conftest
import corridor
import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

Make = Callable[[pathlib.Path], None]


def grouped(path: pathlib.Path) -> None:
    """Groups: one with nothing in it, one with attributes only, one with variables over dimensions of the root."""
    with netCDF4.Dataset(path, "w") as file:
        file.title = "groups"
        file.createDimension("x", 3)
        file.createVariable("x", "f8", ("x",))[:] = [1, 2, 3]
        file.createGroup("empty")
        file.createGroup("said").note = np.float32(1.5)
        inner = file.createGroup("deep/inner")
        inner.createVariable("a", "i2", ("x",))[:] = [4, 5, 6]
        inner.createDimension("t", None)
        inner.createVariable("b", "f4", ("t", "x"))[:] = np.ones((2, 3))


def said_only(path: pathlib.Path) -> None:
    """Attributes and no variable."""
    with netCDF4.Dataset(path, "w") as file:
        file.title, file.number, file.list = "nothing else", np.int16(3), np.array([1.5, 2.5], "f4")


def groups_only(path: pathlib.Path) -> None:
    """Groups and nothing in them."""
    with netCDF4.Dataset(path, "w") as file:
        file.createGroup("a/b").createGroup("c")


def packed(path: pathlib.Path) -> None:
    """Packing, every type of attribute that decoding looks at, filters, chunks, an axis that grows."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("y", 4)
        time = file.createVariable("time", "i4", ("time",))
        time.units, time.calendar = "hours since 2001-01-30", "noleap"
        time[:] = [0, 6, 12]
        for name, scale in {"single": np.float32(0.1), "double": np.float64(0.1), "whole": np.int16(2)}.items():
            one = file.createVariable(name, "i2", ("time", "y"), fill_value=-9, zlib=True, complevel=5, chunksizes=(1, 4))
            one.set_auto_maskandscale(False)
            one.scale_factor, one.add_offset = scale, type(scale)(3)
            one[:] = np.arange(12).reshape(3, 4)
            one[1, 2] = -9
        bits = file.createVariable("bits", "i1", ("y",), fill_value=-1, shuffle=True, fletcher32=True, chunksizes=(2,))
        bits.set_auto_maskandscale(False)
        bits._Unsigned = "true"
        bits[:] = [-1, -2, 3, 4]
        plain = file.createVariable("plain", "f4", ("y",), contiguous=True)
        plain.missing_value = np.float32(1e20)
        plain[:] = [1, 2, 1e20, np.nan]
        file.createVariable("scalar", "f8", ()).assignValue(2.5)
        file.createVariable("never", "f4", ("y",))


def classic(path: pathlib.Path) -> None:
    """NetCDF-3, with records."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("y", 3)
        one = file.createVariable("one", "i2", ("time", "y"))
        one.set_auto_maskandscale(False)
        one.scale_factor, one.missing_value = np.float32(0.5), np.int16(7)
        one[:] = np.arange(9).reshape(3, 3)
        file.createVariable("two", "f8", ("y",))[:] = [1, 2, 3]


def stored(zarr_format: int) -> Make:
    """A Zarr store of a version, by xarray."""

    def make(path: pathlib.Path) -> None:
        data = xr.Dataset(
            {
                "t": (("time", "x"), np.where(np.arange(12.0) > 9, np.nan, np.arange(12.0)).reshape(3, 4), {"units": "K"}),
                "n": (("x",), np.arange(4, dtype="i2"), {"flag_values": [1, 2]}),
                "flag": (("x",), np.array([True, False, True, True])),
            },
            {"time": xr.date_range("2001-01-30", periods=3), "x": [1.5, 2.5, 3.5, 4.5]},
            {"title": "stored", "number": 3, "nothing": None, "map": {"a": [1, {"b": True}]}},
        )
        data.to_zarr(path, zarr_format=zarr_format, encoding={"t": {"chunks": (2, 4)}})
        data[["n"]].to_zarr(path, group="deep/inner", mode="a", zarr_format=zarr_format)

    return make


def sharded(path: pathlib.Path) -> None:
    """Shards, with codecs of their own."""
    group = zarr.open_group(path, mode="w", zarr_format=3)
    how = {"chunks": (2, 2), "shards": (4, 8), "fill_value": 1, "dimension_names": ("y", "x")}
    group.create_array("a", shape=(8, 8), dtype="f4", **how)[:] = 2


FILES: dict[str, tuple[str, str, Make]] = {
    "grouped": ("g.nc", "netcdf4", grouped),
    "said only": ("s.nc", "netcdf4", said_only),
    "groups only": ("o.nc", "netcdf4", groups_only),
    "packed": ("p.nc", "netcdf4", packed),
    "classic": ("c.nc", "netcdf4", classic),
    "zarr 2": ("z2.zarr", "zarr", stored(2)),
    "zarr 3": ("z3.zarr", "zarr", stored(3)),
    "sharded": ("sh.zarr", "zarr", sharded),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("formats")
    for name, _, make in FILES.values():
        make(folder / name)
    return folder


@pytest.fixture(scope="module")
def served(folder: pathlib.Path) -> Iterator[dict[str, str]]:
    """The address of each file, from one server; under the empty name that of the server."""
    names = [name for name, _, _ in FILES.values()]
    arguments = ("serve", *names, "--listen", "127.0.0.1:0", "--json")
    with conftest.running(folder, *arguments, lines=len(names)) as program:
        urls = [line["url"] for line in program.lines]
        found = {url.split("#")[0].rsplit("/", 1)[1]: url for url in urls}
        address, _, fragment = urls[0].partition("#")
        yield found | {"": f"{address.rsplit('/', 1)[0]}/#{fragment}"}


def encoded(variable: xr.Variable) -> dict[str, str]:
    """Encoding of a variable in a comparable form."""
    said = {key: f"{type(value).__name__} {value!r}" for key, value in variable.encoding.items() if key != "source"}
    return said | {"dtype": np.dtype(variable.encoding["dtype"]).str}


def check_alike(found: xr.Dataset, expected: xr.Dataset) -> None:
    xr.testing.assert_identical(found.load(), expected.load())
    for name, variable in expected.variables.items():
        one = found[name].variable
        assert one.dtype == variable.dtype, name
        assert encoded(one) == encoded(variable), name
        types = {key: (type(value), getattr(value, "dtype", None)) for key, value in variable.attrs.items()}
        assert {key: (type(value), getattr(value, "dtype", None)) for key, value in one.attrs.items()} == types, name
    assert found.encoding.get("unlimited_dims") == expected.encoding.get("unlimited_dims")


@pytest.mark.parametrize("how", [{}, {"mask_and_scale": False, "decode_times": False}, {"decode_cf": False}], ids=str)
@pytest.mark.parametrize("where", ["local", "served"])
@pytest.mark.parametrize("kind", FILES)
def test_every_group_is_as_the_format_s_engine_gives_it(
    folder: pathlib.Path, served: dict[str, str], kind: str, where: str, how: dict[str, Any]
) -> None:
    name, engine, _ = FILES[kind]
    expected = xr.open_groups(folder / name, engine=engine, **how)
    found = xr.open_groups(served[name] if where == "served" else folder / name, engine="corridor", **how)
    assert set(found) == set(expected)
    for path, group in expected.items():
        check_alike(found[path], group)


def test_a_tree_of_groups(folder: pathlib.Path, served: dict[str, str]) -> None:
    with xr.open_datatree(folder / "g.nc", engine="netcdf4") as expected:
        found = xr.open_datatree(served["g.nc"], engine="corridor")
        xr.testing.assert_identical(found, expected)
        below = xr.open_datatree(served["g.nc"], engine="corridor", group="deep")
        xr.testing.assert_identical(below, xr.open_datatree(folder / "g.nc", engine="netcdf4", group="deep"))
        assert below.inner.a.values.tolist() == [4, 5, 6]


def test_the_engine_is_found_by_the_address(served: dict[str, str]) -> None:
    """Although that of netCDF4 claims everything with `://`."""
    assert xr.open_dataset(served["p.nc"]).single.dims == ("time", "y")
    assert "deep" in xr.open_datatree(served["g.nc"]).children


def test_all_data_sets_of_a_server_are_one(served: dict[str, str]) -> None:
    data = xr.open_dataset(served[""], engine="corridor")
    assert data["one"].dims == ("time", "y"), "what fits together has its own names"
    assert data["p.nc/single"].sizes == {"p.nc/time": 3, "p.nc/y": 4}
    tree = xr.open_datatree(served[""], engine="corridor")
    assert set(tree.children) == {name for name, _, _ in FILES.values()}
    assert tree["g.nc/deep/inner"].a.values.tolist() == [4, 5, 6]
    assert xr.open_dataset(served[""], engine="corridor", group="s.nc").attrs["title"] == "nothing else"


def test_data_sets_that_fit_share_their_coordinates(tmp_path: pathlib.Path) -> None:
    for name in ("tas", "pr"):
        xr.Dataset({name: ("x", [1.0, 2.0])}, {"x": [10.0, 20.0]}).to_netcdf(tmp_path / f"{name}.nc", engine="netcdf4")
    with conftest.running(
        tmp_path, "serve", "tas.nc", "pr.nc", "--listen", "127.0.0.1:0", "--json", lines=2
    ) as program:
        address, _, fragment = program.url.partition("#")
        data = xr.open_dataset(f"{address.rsplit('/', 1)[0]}/#{fragment}")
        assert set(data.data_vars) == {"tas", "pr"} and data.x.values.tolist() == [10, 20]


def test_variables_left_out_cause_a_warning(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "odd.h5"
    with h5py.File(path, "w") as file:
        file["fine"] = np.arange(3)
        file["grid/other"] = np.arange(2)
        file["reference"] = np.array([file["fine"].ref], dtype=h5py.ref_dtype)
    with pytest.warns(UserWarning, match="odd.h5.*left out: `reference` .*reference") as warned:
        opened = corridor.open(path)
    assert warned[0].filename == __file__, "it is told where the person's code opens it"
    assert "reference" in opened.left_out
    with pytest.warns(UserWarning, match="`reference`") as warned:
        data = xr.open_dataset(path, engine="corridor")
    assert warned[0].filename == __file__ and set(data) == {"fine"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xr.open_dataset(path, engine="corridor", drop_variables="reference")
        xr.open_dataset(path, engine="corridor", group="grid")


def test_paths_are_absolute(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    data = xr.open_dataset("p.nc", engine="corridor")
    assert data.encoding["source"] == str(folder / "p.nc") == data.single.encoding["source"]
    with pytest.raises(FileNotFoundError):
        xr.open_dataset("absent.nc", engine="corridor")
    with pytest.raises(TypeError, match="expected a path"), open(folder / "p.nc", "rb") as file:
        xr.open_dataset(file, engine="corridor")


def test_a_missing_group_says_which_there_are(served: dict[str, str]) -> None:
    with pytest.raises(FileNotFoundError, match=r"\['/', 'empty', 'said'"):
        xr.open_dataset(served["g.nc"], group="absent")
    with pytest.raises(ValueError, match="must be a string"):
        xr.open_dataset(served["g.nc"], group=("a",))  # type: ignore[arg-type]


def test_one_array_comes_with_its_coordinates(served: dict[str, str]) -> None:
    address, _, fragment = served["z3.zarr"].partition("#")
    data = xr.open_dataset(f"{address}/t#{fragment}")
    assert set(data.variables) == {"t", "time", "x"}


def test_many_files_are_one(tmp_path: pathlib.Path) -> None:
    whole = xr.Dataset({"t": ("time", np.arange(6.0))}, {"time": xr.date_range("2001-01-01", periods=6)})
    for part in range(2):
        whole.isel(time=slice(3 * part, 3 * part + 3)).to_netcdf(tmp_path / f"{part}.nc", engine="netcdf4")
    found = xr.open_mfdataset(str(tmp_path / "*.nc"), engine="corridor")
    xr.testing.assert_equal(found.compute(scheduler="processes", num_workers=1), whole)


def test_values_come_while_an_event_loop_runs(served: dict[str, str]) -> None:
    import asyncio

    data = xr.open_dataset(served["p.nc"], engine="corridor")

    async def both() -> tuple[xr.Dataset, xr.DataArray]:
        return await asyncio.gather(data.load_async(), data.double.isel(y=[3, 1]).load_async())

    whole, part = asyncio.run(both())
    assert whole.single.dtype == np.float32
    assert np.array_equal(part.values, whole.double.values[:, [3, 1]], equal_nan=True)


def test_growing_data_stay_readable(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createVariable("time", "f8", ("time",))[:] = [0, 1, 2]
        file.createVariable("t", "f4", ("time",), chunksizes=(1,))[:] = [5, 6, 7]
    with conftest.running(tmp_path, "serve", path.name, "--listen", "127.0.0.1:0", "--json") as program:
        data = xr.open_dataset(program.url)
        with netCDF4.Dataset(path, "a") as file:
            file["time"][3:5] = [3, 4]
            file["t"][3:5] = [8, 9]
        # The server looks at its files once a second.
        time.sleep(2.1)
        assert data.t.values.tolist() == [5, 6, 7]
        assert xr.open_dataset(program.url).t.values.tolist() == [5, 6, 7, 8, 9]


def test_pickled_data_sets_are_read_in_other_processes(served: dict[str, str]) -> None:
    import pickle

    data = xr.open_dataset(served["p.nc"], engine="corridor", chunks={})
    again = pickle.loads(pickle.dumps(data))
    xr.testing.assert_identical(again.compute(), data.compute())


def test_attributes_reach_a_copy(folder: pathlib.Path, served: dict[str, str], tmp_path: pathlib.Path) -> None:
    """A file that is opened and written again is the same, packing included."""
    xr.open_dataset(served["p.nc"]).to_netcdf(tmp_path / "copy.nc", engine="netcdf4")
    with xr.open_dataset(folder / "p.nc", engine="netcdf4", decode_cf=False) as expected:
        with xr.open_dataset(tmp_path / "copy.nc", engine="netcdf4", decode_cf=False) as copy:
            assert {n: v.dtype for n, v in copy.variables.items()} == {n: v.dtype for n, v in expected.variables.items()}
            assert copy.single.encoding["complevel"] == 5 and copy.single.encoding["chunksizes"] == (1, 4)
            assert copy.encoding["unlimited_dims"] == {"time"}
            assert dict(copy.sizes) == dict(expected.sizes)
