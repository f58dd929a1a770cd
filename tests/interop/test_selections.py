"""Selections by coordinate, tables, standard output, and the coordinates that copies carry, against xarray."""

import io
import subprocess

import netCDF4
import numpy as np
import pytest
import xarray as xr
from conftest import BINARY, corridor, environment


@pytest.fixture(scope="module")
def climate(tmp_path_factory):
    """Two years of days without leap days, falling latitudes, uneven levels, a packed variable; bounds and a 2-D coordinate."""
    path = tmp_path_factory.mktemp("sel") / "tas.nc"
    with netCDF4.Dataset(path, "w") as file:
        for name, size in {"time": 730, "lev": 3, "lat": 9, "lon": 12, "bnds": 2}.items():
            file.createDimension(name, size)
        time = file.createVariable("time", "f8", ("time",))
        time[:] = np.arange(730) + 0.5
        time.setncatts({"units": "days since 2001-01-01", "calendar": "noleap", "bounds": "time_bnds"})
        file.createVariable("time_bnds", "f8", ("time", "bnds"))[:] = np.arange(730)[:, None] + np.array([0, 1])
        file.createVariable("lev", "f4", ("lev",))[:] = [1000, 500, 100]
        lat = file.createVariable("lat", "f4", ("lat",))
        lat[:] = np.linspace(80, -80, 9)
        lat.units = "degrees_north"
        file.createVariable("lon", "f4", ("lon",))[:] = np.arange(12) * 30
        file.createVariable("area", "f4", ("lat", "lon"))[:] = np.arange(108).reshape(9, 12)
        tas = file.createVariable("tas", "i2", ("time", "lev", "lat", "lon"), fill_value=-1)
        tas.setncatts({"scale_factor": np.float32(0.01), "add_offset": np.float32(273), "units": "K", "coordinates": "area"})
        tas.set_auto_maskandscale(False)
        tas[:] = np.random.default_rng(5).integers(0, 9000, tas.shape)
    return path


@pytest.mark.parametrize(
    ("text", "sel"),
    [
        ("time=2001-03-01:2001-03-31, lat=40:60", {"time": slice("2001-03-01", "2001-03-31"), "lat": slice(60, 40)}),
        ("time=2001-03", {"time": slice("2001-03", "2001-03")}),
        ("time=2002, lev=500", {"time": slice("2002", "2002"), "lev": 500}),
        ("time=2001-12-30:2002-01-02, lon=30:90", {"time": slice("2001-12-30", "2002-01-02"), "lon": slice(30, 90)}),
        ("time=:2001-01-02, lat=-20:", {"time": slice(None, "2001-01-02"), "lat": slice(-20, None)}),
        ("lev=500, lat=20, lon=60", {"lev": 500, "lat": 20, "lon": 60}),
    ],
)
def test_selection_by_coordinate_equals_xarray_sel(home, tmp_path, climate, text, sel):
    out = tmp_path / "out.nc"
    done = corridor(home, "get", str(climate), f"tas({text})", "-o", str(out))
    assert done.returncode == 0, done.stderr
    with xr.open_dataset(climate, decode_times=xr.coders.CFDatetimeCoder(use_cftime=True)) as source:
        expected = source["tas"].sel(sel)
        with xr.open_dataset(out, decode_times=xr.coders.CFDatetimeCoder(use_cftime=True)) as found:
            xr.testing.assert_equal(found["tas"].drop_vars("area", errors="ignore"), expected.drop_vars("area", errors="ignore"))
            assert np.array_equal(found["area"], expected["area"])
            assert found["tas"].dtype == expected.dtype
    if "time" in xr.open_dataset(out, decode_times=False).dims:
        with netCDF4.Dataset(out) as file:
            assert np.array_equal(file["time_bnds"][:].mean(axis=1), file["time"][:])
            assert file["time"].calendar == "noleap"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("time=2005", "they go from 2001-01-01T12:00:00 to 2002-12-31T12:00:00"),
        ("lat=95", "outside of the samples; they go from -80 to 80 degrees_north"),
        ("lat=41:42", "no sample lies in that range"),
        ("time=2001-02-29", "no date of the calendar"),
        ("depth=5", "expected one of the axes"),
        ("lat=abc", "such as `lat=40:60`"),
        ("lev=2001-01-01", "expected a number"),
    ],
)
def test_selection_outside_the_array_is_refused(home, tmp_path, climate, text, says):
    done = corridor(home, "get", str(climate), f"tas({text})", "-o", str(tmp_path / "out.npy"))
    assert done.returncode in (2, 3) and says in done.stderr, done.stderr
    assert not (tmp_path / "out.npy").exists()


