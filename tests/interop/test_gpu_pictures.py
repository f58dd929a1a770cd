"""Pictures drawn on a graphics processor equal those of the CPU; without one, the output says so.

They need a driver for Vulkan, if only one in software; without one they are left out, unless `CORRIDOR_TEST_GPU` demands one.
"""

import json
import os
import pathlib
import subprocess

import h5py
import numpy as np
import pytest
from conftest import BINARY, SAMPLE, environment
from pictures import pixels

SIZE = "120x90"
WAVES = 48


def render(home: pathlib.Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    (home / "run").mkdir(exist_ok=True)
    command = [BINARY, "render", *arguments, "--size", SIZE, "--json"]
    return subprocess.run(
        command, env=environment(home) | more, capture_output=True, text=True, timeout=300, cwd=home
    )


def nowhere(home: pathlib.Path) -> dict[str, str]:
    """An environment in which the loader of drivers finds none."""
    return {"VK_ICD_FILENAMES": str(home / "none.json"), "VK_DRIVER_FILES": str(home / "none.json")}


@pytest.fixture
def waves(tmp_path: pathlib.Path) -> str:
    """Smooth values from 0 to 200 in chunks that do not divide them."""
    z, y, x = np.mgrid[:WAVES, :WAVES, :WAVES] * 0.17
    data = 100 + 99 * np.clip(np.sin(x) * np.cos(y) + 0.5 * np.sin(0.7 * z), -1, 1)
    path = tmp_path / "waves.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("waves", data=np.round(data).astype(np.uint8), chunks=(20, 16, 24))
    return str(path)


def test_a_picture_of_every_kind_is_that_of_the_cpu(home, waves, tmp_path):
    transfer = {"range": [0, 200], "map": "viridis", "opacity": [[110, 0], [150, 0.02], [200, 0.3]]}
    view = ("--view", json.dumps({"transfer": transfer}))
    surfaces = ("--iso", "100.5:#d05030:0.5", "--iso", "160.5")
    kinds = {
        "volume": (waves, *view),
        "maximum": (waves, *view, "--mode", "maximum"),
        "minimum": (waves, *view, "--mode", "minimum"),
        "surfaces": (waves, *view, *surfaces),
        "mixed": (waves, *view, *surfaces, "--mode", "composite", "--slice", "z=40%"),
        "slices": (waves, *view, "--mode", "surfaces", "--slice", "x=50%", "--slice", "y=12"),
        "tooth": (str(SAMPLE),),
    }
    for kind, arguments in kinds.items():
        pictures = {}
        for device in ("cpu", "gpu"):
            out = tmp_path / f"{kind}-{device}.png"
            done = render(home, *arguments, "--device", device, "-o", str(out))
            is_missing = device == "gpu" and "expected a graphics processor, found" in done.stderr
            if is_missing and "CORRIDOR_TEST_GPU" not in os.environ:
                pytest.skip(done.stderr)
            assert done.returncode == 0, done.stderr
            said = json.loads(done.stdout.splitlines()[-1])
            assert (said["device"] == "CPU") == (device == "cpu") and "device_reason" not in said
            pictures[device] = pixels(out).astype(int)
        apart = np.abs(pictures["cpu"] - pictures["gpu"])
        assert apart.mean() <= 0.15 and np.quantile(apart, 0.999) <= 2 and apart.max() <= 8, kind
        assert np.ptp(pictures["gpu"]) > 50, kind


def test_without_a_driver_a_graphics_processor_is_refused_and_auto_falls_back(home, waves, tmp_path):
    out = tmp_path / "a.png"
    done = render(home, waves, "-o", str(out), "--device", "gpu", **nowhere(home))
    assert done.returncode != 0 and not out.exists()
    assert "expected a graphics processor, found none (is a driver for Vulkan" in done.stderr
    done = render(home, waves, "-o", str(out), "--device", "auto", **nowhere(home))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["device"] == "CPU" and said["device_reason"].startswith("expected a graphics processor, found none")
    same = tmp_path / "b.png"
    done = render(home, waves, "-o", str(same), "--device", "cpu", **nowhere(home))
    assert "device_reason" not in json.loads(done.stdout.splitlines()[-1])
    assert same.read_bytes() == out.read_bytes()
