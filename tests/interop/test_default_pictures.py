"""Default pictures of typical files: images look like images, and something is visible."""

import json
import pathlib

import netCDF4
import numpy as np
import pytest
from conftest import corridor
from pictures import pixels

BACKGROUND = np.array([13, 14, 18])


def picture(home: pathlib.Path, file: pathlib.Path, *arguments: str, size: str = "200x120") -> tuple[np.ndarray, dict]:
    out = file.with_suffix(".png")
    done = corridor(home, "render", str(file), "--size", size, "--json", "--device", "cpu", "-o", str(out), *arguments)
    assert done.returncode == 0, done.stderr
    # Progress comes before, where the picture took a while.
    return pixels(out).astype(int), json.loads(done.stdout.splitlines()[-1])


def is_filled(image: np.ndarray) -> np.ndarray:
    return np.abs(image - BACKGROUND).max(axis=-1) > 6


def saved(tmp_path: pathlib.Path, data: np.ndarray) -> pathlib.Path:
    path = tmp_path / "a.npy"
    np.save(path, data)
    return path


def letter_f() -> np.ndarray:
    """Row 0 is on top, the arms point to the right."""
    letter = np.zeros((60, 160), "u1")
    letter[8:52, 20:28] = 255
    letter[8:16, 20:70] = 255
    letter[26:34, 20:55] = 255
    return letter


@pytest.mark.parametrize("shape", [(60, 160), (1, 60, 160), (60, 1, 160), (60, 160, 1)])
def test_an_image_fills_the_picture_and_reads_rightly(home, tmp_path, shape):
    image, _ = picture(home, saved(tmp_path, letter_f().reshape(shape)), size="160x60")
    bright = (image[..., 0] > 150).astype(float)
    expected = (letter_f() > 0).astype(float)
    assert is_filled(image).mean() > 0.9
    assert np.corrcoef(bright[2:-2, 2:-2].ravel(), expected[2:-2, 2:-2].ravel())[0, 1] > 0.8


