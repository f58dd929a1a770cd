"""Volumes of medicine against nibabel and pynrrd: values, shapes, and where they lie in the world."""

import gzip
import json
import pathlib
import shutil
import struct
import subprocess
from collections.abc import Callable
from typing import Any

import conftest
import corridor
import nibabel
import nrrd
import numpy as np
import pytest
import xarray as xr
import zarr

VOLUME = (np.arange(24).reshape(2, 3, 4) * 3 - 20).astype("i2")
TURNED = np.array([[0, 0, 4, -9.0], [-2, 0, 0, 5], [0, 3, 0, 6], [0, 0, 0, 1]])
OTHER = np.array([[-2, 0, 0, 1.0], [0, 3, 0, 2], [0, 0, 4, 3], [0, 0, 0, 1]])
SHEARED = np.array([[1, 0.2, 0, -9.0], [0, 1, 0.6, 5], [0, 0, 1.5, 6], [0, 0, 0, 1]])


def placed(sform: np.ndarray | None, qform: np.ndarray | None) -> nibabel.Nifti1Image:
    image = nibabel.Nifti1Image(VOLUME, None)
    image.set_sform(sform, 0 if sform is None else 4)
    image.set_qform(qform, 0 if qform is None else 1)
    image.header.set_xyzt_units("mm", "sec")
    return image


def by_steps() -> nibabel.Nifti1Image:
    image = placed(None, None)
    image.header["pixdim"][1:4] = 2, 3, 4
    return image


def patched(image: nibabel.Nifti1Image, offset: int, content: bytes) -> Callable[[pathlib.Path], None]:
    def write(path: pathlib.Path) -> None:
        nibabel.save(image, path)
        header = bytearray(path.read_bytes())
        header[offset : offset + len(content)] = content
        path.write_bytes(bytes(header))

    return write


def extended() -> nibabel.Nifti1Image:
    image = placed(TURNED, None)
    image.header.extensions.append(nibabel.nifti1.Nifti1Extension(6, b"a comment" * 100))
    return image


def origin_of_spm() -> nibabel.Spm99AnalyzeImage:
    image = nibabel.Spm99AnalyzeImage(VOLUME, None)
    image.header["origin"][:3] = 2, 1, 3
    image.header["pixdim"][1:4] = 2, 3, 4
    return image


def surface() -> Callable[[pathlib.Path], None]:
    """As FreeSurfer writes more than 32,767 vertices."""
    row = np.arange(40_000, dtype="f4")
    header = bytearray(nibabel.Nifti1Image(np.zeros((1, 1, 1), "f4"), np.eye(4)).header.binaryblock)
    header[40:56] = struct.pack("<8h", 3, -1, 1, 1, 1, 1, 1, 1)
    header[140:148] = struct.pack("<2i", 0, 40_000)
    header[108:112], header[344:348] = struct.pack("<f", 352), b"n+1\0"
    return lambda path: path.write_bytes(bytes(header) + bytes(4) + row.tobytes()) and None


def mgh(dtype: str, frames: int) -> nibabel.freesurfer.MGHImage:
    data = np.arange(24 * frames).reshape((2, 3, 4, frames)[: 4 if frames > 1 else 3]).astype(dtype)
    return nibabel.freesurfer.MGHImage(data, np.array([[-1, 0, 0.1, 9], [0, 0, 2, -8], [0, -1.5, 0, 7], [0, 0, 0, 1]]))


