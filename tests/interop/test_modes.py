"""Maximum and minimum along rays, and slices, from the command line, compared with numpy: pixels are voxels."""

import json
import pathlib

import h5py
import numpy as np
import pytest
from conftest import corridor
from pictures import pixels

SIDE = 40
# Samples lie between voxels, and colors are rounded; values change by up to 1 of 30 from voxel to voxel.
CLOSE = 6


@pytest.fixture
def ball() -> np.ndarray:
    """Distance from the middle, `[z, y, x]`; there is nothing in one corner."""
    z, y, x = np.mgrid[:SIDE, :SIDE, :SIDE] - np.array([19.5, 17.5, 21.5]).reshape(3, 1, 1, 1)
    data = np.sqrt(x**2 + y**2 + z**2).astype(np.float32)
    data[:, :10, :10] = np.nan
    return data


@pytest.fixture
def file(ball: np.ndarray, tmp_path: pathlib.Path) -> str:
    path = tmp_path / "ball.h5"
    with h5py.File(path, "w") as out:
        out.create_dataset("distance", data=ball, chunks=(16, 13, 40))
    return str(path)


def test_light_of_isosurfaces_has_a_strength(file: str, tmp_path: pathlib.Path, home: pathlib.Path) -> None:
    def drawn(*more: str) -> np.ndarray:
        out = tmp_path / "light.png"
        what = ("--iso", "12:#ff8000", "--camera", "front", "--size", "60x60", "-o", str(out))
        done = corridor(home, "render", file, *what, *more)
        assert done.returncode == 0, done.stderr
        return pixels(out).astype(int)

    flat, half, full = (drawn("--lighting", strength) for strength in ("0", "1/2", "1"))
    assert np.array_equal(full, drawn()) and np.abs(full - flat).max() > 50
    covered = np.abs(flat - flat[0, 0]).max(axis=2) > 100
    inside = covered[1:-1, 1:-1] & covered[2:, 1:-1] & covered[:-2, 1:-1] & covered[1:-1, 2:] & covered[1:-1, :-2]
    assert inside.any() and np.ptp(flat[1:-1, 1:-1][inside], axis=0).max() <= 1
    assert np.all(half >= np.minimum(flat, full) - 1) and np.all(half <= np.maximum(flat, full) + 1)
    for wrong in ("1.5", "-0.5", "bright"):
        done = corridor(home, "render", file, "--lighting", wrong, "-o", str(tmp_path / "no.png"))
        assert done.returncode == 2 and "a number from 0 to 1 for `lighting`" in done.stderr


def seen_from_above(**fields: object) -> str:
    """A view in which column x and row 39 - y show the voxels x, y."""
    middle = SIDE / 2 - 0.5
    camera = {
        "eye": [middle, middle, 100.0],
        "target": [middle, middle, 0.0],
        "up": [0.0, 1.0, 0.0],
        "projection": {"orthographic": {"height_world": float(SIDE)}},
    }
    transfer = {"range": [0.0, 40.0], "map": "gray", "opacity": [[0.0, 0.0], [40.0, 0.1]]}
    return json.dumps({"camera": camera, "transfer": transfer, "background": [0, 0, 255], **fields})


def gray(values: np.ndarray) -> np.ndarray:
    """Returns the expected picture of values, row by row from the top; blue where there is nothing."""
    level = np.nan_to_num(np.clip(values / 40.0, 0.0, 1.0) * 255.0)
    blue = np.where(np.isnan(values), 255.0, level)
    return np.stack([level, level, blue], axis=-1)[::-1]


def drawn(home: pathlib.Path, file: str, out: pathlib.Path, *arguments: str) -> np.ndarray:
    done = corridor(home, "render", file, "--size", f"{SIDE}x{SIDE}", "-o", str(out), *arguments)
    assert done.returncode == 0, done.stderr
    return pixels(out).astype(float)


def away_from_holes(picture: np.ndarray) -> np.ndarray:
    """Returns the pixels that are not beside missing values, where interpolation lacks some of the eight voxels."""
    kept = np.ones((SIDE, SIDE), bool)
    kept[SIDE - 12 : SIDE - 8, :12] = False
    kept[SIDE - 12 :, 8:12] = False
    return picture[kept]


@pytest.mark.parametrize(("mode", "extreme"), [("maximum", np.max), ("minimum", np.min)])
def test_extreme_values_are_those_of_numpy(home, ball, file, tmp_path, mode, extreme):
    picture = drawn(home, file, tmp_path / "a.png", "--view", seen_from_above(), "--mode", mode)
    apart = np.abs(away_from_holes(picture) - away_from_holes(gray(extreme(ball, axis=0))))
    assert apart.max() <= CLOSE
    in_view = drawn(home, file, tmp_path / "b.png", "--view", seen_from_above(mode=mode))
    assert (in_view == picture).all()


def test_slices_are_those_of_numpy(home, ball, file, tmp_path):
    view = seen_from_above(mode="surfaces")
    for place, expected in [
        ("z=7", ball[7]),
        ("z=7.25", 0.75 * ball[7] + 0.25 * ball[8]),
        ("z=50%", (ball[19] + ball[20]) / 2),
    ]:
        picture = drawn(home, file, tmp_path / "a.png", "--view", view, "--slice", place)
        apart = np.abs(away_from_holes(picture) - away_from_holes(gray(expected)))
        assert apart.max() <= 1.5, place
    # The upper one hides the lower one.
    two = drawn(home, file, tmp_path / "b.png", "--view", view, "--slice", "z=7", "--slice", "z=30")
    assert np.abs(away_from_holes(two) - away_from_holes(gray(ball[30]))).max() <= 1.5


def test_invalid_slices_are_refused(home, file, tmp_path):
    for place, says in [
        ("z", "expected a slice such as"),
        ("q=3", "expected a slice across x, y or z"),
        ("z=40", "from 0 to 39, found 40"),
        ("y=-1", "from 0 to 39, found -1"),
    ]:
        done = corridor(home, "render", file, "--slice", place, "-o", str(tmp_path / "x.png"))
        assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    many = [word for i in range(17) for word in ("--slice", f"z={i}")]
    done = corridor(home, "render", file, *many, "-o", str(tmp_path / "x.png"))
    assert done.returncode == 2 and "at most 16 slices" in done.stderr
    assert not list(tmp_path.glob("*.png"))
