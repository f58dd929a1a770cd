"""Collects seeds for the fuzz targets: `python tools/fuzz-seeds.py CORPUS_FOLDER`.

Files of every format (the bundled sample, small ones written by the other libraries, those of CORRIDOR_TEST_DATA if it is
set), the golden vectors of the wire, and what lies in lab/fuzz/seeds.
"""

import hashlib
import os
import pathlib
import struct
import sys
import tempfile
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/interop"))
import h5py  # noqa: E402
import netCDF4  # noqa: E402
import nibabel  # noqa: E402
import numpy as np  # noqa: E402
import samples  # noqa: E402

# A seed larger than this slows the fuzzer; its beginning is what parsers look at first.
MAX_SEED_BYTES = 64 << 10
ENDINGS = {
    "nrrd": (".nrrd", ".nhdr"),
    "nifti": (".nii",),
    "nifti_gz": (".nii.gz",),
    "analyze": (".hdr",),
    "mgh": (".mgh",),
    "netcdf3": (".nc", ".cdf"),
    "hdf5": (".h5", ".nc", ".nc4", ".k3"),
    "raw": (".toml",),
    "npy": (".npy",),
}
ZARR_DOCUMENTS = ("zarr.json", ".zgroup", ".zarray", ".zattrs", ".zmetadata")
# Number of each kind of vector in the target `operations`: the first byte of its input.
OPERATIONS = {
    "params.describe": 0, "params.read": 1, "body.read": 2, "params.read_block": 3, "body.read_block": 4,
    "params.stats": 5, "body.list": 6, "body.stats": 7, "params.join": 8, "body.join": 9, "note.join": 10,
}
# Instructions of the targets `server` and `client` (lab/targets/src/script.rs): kind, operation, amount.
INSTRUCTION = struct.Struct("<BBI")
SEND_ALL = INSTRUCTION.pack(0xF1, 0, 1000)


