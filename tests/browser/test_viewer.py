"""The viewer in a real browser, on a volume that another process serves."""

import math
import os
import pathlib
import subprocess

import pytest
from conftest import ROOT, SAMPLE, report, running

OUT = pathlib.Path(os.environ.get("CORRIDOR_TEST_OUT", "/tmp"))
DATA = os.environ.get("CORRIDOR_TEST_DATA")

VOLUMES = {
    "tooth": str(SAMPLE),
    "waves": "synthetic:waves?shape=96,96,96&dtype=u8&steps=3",
    # More voxels than pixels: a coarser level is wanted.
    "plate": "synthetic:waves?shape=48,1800,1800&dtype=u8",
}
if DATA:
    VOLUMES["heptane"] = f"{DATA}/volumes/heptane.nii.gz"


# Voxels along the longest side of each volume.
SIDES = {"tooth": 161, "waves": 96, "plate": 1800, "heptane": 302}
HAS_TIME = {"waves"}
# The plate is there for its level; what the other parts change is hardly seen on it.
ONLY = {"plate": ["-t", "^ ?the picture (becomes|turns)"]}
# Pixels of the test's window along its shorter side; the volume spans at most these in the first view.
WINDOW = 640


def level_for(voxels: int) -> int:
    """The finest level of which a voxel is at least a pixel: computed from sizes alone, not by the viewer's code."""
    return max(0, math.floor(math.log2(voxels / WINDOW)))


@pytest.mark.parametrize("name", VOLUMES)
def test_remote_volume(home, name):
    """Opens the page, waits until it is complete, turns it, changes the transfer function, steps time."""
    with (
        running(home, "serve", VOLUMES[name], "--listen", "127.0.0.1:0", "--json") as server,
        running(home, "view", server.url, "--listen", "127.0.0.1:0", "--json") as viewer,
    ):
        out = OUT / f"viewer-{name}"
        out.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["npm", "run", "--silent", "e2e", "--", *ONLY.get(name, [])],
            cwd=ROOT / "web",
            env=os.environ | {
                "CORRIDOR_E2E_URL": viewer.url,
                "CORRIDOR_E2E_OUT": str(out),
                "CORRIDOR_E2E_LEVEL": str(level_for(SIDES[name])),
                "CORRIDOR_E2E_TIME": str(int(name in HAS_TIME)),
            },
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        report(f"browser: {name}: screenshots in {out}")
