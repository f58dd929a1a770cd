"""Times as dates, and selections by dates, compared with cftime and xarray."""

import warnings

import cftime
import netCDF4
import numpy as np
import pytest
import xarray as xr
from conftest import corridor

CALENDARS = ["standard", "gregorian", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"]


def write(path, values, units, calendar, dtype="f8"):
    """A variable `v` that counts its times."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", len(values))
        time = file.createVariable("time", dtype, ("time",))
        time[:] = values
        time.setncatts({"units": units, "calendar": calendar, "standard_name": "time"})
        file.createVariable("v", "i4", ("time",))[:] = np.arange(len(values))
    return path


def column(home, path):
    """The times of a file as a table shows them."""
    out = path.with_suffix(".csv")
    done = corridor(home, "get", str(path), "v", "-o", str(out))
    assert done.returncode == 0, done.stderr
    return [line.split(",")[0] for line in out.read_text().splitlines()[1:]]


def reference(values, units, calendar):
    """Returns the dates as formatted by cftime."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dates = cftime.num2date(values, units, calendar)
    texts = []
    for d in dates:
        text = f"{'-' if d.year < 0 else ''}{abs(d.year):04d}-{d.month:02d}-{d.day:02d}"
        if (d.hour, d.minute, d.second, d.microsecond) != (0, 0, 0, 0):
            text += f"T{d.hour:02d}:{d.minute:02d}:{d.second:02d}"
            if d.microsecond:
                text += f".{d.microsecond // 1000:03d}" if d.microsecond % 1000 == 0 else f".{d.microsecond:06d}"
        texts.append(text)
    return texts


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("epoch", ["-4713-01-01 12:00:00", "-0001-12-30", "0001-01-01", "1582-10-01 06:00", "2000-01-01"])
def test_dates_are_cftimes(home, tmp_path, calendar, epoch):
    hours = np.random.default_rng(7).integers(-9000 * 8766, 9000 * 8766, 200)
    hours = np.concatenate([hours, np.arange(-3, 4) * 24])
    units = f"hours since {epoch}"
    assert column(home, write(tmp_path / "dates.nc", hours, units, calendar)) == reference(hours, units, calendar)


@pytest.mark.parametrize(
    ("value", "units", "calendar"),
    [
        (2451545, "days since -4713-01-01 12:00:00", "standard"),
        (2451545, "days since -4713-01-01 12:00:00", "julian"),
        (400, "days since -0001-01-01", "standard"),
        (400, "days since 0000-01-01", "proleptic_gregorian"),
        (400, "days since 0000-01-01", "noleap"),
    ],
)
def test_years_before_1_are_cftimes(home, tmp_path, value, units, calendar):
    values = np.array([value, value + 1.5])
    assert column(home, write(tmp_path / "dates.nc", values, units, calendar)) == reference(values, units, calendar)


@pytest.mark.parametrize("calendar", ["standard", "gregorian", "julian"])
def test_year_0_is_no_date_in_calendars_without_it(home, tmp_path, calendar):
    with pytest.raises(ValueError, match="year"):
        cftime.num2date([0], "days since 0000-01-01", calendar)
    assert column(home, write(tmp_path / "dates.nc", [0, 1], "days since 0000-01-01", calendar)) == ["0", "1"]


@pytest.mark.parametrize(
    ("values", "units", "expected"),
    [
        ([0.0, 0.25, 1.5, 60], "seconds since 2001-01-01", None),
        ([0, 1, 1001, 60000], "milliseconds since 2001-01-01", None),
        ([0, 1, 999999, 60000000], "microseconds since 2001-01-01 06:00:00", None),
        (["978307200000000", "978307200000001"], "microseconds since 1970-01-01", None),
        ([36892.1, 36892.2, 36892 + 1 / 3], "days since 1900-01-01", None),
        ([0, 7, 1000], "nanoseconds since 2001-01-01", ["2001-01-01", "2001-01-01T00:00:00.000000007", "2001-01-01T00:00:00.000001"]),
    ],
)
def test_fractions_of_seconds_are_written(home, tmp_path, values, units, expected):
    values = np.array(values, "f8")
    found = column(home, write(tmp_path / "parts.nc", values, units, "standard"))
    assert found == (expected or reference(values, units, "standard"))


AXES = {
    "gap": ([*range(9), 20], "days since 2020-01-01"),
    "months": ([0, 31, 60, 91, 121, 152, 182], "days since 2020-01-01"),
    "noon": ([0, 1, 2, 3, 4], "days since 2020-01-01 12:00:00"),
    "years": ([0, 366, 731, 1096], "days since 2020-01-01"),
    "hours": ([0, 12, 24, 42, 48, 72], "hours since 2020-01-01"),
    "twice": ([0, 1, 1, 2], "days since 2020-01-01"),
    "falling": ([4, 3, 2, 0], "days since 2020-01-01"),
    "seconds": ([0, 10, 20, 60, 86400], "seconds since 2020-01-01"),
    "milliseconds": ([0, 1, 999, 1000, 60000], "milliseconds since 2020-01-01"),
}
TEXTS = [
    "2019",
    "2020",
    "2020-01",
    "2020-02",
    "2020-01-01",
    "2020-01-02",
    "2020-01-03",
    "2020-01-14",
    "2020-01-21",
    "2020-06-17",
    "2020-01-02T00",
    "2020-01-02T12",
    "2020-01-02T18:00",
    "2020-01-02T00:00:00",
    "2020-01-01T00:00",
    "2020-01-01T00:00:00",
    "2020-01-01T00:00:10",
    "2020-01-01T00:00:00.001",
    "2020-01-01T00:00:00.002",
]


@pytest.mark.parametrize("axis", AXES)
def test_a_date_picks_what_xarrays_sel_picks(home, tmp_path, axis):
    values, units = AXES[axis]
    path = write(tmp_path / f"{axis}.nc", np.array(values), units, "proleptic_gregorian", "i8")
    with xr.open_dataset(path) as source:
        for text in TEXTS:
            try:
                expected = source["v"].sel(time=text).values
            except KeyError:
                expected = np.empty(0)
            out = tmp_path / "out.npy"
            done = corridor(home, "get", str(path), f"v(time={text})", "-o", str(out))
            if expected.size == 0:
                assert done.returncode in (2, 3) and f"no sample lies in `{text}`, the nearest" in done.stderr, (text, done.stderr)
                continue
            assert done.returncode == 0, (text, done.stderr)
            found = np.load(out)
            assert found.shape == expected.shape and np.array_equal(found, expected), text
            out.unlink()


@pytest.mark.parametrize(
    ("units", "calendar"),
    [
        ("hours since 2000-01-02 00:00:00 -05:30", "standard"),
        ("hours since 2000-01-02T00:00:00+0200", "noleap"),
        ("days since 2000-01-02 06:00 +02", "julian"),
        ("days since 2000-01-02 00:00:00 UTC", "standard"),
        ("months since 2000-01-15 06:00", "360_day"),
        ("common_years since 2000-01-01", "noleap"),
    ],
)
def test_zones_and_units_of_one_calendar_are_cftimes(home, tmp_path, units, calendar):
    values = np.array([0, 1, 40, -7, 2.5])
    path = write(tmp_path / "zone.nc", values, units, calendar)
    expected = reference(values, units, calendar)
    assert column(home, path) == expected
    done = corridor(home, "get", str(path), f"v(time={expected[2]})", "-o", str(tmp_path / "out.npy"))
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "out.npy").ravel().tolist() == [2]


@pytest.mark.parametrize(
    ("units", "calendar", "says"),
    [
        ("months since 2000-01-01", "standard", "`months` has no fixed length in the calendar `standard`"),
        ("days since 0000-01-01", "standard", "the calendar `standard` has no date `0000-01-01`"),
        ("days since yesterday", "standard", "`yesterday`, since which this axis counts, cannot be read"),
        ("m", "standard", "the units of this axis are no time since a date"),
    ],
)
def test_units_that_are_no_dates_are_reported(home, tmp_path, units, calendar, says):
    path = write(tmp_path / "odd.nc", [0, 1], units, calendar)
    done = corridor(home, "get", str(path), "v(time=2000-01-02)", "-o", str(tmp_path / "out.npy"))
    assert done.returncode in (2, 3) and says in done.stderr, done.stderr
