"""Color images: pictures have the colors of the file, in every format that has some."""

import pathlib

import nibabel as nib
import nrrd
import numpy as np
import zarr
from conftest import corridor, running
from pictures import pixels

RNG = np.random.default_rng(5)
# Blocks of 8 x 8 equal pixels, so that enlarging leaves their middles as they are.
IMAGE = RNG.integers(0, 256, (6, 8, 3), dtype=np.uint8).repeat(8, 0).repeat(8, 1)


def picture(home, where: str, out: pathlib.Path, size: tuple[int, int], *arguments: str) -> np.ndarray:
    """The picture of a whole image, faced, without what lies around it."""
    height, width = size
    shape = f"{4 * width}x{4 * height}"
    done = corridor(home, "render", where, "--size", shape, "-o", str(out), "--device", "cpu", *arguments)
    assert done.returncode == 0, done.stderr
    return pixels(out)[:, :, :3].astype(int)


def middles(image: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Colors in the middles of so many equal fields of what is not background."""
    background = image[0, 0]
    seen = np.argwhere((image != background).any(axis=2))
    (top, left), (bottom, right) = seen.min(axis=0), seen.max(axis=0) + 1
    at = [top + int((bottom - top) * (row + 0.5) / rows) for row in range(rows)]
    across = [left + int((right - left) * (column + 0.5) / columns) for column in range(columns)]
    return image[np.ix_(at, across)]


def assert_fields(found: np.ndarray, expected: np.ndarray) -> None:
    assert np.abs(found - expected.astype(int)).max() <= 2


def test_red_green_and_blue_of_every_format_are_in_the_picture(home, tmp_path):
    expected = IMAGE[::8, ::8]
    np.save(tmp_path / "photo.npy", IMAGE)
    zarr.create_array(tmp_path / "photo.zarr", data=IMAGE, chunks=(20, 30, 2))
    nrrd.write(str(tmp_path / "photo.nrrd"), IMAGE.transpose(2, 1, 0), {"kinds": ["RGB-color", "domain", "domain"]})
    for name in ["photo.npy", "photo.zarr", "photo.nrrd"]:
        found = picture(home, str(tmp_path / name), tmp_path / f"{name}.png", IMAGE.shape[:2])
        assert_fields(middles(found, 6, 8), expected)


def test_a_volume_of_colors_shows_its_front_in_them(home, tmp_path):
    colors = np.zeros((20, 20, 20), [("R", "u1"), ("G", "u1"), ("B", "u1")])
    colors["G"][:10], colors["B"][10:] = 255, 255
    nib.save(nib.Nifti1Image(colors, np.eye(4)), tmp_path / "colors.nii")
    found = picture(home, str(tmp_path / "colors.nii"), tmp_path / "colors.png", (30, 30))
    red, green, blue = (found[:, :, part].max() for part in range(3))
    assert green > 200 and blue > 200 and red < 60


def test_channels_of_ome_are_added_over_their_windows_also_from_a_server(home, tmp_path):
    channels = RNG.integers(200, 1000, (2, 6, 8), dtype=np.uint16)
    image = channels.repeat(8, 1).repeat(8, 2)
    group = zarr.open_group(tmp_path / "cells.zarr", mode="w", zarr_format=2)
    group.create_array("0", shape=image.shape, chunks=(1, 20, 20), dtype="u2")[:] = image
    axes = [{"name": "c", "type": "channel"}, {"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    # With a scale, as every writer has it: rows run downwards all the same.
    scale = [{"type": "scale", "scale": [1.0, 0.5, 0.5]}]
    datasets = [{"path": "0", "coordinateTransformations": scale}]
    group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": datasets}]
    windows = [("FF8000", 100, 900), ("0000FF", 0, 500)]
    group.attrs["omero"] = {
        "channels": [{"color": color, "window": {"start": start, "end": end}} for color, start, end in windows]
    }
    values = channels.astype(float)
    shares = [np.clip((values[i] - start) / (end - start), 0, 1) for i, (_, start, end) in enumerate(windows)]
    expected = shares[0][..., None] * [255, 128, 0] + shares[1][..., None] * [0, 0, 255]
    with running(home, "serve", str(tmp_path / "cells.zarr"), "--listen", "127.0.0.1:0", "--json") as server:
        for where in [str(tmp_path / "cells.zarr"), server.url]:
            found = picture(home, where, tmp_path / "cells.png", image.shape[1:])
            assert_fields(middles(found, 6, 8), np.round(expected))


def test_a_level_with_fewer_channels_is_left_out_and_a_broken_chunk_ends_the_picture(home, tmp_path):
    image = RNG.integers(0, 255, (3, 64, 64), dtype=np.uint8)
    group = zarr.open_group(tmp_path / "cells.zarr", mode="w", zarr_format=2)
    group.create_array("0", shape=image.shape, chunks=image.shape, dtype="u1")[:] = image
    group.create_array("1", shape=(1, 32, 32), chunks=(1, 32, 32), dtype="u1")[:] = 7
    axes = [{"name": "c", "type": "channel"}, {"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    datasets = [{"path": "0"}, {"path": "1"}]
    group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": datasets}]
    group.attrs["omero"] = {"channels": [{"color": color} for color in ["FF0000", "00FF00", "0000FF"]]}
    done = corridor(home, "info", str(tmp_path / "cells.zarr"), "--json")
    assert "level `1` is missing or unlike the first" in done.stdout, done.stdout
    found = picture(home, str(tmp_path / "cells.zarr"), tmp_path / "cells.png", (64, 64))
    assert_fields(middles(found, 64, 64), image.transpose(1, 2, 0))
    (chunk,) = (tmp_path / "cells.zarr" / "0").glob("[0-9]*")
    with chunk.open("r+b") as file:
        file.truncate(100)
    done = corridor(home, "render", str(tmp_path / "cells.zarr"), "-o", str(tmp_path / "x.png"), timeout=60)
    assert done.returncode == 6 and "cannot be loaded" in done.stderr, done.stderr
