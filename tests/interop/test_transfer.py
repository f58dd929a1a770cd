"""Scales, reversed color maps and presets of transfer functions from the command line, compared with numpy."""

import json
import pathlib

import numpy as np
import pytest
from conftest import corridor
from pictures import pixels

SIDE = 40


@pytest.fixture
def values() -> np.ndarray:
    """Twenty powers of ten along x and both signs along y, `[z, y, x]`; the same at every z."""
    size = np.broadcast_to(10.0 ** np.linspace(-28, -8, SIDE), (4, SIDE, SIDE)).copy()
    size[:, : SIDE // 2] *= -1
    return size


def drawn(home: pathlib.Path, file: pathlib.Path, out: pathlib.Path, transfer: object, *more: str) -> np.ndarray:
    middle = SIDE / 2 - 0.5
    camera = {
        "eye": [middle, middle, 100.0],
        "target": [middle, middle, 0.0],
        "up": [0.0, 1.0, 0.0],
        "projection": {"orthographic": {"height_world": float(SIDE)}},
    }
    view = json.dumps({"camera": camera, "mode": "surfaces", "slices": [{"axis": "z", "at": 1}]})
    tf = transfer if isinstance(transfer, str) else json.dumps(transfer)
    size = ("--size", f"{SIDE}x{SIDE}")
    done = corridor(home, "render", str(file), "--view", view, "--tf", tf, *size, "-o", str(out), *more)
    assert done.returncode == 0, done.stderr
    return pixels(out).astype(float)[::-1]


@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
def test_colors_on_logarithmic_scales_are_those_of_numpy(home, values, tmp_path, dtype):
    file = tmp_path / "a.npy"
    np.save(file, values.astype(dtype))
    opaque = [[1e-28, 1.0], [1e-8, 1.0]]
    log = {"range": [1e-28, 1e-8], "map": "gray", "scale": "log", "opacity": opaque}
    picture = drawn(home, file, tmp_path / "a.png", log)
    share = np.clip((np.log10(np.abs(values[1])) + 28) / 20, 0, 1)
    # Values of 0 and less have the lowest color on slices.
    expected = np.where(values[1] > 0, share, 0) * 255
    assert np.abs(picture[..., 0] - expected).max() <= 2
    both = {"range": [-1e-8, 1e-8], "map": "gray_r", "scale": "symlog", "opacity": opaque}
    picture = drawn(home, file, tmp_path / "b.png", both)
    position = np.sign(values[1]) * np.log1p(np.abs(values[1]) / 1e-11) / np.log1p(1e3)
    assert np.abs(picture[..., 0] - (1 - (position + 1) / 2) * 255).max() <= 2


def test_maps_are_reversed_by_name_or_member(home, values, tmp_path):
    file = tmp_path / "a.npy"
    np.save(file, np.abs(values).astype("<f4"))
    whole = {"range": [0.0, 1e-8], "opacity": [[0.0, 1.0]]}
    named = drawn(home, file, tmp_path / "a.png", {**whole, "map": "viridis_r"})
    member = drawn(home, file, tmp_path / "b.png", {**whole, "map": "viridis", "reversed": True})
    forward = drawn(home, file, tmp_path / "c.png", {**whole, "map": "viridis_r", "reversed": True})
    plain = drawn(home, file, tmp_path / "d.png", {**whole, "map": "viridis"})
    assert (named == member).all() and (forward == plain).all() and (named != plain).any()


def test_presets_and_some_members_are_completed(home, tmp_path):
    body = np.full((24, 32, 32), -1000, np.int16)
    body[4:20, 6:26, 6:26] = 40
    body[8:16, 12:20, 12:20] = 900
    file, out = tmp_path / "body.npy", tmp_path / "a.png"
    np.save(file, body)

    def view_of(*arguments: str) -> dict:
        done = corridor(home, "render", str(file), "--size", "32x32", "--json", "-o", str(out), *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])["view"]["transfer"]

    first = view_of()
    assert first["map"] == "ct-bone" and first["range"] == [-500, 1000]
    assert view_of("--tf", "ct-soft-tissue")["range"] == [-160, 240]
    narrow = view_of("--tf", '{"range": [0, 100], "reversed": true}')
    assert narrow["range"] == [0, 100] and narrow["reversed"] and narrow["map"] == "ct-bone"
    log = view_of("--tf", '{"scale": "log"}')
    assert log["scale"] == "log" and log["range"][0] > 0


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--tf", "jet", "`jet`"),
        ("--tf", '{"scale": "ln"}', "one of `linear`, `log`, `symlog`"),
        ("--tf", '{"range": [0, 1], "map": "gray", "opacity": [[0]]}', "two numbers `[value, opacity]`"),
        ("--tf", '{"range": [-1, 1], "map": "gray", "scale": "log", "opacity": [[0, 1]]}', "above 0"),
        ("--view", '{"time": "x"}', "a whole number from 0 as `time`"),
        ("--view", '{"camera": 3}', "an object with `eye`, `target`"),
    ],
)
def test_messages_say_what_is_expected_in_json(home, tmp_path, option, value, says):
    file = tmp_path / "a.npy"
    np.save(file, np.arange(512, dtype="<f4").reshape(8, 8, 8))
    done = corridor(home, "render", str(file), option, value, "-o", str(tmp_path / "x.png"))
    assert done.returncode == 2 and says in done.stderr, done.stderr
    assert not any(rust in done.stderr for rust in ("f64", "u64", "struct", "variant", "tuple"))
