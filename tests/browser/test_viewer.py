"""The viewer in a real browser, on a volume that another process serves."""

import contextlib
import math
import os
import pathlib
import subprocess

import netCDF4
import numpy as np
import pytest
from conftest import ROOT, SAMPLE, report, running, several

OUT = pathlib.Path(os.environ.get("CORRIDOR_TEST_OUT", "/tmp"))
DATA = os.environ.get("CORRIDOR_TEST_DATA")

VOLUMES = {
    "tooth": str(SAMPLE),
    "waves": "synthetic:waves?shape=96,96,96&dtype=u8&steps=3",
    # More voxels than pixels, so that a coarser level is shown. It is flat, so the default view faces its broad side.
    "plate": "synthetic:waves?shape=48,1500,1500&dtype=u8",
}
if DATA:
    VOLUMES["heptane"] = f"{DATA}/volumes/heptane.nii.gz"


# Voxels of each volume.
SHAPES = {"tooth": (94, 103, 161), "waves": (96, 96, 96), "plate": (48, 1500, 1500), "heptane": (302, 302, 302)}
HAS_TIME = {"waves"}
# The plate tests the choice of the level; other tests would hardly change its picture.
ONLY = {"plate": ["-t", "^ ?the picture (becomes|turns)"]}
# Pixels of the test's window along its shorter side.
WINDOW = 640
# Ratio of the height of the default view at the center of the volume to the diameter of its bounding sphere.
ROOM = 1.02 / math.cos(math.radians(15))


def level_for(shape: tuple[int, ...]) -> int:
    """The finest level of which a voxel is at least a pixel: computed from sizes alone, not by the viewer's code."""
    return max(0, math.floor(math.log2(ROOM * math.hypot(*shape) / WINDOW)))


@pytest.mark.parametrize("name", VOLUMES)
def test_remote_volume(home, name):
    """Opens the page, waits until it is complete, rotates, changes the transfer function, steps time."""
    with (
        running(home, "serve", VOLUMES[name], "--listen", "127.0.0.1:0", "--json") as server,
        running(home, "view", server.url, "--listen", "127.0.0.1:0", "--json") as viewer,
    ):
        expected = {
            "CORRIDOR_E2E_LEVEL": str(level_for(SHAPES[name])),
            "CORRIDOR_E2E_TIME": str(int(name in HAS_TIME)),
        }
        run_browser_tests(viewer.url, f"viewer-{name}", "viewer", *ONLY.get(name, []), **expected)


def test_server_list_shows_states(home):
    """Both servers are available; one is killed, and the page shows it without a request."""
    arguments = ("serve", VOLUMES["waves"], "--listen", "127.0.0.1:0", "--json")
    with running(home, *arguments) as first, contextlib.ExitStack() as doomed:
        victim = doomed.enter_context(running(home, *arguments))
        data = several([first.url, victim.url])
        with running(home, "view", data, "--listen", "127.0.0.1:0", "--json") as viewer:
            run_browser_tests(viewer.url, "viewer-servers", "servers", CORRIDOR_E2E_SERVERS="2")
            doomed.close()
            run_browser_tests(viewer.url, "viewer-servers", "servers", CORRIDOR_E2E_SERVERS="1")


def test_color_by_another_array(home, tmp_path):
    """A ball of density, and a temperature that rises from 0 to 100 along x."""
    z, y, x = np.mgrid[0:32, 0:32, 0:32]
    with netCDF4.Dataset(tmp_path / "ball.nc", "w") as file:
        for name in "zyx":
            file.createDimension(name, 32)
        rho = file.createVariable("rho", "f4", ["z", "y", "x"])
        rho[:] = np.clip(16 - np.sqrt((x - 15.5) ** 2 + (y - 15.5) ** 2 + (z - 15.5) ** 2), 0, None)
        heat = file.createVariable("heat", "f4", ["z", "y", "x"])
        heat[:] = 100 * x / 31
        heat.units = "K"
    with running(home, "view", str(tmp_path / "ball.nc"), "--listen", "127.0.0.1:0", "--json") as viewer:
        run_browser_tests(viewer.url, "viewer-colors", "colors", CORRIDOR_E2E_COLORS="heat")


def test_meaning_of_values_can_be_changed(home, tmp_path):
    """Eight cubes of integers; neither the file nor its name says that they are labels."""
    z, y, x = np.mgrid[0:40, 0:40, 0:40] // 20
    np.save(tmp_path / "cubes.npy", (1 + x + 2 * y + 4 * z).astype(np.uint8))
    with running(home, "view", str(tmp_path / "cubes.npy"), "--listen", "127.0.0.1:0", "--json") as viewer:
        run_browser_tests(viewer.url, "viewer-meaning", "meaning", CORRIDOR_E2E_MEANING="intensity")


@pytest.mark.parametrize("kind", ["map", "volume", "series"])
def test_arrangements_of_pictures(home, tmp_path, kind):
    """A map of several times, a volume with its own spacings, a series of volumes: in each arrangement."""
    if kind == "map":
        lat, lon = np.linspace(-88, 88, 177), np.linspace(0, 359, 360)
        with netCDF4.Dataset(tmp_path / "map.nc", "w") as file:
            file.createDimension("time", 6)
            for name, values, units in [("lat", lat, "degrees_north"), ("lon", lon, "degrees_east")]:
                file.createDimension(name, len(values))
                file.createVariable(name, "f8", [name])[:] = values
                file[name].units = units
            heat = file.createVariable("heat", "f4", ["time", "lat", "lon"])
            waves = np.sin(np.deg2rad(3 * lon)) * np.cos(np.deg2rad(2 * lat))[:, None]
            heat[:] = [20 * waves + 5 * step + np.cos(np.deg2rad(lat))[:, None] * 30 for step in range(6)]
        data = str(tmp_path / "map.nc")
    else:
        data = VOLUMES["tooth" if kind == "volume" else "waves"]
    with running(home, "view", data, "--listen", "127.0.0.1:0", "--json") as viewer:
        run_browser_tests(viewer.url, f"viewer-layouts-{kind}", "layouts", CORRIDOR_E2E_LAYOUT=kind)


def test_comfort(home):
    """Accessibility, colors, keys, opening of other data, a phone as controller."""
    with running(home, "view", VOLUMES["waves"], "--listen", "127.0.0.1:0", "--json") as viewer:
        run_browser_tests(viewer.url, "viewer-comfort", "comfort")


def run_browser_tests(url: str, name: str, *arguments: str, **expected: str) -> None:
    """Runs end-to-end tests of the viewer at `url`; screenshots go to the folder `name`."""
    out = OUT / name
    out.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["npm", "run", "--silent", "e2e", "--", *arguments],
        cwd=ROOT / "web",
        env=os.environ | {"CORRIDOR_E2E_URL": url, "CORRIDOR_E2E_OUT": str(out)} | expected,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report(f"browser: {name}: screenshots in {out}")