@pytest.mark.parametrize("size", ["1024x640", "200x120", "61x38"])
@pytest.mark.parametrize("level", [None, "1", "2"])
def test_an_image_has_no_rings_at_any_size_and_level(home, tmp_path, size, level):
    y, x = np.mgrid[:600, :960]
    data = (128 + 100 * np.sin(x / 60) * np.cos(y / 90)).astype("u1")[None]
    arguments = [] if level is None else ["--level", level]
    image, found = picture(home, saved(tmp_path, data), *arguments, size=size)
    height, width = image.shape[:2]
    inner = is_filled(image)[height // 10 : -height // 10, width // 10 : -width // 10]
    assert inner.all(), f"{inner.mean()}: {found['truth']['text']}"


@pytest.mark.parametrize("with_units", [("lat", "lon"), ("lat",), ("lon",), ()])
@pytest.mark.parametrize("north_first", [True, False])
def test_north_is_up_in_the_default_view(home, tmp_path, north_first, with_units):
    path = tmp_path / "map.nc"
    lat = np.linspace(90, -90, 61) if north_first else np.linspace(-90, 90, 61)
    with netCDF4.Dataset(path, "w") as file:
        for name, values, units in (("lat", lat, "degrees_north"), ("lon", np.arange(0, 360, 3.0), "degrees_east")):
            file.createDimension(name, len(values))
            variable = file.createVariable(name, "f8", (name,))
            variable[:] = values
            if name in with_units:
                variable.units = units
        file.createVariable("t", "f4", ("lat", "lon"))[:] = np.where(lat > 0, 300.0, 200.0)[:, None]
    image, _ = picture(home, path)
    rows = np.flatnonzero(is_filled(image).mean(axis=1) > 0.9)
    top, bottom = image[rows[2]].mean(axis=0), image[rows[-3]].mean(axis=0)
    assert top[0] > bottom[0] + 60, f"the warm north is yellow and on top: {top}, {bottom}"


def test_the_surface_of_the_sea_is_on_top(home, tmp_path):
    path = tmp_path / "section.nc"
    depth = np.arange(0, 600, 10.0)
    with netCDF4.Dataset(path, "w") as file:
        for name, values, units in (("depth", depth, "m"), ("lon", np.arange(0, 120, 2.0), "degrees_east")):
            file.createDimension(name, len(values))
            variable = file.createVariable(name, "f8", (name,))
            variable[:] = values
            variable.units = units
        file.createVariable("t", "f4", ("depth", "lon"))[:] = np.where(depth < 300, 300.0, 200.0)[:, None]
    image, _ = picture(home, path)
    rows = np.flatnonzero(is_filled(image).mean(axis=1) > 0.5)
    top, bottom = image[rows[2]].mean(axis=0), image[rows[-3]].mean(axis=0)
    assert top[0] > bottom[0] + 60, f"the warm surface is yellow and on top: {top}, {bottom}"


def blob(side: int = 40) -> np.ndarray:
    distance = np.sqrt(((np.indices((side,) * 3) - (side - 1) / 2) ** 2).sum(axis=0))
    return (np.clip((0.4 * side - distance) / 8, 0, 1) + 0.05 * np.random.default_rng(1).random((side,) * 3)).astype("f4")


@pytest.mark.parametrize(
    ("kind", "says"),
    [("one", "up to 1e30"), ("three", "up to 3e38"), ("padding", "-9999, which looks like padding"), ("powers", None)],
)
def test_the_first_colors_show_something_and_say_what_lies_outside(home, tmp_path, kind, says):
    data = blob()
    if kind == "one":
        data[3, 4, 5] = 1e30
    elif kind == "three":
        data[3:6, 4, 5:8] = [-9999, 3e38, 1e20]
    elif kind == "padding":
        data[np.indices(data.shape)[0] < 26] = -9999
    else:
        data = (10.0 ** (8 * data) * 1e-28).astype("f4")
    file = saved(tmp_path, data)
    image, found = picture(home, file)
    assert 0.02 < is_filled(image).mean() < 0.95
    low, high = found["view"]["transfer"]["range"]
    if kind != "powers":
        assert -0.1 < low < 0.2 and 0.9 < high < 1.2, (low, high)
        assert says in found["values"]["note"] and says in found["truth"]["text"].replace("−", "-")
    _, full = picture(home, file, "--range", "full")
    assert np.allclose(full["view"]["transfer"]["range"], [data.min(), data.max()])
    _, given = picture(home, file, "--range", "-1,2.5")
    assert given["view"]["transfer"]["range"] == [-1, 2.5]


def test_saturated_pixels_of_a_photo_are_drawn_and_hidden_padding_is_said_to_be(home, tmp_path):
    y, x = np.mgrid[:90, :180]
    photo = 40 + 20 * np.sin(x / 9) + 10 * np.cos(y / 7)
    for dtype, full, is_padding in [("u1", 255, False), ("u2", 4095, False), ("i2", 32767, False), ("i2", -9999, True)]:
        data = photo.astype(dtype)
        data[30:60, 70:110] = full
        image, found = picture(home, saved(tmp_path, data), size="180x90")
        assert is_filled(image)[45, 90] == (not is_padding), (dtype, full)
        assert (found["view"]["transfer"]["range"][1] == full) == (not is_padding)
        note = found["values"].get("note") or ""
        assert ("which looks like padding, and are not drawn" in note) == is_padding, note


def test_first_time_step_without_values_is_reported(home, tmp_path):
    steps = np.stack([np.full((30, 30, 30), np.nan, "f4"), blob(30)])
    file = saved(tmp_path, steps)
    image, found = picture(home, file)
    assert not is_filled(image).any() and "no value here" in found["truth"]["text"]
    image, found = picture(home, file, "--time", "1")
    assert is_filled(image).mean() > 0.02 and found["values"]["high"] > 1.0


def test_thin_and_long_volumes_are_visible_in_the_first_picture(home, tmp_path):
    y, x = np.mgrid[:90, :180]
    layers = np.stack([np.sin(x / 20) + k for k in range(3)]).astype("f4")
    image, _ = picture(home, saved(tmp_path, layers), size="180x90")
    assert is_filled(image).mean() > 0.9
    needle = np.repeat(np.sin(np.arange(100_000) / 5000)[:, None], 16, axis=1).reshape(-1, 4, 4).astype("f4")
    image, _ = picture(home, saved(tmp_path, needle))
    assert is_filled(image).mean() > 0.005


def test_labels_of_64_bits_have_distinct_colors(home, tmp_path):
    ids = np.array([1, 2, 257, 2**32 + 1, 2**40, 2**53, 2**53 + 1, 2**63 + 5], "u8")
    data = np.repeat(np.repeat(ids[None, None], 10, axis=2), 10, axis=1)
    (tmp_path / "labels.raw").write_bytes(data.tobytes())
    toml = tmp_path / "labels.toml"
    toml.write_text(f'file = "labels.raw"\nshape = [1, 10, {data.shape[2]}]\ndtype = "<u8"\nlabels = true\n')
    image, _ = picture(home, toml, size="160x20")
    middles = image[10, 10::20]
    colors = {tuple(color // 8) for color in middles}
    assert len(colors) == len(ids), middles
    assert is_filled(image[5:15, 4:-4]).mean() > 0.95
