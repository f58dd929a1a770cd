"""Pictures as numpy arrays."""

import pathlib
import pickle

import corridor
import h5py
import numpy as np
import pytest

SIZE = (64, 48)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    """A ball of ones in zeros."""
    z, y, x = np.mgrid[-1:1:32j, -1:1:32j, -1:1:32j]
    with h5py.File(tmp_path / "ball.h5", "w") as file:
        file["ball"] = (z**2 + y**2 + x**2 < 0.5).astype("<f4")
    return tmp_path / "ball.h5"


def test_pixels_of_all_kinds_agree(path: pathlib.Path) -> None:
    ball = corridor.open(path)["ball"]
    rgb, rgba, exact = (ball.render(size=SIZE, camera="front", pixels=p) for p in ("rgb", "rgba", "float"))
    assert (rgb.shape, rgb.dtype) == ((48, 64, 3), np.uint8)
    assert (rgba.shape, exact.shape, exact.dtype) == ((48, 64, 4), (48, 64, 4), np.float32)
    corner, middle = exact[0, 0], exact[24, 32]
    assert np.array_equal(corner, np.zeros(4)) and middle[3] > 0.9
    assert np.array_equal(rgba[..., 3], np.round(exact[..., 3] * 255))
    behind = rgb[0, 0] / 255
    over = exact[..., :3] + behind * (1 - exact[..., 3:])
    assert np.abs(over * 255 - rgb).max() <= 1


def test_a_data_set_an_array_and_a_location_give_the_same_picture(path: pathlib.Path) -> None:
    data = corridor.open(path)
    pictures = [
        thing.render(size=SIZE) for thing in (data, data["ball"])
    ] + [corridor.render(thing, size=SIZE) for thing in (path, data, f"{path}/ball")]  # fmt: skip
    assert all(np.array_equal(pictures[0], other) for other in pictures[1:])
    assert pictures[0].std() > 0


def test_layers_are_drawn_over_the_array(path: pathlib.Path) -> None:
    with h5py.File(path, "a") as file:
        file["parts"] = np.repeat(np.array([0, 3], "|u1"), 16).reshape(32, 1, 1) * np.ones((32, 32, 32), "|u1")
    data = corridor.open(path)
    how = {"size": SIZE, "camera": "front", "pixels": "float", "slices": {"y": 16}, "mode": "surfaces"}
    own = data["ball"].render(**how)
    layer = {"array": data["parts"], "labels": "filled", "opacity": 0.5}
    layered = data["ball"].render(layers=[layer], **how)
    changed = np.abs(layered - own).max(axis=-1) > 0.01
    assert changed.any() and not changed.all(), "label 0 is transparent"
    assert np.array_equal(data["ball"].render(layers="parts,labels=filled,opacity=0.5", **how), layered)
    other = corridor.open(path)
    elsewhere = {"array": other["parts"], "labels": "filled", "opacity": 0.5}
    assert np.allclose(data["ball"].render(layers=[elsewhere], **how), layered, atol=1e-3)
    with pytest.raises(corridor.InvalidError, match="either `array` or `geometry`"):
        data["ball"].render(layers=[{"name": "nothing"}], **how)
    with pytest.raises(corridor.NotFoundError, match="as a layer, found `nowhere`"):
        data["ball"].render(layers="nowhere", **how)


def test_another_array_gives_the_colors(path: pathlib.Path) -> None:
    with h5py.File(path, "a") as file:
        file["x"] = np.broadcast_to(np.linspace(0, 1, 32, dtype="<f4"), (32, 32, 32))
    data = corridor.open(path)
    how = {"size": SIZE, "camera": "front", "pixels": "float"}
    own = data["ball"].render(**how)
    by = {"array": "x", "range": [0.0, 1.0], "map": "gray"}
    colored = data["ball"].render(color_by=by, **how)
    assert np.allclose(own[..., 3], colored[..., 3], atol=1e-3)
    # Gray, darker where x is small.
    assert np.ptp(colored[..., :3], axis=-1).max() < 1e-3
    left, right = colored[24, 24], colored[24, 40]
    assert left[3] > 0.9 and right[3] > 0.9 and right[0] > left[0] + 0.15
    ends = np.array([0, 1], dtype=np.float32)
    with_numpy = {"array": "x", "range": ends, "map": "gray"}
    assert np.array_equal(data["ball"].render(color_by=with_numpy, **how), colored)
    with pytest.raises(corridor.InvalidError, match="expected numbers"):
        data["ball"].render(color_by={"array": object()}, **how)
    named = data["ball"].render(color_by=data["x"], tf="gray", **how)
    assert np.abs(named - colored).max() < 0.02
    with pytest.raises(corridor.InvalidError, match="another array than `ball`"):
        data["ball"].render(color_by="ball", **how)


