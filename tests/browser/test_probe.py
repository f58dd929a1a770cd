"""Values in the picture, read by pointer in a real browser: they equal numpy on the file, at any zoom."""

import csv
import io
import json

import netCDF4
import numpy as np
import pytest
from conftest import running
from test_viewer import OUT, run_browser_tests


def write(path, kind: str) -> np.ndarray:
    """Writes an array whose elements all differ, and returns it as numpy reads it."""
    rng = np.random.default_rng(11)
    shape = {"map": (181, 360), "volume": (40, 48, 56)}[kind]
    values = rng.permutation(np.prod(shape)).reshape(shape).astype("f4") + 1
    with netCDF4.Dataset(path, "w") as file:
        names = ("lat", "lon") if kind == "map" else ("z", "y", "x")
        for name, size in zip(names, shape, strict=True):
            file.createDimension(name, size)
        if kind == "map":
            for name, units, along in (
                ("lat", "degrees_north", np.linspace(-90, 90, 181)),
                ("lon", "degrees_east", np.arange(360.0)),
            ):
                variable = file.createVariable(name, "f8", [name])
                variable[:] = along
                variable.units = units
        rho = file.createVariable("rho", "f4", names)
        rho[:] = values
        rho.units = "K"
    with netCDF4.Dataset(path) as file:
        return np.asarray(file["rho"][:])


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def index_of(row: dict[str, str]) -> tuple[int, ...]:
    return tuple(int(value) for name, value in row.items() if name.endswith(" index"))


@pytest.mark.parametrize("kind", ["map", "volume"])
def test_values_equal_the_file(home, tmp_path, kind):
    """Hovering, pins near and far, a profile and the statistics of a box."""
    values = write(tmp_path / "rho.nc", kind)
    with running(home, "view", str(tmp_path / "rho.nc"), "--listen", "127.0.0.1:0", "--json") as viewer:
        run_browser_tests(viewer.url, f"probe-{kind}", "probe", CORRIDOR_E2E_PROBE=kind)
    found = json.loads((OUT / f"probe-{kind}" / "probe.json").read_text())

    pins = rows(found["pins"])
    assert len(pins) == found["pin_count"] >= 4
    for row in pins:
        assert float(row["decoded"]) == float(row["stored"]) == values[index_of(row)]
        assert row["units"] == "K"
    # The readout says what the pin at the same place has.
    assert found["hover"] == [f"rho: {int(values[index_of(row)])} K" for row in pins]
    assert len({index_of(row) for row in pins}) >= 3, "the pins are at different places"

    profile = rows(found["profile"])
    known = [row for row in profile if row["stored"] != ""]
    assert len(known) >= 2
    for row in known:
        assert float(row["decoded"]) == values[index_of(row)]
    assert index_of(known[0]) == index_of(pins[0]) and index_of(known[-1]) == index_of(pins[1])

    (box,) = rows(found["box"])
    corners = np.array([index_of(pins[0]), index_of(pins[1])])
    inside = values[tuple(slice(low, high + 1) for low, high in zip(corners.min(0), corners.max(0), strict=True))].astype("f8")
    assert int(box["count"]) == inside.size and int(box["missing"]) == 0
    assert (float(box["min"]), float(box["max"])) == (inside.min(), inside.max())
    np.testing.assert_allclose([float(box["mean"]), float(box["std"])], [inside.mean(), inside.std()], rtol=1e-12)
    assert found["python"].startswith('a = corridor.open("corridor://127.0.0.1')
