"""Collects seeds for the fuzz targets: `python tools/fuzz-seeds.py CORPUS_FOLDER`."""

import hashlib
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/interop"))
import samples  # noqa: E402

# A seed larger than this slows the fuzzer; its beginning is what parsers look at first.
MAX_SEED_BYTES = 64 << 10
TARGETS = {
    "nrrd": (".nrrd", ".nhdr"),
    "nifti": (".nii",),
    "nifti_gz": (".nii.gz",),
    "netcdf3": (".nc", ".cdf"),
    "hdf5": (".h5", ".nc", ".nc4", ".k3"),
    "raw": (".toml",),
}


def files(folder: pathlib.Path) -> list[pathlib.Path]:
    """The bundled sample, made files, and real ones where there are some."""
    found = [*(ROOT / "data").rglob("*"), *samples.write_all(folder)]
    if data := os.environ.get("CORRIDOR_TEST_DATA"):
        found += pathlib.Path(data).rglob("*")
    return [p for p in found if p.is_file()]


def main() -> None:
    corpus = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as made:
        for path in files(pathlib.Path(made)):
            content = path.read_bytes()[:MAX_SEED_BYTES]
            is_hdf5 = content.startswith(b"\x89HDF")
            for target, endings in TARGETS.items():
                fits = path.name.endswith(endings) and (target != "netcdf3" or not is_hdf5)
                if fits or (target == "hdf5" and is_hdf5):
                    folder = corpus / target
                    folder.mkdir(parents=True, exist_ok=True)
                    (folder / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)


if __name__ == "__main__":
    main()
