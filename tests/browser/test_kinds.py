"""Five kinds of data in a real browser: the picture, and each control of the page once."""

import os
import pathlib
import time

import nibabel
import netCDF4
import numpy as np
import pytest
import zarr
from conftest import report, running
from test_viewer import OUT, run_browser_tests

DATA = os.environ.get("CORRIDOR_TEST_DATA")
# Two channels with names, colors and windows; it replaces the one that is made here.
REAL_STACK = pathlib.Path(DATA or "/absent", "formats/zarr/6001240_labels_v0.5.zarr")

# At least so many controls are operated: a little less than there are, because some depend on what the node has answered.
CONTROLS = {"climate": 215, "ct": 210, "microscope": 190, "simulation": 230, "64gb": 165}


@pytest.mark.parametrize("kind", CONTROLS)
def test_each_control_of_the_page(home, tmp_path, kind):
    """Opens the data as a user of this kind does, and operates all that the page offers."""
    data = {
        "climate": lambda: [climate(tmp_path)],
        "ct": lambda: ct_with_organs(tmp_path),
        "microscope": lambda: [str(REAL_STACK) if REAL_STACK.exists() else microscope(tmp_path)],
        "simulation": lambda: [simulation(tmp_path)],
        "64gb": lambda: ["synthetic:waves?shape=4096,4096,4096&dtype=u8"],
    }[kind]()
    with running(home, "view", *data, "--listen", "127.0.0.1:0", "--json") as viewer:
        begin = time.monotonic()
        expected = {"CORRIDOR_E2E_KIND": kind, "CORRIDOR_E2E_CONTROLS": str(CONTROLS[kind])}
        if kind == "64gb":
            expected["CORRIDOR_E2E_BEGIN"] = "shown"
        run_browser_tests(viewer.url, f"kinds-{kind}", "kinds", **expected)
        controls = len((OUT / f"kinds-{kind}/controls.txt").read_text().splitlines())
        report(f"kinds: {kind}: {controls} controls in {time.monotonic() - begin:.0f} s")


def climate(folder: pathlib.Path) -> str:
    """Temperature over time, pressure, latitude and longitude: packed in 16 bits, missing below the ground of a continent."""
    lat, lon = np.linspace(-88, 88, 45), np.arange(0, 360, 4.0)
    pressure = np.array([1000, 850, 700, 500, 250, 100.0])
    axes = {"time": np.arange(6) * 30.0 + 15, "plev": pressure, "lat": lat, "lon": lon}
    units = {"time": "days since 2001-01-01", "plev": "hPa", "lat": "degrees_north", "lon": "degrees_east"}
    names = {"time": "time", "plev": "air_pressure", "lat": "latitude", "lon": "longitude"}
    path = folder / "ta_monthly.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.Conventions = "CF-1.8"
        for name, values in axes.items():
            file.createDimension(name, len(values))
            axis = file.createVariable(name, "f8", [name])
            axis[:] = values
            axis.units, axis.standard_name = units[name], names[name]
        file["time"].calendar, file["plev"].positive = "standard", "down"
        ta = file.createVariable("ta", "i2", list(axes), fill_value=-32767, zlib=True)
        ta.setncatts({"units": "K", "standard_name": "air_temperature", "scale_factor": 0.005, "add_offset": 260.0})
        month, level, y, x = np.meshgrid(*axes.values(), indexing="ij")
        season = 10 * np.cos(2 * np.pi * month / 365) * np.sin(np.deg2rad(y))
        heat = 215 + (85 * np.cos(np.deg2rad(y)) ** 2 - season) * (level / 1000) ** 0.6 + 4 * np.sin(np.deg2rad(3 * x))
        # A continent that is wide in the north and ends in a point in the south, at the longitudes of South America.
        land = np.abs(x - 300) < np.clip(25 + 0.6 * y, 0, 40)
        ta[:] = np.ma.masked_where(land & (level > 800), heat)
    return str(path)


