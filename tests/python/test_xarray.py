"""The xarray engine against xarray's own engine for the same file."""

import pathlib
from collections.abc import Iterator

import conftest
import corridor
import h5py
import numpy as np
import pytest
import xarray as xr


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A climate file: packed values with gaps, time with a calendar, coordinates, a scalar, a group."""
    random_numbers = np.random.default_rng(5)
    values = random_numbers.normal(280, 10, (6, 10, 18))
    values[0, 3, 4] = np.nan
    data = xr.Dataset(
        {
            "t2m": (("time", "lat", "lon"), values, {"units": "K", "long_name": "temperature"}),
            "gaps": (("lat", "lon"), np.where(values[1] > 280, values[1], np.nan).astype(np.float32)),
            "mask": (("lat", "lon"), (values[1] > 280).astype(np.int8)),
            "members": (("member",), np.arange(3, dtype=np.int32)),
        },
        coords={
            "time": xr.date_range("2001-01-30", periods=6, freq="6h"),
            "lat": np.linspace(-81, 81, 10),
            "lon": np.arange(18) * 20.0,
        },
        attrs={"title": "made"},
    )
    path = tmp_path_factory.mktemp("xarray") / "climate.nc"
    packing = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768}
    data.to_netcdf(
        path, engine="netcdf4", encoding={"t2m": packing | {"chunksizes": (2, 5, 9), "zlib": True}}
    )
    data[["mask"]].to_netcdf(path, engine="netcdf4", mode="a", group="forecast")
    return path


@pytest.fixture(scope="module")
def served(file: pathlib.Path) -> Iterator[str]:
    with conftest.running(file.parent, "serve", file.name, "--listen", "127.0.0.1:0", "--json") as program:
        yield program.url


def test_equals_the_format_s_own_engine(file: pathlib.Path, served: str) -> None:
    with xr.open_dataset(file, engine="netcdf4") as expected:
        found = xr.open_dataset(served, engine="corridor")
        xr.testing.assert_equal(found, expected)
        assert {n: v.dtype for n, v in found.variables.items()} == {n: v.dtype for n, v in expected.variables.items()}
        assert found.t2m.attrs == expected.t2m.attrs
        assert found.attrs["title"] == "made"
        assert np.array_equal(found.time.values, expected.time.values)
        raw = xr.open_dataset(served, engine="corridor", mask_and_scale=False, decode_times=False)
        with xr.open_dataset(file, engine="netcdf4", mask_and_scale=False, decode_times=False) as stored:
            assert raw.t2m.dtype == np.int16
            xr.testing.assert_equal(raw, stored)


def test_is_chosen_by_the_location() -> None:
    """netCDF4's engine claims everything with `://` but locations of Corridor."""
    assert "waves" in xr.open_dataset("synthetic:waves?shape=8,8,8&dtype=f32")
    assert "corridor" in xr.backends.list_engines()
    assert xr.backends.list_engines()["corridor"].guess_can_open("corridor://host/run42.nc")


def test_reads_only_the_selection(served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    read = corridor.Array.__getitem__

    def counted(self: corridor.Array, key: object) -> np.ndarray:
        found = read(self, key)
        asked.append((self.name, found.shape))
        return found

    monkeypatch.setattr(corridor.Array, "__getitem__", counted)
    data = xr.open_dataset(served, engine="corridor")
    assert all(name in ("time", "lat", "lon") for name, _ in asked), "only indexes are read at once"
    asked.clear()
    assert data.t2m.isel(time=2, lat=slice(None, None, -3)).values.shape == (4, 18)
    assert asked == [("t2m", (4, 18))]


@pytest.mark.parametrize("key", [{"lat": [1, 7, 3]}, {"lon": slice(15, 2, -4)}, {"time": -1, "lon": [0]}])
def test_outer_and_vectorized_indexing(file: pathlib.Path, served: str, key: dict) -> None:
    with xr.open_dataset(file, engine="netcdf4") as expected:
        found = xr.open_dataset(served, engine="corridor").isel(key)
        xr.testing.assert_equal(found, expected.isel(key))


def test_dask_takes_the_stored_chunks(file: pathlib.Path, served: str) -> None:
    data = xr.open_dataset(served, engine="corridor", chunks={})
    assert data.t2m.chunks == ((2, 2, 2), (5, 5), (9, 9))
    with xr.open_dataset(file, engine="netcdf4") as expected:
        np.testing.assert_allclose(
            data.t2m.mean("time").compute(scheduler="threads"), expected.t2m.mean("time"), rtol=1e-12
        )
        one_other = data.t2m.sum().compute(scheduler="processes", num_workers=1)
        np.testing.assert_allclose(one_other, expected.t2m.sum(), rtol=1e-12)


def test_groups_and_levels(file: pathlib.Path, served: str) -> None:
    with xr.open_dataset(file, engine="netcdf4", group="forecast") as expected:
        assert np.array_equal(
            xr.open_dataset(served, engine="corridor", group="forecast").mask, expected.mask
        )
    with pytest.raises(corridor.MissingGroupError, match="forecast"):
        xr.open_dataset(served, engine="corridor", group="absent")
    coarse = xr.open_dataset("synthetic:waves?shape=256,256,256&dtype=f32", engine="corridor", level=2)
    assert coarse.waves.shape == (64, 64, 64)


def test_a_fill_value_that_no_element_can_have_is_left_out(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "odd.nc"
    xr.Dataset({"t": (("x",), np.array([1, 2, 3], "i2"))}).to_netcdf(path, engine="netcdf4")
    with h5py.File(path, "a") as file:
        file["t"].attrs["_FillValue"] = np.float64("nan")
        file["t"].attrs["scale_factor"] = 0.5
    with xr.open_dataset(path, engine="netcdf4") as expected, pytest.warns(xr.SerializationWarning, match="_FillValue"):
        xr.testing.assert_equal(xr.open_dataset(str(path), engine="corridor"), expected)


def test_axes_of_one_name_and_different_coordinates_stay_apart(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "staggered.h5"
    with h5py.File(path, "w") as file:
        mesh = file.create_group("E")
        mesh.attrs["axisLabels"] = np.array(["y", "x"], dtype="S1")
        mesh.attrs["gridSpacing"] = [2.0, 1.0]
        mesh.attrs["gridGlobalOffset"] = [0.0, 10.0]
        for name, position in {"p": [0.0, 0.5], "q": [0.5, 0.0], "r": [0.0, 0.0]}.items():
            mesh[name] = np.zeros((3, 4), "f4")
            mesh[name].attrs["position"] = position
    data = xr.open_dataset(str(path), engine="corridor", group="E")
    along_x = {name: list(data[name][data[name].dims[1]].values) for name in "pqr"}
    assert along_x == {"p": [10.5, 11.5, 12.5, 13.5], "q": [10, 11, 12, 13], "r": [10, 11, 12, 13]}
    along_y = {name: list(data[name][data[name].dims[0]].values) for name in "pqr"}
    assert along_y == {"p": [0, 2, 4], "q": [1, 3, 5], "r": [0, 2, 4]}
    assert data["q"].dims[1] == data["r"].dims[1], "those alike share a name"
