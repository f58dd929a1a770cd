"""Medical volumes: position in world space, meaning of values, colors and complex numbers."""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import conftest
import corridor
import nibabel
import numpy as np
import pytest
import xarray as xr
import zarr

# The files that are compared value by value, too.
sys.path.insert(0, str(conftest.ROOT / "tests/field"))
from generators import volumes  # noqa: E402

FOLDER = tempfile.TemporaryDirectory(prefix="corridor-volumes.")
volumes.write(pathlib.Path(FOLDER.name))
NIBABEL_S = sorted(p for p in pathlib.Path(FOLDER.name).iterdir() if p.name.endswith((".nii", ".gz", ".img", ".mgh", ".mgz")))
VOLUME, TURNED = volumes.VOLUME, volumes.TURNED


@pytest.mark.parametrize("path", [p for p in NIBABEL_S if "dtseries" not in p.name], ids=lambda p: p.name)
def test_volumes_lie_where_nibabel_says(path: pathlib.Path) -> None:
    expected = nibabel.load(path)
    array = next(iter(corridor.open(path).values()))
    assert np.allclose(array.world_from_voxel[:, [2, 1, 0, 3]], expected.affine, rtol=1e-6, atol=1e-6)


def test_an_sform_of_zeros_gives_way_to_the_qform(tmp_path: pathlib.Path) -> None:
    image = volumes.placed(None, volumes.OTHER)
    nibabel.save(image, tmp_path / "zeros.nii")
    volumes.patched(tmp_path / "zeros.nii", 254, struct.pack("<h", 1))
    volumes.patched(tmp_path / "zeros.nii", 280, bytes(48))
    assert not nibabel.load(tmp_path / "zeros.nii").affine[:3].any(), "nibabel takes it as it is"
    array = corridor.open(tmp_path / "zeros.nii")["image"]
    assert np.allclose(array.world_from_voxel[:, [2, 1, 0, 3]], image.get_qform(), atol=1e-6)
    assert "sform" in corridor_says(tmp_path, "info", "zeros.nii")


def test_either_file_of_a_pair_may_be_named() -> None:
    for stem, ending in (("pair", ""), ("second_pair", ""), ("analyze", ""), ("packed_pair", ".gz")):
        for half in (".hdr", ".img"):
            array = corridor.open(f"{FOLDER.name}/{stem}{half}{ending}")["image"]
            assert np.array_equal(array[...], values_of(VOLUME)), (stem, half)