def test_surfaces_slices_and_projections_are_drawn(path: pathlib.Path) -> None:
    ball = corridor.open(path)["ball"]
    surface = ball.render(size=SIZE, camera="front", iso="0.5:#ff0000", pixels="float")
    red, green, _, alpha = surface[24, 32]
    assert alpha > 0.99 and red > 3 * green
    across = ball.render(size=SIZE, camera="top", slices={"z": 16}, pixels="float")
    assert across[24, 32, 3] == 1 and np.count_nonzero(across[..., 3]) < SIZE[0] * SIZE[1]
    least = ball.render(size=SIZE, camera="front", mode="maximum", pixels="float")
    assert least[24, 32, :3].max() > 0.5


def test_isovalues_of_numpy_are_numbers_too(path: pathlib.Path) -> None:
    ball = corridor.open(path)["ball"]
    wanted = ball.render(size=SIZE, iso=0.5)
    for iso in (np.float32(0.5), np.float64(0.5), np.array(0.5), np.array([0.5]), [np.float16(0.5)], ("0.5",)):
        assert np.array_equal(ball.render(size=SIZE, iso=iso), wanted), repr(iso)
    assert np.array_equal(ball.render(size=SIZE, iso=np.int64(1)), ball.render(size=SIZE, iso=1))
    assert not np.array_equal(ball.render(size=SIZE), wanted)


def test_invalid_arguments_are_explained(path: pathlib.Path) -> None:
    data = corridor.open(path)
    for wrong, words in [
        ({"pixels": "cmyk"}, "rgb, rgba, float"),
        ({"mode": "sideways"}, "composite, surfaces, maximum, minimum"),
        ({"camera": "aside"}, "front"),
        ({"device": "abacus"}, "auto, cpu or gpu"),
        ({"iso": "red"}, "isosurface"),
        ({"size": (0, 10)}, "size|pixels"),
    ]:
        with pytest.raises(corridor.InvalidError, match=words):
            data["ball"].render(**{"size": SIZE, **wrong})


def test_light_has_a_strength(path: pathlib.Path) -> None:
    ball = corridor.open(path)["ball"]
    for what in ({"iso": "0.5:#ff8000"}, {"shading": True}):
        flat, half, full = (
            ball.render(size=SIZE, camera="front", pixels="float", lighting=strength, **what)
            # Not 0: unlit volumes are sampled differently.
            for strength in (1e-6, 0.5, 1)
        )
        assert np.array_equal(full, ball.render(size=SIZE, camera="front", pixels="float", **what))
        assert np.allclose(full[..., 3], flat[..., 3], atol=0.01) and np.abs(full - flat).max() > 0.05
        # Highlights are cut off at white, so that half of the light is at least the mean of none and all.
        mean, change = (flat + full) / 2, np.abs(full - flat)
        assert np.all(half >= mean - 1e-4) and np.all(half <= mean + change / 2 + 0.05)
    plain = ball.render(size=SIZE, camera="front", shading=False)
    assert np.array_equal(ball.render(size=SIZE, camera="front", shading=True, lighting=0), plain)
    with pytest.raises(corridor.InvalidError, match="a number from 0 to 1 for `lighting`"):
        ball.render(size=SIZE, lighting=2)


def test_keywords_have_names(path: pathlib.Path) -> None:
    ball = corridor.open(path)["ball"]
    for wrong, words in [("shadign", "did you mean shading"), ("array", "unexpected keyword `array`"), ("x", "help")]:
        with pytest.raises(TypeError, match=words):
            ball.render(size=SIZE, **{wrong: None})
    with pytest.warns(DeprecationWarning, match="`color_by` now"):
        with pytest.raises(corridor.InvalidError, match="another array than `ball`"):
            ball.render(size=SIZE, colour_by="ball")
    assert "``iso``" in (corridor.render.__doc__ or "")


def test_values_of_python_are_those_of_the_command_line(path: pathlib.Path) -> None:
    ball = corridor.open(path)["ball"]
    for one, other in [
        ({"slices": {"z": np.int64(16)}}, {"slices": "z=16"}),
        ({"slices": [{"axis": "z", "at": 16}]}, {"slices": ("z=16",)}),
        ({"shading": np.True_}, {"shading": "on"}),
        ({"stereo": True}, {"stereo": "1/30"}),
        ({"stereo": False, "time": None}, {}),
        ({"view": {"surfaces": [{"value": 0.5, "color": [255, 0, 0], "opacity": 1}]}}, {"iso": "0.5:#ff0000", "mode": "composite"}),
        ({"range": (0, np.float32(1))}, {"range": "0,1"}),
    ]:  # fmt: skip
        assert np.array_equal(ball.render(size=SIZE, **one), ball.render(size=SIZE, **other)), one


def test_a_picture_that_memory_keeps_coarse_says_so() -> None:
    data = corridor.open("synthetic:noise?shape=512,512,512&dtype=f32", memory="64MiB")
    with pytest.warns(UserWarning, match="memory"):
        data.render(size=(512, 512))


