"""Volumes of medicine: NIfTI of both versions, CIFTI, Analyze, MGH, and NRRD, as nibabel, FreeSurfer, SPM and pynrrd write them."""

import gzip
import pathlib
import struct

import nibabel
import nrrd
import numpy as np

VOLUME = (np.arange(24).reshape(2, 3, 4) * 3 - 20).astype("i2")
TURNED = np.array([[0, 0, 4, -9.0], [-2, 0, 0, 5], [0, 3, 0, 6], [0, 0, 0, 1]])
OTHER = np.array([[-2, 0, 0, 1.0], [0, 3, 0, 2], [0, 0, 4, 3], [0, 0, 0, 1]])
SHEARED = np.array([[1, 0.2, 0, -9.0], [0, 1, 0.6, 5], [0, 0, 1.5, 6], [0, 0, 0, 1]])
# A header of NRRD up to its encoding, for what pynrrd reads but does not write.
NRRD = "NRRD0004\ntype: short\ndimension: 3\nsizes: 2 3 4\nendian: little\n"


def write(folder: pathlib.Path) -> None:
    """Writes all files of this module."""
    for name, image in images().items():
        nibabel.save(image, folder / name)
    patched(folder / "scaled.nii", 112, struct.pack("<2f", 0.5, -3))
    patched(folder / "slope_zero.nii", 112, struct.pack("<2f", 0, 5))
    patched(folder / "slope_nan.nii", 112, struct.pack("<2f", np.nan, np.nan))
    patched(folder / "unknown_code.nii", 254, struct.pack("<h", 9))
    surface(folder / "surface.nii")
    content = (folder / "sform.nii").read_bytes()
    members = [gzip.compress(part) for part in (content[:200], content[200:360], content[360:], b"")]
    (folder / "members.nii.gz").write_bytes(b"".join(members) + bytes(512))
    matrix(folder / "matrix.dtseries.nii")
    by_pynrrd(folder)
    by_hand(folder)


def placed(sform: np.ndarray | None, qform: np.ndarray | None) -> nibabel.Nifti1Image:
    image = nibabel.Nifti1Image(VOLUME, None)
    image.set_sform(sform, 0 if sform is None else 4)
    image.set_qform(qform, 0 if qform is None else 1)
    image.header.set_xyzt_units("mm", "sec")
    return image


def images() -> dict[str, nibabel.spatialimages.SpatialImage]:
    by_steps, extended = placed(None, None), placed(TURNED, None)
    by_steps.header["pixdim"][1:4] = 2, 3, 4
    extended.header.extensions.append(nibabel.nifti1.Nifti1Extension(6, b"a comment" * 100))
    spm = nibabel.Spm99AnalyzeImage(VOLUME, None)
    spm.header["origin"][:3], spm.header["pixdim"][1:4] = (2, 1, 3), (2, 3, 4)
    colors = {n: np.arange(24 * n, dtype="u1").view([(c, "u1") for c in "RGBA"[:n]]).reshape(2, 3, 4) for n in (3, 4)}
    wide = np.arange(24, dtype="u8").reshape(2, 3, 4) + (1 << 60)
    big = nibabel.Nifti1Header(endianness=">")
    return {
        "sform.nii": placed(TURNED, OTHER),
        "qform.nii": placed(None, OTHER),
        "left_handed.nii": placed(None, TURNED * [1, 1, -1, 1]),
        "sheared.nii": placed(SHEARED, OTHER),
        "steps.nii": by_steps,
        "extended.nii": extended,
        "scaled.nii": placed(TURNED, None),
        "slope_zero.nii": placed(TURNED, None),
        "slope_nan.nii": placed(TURNED, None),
        "unknown_code.nii": placed(TURNED, OTHER),
        "big.nii": nibabel.Nifti1Image(VOLUME.astype(">f4"), TURNED, big),
        "wide.nii": nibabel.Nifti1Image(wide, TURNED, dtype="u8"),
        "rgb.nii": nibabel.Nifti1Image(colors[3], TURNED),
        "rgba.nii": nibabel.Nifti1Image(colors[4], TURNED),
        "complex.nii": nibabel.Nifti1Image((VOLUME * (1 - 2j)).astype("c8"), TURNED),
        "vectors.nii": nibabel.Nifti1Image(np.arange(72, dtype="f4").reshape(2, 3, 4, 1, 3), TURNED),
        "second.nii.gz": nibabel.Nifti2Image(VOLUME.astype("f8"), TURNED),
        "pair.hdr": nibabel.Nifti1Pair(VOLUME, TURNED),
        "packed_pair.img.gz": nibabel.Nifti1Pair(VOLUME, TURNED),
        "second_pair.hdr": nibabel.Nifti2Pair(VOLUME, TURNED),
        "analyze.hdr": nibabel.AnalyzeImage(VOLUME, OTHER),
        "spm.hdr": spm,
        "volume.mgh": mgh("f4", 1),
        "frames.mgz": mgh("i2", 3),
    }