def values_of(data: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(data.T)


def test_colors_and_complex_numbers(tmp_path: pathlib.Path) -> None:
    for parts in (3, 4):
        colors = np.arange(24 * parts, dtype="u1").reshape(2, 3, 4, parts)
        kind = np.dtype([(name, "u1") for name in "RGBA"[:parts]])
        nibabel.save(nibabel.Nifti1Image(colors.view(kind)[..., 0], TURNED), tmp_path / "colors.nii")
        array = corridor.open(tmp_path / "colors.nii")["image"]
        assert array.dims == ("z", "y", "x", "colour")
        assert array.attrs["channels"] == ["red", "green", "blue", "alpha"][:parts]
        assert np.array_equal(array[...], colors.transpose(2, 1, 0, 3))
    for kind in ("c8", "c16"):
        numbers = (np.arange(24) * (1 - 2j)).reshape(2, 3, 4).astype(kind)
        nibabel.save(nibabel.Nifti1Image(numbers, TURNED), tmp_path / "complex.nii")
        np.save(tmp_path / "complex.npy", np.asfortranarray(numbers))
        data = corridor.open(tmp_path / "complex.nii")
        assert np.array_equal(data["image.r"][...] + 1j * data["image.i"][...], values_of(numbers))
        data = corridor.open(tmp_path / "complex.npy")
        assert np.array_equal(data["complex.r"][...] + 1j * data["complex.i"][...], numbers)


def test_matrices_have_the_axes_of_their_xml() -> None:
    array = corridor.open(f"{FOLDER.name}/matrix.dtseries.nii")["image"]
    assert array.dims == ("scalars", "series")
    assert np.allclose(array.coordinates("series"), np.arange(5) * 0.72)


@pytest.mark.parametrize("kind", ["u1", "i2", "f8"])
def test_arrays_in_fortran_order_are_numpy_s(kind: str, tmp_path: pathlib.Path) -> None:
    expected = np.asfortranarray(np.random.default_rng(3).integers(0, 99, (40, 50, 70)).astype(kind))
    np.save(tmp_path / "a.npy", expected)
    array = corridor.open(tmp_path / "a.npy")["a"]
    assert np.array_equal(array[...], expected)
    assert np.array_equal(array[3:30:4, -1, ::-3], expected[3:30:4, -1, ::-3])


def test_nrrd_files_lie_where_their_space_says() -> None:
    turned = np.diag([-1, -1, 1, 1]) @ np.array([[2, 0, 0, 1], [0, 3, 0.5, 2], [0, 0, 4, 3], [0, 0, 0, 1]])
    for name in ("raw", "gzip", "bzip2", "ascii"):
        array = corridor.open(f"{FOLDER.name}/{name}.nrrd")["image"]
        assert np.allclose(array.world_from_voxel[:, [2, 1, 0, 3]], turned), name
    assert corridor.open(f"{FOLDER.name}/time.nrrd")["image"].dims == ("t", "z", "y", "x")


def test_world_map_is_the_same_in_every_interface(tmp_path: pathlib.Path) -> None:
    volume = np.zeros((70, 20, 10), "i2")
    nibabel.save(nibabel.Nifti1Image(volume, TURNED), tmp_path / "a.nii")
    (tmp_path / "home").mkdir()
    expected = TURNED[:, [2, 1, 0, 3]]
    with conftest.running(tmp_path, "serve", "a.nii", "--listen", "127.0.0.1:0", "--json", "--no-token") as program:
        array = corridor.open(program.url)["image"]
        assert np.allclose(array.world_from_voxel, expected)
        # Level 1 has every second voxel, its middle half a voxel further.
        k, j, i = 1, 2, 3
        at = array.level(1).world_from_voxel @ [k, j, i, 1]
        assert np.allclose(at, expected @ [2 * k + 0.5, 2 * j + 0.5, 2 * i + 0.5, 1])
        variable = xr.open_dataset(program.url, engine="corridor")["image"]
        assert np.allclose(variable.attrs["world_from_voxel"].reshape(4, 4), expected)
        assert "world_units" in variable.attrs
        address = program.lines[0]["zarr"].partition("#")[0]
        over_http = zarr.open_group(address, mode="r", zarr_format=3)["image"]
        assert np.allclose(over_http.attrs["world_from_voxel"], expected)
        ome = zarr.open_group(address.replace("/zarr/", "/ome/") + "/image", mode="r", zarr_format=3)
        assert np.allclose(ome.attrs["world_from_voxel"], expected)
    told = json.loads(corridor_says(tmp_path, "info", "--json", "a.nii"))
    rows = np.array(told["arrays"][0]["levels"][0]["world_from_voxel"])
    assert np.allclose(rows, TURNED[:3])
    assert "y = 5 - 2 i" in corridor_says(tmp_path, "info", "a.nii")


def test_meaning_can_be_overridden(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "scan.npy", np.random.default_rng(1).integers(0, 5, (3, 80, 90)).astype("u1"))
    shutil.copy(tmp_path / "scan.npy", tmp_path / "case_seg.npy")
    assert corridor.open(tmp_path / "scan.npy")["scan"].meaning == "intensity"
    labels = corridor.open(tmp_path / "case_seg.npy")["case_seg"]
    assert labels.meaning == "labels" and labels.level(1)[...].dtype == np.uint8
    said = corridor.open(tmp_path / "scan.npy", meaning="labels")["scan"]
    assert said.meaning == "labels"
    assert np.array_equal(said.level(1)[...], labels.level(1)[...]), "modes of the same values"
    with pytest.raises(corridor.InvalidError, match="labels"):
        corridor.open(tmp_path / "scan.npy", meaning="colors")
    for words, meaning in ((["--meaning", "intensity"], "intensity"), ([], "labels")):
        told = json.loads(corridor_says(tmp_path, "info", "--json", *words, "case_seg.npy"))
        assert told["arrays"][0]["meaning"] == meaning
    with conftest.running(
        tmp_path, "serve", "scan.npy", "--meaning", "labels", "--listen", "127.0.0.1:0", "--json"
    ) as program:
        assert corridor.open(program.url)["scan"].meaning == "labels"
        with pytest.raises(corridor.InvalidError, match="server with the files"):
            corridor.open(program.url, meaning="intensity")


def corridor_says(home: pathlib.Path, *arguments: str) -> str:
    """Standard output of `corridor ARGUMENTS`."""
    command = [conftest.BINARY, *arguments]
    run = subprocess.run(command, cwd=home, env=conftest.environment(home), capture_output=True, text=True, check=True)
    return run.stdout
