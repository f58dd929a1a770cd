"""Layers from the command line: a segmentation over a CT of another grid, compared with nibabel; pixels are voxels."""

import json
import pathlib

import nibabel
import numpy as np
import pytest
from conftest import corridor
from pictures import pixels

SIDE = 40
PLANE = 21


def turned() -> np.ndarray:
    """Voxels of 1.7 x 2.1 x 1.9 mm, turned about z, in another corner of the scan."""
    sine, cosine = np.sin(0.3), np.cos(0.3)
    return np.array(
        [
            [1.7 * cosine, -2.1 * sine, 0, 9.3],
            [1.7 * sine, 2.1 * cosine, 0, 2.4],
            [0, 0, 1.9, 1.15],
            [0, 0, 0, 1],
        ]
    )


@pytest.fixture
def labels() -> np.ndarray:
    """Labels `[x, y, z]`: 0, 1, 2 and 5 in boxes."""
    data = np.zeros((16, 14, 18), np.uint8)
    data[2:9, 3:11, 4:16] = 1
    data[9:14, 3:8, 4:16] = 2
    data[4:6, 5:7, 8:13] = 5
    return data


@pytest.fixture
def files(labels: np.ndarray, tmp_path: pathlib.Path) -> tuple[str, str]:
    x, y, z = np.mgrid[:SIDE, :SIDE, :SIDE]
    ct, seg = tmp_path / "ct.nii.gz", tmp_path / "organs.nii.gz"
    for path, data, affine in (
        (ct, (5 * x + y + z).astype(np.int16), np.eye(4)),
        (seg, labels, turned()),
    ):
        image = nibabel.Nifti1Image(data, affine)
        image.header.set_xyzt_units("mm")
        nibabel.save(image, str(path))
    return str(ct), str(seg)


def nearest_labels(labels: np.ndarray) -> np.ndarray:
    """The label of each pixel, `[row, column]`; -1 where it is nearly between two voxels."""
    x, y = np.meshgrid(np.arange(SIDE), np.arange(SIDE)[::-1])
    world = np.stack([x, y, np.full_like(x, PLANE), np.ones_like(x)], axis=-1).astype(float)
    at = world @ np.linalg.inv(turned()).T
    voxel = np.floor(at[..., :3] + 0.5).astype(int)
    inside = np.all((voxel >= 0) & (voxel < labels.shape), axis=-1)
    found = np.where(inside, labels[tuple(np.clip(voxel, 0, np.array(labels.shape) - 1).reshape(-1, 3).T)].reshape(SIDE, SIDE), 0)
    edge = np.any(np.abs(at[..., :3] - np.round(at[..., :3])) > 0.49, axis=-1)
    return np.where(edge, -1, found)


@pytest.fixture
def drawn(files: tuple[str, str], tmp_path: pathlib.Path, home: pathlib.Path):
    middle = SIDE / 2 - 0.5
    camera = {
        "eye": [middle, middle, 100.0],
        "target": [middle, middle, 0.0],
        "up": [0.0, 1.0, 0.0],
        "projection": {"orthographic": {"height_world": float(SIDE)}},
    }
    transfer = {"range": [0, 280], "map": "gray", "opacity": [[0, 1]]}
    slices = [{"axis": "z", "at": PLANE}]
    view = json.dumps({"camera": camera, "mode": "surfaces", "slices": slices, "transfer": transfer})

    def draw(*layers: str) -> np.ndarray:
        out = tmp_path / "out.png"
        more = [word for layer in layers for word in ("--layer", layer)]
        done = corridor(home, "render", files[0], "--view", view, "--size", f"{SIDE}x{SIDE}", "-o", str(out), *more)
        assert done.returncode == 0, done.stderr
        return pixels(out).astype(int)

    return draw


def test_labels_lie_where_nibabel_puts_them(drawn, files: tuple[str, str], labels: np.ndarray) -> None:
    plain, filled = drawn(), drawn(f"{files[1]},labels=filled")
    found = nearest_labels(labels)
    assert {0, 1, 2, 5} <= set(np.unique(found))
    assert np.abs(filled - plain)[found == 0].max() <= 1, "the scan where there is no label"
    colors = [np.unique(filled[found == label], axis=0) for label in (1, 2, 5)]
    assert all(len(color) == 1 for color in colors), colors
    assert len(np.unique(np.concatenate(colors), axis=0)) == 3


def test_opacity_mixes_and_outlines_have_a_voxel(drawn, files: tuple[str, str], labels: np.ndarray) -> None:
    plain, filled = drawn(), drawn(f"{files[1]},labels=filled")
    half = drawn(f"{files[1]},labels=filled,opacity=0.5")
    assert np.abs(half - (plain + filled) / 2).max() <= 1.5
    outlined = drawn(f"{files[1]},labels=outlined")
    found = nearest_labels(labels)
    is_label = np.abs(outlined - filled).max(axis=2) <= 1
    is_scan = np.abs(outlined - plain).max(axis=2) <= 1
    assert np.all(is_label | is_scan)
    inner = (found == 1) & is_scan
    assert 10 < inner.sum() < (found == 1).sum(), "the inside of a label is open"
    assert not np.any((found == 5) & is_scan), "a label of two voxels is all outline"


def test_the_last_layer_is_on_top(drawn, files: tuple[str, str], labels: np.ndarray) -> None:
    over = drawn(f"{files[0]},opacity=1", f"{files[1]},labels=filled")
    under = drawn(f"{files[1]},labels=filled", json.dumps({"array": files[0], "labels": "filled"}))
    filled, found = drawn(f"{files[1]},labels=filled"), nearest_labels(labels)
    assert np.abs(over - filled)[found == 1].max() <= 1
    assert np.abs(under - filled)[found == 1].max() > 20


def test_layers_that_cannot_be_drawn_are_refused_with_a_sentence(
    files: tuple[str, str], tmp_path: pathlib.Path, home: pathlib.Path
) -> None:
    far = tmp_path / "far.nii"
    affine = np.eye(4)
    affine[0, 3] = 1000
    nibabel.save(nibabel.Nifti1Image(np.zeros((4, 4, 4), np.float32), affine), str(far))
    for layer, says in (
        (str(far), "lies beside"),
        (f"{far},labels=filled", "labels are whole numbers"),
        ("nowhere.nii", "as a layer, found `nowhere.nii`"),
        (f"{files[1]},opacity=2", "opacity"),
        (f"{files[1]},shade=1", "expected a layer such as"),
    ):
        out = tmp_path / "no.png"
        done = corridor(home, "render", files[0], "--layer", layer, "--size", "40x40", "-o", str(out))
        assert done.returncode != 0 and says in done.stderr, f"{layer}: {done.stderr}"
        assert not out.exists()


def test_a_volume_shows_a_layer_that_the_scan_would_hide(files: tuple[str, str], tmp_path: pathlib.Path, home: pathlib.Path) -> None:
    def draw(*more: str) -> np.ndarray:
        out = tmp_path / "volume.png"
        hidden = json.dumps({"range": [0, 280], "map": "gray", "opacity": [[0, 0]]})
        what = ("--tf", hidden, "--camera", "front", "--size", "60x60", "-o", str(out))
        done = corridor(home, "render", files[0], *what, *more)
        assert done.returncode == 0, done.stderr
        return pixels(out).astype(int)

    empty, layered = draw(), draw("--layer", f"{files[1]},labels=filled")
    assert np.ptp(empty.reshape(-1, 3), axis=0).max() <= 1
    assert (np.abs(layered - empty).max(axis=2) > 20).sum() > 200
