"""Measures the page in a real browser on several data sets: `python tests/browser/figures.py [RATE RTT]` prints one JSON line for each.

With a rate and a round-trip time, such as `50mbit 100ms`, the browser is on the far side of an emulated link (`corridor lab`; needs root);
the viewer's node is beside the data. `CORRIDOR_BIN` names the program, best a release build with the laboratory.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import netCDF4
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from conftest import BINARY, ROOT, SAMPLE, running  # noqa: E402

LINK = "figures"


def made(folder: pathlib.Path) -> dict[str, str]:
    """Returns the data sets by name; files are made in `folder`."""
    lat, lon = np.linspace(90, -90, 721), np.arange(1440) / 4
    with netCDF4.Dataset(folder / "map.nc", "w") as file:
        file.createDimension("time", 4)
        for name, values, units in [("lat", lat, "degrees_north"), ("lon", lon, "degrees_east")]:
            file.createDimension(name, len(values))
            file.createVariable(name, "f8", [name])[:] = values
            file[name].units = units
        heat = file.createVariable("t2m", "f4", ["time", "lat", "lon"])
        heat.units = "K"
        noise = np.random.default_rng(1).normal(size=(721, 1440))
        for step in range(4):
            heat[step] = 250 + 40 * np.cos(np.deg2rad(lat))[:, None] + 5 * noise + step
    return {
        "map of 721 x 1440": str(folder / "map.nc"),
        "image of 100,000 x 100,000": "synthetic:waves?shape=1,100000,100000&dtype=u8",
        "tooth": str(SAMPLE),
        "volume of 4096 x 4096 x 4096": "synthetic:waves?shape=4096,4096,4096&dtype=u8",
    }


def figures(url: str, launcher: list[str]) -> dict[str, object]:
    """Returns what the browser measured at a viewer's address."""
    done = subprocess.run(
        [*launcher, "npm", "run", "--silent", "e2e", "--", "figures"],
        cwd=ROOT / "web",
        env=os.environ | {"CORRIDOR_E2E_URL": url, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=400,
    )
    found = re.search(r"^figures (\{.*\})$", done.stdout, re.MULTILINE)
    if found is None:
        raise SystemExit(done.stdout + done.stderr)
    return json.loads(found[1])


def measure(folder: pathlib.Path, link: list[str]) -> None:
    """Measures each data set once."""
    address = os.environ.get("LAB_A_ADDRESS", "127.0.0.1")
    near, far = ([os.environ["LAB_A"]], [os.environ["LAB_B"]]) if link else ([], [])
    near, far = [["ip", "netns", "exec", *side] if side else [] for side in (near, far)]
    for name, data in made(folder).items():
        arguments = ["view", data, "--listen", f"{address}:0", "--json"]
        with running(folder, *arguments, launcher=near) as viewer:
            print(json.dumps({"data": name, "link": link or None} | figures(viewer.url, far)), flush=True)


def main() -> None:
    """Measures here, or runs itself on a link."""
    link = sys.argv[1:3]
    if link and "LAB_A" not in os.environ:
        rate, rtt = link
        again = [sys.executable, __file__, rate, rtt]
        raise SystemExit(subprocess.call([BINARY, "lab", "up", LINK, "--rate", rate, "--rtt", rtt, "--", *again]))
    with tempfile.TemporaryDirectory() as folder:
        measure(pathlib.Path(folder), link)


if __name__ == "__main__":
    main()
