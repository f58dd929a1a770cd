"""`corridor get -o F.h5`: what h5py reads back is what was selected, with its names, units and attributes."""

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from conftest import corridor, running

TYPES = ["i1", "u1", ">i2", "<u2", ">i4", "<u4", "<i8", ">u8", "<f2", ">f4", "<f8", "?"]


def values(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    count = np.arange(np.prod(shape)).reshape(shape)
    return (count % 2 == 1) if dtype == "?" else (count % 117).astype(dtype)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.h5"
    with h5py.File(path, "w") as file:
        for dtype in TYPES:
            name = dtype.strip("<>").replace("?", "bool")
            file.create_dataset(f"all/{name}", data=values(dtype, (7, 11, 13)), chunks=(3, 4, 5), compression="gzip")
        packed = file.create_dataset("packed", data=np.array([[1, 2, -9], [4, 5, 6]], ">i2"))
        packed.attrs.update({"units": "K", "long_name": "temperature", "levels": [1.5, 2.5], "run": 42})
        file["scalar"] = np.float64(2.5)
        file.create_dataset("empty", (0, 4), "<f4")
        file.create_dataset("wide", data=values("<u2", (20, 400, 900)), chunks=(10, 20, 30), compression="gzip")
    return path


def get(home, location, selection: str, output, *more: str):
    return corridor(home, "get", str(location), selection, "-o", str(output), *more)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_round_trips(home, source, tmp_path, dtype):
    name = dtype.strip("<>").replace("?", "bool")
    done = get(home, source, f"all/{name}[::2, ::-1, 3]", tmp_path / "out.h5")
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "out.h5") as file:
        found = file[f"all/{name}"]
        expect = values(dtype, (7, 11, 13))[::2, ::-1, 3]
        assert found.dtype == expect.dtype.newbyteorder("<")
        assert np.array_equal(found[()], expect)


def test_attributes_are_copied(home, source, tmp_path):
    assert get(home, source, "packed", tmp_path / "out.hdf5").returncode == 0
    with h5py.File(tmp_path / "out.hdf5") as file:
        found = file["packed"]
        assert found[()].tolist() == [[1, 2, -9], [4, 5, 6]]
        assert found.attrs["units"] == "K"
        assert found.attrs["long_name"] == "temperature"
        assert found.attrs["levels"].tolist() == [1.5, 2.5]
        assert found.attrs["run"] == 42


def test_stored_values_keep_scale_and_offset(home, tmp_path):
    path = tmp_path / "packed.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("y", 2)
        file.createDimension("x", 3)
        packed = file.createVariable("t", "i2", ("y", "x"), fill_value=-9)
        packed.setncatts({"scale_factor": 0.5, "add_offset": 100.0, "units": "K"})
        packed.set_auto_maskandscale(False)
        packed[:] = [[1, 2, -9], [4, 5, 6]]
    assert get(home, path, "t", tmp_path / "stored.h5").returncode == 0
    with h5py.File(tmp_path / "stored.h5") as file:
        found = file["t"]
        assert found[()].tolist() == [[1, 2, -9], [4, 5, 6]]
        assert (found.attrs["scale_factor"], found.attrs["add_offset"]) == (0.5, 100.0)
        assert found.attrs["_FillValue"] == -9
        assert found.attrs["_FillValue"].dtype == np.dtype("<i2")
        assert [d.label for d in found.dims] == ["y", "x"]
    # What was written is read again with its names, and decoded.
    assert get(home, tmp_path / "stored.h5", "t", tmp_path / "again.h5", "--decoded").returncode == 0
    with h5py.File(tmp_path / "again.h5") as file:
        assert np.array_equal(file["t"][()], [[100.5, 101, np.nan], [102, 102.5, 103]], equal_nan=True)
        assert [d.label for d in file["t"].dims] == ["y", "x"]
    assert get(home, path, "t", tmp_path / "decoded.h5", "--decoded").returncode == 0
    with h5py.File(tmp_path / "decoded.h5") as file:
        assert np.array_equal(file["t"][()], [[100.5, 101, np.nan], [102, 102.5, 103]], equal_nan=True)
        assert file["t"].attrs["units"] == "K"
        assert "scale_factor" not in file["t"].attrs


@pytest.mark.parametrize("name", ["scalar", "empty"])
def test_scalars_and_empty_arrays(home, source, tmp_path, name):
    done = get(home, source, name, tmp_path / "out.h5")
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "out.h5") as file, h5py.File(source) as expect:
        assert file[name].shape == expect[name].shape
        assert np.array_equal(file[name][()], expect[name][()])


def test_remote_copy_with_little_memory(home, source, tmp_path):
    with running(home, "serve", str(source), "--listen", "127.0.0.1:0", "--json", "--memory", "64MiB") as server:
        out = tmp_path / "out.h5"
        done = get(home, server.url, "wide[1:, 3:, ::2]", out, "--memory", "64MiB")
        assert done.returncode == 0, done.stderr
        with h5py.File(out) as file:
            assert np.array_equal(file["wide"][()], values("<u2", (20, 400, 900))[1:, 3:, ::2])
    left = [p.name for p in tmp_path.iterdir() if "part" in p.name]
    assert not left, "nothing but the result is left"


def test_a_failed_copy_leaves_the_older_file(home, source, tmp_path):
    out = tmp_path / "out.h5"
    assert get(home, source, "packed[0]", out).returncode == 0
    before = out.read_bytes()
    assert get(home, source, "packed[0, 0, 0]", out).returncode == 2
    assert get(home, source, "missing", out).returncode == 3
    assert out.read_bytes() == before


def test_a_fill_value_that_no_element_can_have_is_left_out(home, tmp_path):
    path = tmp_path / "odd.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createVariable("t", "i2", ("x",))[:] = [1, 2, 3]
    with h5py.File(path, "a") as file:
        file["t"].attrs["_FillValue"] = np.float64("nan")
        file["t"].attrs["scale_factor"] = 0.5
    assert get(home, path, "t", tmp_path / "out.h5").returncode == 0
    with h5py.File(tmp_path / "out.h5") as file:
        assert dict(file["t"].attrs)["scale_factor"] == 0.5
        assert "_FillValue" not in file["t"].attrs
    with xr.open_dataset(path, engine="netcdf4") as expected, running(home, "serve", str(path), "--json") as server:
        headers = {"Authorization": f"Bearer {server.lines[0]['token']}"}
        found = xr.open_zarr(server.lines[0]["zarr"], storage_options={"headers": headers})
        xr.testing.assert_equal(found.t, expected.t)