def paths(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """Everything there is of the formats."""
    yield from (ROOT / "data").rglob("*")
    yield from samples.write_all(folder)
    yield from write_small(folder)
    if data := os.environ.get("CORRIDOR_TEST_DATA"):
        yield from pathlib.Path(data).rglob("*")


def write_small(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """One small file for each thing that HDF5 and NetCDF files have: cut to its beginning, neither can be opened."""
    values = np.arange(60, dtype="<f4").reshape(3, 4, 5)
    datasets = {
        "plain": {"data": values},
        "big-endian": {"data": values.astype(">i2")},
        "chunked": {"data": values, "chunks": (2, 2, 5)},
        "packed": {"data": values, "chunks": (2, 2, 5), "compression": "gzip", "shuffle": True, "fletcher32": True},
        "lzf": {"data": values, "chunks": (3, 4, 5), "compression": "lzf"},
        "scaled": {"data": values.astype("i4"), "chunks": (3, 4, 5), "scaleoffset": 0},
        "growing": {"data": values, "maxshape": (None, 4, 5), "fillvalue": -1},
        "compound": {"data": np.zeros(2, [("a", "<i4"), ("b", "<c8")])},
        "text": {"data": "words"},
        "enum": {"data": np.array([True, False])},
    }
    for name, options in datasets.items():
        for version in ("earliest", "latest"):
            path = folder / f"{name}-{version}.h5"
            with h5py.File(path, "w", libver=version) as file:
                array = file.create_dataset("group/u", **options)
                array.attrs["units"], array.attrs["_FillValue"], file.attrs["note"] = "m", np.float32(-1), "text"
            yield path
    yield from write_volumes(folder)
    for name, array in (("c", values), ("fortran", np.asfortranarray(values)), ("bytes", values.astype("u1"))):
        np.save(folder / f"{name}.npy", array)
        yield folder / f"{name}.npy"
    for kind in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF4"):
        path = folder / f"small-{kind.lower()}.nc"
        with netCDF4.Dataset(path, "w", format=kind) as file:
            file.createDimension("time", None)
            file.createDimension("lat", 3)
            file.createVariable("lat", "f8", ("lat",))[:] = [-1, 0, 1]
            for name in ("u", "v"):
                variable = file.createVariable(name, "i2", ("time", "lat"), fill_value=-9)
                variable.scale_factor, variable.units = 0.5, "m s-1"
                variable[:] = np.ones((2, 3))
        yield path


def write_volumes(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """One small file for each thing that volumes of medicine have."""
    volume, affine = np.arange(24, dtype="i2").reshape(2, 3, 4), np.diag([2.0, 3, 4, 1])
    colors = np.zeros((2, 3, 4), [("R", "u1"), ("G", "u1"), ("B", "u1")])
    xml = b'<MatrixIndicesMap AppliesToMatrixDimension="0,1" IndicesMapToDataType="CIFTI_INDEX_TYPE_SERIES" SeriesStart="0" '
    xml += b'SeriesStep="720" SeriesExponent="-3" SeriesUnit="SECOND"/>'
    matrix = nibabel.Nifti2Image(np.zeros((1, 1, 1, 1, 2, 3), "f4"), None)
    matrix.header.extensions.append(nibabel.nifti1.Nifti1Extension(32, xml))
    matrix.header["intent_code"] = 3002
    images = {
        "first.nii": nibabel.Nifti1Image(volume, affine),
        "first.nii.gz": nibabel.Nifti1Image(volume, affine),
        "second.nii": nibabel.Nifti2Image(volume.astype("f8"), affine),
        "colors.nii": nibabel.Nifti1Image(colors, affine),
        "complex.nii": nibabel.Nifti1Image(volume.astype("c8"), affine),
        "matrix.dtseries.nii": matrix,
        "pair.img": nibabel.Nifti1Pair(volume, affine),
        "analyze.img": nibabel.AnalyzeImage(volume, affine),
        "surface.mgh": nibabel.freesurfer.MGHImage(volume.astype("f4"), affine),
    }
    for name, image in images.items():
        nibabel.save(image, folder / name)
        yield folder / name
        if name.endswith(".img"):
            yield folder / name.replace(".img", ".hdr")


def of_file(path: pathlib.Path) -> Iterator[tuple[str, bytes]]:
    """Targets and seeds that a file gives."""
    content = path.read_bytes()[:MAX_SEED_BYTES]
    is_hdf5 = content.startswith(b"\x89HDF")
    for target, endings in ENDINGS.items():
        fits = path.name.endswith(endings) and (target != "netcdf3" or not is_hdf5)
        if fits or (target == "hdf5" and is_hdf5):
            yield target, content


def of_store(root: pathlib.Path) -> Iterator[tuple[str, bytes]]:
    """A Zarr store as an archive (lab/targets/src/zarr.rs): its documents, then chunks while there is room; and each of
    its arrays as a store of its own."""
    files = sorted(p for p in root.rglob("*") if p.is_file())
    documents = [p for p in files if p.name in ZARR_DOCUMENTS]
    chunks = [p for p in files if p.name not in ZARR_DOCUMENTS]
    folders = {p.parent for p in documents}
    for folder in sorted(folders):
        archive = b""
        for path in [*documents, *chunks[:2], *chunks[-2:]]:
            if path.is_relative_to(folder):
                name, content = str(path.relative_to(folder)).encode(), path.read_bytes()
                entry = struct.pack("<B", len(name)) + name + struct.pack("<H", min(len(content), 0xFFFF)) + content
                if len(name) < 256 and len(archive) + len(entry) <= MAX_SEED_BYTES:
                    archive += entry
        yield "zarr", archive


def framed(frame: bytes) -> bytes:
    return struct.pack("<I", len(frame)) + frame


def of_vectors() -> Iterator[tuple[str, bytes]]:
    """Golden vectors: single, and as conversations of a client and of a server."""
    lines = (ROOT / "lab/vectors/wire.txt").read_text().splitlines()
    vectors = [line.split(" ", 2)[:2] for line in lines if line and not line.startswith("#")]
    bodies = {name: b"" if text == "-" else bytes.fromhex(text) for name, text in vectors}
    frames = {name: body for name, body in bodies.items() if name.split(".")[0] in ("frame", "lenient", "broken")}
    for name, body in bodies.items():
        if name in frames:
            yield "frames", framed(body)
        elif name.startswith("stream."):
            yield "frames", body
        for prefix, number in OPERATIONS.items():
            if name == prefix or name.startswith(prefix + "."):
                yield "operations", bytes([number]) + body
    hello, welcome = framed(frames["frame.hello"]), framed(frames["frame.welcome"])
    answers = [framed(INSTRUCTION.pack(kind, 0, 5000)) for kind in (0xF2, 0xF2, 0xF3)]
    said_by_client = [framed(b) for n, b in frames.items() if n.startswith("frame.") and b[0] < 0x80 and b[0] != 1]
    said_by_server = [framed(b) for n, b in frames.items() if n.startswith("frame.") and b[0] > 0x81]
    yield "server", hello + b"".join(said_by_client)
    yield "server", hello + said_by_client[0] + b"".join(answers) + framed(SEND_ALL)
    yield "client", welcome + b"".join(said_by_server)
    for frame in said_by_client:
        yield "server", hello + framed(frames["frame.request"]) + frame + framed(SEND_ALL)
    for frame in said_by_server:
        yield "client", framed(SEND_ALL) + welcome + frame


def of_seeds() -> Iterator[tuple[str, bytes]]:
    """Seeds written by hand."""
    for path in (ROOT / "lab/fuzz/seeds").rglob("*"):
        if path.is_file():
            yield path.parent.name, path.read_bytes()


def main() -> None:
    corpus = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as made:
        seeds = [*of_vectors(), *of_seeds()]
        for path in paths(pathlib.Path(made)):
            if path.is_dir() and any((path / name).exists() for name in ZARR_DOCUMENTS):
                seeds += of_store(path)
            elif path.is_file():
                seeds += of_file(path)
    for target, content in seeds:
        folder = corpus / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)


if __name__ == "__main__":
    main()
