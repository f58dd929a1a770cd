"""Two processes, real files: what `corridor get` reads through `corridor serve` equals, bit for bit, what the format's
own library reads, for random selections with steps of every numeric variable; and `corridor info` agrees with it on
shape, type and units. Real data come from CORRIDOR_TEST_DATA; without it, small files written by those libraries."""

import json
import os
import pathlib
import random

import numpy as np
import pytest
import readers
import samples
from conftest import SAMPLE, corridor, report, running

SELECTIONS = 200
DATA = os.environ.get("CORRIDOR_TEST_DATA")
# Files among the real data that are not of the formats read here.
OTHER_FORMATS = {".fits": "FITS", ".he2": "HDF4", ".hdf4": "HDF4", ".hdf": "HDF4", ".bz2": "bzip2", ".mp4": "video"}


def real_files() -> list[pathlib.Path]:
    """Everything under CORRIDOR_TEST_DATA that one of the libraries reads; the rest is reported with the reason."""
    if not DATA:
        report("left out: real data sets (CORRIDOR_TEST_DATA is not set)")
        return []
    found = []
    root = pathlib.Path(DATA)
    for path in sorted(root.rglob("*")):
        if any(parent.suffix == ".zarr" for parent in path.parents):
            continue
        if path.suffix == ".zarr" or (path.is_file() and readers.library_of(path)):
            found.append(path)
        elif path.is_file() and path.suffix in OTHER_FORMATS:
            report(f"left out: {path.relative_to(root)}: {OTHER_FORMATS[path.suffix]} is not among the formats")
        elif path.is_file() and path.parent != root and path.parent.name != "LICENSES":
            report(f"left out: {path.relative_to(root)}: no data format of its own (header, text index or raw bytes)")
    return found


REAL = real_files()


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> list[pathlib.Path]:
    """Files of every format written by the other libraries."""
    return samples.write_all(tmp_path_factory.mktemp("made"))


def quoted(name: str) -> str:
    """An array's name as a selection takes it."""
    return f'"{name}"' if name else ""


def random_slices(shape: tuple[int, ...], chance: random.Random) -> list[slice]:
    """A selection with steps; one in five axes is taken whole, empty ones are rare."""
    out = []
    for n in shape:
        if chance.random() < 0.2:
            out.append(slice(0, n, 1))
            continue
        start, stop = sorted((chance.randint(0, n), chance.randint(0, n)))
        out.append(slice(start, max(stop, min(start + 1, n)), chance.choice([1, 1, 2, 3, 7, max(1, n // 3)])))
    return out


def in_text(slices: list[slice]) -> str:
    return ", ".join(f"{s.start}:{s.stop}:{s.step}" for s in slices)


def check_values(home: pathlib.Path, url: str, variable: readers.Variable) -> int:
    """Compares `SELECTIONS` random selections; returns how many elements they had."""
    chance = random.Random(variable.name)
    wanted = [random_slices(variable.values.shape, chance) for _ in range(SELECTIONS)]
    listing, out = home / "selections.txt", home / "values.raw"
    listing.write_text("".join(f"{quoted(variable.name)}[{in_text(w)}]\n" for w in wanted))
    done = corridor(home, "get", url, "--selections", str(listing), "-o", str(out))
    assert done.returncode == 0, f"{variable.name}: {done.stderr}"
    got, at, elements = out.read_bytes(), 0, 0
    native = variable.values.dtype.newbyteorder("=")
    for selection in wanted:
        expect = variable.values[tuple(selection)].astype(native).tobytes()
        assert got[at : at + len(expect)] == expect, f"{variable.name}[{in_text(selection)}] differs"
        at += len(expect)
        elements += len(expect) // native.itemsize
    assert at == len(got), f"{variable.name}: expected {at} bytes in all, found {len(got)}"
    return elements


def check_description(path: pathlib.Path, described: dict, variable: readers.Variable) -> None:
    """Shape, type and units agree with the library."""
    arrays = described["arrays"]
    (info,) = [a for a in arrays if a["name"] == variable.name] if variable.name else arrays[:1]
    assert tuple(info["shape"]) == variable.values.shape, f"{path.name}: {variable.name}"
    dtype = np.dtype(info["dtype"])
    expect = variable.values.dtype
    if not variable.order_is_known:
        dtype, expect = dtype.newbyteorder("="), expect.newbyteorder("=")
    assert dtype == expect, f"{path.name}: {variable.name}"
    if variable.units is not None:
        assert info["units"] == variable.units, f"{path.name}: {variable.name}"


def check_file(home: pathlib.Path, path: pathlib.Path) -> None:
    """Every numeric variable of one file, served by another process."""
    variables, others = readers.variables(path)
    with running(home, "serve", str(path), "--listen", "127.0.0.1:0", "--json") as server:
        info = corridor(home, "info", server.url, "--json")
        assert info.returncode == 0, info.stderr
        described = json.loads(info.stdout)
        for variable in variables:
            check_description(path, described, variable)
            elements = check_values(home, server.url, variable)
            shape = "x".join(map(str, variable.values.shape)) or "scalar"
            label = variable.name or "(the only array)"
            report(f"equal: {path.name}: {label} {shape} {variable.values.dtype.str}: "
                   f"{SELECTIONS} selections, {elements} elements")
    left_out = {entry["name"]: entry for entry in described["left_out"]}
    # Their values are compared with the libraries' in tests/field.
    texts = {array["name"] for array in described["arrays"] if array["meaning"] == "text"}
    for other in others:
        name = other.split(":")[0]
        if name in texts:
            continue
        assert name in left_out, f"{path.name}: `{name}` is neither served nor named as left out"
        report(f"left out: {path.name}: {name}: {left_out[name]['what']}")


def test_bundled_sample(home):
    check_file(home, SAMPLE)


@pytest.mark.parametrize("path", REAL, ids=lambda p: p.name)
def test_real_file(home, path):
    check_file(home, path)


def test_made_files(home, made):
    for path in made:
        if path.suffix != ".toml":
            check_file(home, path)


def test_raw_with_a_description(home, made):
    (path,) = [p for p in made if p.suffix == ".toml"]
    with running(home, "serve", str(path), "--listen", "127.0.0.1:0", "--json") as server:
        check_values(home, server.url, readers.Variable("", samples.values(">u2")))
