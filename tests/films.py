"""Shared by the tests of films: a small time series, and pictures as arrays."""

import pathlib

import av
import netCDF4
import numpy as np

SIZE = (96, 64)


def write_series(path: pathlib.Path) -> pathlib.Path:
    """Writes a time series: a growing ball, three time steps."""
    z, y, x = np.mgrid[0:32, 0:32, 0:32] - 15.5
    radius = np.sqrt(x**2 + y**2 + z**2)
    with netCDF4.Dataset(path, "w") as file:
        for name, size in zip(["time", "z", "y", "x"], [3, 32, 32, 32], strict=True):
            file.createDimension(name, size)
        file.createVariable("time", "f8", ["time"])[:] = [0, 6, 12]
        file["time"].units = "hours since 2001-01-01"
        rho = file.createVariable("rho", "f4", ["time", "z", "y", "x"])
        rho[:] = [np.clip(6 + 4 * step - radius, 0, None) for step in range(3)]
    return path


def pixels(path: pathlib.Path) -> np.ndarray:
    """Reads a picture as sRGB, `[row, column, color]`."""
    with av.open(str(path)) as picture:
        return next(picture.decode(video=0)).to_ndarray(format="rgb24").astype(int)