def test_a_range_that_reaches_beyond_the_samples_gives_what_is_there_and_a_warning(home, tmp_path, climate):
    out = tmp_path / "out.npy"
    done = corridor(home, "get", str(climate), "area(lon=-60:60)", "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert "warning: axis `lon` of array `area`: `-60` lies outside of the samples; they go from 0 to 330" in done.stderr
    with xr.open_dataset(climate, decode_times=False) as source:
        assert np.array_equal(np.load(out), source["area"].sel(lon=slice(-60, 60)))
    done = corridor(home, "get", str(climate), "area(lon=0:60)", "-o", str(out))
    assert "warning" not in done.stderr


def piped(home, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, "get", *arguments], env=environment(home), capture_output=True, timeout=120, cwd=home)


def test_standard_output(home, climate):
    expected = netCDF4.Dataset(climate)["tas"]
    expected.set_auto_maskandscale(False)
    done = piped(home, str(climate), "tas[0:5]", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(io.BytesIO(done.stdout)), expected[0:5])
    done = piped(home, str(climate), "tas[::-1, 0, 2]", "-o", "-", "--format", "raw")
    assert np.array_equal(np.frombuffer(done.stdout, "<i2").reshape(730, 12), expected[::-1, 0, 2])
    assert piped(home, str(climate), "tas", "-o", "-", "--json").returncode == 2
    cut = subprocess.run(f"'{BINARY}' get '{climate}' tas -o - | head -c 100 | wc -c", shell=True, env=environment(home), capture_output=True, text=True)
    assert cut.stdout.strip() == "100"


def test_a_table_has_coordinates_in_front(home, tmp_path, climate):
    out = tmp_path / "out.csv"
    done = corridor(home, "get", str(climate), "tas(time=2001-03-01:2001-03-02, lev=500, lat=20:60)", "--decoded", "-o", str(out))
    assert done.returncode == 0, done.stderr
    lines = out.read_text().splitlines()
    assert lines[0] == "time,lat,lon,tas" and len(lines) == 1 + 2 * 3 * 12
    with xr.open_dataset(climate, decode_times=False) as source:
        value = float(source["tas"].isel(time=59, lev=1, lat=1, lon=0))
    first = lines[1].split(",")
    assert first[:3] == ["2001-03-01T12:00:00", "60", "0"]
    assert np.float32(first[3]) == np.float32(value)
    done = corridor(home, "get", "synthetic:waves?shape=128,128,128", "-o", str(tmp_path / "all.csv"))
    assert done.returncode == 7 and "at most 1048576 elements" in done.stderr


def test_strings_label_the_rows_of_a_table(home, tmp_path):
    with netCDF4.Dataset(tmp_path / "stations.nc", "w") as file:
        for name, size in {"station": 3, "many": 40000, "length": 32}.items():
            file.createDimension(name, size)
        file.createVariable("station", str, ("station",))[:] = np.array(["Bern", "a,b", "Zürich"], dtype=object)
        file.createVariable("v", "f4", ("station",))[:] = [0.5, 1.5, 2.5]
        file.createVariable("names", "S1", ("many", "length"))[:] = b"x"
    source, out = str(tmp_path / "stations.nc"), tmp_path / "out.csv"
    done = corridor(home, "get", source, "v[::-1]", "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert out.read_text(encoding="utf-8").splitlines() == ["station,v", "Zürich,2.5", '"a,b",1.5', "Bern,0.5"]
    done = corridor(home, "get", source, "v(station=1)", "-o", str(out))
    assert done.returncode in (2, 3) and "found texts; select by index" in done.stderr
    done = corridor(home, "get", source, "names", "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert len(out.read_text().splitlines()) == 40001
    done = corridor(home, "get", source, "v[0:0]", "-o", str(tmp_path / "none.nc"))
    assert done.returncode != 0 and "write .npy, .zarr or .h5" in done.stderr


def test_the_cache_is_shown_and_cleared(home, climate):
    shown = corridor(home, "cache")
    assert shown.returncode == 0 and str(home / "side") in shown.stdout and "corridor cache clear" in shown.stdout
    cleared = corridor(home, "cache", "clear")
    assert cleared.returncode == 0 and "deleted" in cleared.stdout