IMAGES: dict[str, Any] = {
    "sform.nii": placed(TURNED, OTHER),
    "sform.nii.gz": placed(TURNED, OTHER),
    "qform.nii": placed(None, OTHER),
    "left-handed.nii": placed(None, TURNED * [1, 1, -1, 1]),
    "sheared.nii": placed(SHEARED, OTHER),
    "steps.nii": by_steps(),
    "unknown-code.nii": patched(placed(TURNED, OTHER), 254, struct.pack("<h", 9)),
    "big.nii": nibabel.Nifti1Image(VOLUME.astype(">f4"), TURNED, nibabel.Nifti1Header(endianness=">")),
    "second.nii": nibabel.Nifti2Image(VOLUME.astype("f8"), TURNED),
    "second.nii.gz": nibabel.Nifti2Image(VOLUME, TURNED),
    "pair.img": nibabel.Nifti1Pair(VOLUME, TURNED),
    "packed-pair.img.gz": nibabel.Nifti1Pair(VOLUME, TURNED),
    "second-pair.img": nibabel.Nifti2Pair(VOLUME, TURNED),
    "analyze.img": nibabel.AnalyzeImage(VOLUME, OTHER),
    "spm.img": origin_of_spm(),
    "extended.nii": extended(),
    "scaled.nii": patched(placed(TURNED, None), 112, struct.pack("<2f", 0.5, -3)),
    "no-slope.nii": patched(placed(TURNED, None), 112, struct.pack("<2f", 0, 5)),
    "slope-nan.nii": patched(placed(TURNED, None), 112, struct.pack("<2f", np.nan, np.nan)),
    "surface.nii": surface(),
    "wide.nii": nibabel.Nifti1Image(np.arange(24, dtype="u8").reshape(2, 3, 4) + (1 << 60), TURNED, dtype="u8"),
    "plane.nii": nibabel.Nifti1Image(VOLUME[:, :, 0], TURNED),
    "vectors.nii": nibabel.Nifti1Image(np.arange(72, dtype="f4").reshape(2, 3, 4, 1, 3), TURNED),
    "volume.mgh": mgh("f4", 1),
    "volume.mgz": mgh("i2", 1),
    "frames.mgz": mgh("u1", 3),
}


