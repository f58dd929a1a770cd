"""`--decoded` gives what the format's own library gives by default: `get_fdata` of nibabel, decoding of xarray."""

import os
import pathlib

import nibabel
import numpy as np
import pytest
import readers
import samples
import xarray as xr
from conftest import corridor, report

DATA = os.environ.get("CORRIDOR_TEST_DATA")
FOLDERS = [pathlib.Path(DATA)] if DATA else []


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> list[pathlib.Path]:
    made = list(samples.write_all(tmp_path_factory.mktemp("made")))
    real = [p for folder in FOLDERS for p in sorted(folder.rglob("*")) if p.is_file()]
    return [p for p in made + real if p.is_file()]


def decoded(home: pathlib.Path, path: pathlib.Path, name: str) -> np.ndarray:
    out = home / "decoded.npy"
    selection = ['"' + name + '"'] if name else []
    done = corridor(home, "get", str(path), *selection, "--decoded", "-o", str(out))
    assert done.returncode == 0, f"{path.name} {name}: {done.stderr}"
    return np.load(out)


def test_nifti_as_nibabel(home, files):
    for path in [p for p in files if readers.library_of(p) == "nibabel"]:
        got = decoded(home, path, "")
        np.testing.assert_allclose(got, nibabel.load(path).get_fdata().T, rtol=1e-6, err_msg=path.name)
        report(f"decoded as nibabel: {path.name}")


def test_netcdf_as_xarray(home, files):
    """To the last bit, in xarray's types; times stay numbers."""
    raw = {"decode_times": False, "decode_timedelta": False, "decode_coords": False, "concat_characters": False}
    for path in [p for p in files if readers.library_of(p) == "netCDF4"]:
        with xr.open_dataset(path, engine="netcdf4", **raw) as file:
            for name, variable in file.variables.items():
                if variable.dtype.kind not in "iuf":
                    continue
                expect = variable.values
                got = decoded(home, path, name)
                assert got.dtype == expect.dtype.newbyteorder("="), f"{path.name} {name}"
                np.testing.assert_array_equal(got, expect, err_msg=f"{path.name} {name}")
        report(f"decoded as xarray: {path.name}")