def test_slabs_are_drawn_without_the_data(
    path: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    ball = corridor.open(path)["ball"]
    picture, slabs = ball.render_with_slabs(size=SIZE, camera="front", slab_count=12, slab_texel=1)
    assert np.array_equal(picture, ball.render(size=SIZE, camera="front"))
    assert len(slabs) == 12 and slabs.borders.shape == (13,) and np.all(np.diff(slabs.borders) > 0)
    assert np.abs(slabs.normal - [0, 1, 0]).max() < 1e-6 and slabs.camera["target"]
    for number, (_, _, width, height) in enumerate(slabs.rects):
        assert slabs.texels(number).shape == (height, width, 4)
    # Over and over, the nearest first: what the slabs' own camera sees.
    whole = np.zeros((slabs.size[1], slabs.size[0], 4), np.float32)
    for number, (left, top, width, height) in enumerate(slabs.rects):
        part = whole[top : top + height, left : left + width]
        part += (1 - part[..., 3:]) * slabs.texels(number)
    own = slabs.draw(slabs.camera, size=slabs.size, pixels="float")
    assert np.abs(whole - own).max() < 0.01
    near = slabs.draw(size=SIZE).astype(int)
    assert np.abs(near - picture).mean() < 4
    assert np.array_equal(slabs.draw(slabs.of_picture, size=SIZE), near) and slabs.guard > 0
    slabs.save(tmp_path / "x.slabs")
    for again in (corridor.Slabs.load(tmp_path / "x.slabs"), pickle.loads(pickle.dumps(slabs))):
        assert np.array_equal(again.borders, slabs.borders)
    across = corridor.render_with_slabs(ball, size=SIZE, slab_cut="axis")[1]
    assert len(across) == 32 and np.sort(np.abs(across.normal))[1] < 1e-6


def test_unsupported_slabs_are_refused(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    ball = corridor.open(path)["ball"]
    for wrong, words in [
        ({"slab_count": 0}, "1 to 64 slabs"),
        ({"slab_cut": "cubes"}, "planes or axis"),
        ({"pixels": "cmyk"}, "rgb, rgba, float"),
    ]:
        with pytest.raises(corridor.InvalidError, match=words):
            ball.render_with_slabs(**{"size": SIZE, **wrong})
    with pytest.raises(corridor.UnsupportedError, match="isosurfaces"):
        ball.render_with_slabs(size=SIZE, iso=0.5)
    (tmp_path / "bad.slabs").write_bytes(b"no slabs at all")
    with pytest.raises(corridor.CorruptError, match="bad.slabs"):
        corridor.Slabs.load(tmp_path / "bad.slabs")
    with pytest.raises(IndexError):
        ball.render_with_slabs(size=SIZE, slab_count=4)[1].texels(4)


def test_transfer_functions_have_names_scales_and_presets(path: pathlib.Path) -> None:
    with h5py.File(path, "a") as file:
        file["powers"] = np.broadcast_to(10.0 ** np.linspace(-6, 6, 32), (32, 32, 32)).astype("<f4")
    powers = corridor.open(path)["powers"]
    how = {"size": SIZE, "camera": "front", "mode": "maximum", "pixels": "float"}
    whole = {"range": (1e-6, 1e6), "map": "gray", "scale": "log", "opacity": [[1e-6, 0.0], [1e6, 1.0]]}
    log = powers.render(tf=whole, **how)
    # Gray rises evenly along x.
    row = log[24, log[24, :, 3] > 0.99, 0]
    assert len(row) > 20 and np.abs(np.diff(row, 2)).max() < 0.03 and row[-1] > 0.95 and row[0] < 0.05
    assert np.abs(powers.render(tf={**whole, "map": "gray_r"}, **how) - powers.render(tf={**whole, "reversed": True}, **how)).max() == 0
    assert powers.render(tf="simulation", **how).std() > 0
    with pytest.raises(corridor.InvalidError, match="`symlog`"):
        powers.render(tf={**whole, "range": (0.0, 1.0)}, **how)


def test_backgrounds_have_names_and_numbers():
    data = "synthetic:waves?shape=16,16,16&dtype=u8"
    for background, color in [("white", 255), ("#0a0a0a", 10), ([7, 7, 7], 7)]:
        assert (corridor.render(data, size=(64, 32), background=background)[0, 0] == color).all()
    with pytest.raises(corridor.InvalidError, match="`white`"):
        corridor.render(data, size=(64, 32), background="pinkish")


def test_pictures_beyond_what_is_held_at_once_have_all_rows():
    picture = corridor.render("synthetic:waves?shape=16,16,16&dtype=u8", size=(16384, 4100), background="white")
    assert picture.shape == (4100, 16384, 3)
    assert (picture[-1] == 255).all() and (picture[2050] < 250).any()