def ct_with_organs(folder: pathlib.Path) -> list[str]:
    """A chest, tilted in the scanner, and its organs in voxels twice as large."""
    x, y, z = np.mgrid[-1:1:96j, -1:1:96j, -1:1:64j]

    def ball(center: tuple[float, ...], radii: tuple[float, ...]) -> np.ndarray:
        return sum(((p - c) / r) ** 2 for p, c, r in zip((x, y, z), center, radii, strict=True)) < 1

    # The axes of the array are right to left, back to front, feet to head; the heart lies on the left of the person.
    right, left = ball((-0.4, 0.05, 0.1), (0.28, 0.4, 0.7)), ball((0.4, 0.05, 0.1), (0.25, 0.4, 0.7))
    heart, spine = ball((0.15, 0.2, -0.1), (0.25, 0.25, 0.3)), ball((0, -0.5, 0), (0.12, 0.12, 1.2))
    parts = {1: (right, -750), 2: (left, -750), 3: (heart, 60), 4: (spine, 700)}
    scan, organs = np.where((x / 0.9) ** 2 + (y / 0.7) ** 2 < 1, 30, -1000), np.zeros(x.shape, np.uint8)
    for label, (part, value) in parts.items():
        scan[part], organs[part] = value, label
    scan = scan + np.random.default_rng(1).normal(0, 15, scan.shape)
    sine, cosine = np.sin(0.3), np.cos(0.3)
    tilt = np.array([[-1, 0, 0], [0, cosine, -sine], [0, sine, cosine]])
    spacing, begin = np.array([3.5, 3.5, 5.0]), np.array([165.0, -110.0, -200.0])
    coarse = organs[::2, ::2, ::2]
    paths = []
    for name, values, scale in [("chest_ct", scan.astype(np.int16), spacing), ("organs_seg", coarse, 2 * spacing)]:
        affine = np.eye(4)
        affine[:3, :3], affine[:3, 3] = tilt * scale, begin
        image = nibabel.Nifti1Image(values, affine)
        image.header.set_xyzt_units("mm", "sec")
        nibabel.save(image, folder / f"{name}.nii.gz")
        paths.append(str(folder / f"{name}.nii.gz"))
    return [paths[0], "--layer", f"{paths[1]},opacity=0.5"]


def microscope(folder: pathlib.Path) -> str:
    """Cells in two channels, nuclei and their membranes, with two levels, as OME-Zarr."""
    random = np.random.default_rng(2)
    z, y, x = np.mgrid[:24, :160, :200]
    stack = random.poisson(120, (2, 24, 160, 200)).astype(float)
    for center in random.uniform((6, 20, 20), (18, 140, 180), (25, 3)):
        distance = np.sqrt(sum(((p - c) / r) ** 2 for p, c, r in zip((z, y, x), center, (5, 11, 11), strict=True)))
        stack[0] += 900 * (distance < 1)
        stack[1] += 1200 * (np.abs(distance - 1) < 0.15)
    path = folder / "cells.ome.zarr"
    group = zarr.create_group(str(path), zarr_format=2)
    levels = []
    for level, values in enumerate([stack, stack[:, :, ::2, ::2]]):
        made = group.create_array(str(level), shape=values.shape, chunks=(1, 12, 80, 100), dtype="u2")
        made[:] = values
        scale = {"type": "scale", "scale": [1.0, 1.0, 0.4 * 2**level, 0.4 * 2**level]}
        levels.append({"path": str(level), "coordinateTransformations": [scale]})
    space = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]
    axes = [{"name": "c", "type": "channel"}, *space]
    group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": levels}]
    colors = {"Nuclei": "00A0FF", "Membranes": "FF6000"}
    group.attrs["omero"] = {
        "channels": [
            {"label": label, "color": color, "active": True, "window": {"min": 0, "max": 65535, "start": 100, "end": 1500}}
            for label, color in colors.items()
        ]
    }
    return str(path)


def simulation(folder: pathlib.Path) -> str:
    """Flow in a channel whose cells are thin at the walls: three components and the pressure at three times."""
    walls = np.tanh(np.linspace(-1, 1, 32)) / np.tanh(1)
    axes = {"time": np.arange(3) * 0.5, "z": walls, "y": np.linspace(0, 2, 32), "x": np.linspace(0, 6, 64)}
    path = folder / "channel.nc"
    with netCDF4.Dataset(path, "w") as file:
        for name, values in axes.items():
            file.createDimension(name, len(values))
            file.createVariable(name, "f8", [name])[:] = values
            file[name].units = "s" if name == "time" else "m"
        t, z, y, x = np.meshgrid(*axes.values(), indexing="ij")
        swirl = np.cos(np.pi * z / 2) * np.sin(2 * np.pi * (x / 3 - t / 3))
        fields = {
            "u": (1 - z**2 + 0.3 * swirl * np.cos(np.pi * y), "m s-1", "velocity along the channel"),
            "v": (0.3 * swirl * np.sin(np.pi * y), "m s-1", "velocity across the channel"),
            "w": (0.3 * swirl * np.cos(np.pi * y) * z, "m s-1", "velocity from wall to wall"),
            "p": (-0.2 * x + 0.05 * swirl, "Pa", "pressure"),
        }
        for name, (values, units, title) in fields.items():
            field = file.createVariable(name, "f4", list(axes), zlib=True)
            field[:] = values
            field.units, field.long_name = units, title
    return str(path)
