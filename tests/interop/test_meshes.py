"""Adaptive meshes through two processes: what `corridor` reads of files that h5py wrote is what h5py reads of them, from
whole blocks down to their corners alone; and the corners of large blocks cost a server a small part of their file."""

import json
import os
import pathlib

import h5py
import numpy as np
import pytest
from conftest import corridor, io_counts, running

SIDE = 24
ALONG = 4
DATA = os.environ.get("CORRIDOR_TEST_DATA")


def flash(path: pathlib.Path) -> dict[str, np.ndarray]:
    """A file as FLASH writes it: 4^3 blocks of 24^3 cells in an order of their own. Gives its fields over the whole domain."""
    random = np.random.default_rng(5)
    places = random.permutation(np.stack(np.meshgrid(*[np.arange(ALONG)] * 3, indexing="ij"), -1).reshape(-1, 3))
    z, y, x = (np.arange(ALONG * SIDE, dtype="f4") for _ in range(3))
    whole = {
        "dens": np.sin(z / 9)[:, None, None] + np.cos(y / 7)[None, :, None] * x[None, None, :] / 40,
        "flag": random.integers(-5, 9, (ALONG * SIDE,) * 3).astype("i4"),
    }
    with h5py.File(path, "w") as file:
        corners = np.stack([places[:, ::-1], places[:, ::-1] + 1], -1).astype("f4")
        file["bounding box"] = corners * SIDE
        file["refine level"] = np.ones(len(places), "i4")
        for name, values in whole.items():
            boxes = [tuple(slice(p * SIDE, (p + 1) * SIDE) for p in place) for place in places]
            file[name] = np.stack([values[box] for box in boxes])
    return whole


def described(home: pathlib.Path, source: str, name: str) -> dict:
    done = corridor(home, "info", "--json", source)
    assert done.returncode == 0, done.stderr
    (array,) = [array for array in json.loads(done.stdout)["arrays"] if array["name"] == name]
    return array


def read(home: pathlib.Path, source: str, name: str, level: int) -> np.ndarray:
    out = home / "out.npy"
    out.unlink(missing_ok=True)
    done = corridor(home, "get", source, name, "--level", str(level), "-o", str(out))
    assert done.returncode == 0, done.stderr
    return np.load(out)


def corner_level(array: dict) -> int:
    (level,) = [number for number, level in enumerate(array["levels"]) if level["origin"] == "corners"]
    return level