def values_of(data: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(data.T)


@pytest.mark.parametrize("name", IMAGES)
def test_volumes_are_nibabel_s(name: str, tmp_path: pathlib.Path) -> None:
    path, image = tmp_path / name, IMAGES[name]
    image(path) if callable(image) else nibabel.save(image, path)
    expected = nibabel.load(path)
    array = corridor.open(path)["image"]
    stored = values_of(np.asanyarray(expected.dataobj.get_unscaled()))
    assert (array.shape, array.dtype) == (stored.shape, stored.dtype.newbyteorder("="))
    assert np.array_equal(array[...], stored)
    assert np.array_equal(array.decoded[...], values_of(expected.get_fdata(dtype=np.float64)))
    assert np.allclose(array.world_from_voxel[:, [2, 1, 0, 3]], expected.affine, rtol=1e-6, atol=1e-6)


def test_files_of_several_members_and_with_bytes_behind_them(tmp_path: pathlib.Path) -> None:
    nibabel.save(placed(TURNED, None), tmp_path / "a.nii")
    content = (tmp_path / "a.nii").read_bytes()
    members = b"".join(gzip.compress(part) for part in (content[:200], content[200:360], content[360:], b""))
    (tmp_path / "members.nii.gz").write_bytes(members + bytes(512))
    assert np.array_equal(corridor.open(tmp_path / "members.nii.gz")["image"][...], values_of(VOLUME))


def test_colours_and_complex_numbers(tmp_path: pathlib.Path) -> None:
    for parts in (3, 4):
        colours = np.arange(24 * parts, dtype="u1").reshape(2, 3, 4, parts)
        kind = np.dtype([(name, "u1") for name in "RGBA"[:parts]])
        nibabel.save(nibabel.Nifti1Image(colours.view(kind)[..., 0], TURNED), tmp_path / "colours.nii")
        array = corridor.open(tmp_path / "colours.nii")["image"]
        assert array.dims == ("z", "y", "x", "colour")
        assert array.attrs["channels"] == ["red", "green", "blue", "alpha"][:parts]
        assert np.array_equal(array[...], colours.transpose(2, 1, 0, 3))
    for kind in ("c8", "c16"):
        numbers = (np.arange(24) * (1 - 2j)).reshape(2, 3, 4).astype(kind)
        nibabel.save(nibabel.Nifti1Image(numbers, TURNED), tmp_path / "complex.nii")
        np.save(tmp_path / "complex.npy", np.asfortranarray(numbers))
        data = corridor.open(tmp_path / "complex.nii")
        assert np.array_equal(data["image.real"][...] + 1j * data["image.imag"][...], values_of(numbers))
        data = corridor.open(tmp_path / "complex.npy")
        assert np.array_equal(data["complex.real"][...] + 1j * data["complex.imag"][...], numbers)


def test_matrices_are_nibabel_s(tmp_path: pathlib.Path) -> None:
    axes = nibabel.cifti2.SeriesAxis(0, 0.72, 5), nibabel.cifti2.ScalarAxis([f"map{i}" for i in range(7)])
    data = np.arange(35, dtype="f4").reshape(5, 7)
    nibabel.save(nibabel.Cifti2Image(data, axes), tmp_path / "a.dtseries.nii")
    expected = nibabel.load(tmp_path / "a.dtseries.nii")
    array = corridor.open(tmp_path / "a.dtseries.nii")["image"]
    assert array.dims == ("scalars", "series")
    assert np.array_equal(array[...], np.asarray(expected.dataobj).T)
    assert np.allclose(array.coordinates("series"), np.arange(5) * 0.72)


@pytest.mark.parametrize("kind", ["u1", "i2", "f8"])
def test_arrays_in_fortran_order_are_numpy_s(kind: str, tmp_path: pathlib.Path) -> None:
    expected = np.asfortranarray(np.random.default_rng(3).integers(0, 99, (40, 50, 70)).astype(kind))
    np.save(tmp_path / "a.npy", expected)
    array = corridor.open(tmp_path / "a.npy")["a"]
    assert np.array_equal(array[...], expected)
    assert np.array_equal(array[3:30:4, -1, ::-3], expected[3:30:4, -1, ::-3])


@pytest.mark.parametrize("encoding", ["raw", "gzip", "bzip2", "ascii"])
def test_files_of_pynrrd(encoding: str, tmp_path: pathlib.Path) -> None:
    header = {
        "space": "left-posterior-superior",
        "space directions": np.array([[2, 0, 0], [0, 3.0, 0], [0, 0.5, 4]]),
        "space origin": np.array([1, 2, 3.0]),
        "encoding": encoding,
    }
    for dtype in ("u1", ">i2", "<u4", "f4", "f8"):
        nrrd.write(str(tmp_path / "a.nrrd"), VOLUME.astype(dtype), header)
        expected, _ = nrrd.read(str(tmp_path / "a.nrrd"))
        array = corridor.open(tmp_path / "a.nrrd")["image"]
        assert np.array_equal(array[...], values_of(expected)), dtype
        assert array.dtype == expected.dtype.newbyteorder("=")
    turned = np.diag([-1, -1, 1, 1]) @ np.array([[2, 0, 0, 1], [0, 3, 0.5, 2], [0, 0, 4, 3], [0, 0, 0, 1]])
    assert np.allclose(array.world_from_voxel[:, [2, 1, 0, 3]], turned)


def test_the_map_is_told_through_every_door(tmp_path: pathlib.Path) -> None:
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


def test_a_person_says_what_values_mean(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "scan.npy", np.random.default_rng(1).integers(0, 5, (3, 80, 90)).astype("u1"))
    shutil.copy(tmp_path / "scan.npy", tmp_path / "case_seg.npy")
    assert corridor.open(tmp_path / "scan.npy")["scan"].meaning == "intensity"
    labels = corridor.open(tmp_path / "case_seg.npy")["case_seg"]
    assert labels.meaning == "labels" and labels.level(1)[...].dtype == np.uint8
    said = corridor.open(tmp_path / "scan.npy", meaning="labels")["scan"]
    assert said.meaning == "labels"
    assert np.array_equal(said.level(1)[...], labels.level(1)[...]), "modes of the same values"
    with pytest.raises(corridor.InvalidError, match="labels"):
        corridor.open(tmp_path / "scan.npy", meaning="colours")
    for words, meaning in ((["--meaning", "intensity"], "intensity"), ([], "labels")):
        told = json.loads(corridor_says(tmp_path, "info", "--json", *words, "case_seg.npy"))
        assert told["arrays"][0]["meaning"] == meaning
    with conftest.running(
        tmp_path, "serve", "scan.npy", "--meaning", "labels", "--listen", "127.0.0.1:0", "--json"
    ) as program:
        assert corridor.open(program.url)["scan"].meaning == "labels"
        with pytest.raises(corridor.InvalidError, match="where the files are"):
            corridor.open(program.url, meaning="intensity")


def corridor_says(home: pathlib.Path, *arguments: str) -> str:
    """Standard output of `corridor ARGUMENTS`."""
    command = [conftest.BINARY, *arguments]
    run = subprocess.run(command, cwd=home, env=conftest.environment(home), capture_output=True, text=True, check=True)
    return run.stdout
