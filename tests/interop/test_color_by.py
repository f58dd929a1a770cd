"""Colors by another array: they come from its values; what is visible does not change."""

import json
import pathlib

import h5py
import numpy as np
import pytest
from conftest import corridor
from pictures import pixels

SIDE = 40


@pytest.fixture
def file(tmp_path: pathlib.Path) -> str:
    """A ball with a temperature that rises along x, stored in other chunks and another type, and a coarse array."""
    z, y, x = np.mgrid[:SIDE, :SIDE, :SIDE] - 19.5
    path = tmp_path / "ball.h5"
    with h5py.File(path, "w") as out:
        out["rho"] = np.clip(255 - 12 * np.sqrt(x**2 + y**2 + z**2), 0, 255).astype(np.uint8)
        temperature = (300 + 5 * x + 0 * y).astype(">f4")
        out.create_dataset("t", data=temperature, chunks=(16, 11, 40), compression="gzip")
        out["t"].attrs["units"] = "K"
        out["coarse"] = np.zeros((20, 20, 20), np.float32)
    return str(path)


def view(**fields: object) -> str:
    """From the front, along y: x to the right, z up."""
    camera = {
        "eye": [19.5, -100.0, 19.5],
        "target": [19.5, 19.5, 19.5],
        "up": [0.0, 0.0, 1.0],
        "projection": {"orthographic": {"height_world": 40.0}},
    }
    return json.dumps({"camera": camera, "background": [0, 0, 0], **fields})


def drawn(home, file, out, *arguments, size="120x120") -> np.ndarray:
    done = corridor(home, "render", file, "--size", size, "-o", str(out), "--device", "cpu", *arguments)
    assert done.returncode == 0, done.stderr
    return pixels(out).astype(int)[:, :, :3]


MAGMA = {"range": [200.0, 400.0], "map": "magma"}
HEAT = {"array": "t", **MAGMA}


def test_slice_colored_by_another_array_equals_its_slice(home, file, tmp_path):
    slices = {"slices": [{"axis": "y", "at": 12.5}], "mode": "surfaces"}
    own = {**MAGMA, "opacity": [[200.0, 1.0]]}
    expected = drawn(home, file, tmp_path / "t.png", "--view", view(array="t", transfer=own, **slices))
    found = drawn(home, file, tmp_path / "rho.png", "--view", view(array="rho", color_by=HEAT, **slices))
    assert np.abs(expected - found).max() <= 1
    assert len(np.unique(found.reshape(-1, 3), axis=0)) > 30


def test_a_surface_has_the_colors_of_where_it_is(home, file, tmp_path):
    surface = [{"value": 100.0, "color": [0, 255, 0], "opacity": 1.0}]
    wish = view(array="rho", surfaces=surface, mode="surfaces", color_by=HEAT)
    found = drawn(home, file, tmp_path / "ball.png", "--view", wish)
    slices = {"slices": [{"axis": "y", "at": 12.5}], "mode": "surfaces"}
    table = drawn(home, file, tmp_path / "t.png", "--view", view(array="rho", color_by=HEAT, **slices))
    # Along the middle row the surface faces the eye ever less to both sides: lit colors are darker, and white toward the eye.
    seen = found[60].sum(axis=1) > 0
    assert 60 < seen.sum() < 90
    hue = found[60][seen] / found[60][seen].max(axis=1, keepdims=True)
    hue_of_table = table[60][seen] / table[60][seen].max(axis=1, keepdims=True)
    sides = slice(0, 18), slice(-18, None)
    for side in sides:
        assert np.abs(hue[side] - hue_of_table[side]).max() < 0.05


def test_color_by_does_not_change_visibility(home, file, tmp_path):
    out = tmp_path / "colored.png"
    plain = drawn(home, file, tmp_path / "plain.png", "--array", "rho", "--camera", "front")
    colored = drawn(
        home, file, out, "--array", "rho", "--camera", "front", "--color-by", "t", "--tf", "magma"
    )
    assert np.abs(plain - colored).max() > 50
    background = plain[0, 0]
    apart = (np.abs(plain - background).max(axis=2) > 3) ^ (np.abs(colored - background).max(axis=2) > 3)
    assert apart.mean() < 0.02
    what = ("--array", "rho", "--color-by", "t", "--tf", "magma", "--json")
    done = corridor(home, "render", file, "-o", str(out), "--size", "60x60", *what)
    told = json.loads(done.stdout.splitlines()[-1])["view"]["color_by"]
    assert told["array"] == "t" and told["map"] == "magma"
    assert 195 < told["range"][0] < 210 and 390 < told["range"][1] < 405


def test_several_ranks_draw_the_picture_of_one(home, file, tmp_path):
    for more in [(), ("--iso", "100", "--iso", "150:#ffffff:0.5"), ("--shading", "on", "--stereo")]:
        what = ("--array", "rho", "--color-by", json.dumps(HEAT), *more)
        one = drawn(home, file, tmp_path / "one.png", *what)
        assert one.max() > 60
        for ranks in (2, 5):
            many = drawn(home, file, tmp_path / "many.png", *what, "--ranks", str(ranks))
            assert np.abs(one - many).max() <= 1, (more, ranks)


def test_arrays_that_cannot_color_are_refused(home, file, tmp_path):
    for arguments, says in [
        (("--color-by", "coarse"), "whose voxels lie where those of `rho` do"),
        (("--colour-by", "nosuch"), "`nosuch`"),
        (("--color-by", "rho"), "another array than `rho`"),
        (("--color-by", "{}"), "another array than `rho`"),
        (("--color-by", '{"array": "t", "at": {"dim0": 1}}'), "neither space nor time"),
        (("--view", view(array="rho", color_by="t")), "an object with `array`"),
        (("--color-by", json.dumps({**HEAT, "range": [-1.7e308, 1.7e308]})), "low below high"),
        (("--color-by", json.dumps(HEAT), "--tf", "gray"), "one color map for the colors"),
        (("--color-by", "t", "--mode", "maximum"), "extreme values show their own"),
        (("--color-by", "t", "--tf", "nosuch"), "one of the color maps"),
        (("--color-by", json.dumps({**HEAT, "map": "nosuch"})), "one of the color maps"),
    ]:
        out = tmp_path / "refused.png"
        done = corridor(home, "render", file, "--array", "rho", "-o", str(out), *arguments)
        assert done.returncode != 0 and says in done.stderr, (arguments, done.stderr)
        assert not out.exists()
