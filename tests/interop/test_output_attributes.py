"""`corridor get -o F.nc` and `F.zarr`: attributes are copied, and stored values keep scale, offset and fill value."""

import h5py
import netCDF4
import numpy as np
import pytest
import zarr
from conftest import corridor


def get(home, location, name: str, output, *more: str) -> None:
    done = corridor(home, "get", str(location), name, "-o", str(output), *more)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def packed(tmp_path):
    path = tmp_path / "packed.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("y", 2)
        file.createDimension("x", 3)
        packed = file.createVariable("t", "i2", ("y", "x"), fill_value=-9)
        packed.setncatts({"scale_factor": 0.5, "add_offset": 100.0, "units": "K", "long_name": "temperature"})
        packed.set_auto_maskandscale(False)
        packed[:] = [[1, 2, -9], [4, 5, 6]]
    return path


def test_netcdf_decodes_what_was_stored(home, packed, tmp_path):
    get(home, packed, "t", tmp_path / "out.nc")
    with netCDF4.Dataset(packed) as expected, netCDF4.Dataset(tmp_path / "out.nc") as found:
        assert np.array_equal(found["t"][:].filled(np.nan), expected["t"][:].filled(np.nan), equal_nan=True)
        assert {n: found["t"].getncattr(n) for n in found["t"].ncattrs()} == expected["t"].__dict__
        assert found["t"]._FillValue.dtype == np.int16
    get(home, packed, "t", tmp_path / "decoded.nc", "--decoded")
    with netCDF4.Dataset(tmp_path / "decoded.nc") as found:
        assert np.array_equal(found["t"][:], [[100.5, 101, np.nan], [102, 102.5, 103]], equal_nan=True)
        assert sorted(found["t"].ncattrs()) == ["long_name", "units"]


def test_zarr_says_how_to_decode_what_was_stored(home, packed, tmp_path):
    get(home, packed, "t", tmp_path / "out.zarr")
    found = zarr.open_array(tmp_path / "out.zarr", mode="r")
    assert found[...].tolist() == [[1, 2, -9], [4, 5, 6]]
    expected = {"scale_factor": 0.5, "add_offset": 100.0, "units": "K", "long_name": "temperature"}
    assert dict(found.attrs) == expected | {"_FillValue": -9}
    get(home, packed, "t", tmp_path / "decoded.zarr", "--decoded")
    found = zarr.open_array(tmp_path / "decoded.zarr", mode="r")
    assert dict(found.attrs) == {"units": "K", "long_name": "temperature"}


def test_every_kind_of_attribute(home, tmp_path):
    kinds = {"text": "ä b", "many": [1.5, 2.5], "whole": [-1, 2], "one": 42, "small": -7, "real": np.float32(0.1)}
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file["v"] = np.arange(6, dtype="<f4").reshape(2, 3)
        file["v"].attrs.update(kinds | {"missing_value": np.float32(-999.25)})
    get(home, tmp_path / "source.h5", "v", tmp_path / "out.nc")
    with netCDF4.Dataset(tmp_path / "out.nc") as file:
        found = file["v"]
        for name, value in kinds.items():
            assert np.array_equal(found.getncattr(name), value), name
        assert found.missing_value == np.float32(-999.25) and found.missing_value.dtype == np.float32
    get(home, tmp_path / "source.h5", "v", tmp_path / "out.zarr")
    found = zarr.open_array(tmp_path / "out.zarr", mode="r").attrs
    assert all(np.array_equal(np.float32(found[n]) if n == "real" else found[n], v) for n, v in kinds.items())
