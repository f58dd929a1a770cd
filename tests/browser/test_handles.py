"""Handles, the speed of isosurfaces and plots of lines, in a real browser."""

import netCDF4
import numpy as np
from conftest import SAMPLE, running
from test_viewer import run_browser_tests


def test_handles_in_the_picture(home):
    """Slices and the clip box are dragged; the picture stands beside the panel."""
    with running(home, "view", str(SAMPLE), "--listen", "127.0.0.1:0", "--json") as viewer:
        run_browser_tests(viewer.url, "viewer-handles", "handles")


def test_surfaces_follow_their_values(home):
    """Each change of an isovalue arrives; the times are printed."""
    with running(home, "view", str(SAMPLE), "--listen", "127.0.0.1:0", "--json") as viewer:
        run_browser_tests(viewer.url, "viewer-isovalue", "isovalue")


def test_lines_are_plots(home, tmp_path):
    """A gauge: 20,000 hours of a level with one spike, a tide in the same unit, a temperature."""
    hours = np.arange(20_000)
    level = ((hours % 1000) / 8).astype("f4") / 4
    level[12_345] = 50
    with netCDF4.Dataset(tmp_path / "gauge.nc", "w") as file:
        file.createDimension("time", len(hours))
        time = file.createVariable("time", "f8", ["time"])
        time.units, time.calendar = "hours since 2001-01-01", "360_day"
        time[:] = hours
        for name, units, values in [("level", "m", level), ("tide", "m", level / 2), ("heat", "K", 280 + level)]:
            file.createVariable(name, "f4", ["time"])[:] = values
            file[name].units = units
    with running(home, "view", str(tmp_path / "gauge.nc"), "--listen", "127.0.0.1:0", "--json") as viewer:
        run_browser_tests(viewer.url, "viewer-plots", "plots")