def mgh(dtype: str, frames: int) -> nibabel.freesurfer.MGHImage:
    shape = (2, 3, 4, frames) if frames > 1 else (2, 3, 4)
    affine = np.array([[-1, 0, 0.1, 9], [0, 0, 2, -8], [0, -1.5, 0, 7], [0, 0, 0, 1]])
    return nibabel.freesurfer.MGHImage(np.arange(24 * frames).reshape(shape).astype(dtype), affine)


def patched(path: pathlib.Path, offset: int, content: bytes) -> None:
    header = bytearray(path.read_bytes())
    header[offset : offset + len(content)] = content
    path.write_bytes(bytes(header))


def surface(path: pathlib.Path) -> None:
    """More than 32,767 vertices as FreeSurfer writes them: the first size is -1, the length is in `glmin`."""
    header = bytearray(nibabel.Nifti1Image(np.zeros((1, 1, 1), "f4"), np.eye(4)).header.binaryblock)
    header[40:56] = struct.pack("<8h", 3, -1, 1, 1, 1, 1, 1, 1)
    header[140:148] = struct.pack("<2i", 0, 40_000)
    header[108:112], header[344:348] = struct.pack("<f", 352), b"n+1\0"
    path.write_bytes(bytes(header) + bytes(4) + np.arange(40_000, dtype="f4").tobytes())


def matrix(path: pathlib.Path) -> None:
    axes = nibabel.cifti2.SeriesAxis(0, 0.72, 5), nibabel.cifti2.ScalarAxis([f"map{i}" for i in range(7)])
    nibabel.save(nibabel.Cifti2Image(np.arange(35, dtype="f4").reshape(5, 7), axes), path)


def by_pynrrd(folder: pathlib.Path) -> None:
    header = {
        "space": "left-posterior-superior",
        "space directions": np.array([[2, 0, 0], [0, 3.0, 0], [0, 0.5, 4]]),
        "space origin": np.array([1, 2, 3.0]),
    }
    for encoding, dtype in (("raw", ">i2"), ("gzip", "u1"), ("bzip2", "f4"), ("ascii", "f8")):
        nrrd.write(str(folder / f"{encoding}.nrrd"), VOLUME.astype(dtype), header | {"encoding": encoding})
    with_time = {"space": "right-anterior-superior-time", "space directions": np.diag([1, 2, 3, 0.5]), "encoding": "raw"}
    nrrd.write(str(folder / "time.nrrd"), np.arange(48, dtype="u2").reshape(2, 3, 4, 2), with_time)
    colors = {"kinds": ["RGB-color", "domain", "domain", "domain"], "encoding": "gzip"}
    nrrd.write(str(folder / "rgb.nrrd"), np.arange(72, dtype="u1").reshape(3, 2, 3, 4), colors)


def by_hand(folder: pathlib.Path) -> None:
    """Encodings that pynrrd reads, but does not write."""
    raw = VOLUME.tobytes(order="F")

    def put(name, text, data=b""):
        (folder / name).write_bytes((NRRD + text).encode() + data)

    put("line_skip.nrrd", "encoding: raw\nline skip: 2\nbyte skip: 3\n\n", b"one\ntwo\nabc" + raw)
    put("byte_skip_last.nhdr", "encoding: raw\nbyte skip: -1\ndata file: byte_skip_last.raw\n\n")
    (folder / "byte_skip_last.raw").write_bytes(b"x" * 77 + raw)
    put("packed_byte_skip_last.nrrd", "encoding: gzip\nbyte skip: -1\n\n", gzip.compress(b"x" * 77 + raw))
    put("mins_and_maxs.nrrd", "encoding: raw\naxis mins: 0 10 20\naxis maxs: 1 12 26\ncenters: node node node\n\n", raw)
    (folder / "windows.nrrd").write_bytes((NRRD + "encoding: raw\n\n").replace("\n", "\r\n").encode() + raw)