def cells_at_corners(blocks: np.ndarray, bounds: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The lattice of corners from a field as stored (block, z, y, x): of blocks that meet, the first one's outermost cell."""
    out = np.full(shape, np.nan, blocks.dtype) if blocks.dtype.kind == "f" else np.zeros(shape, blocks.dtype)
    low, high = bounds[..., 0].min(0), bounds[..., 1].max(0)
    step = (high - low) / np.maximum(np.array(shape[::-1]) - 1, 1)
    for block, box in reversed(list(zip(blocks, bounds, strict=True))):
        for corner in np.ndindex(2, 2, 2):
            ends = [box[2 - axis, end] for axis, end in enumerate(corner)]
            at = [round((end - low[2 - axis]) / step[2 - axis]) if shape[axis] > 1 else 0 for axis, end in enumerate(ends)]
            out[tuple(at)] = block[tuple(-1 if end else 0 for end in corner)]
    return out


def test_fields_and_corners_are_what_h5py_reads(home):
    path = home / "made_hdf5_plt_cnt_0000"
    whole = flash(path)
    with running(home, "serve", "--json", str(path)) as server:
        for name, values in whole.items():
            array = described(home, server.url, f"amr/{name}")
            assert np.array_equal(read(home, server.url, f"amr/{name}", 0), values.astype(array["dtype"]))
            level = corner_level(array)
            assert array["levels"][level]["shape"] == [ALONG + 1] * 3
            with h5py.File(path) as file:
                expected = cells_at_corners(file[name][:], file["bounding box"][:], (ALONG + 1,) * 3)
            assert np.array_equal(read(home, server.url, f"amr/{name}", level), expected)
    text = corridor(home, "info", str(path)).stdout
    assert f"{[ALONG + 1] * 3}, corners of blocks" in text


@pytest.mark.skipif(not DATA, reason="CORRIDOR_TEST_DATA is not set")
def test_corners_of_a_real_file_are_what_h5py_reads(home):
    path = pathlib.Path(DATA) / "formats/hdf5/flash_rayleigh/INS_Rayleigh_hdf5_plt_cnt_0060"
    for name in ("temp", "pres"):
        level = corner_level(described(home, str(path), f"amr/{name}"))
        with h5py.File(path) as file:
            expected = cells_at_corners(file[name][:], file["bounding box"][:], (1, 9, 9))
        assert np.array_equal(read(home, str(path), f"amr/{name}", level), expected)


def test_first_picture_reads_a_small_part_of_the_file(home):
    path = home / "made_hdf5_plt_cnt_0000"
    flash(path)
    with running(home, "serve", "--json", str(path)) as server:
        level = corner_level(described(home, server.url, "amr/dens"))
        before = io_counts(server.process.pid)["rchar"]
        read(home, server.url, "amr/dens", level)
        few = io_counts(server.process.pid)["rchar"] - before
        read(home, server.url, "amr/dens", 0)
        all_bytes = io_counts(server.process.pid)["rchar"] - before - few
    field = (ALONG * SIDE) ** 3 * 4
    # Two planes' edges of each block, 24 rows of 96 bytes, and what comes over the network.
    assert few < 64 * 2 * SIDE * 96 + 128 * 1024 < field / 7
    assert all_bytes > field


def test_carpet_iterations_are_time_steps(home):
    folder = home / "carpet"
    folder.mkdir()
    random = np.random.default_rng(6)
    stored = {}
    for process in range(2):
        with h5py.File(folder / f"rho.file_{process}.h5", "w") as file:
            for step in (0, 4, 8):
                # Two samples at the inner face are the other process's, and older here.
                own = random.random((5, 6, 7))
                stored[process, step] = own
                at = file.create_dataset(f"H::rho it={step} tl=0 rl=0 c={process}", data=own)
                at.attrs.update(
                    name=np.bytes_("H::rho"), level=0, timestep=step, time=step / 2.0,
                    origin=[0.0, 0.0, 3.0 * process], delta=[1.0, 1.0, 1.0],
                    cctk_nghostzones=[1, 1, 1], cctk_bbox=[1, 1, 1, 1, 1 - process, process],
                )
    array = described(home, str(folder), "H::rho")
    assert (array["axes"][0]["kind"], array["levels"][0]["shape"]) == ("time", [3, 8, 6, 7])
    found = read(home, str(folder), "H::rho", 0)
    for number, step in enumerate((0, 4, 8)):
        expected = np.concatenate([stored[0, step][:4], stored[1, step][1:]])
        assert np.array_equal(found[number], expected)


@pytest.mark.parametrize(
    "bad",
    [{"origin": "nowhere"}, {"origin": [np.nan] * 3}, {"delta": [0.0] * 3}, {"delta": [1e300, 1e-300, 1.0]}, {"timestep": -1},
     {"iorigin": [2**62] * 3}, {"cctk_nghostzones": [2**31 - 1] * 3}, {"cctk_bbox": [9]}, {"time": np.inf}, {"name": 7}],
)  # fmt: skip
def test_bad_mesh_attributes_are_reported(home, bad):
    path = home / "bad.h5"
    with h5py.File(path, "w") as file:
        for part in range(2):
            at = file.create_dataset(f"rho it=0 tl=0 rl=0 c={part}", data=np.ones((4, 4, 4)))
            good = {"name": np.bytes_("rho"), "level": 0, "timestep": 0, "origin": [0.0, 0.0, 4.0 * part], "delta": [1.0] * 3}
            at.attrs.update(good | bad)
    done = corridor(home, "info", "--json", str(path))
    assert done.returncode == 0, done.stderr
    assert "panicked" not in done.stderr
    assert {"rho it=0 tl=0 rl=0 c=0", "rho it=0 tl=0 rl=0 c=1"} <= {a["name"] for a in json.loads(done.stdout)["arrays"]}
