"""Every field file through every interface equals what the reference library reads: values, types, names of dimensions, attributes.

A variable may be left out only where `LEFT_OUT` says so. The table of what was compared is printed at the end of the run and kept
in `field.txt` beside the logs.
"""

import os
import pathlib
import random
import tempfile
from collections import Counter
from collections.abc import Iterator

import generators
import interfaces
import numpy as np
import pytest
import references
from conftest import Program, report, running

# Files of real users of which the variables are left out for a reason: (file, variable): words of the reason.
LEFT_OUT: dict[tuple[str, str], str] = {
    ("odd_types.h5", "sequences"): "lists of",
    ("odd_types.h5", "opaque"): "opaque",
}
# Random selections of each variable beside the whole.
SELECTIONS = 2
# Variables that are compared of a file with very many.
MAX_VARIABLES = 60
# Elements of which a whole variable is read by the interfaces that read chunk by chunk.
MANY_VARIABLES = 1_000


# Written before the tests are collected, since each file is a test by itself; removed at the end of the process.
_KEPT = tempfile.TemporaryDirectory(prefix="corridor-field.")
FOLDER = pathlib.Path(_KEPT.name)
generators.write_all(FOLDER)
NAMES = sorted(p.name for p in FOLDER.iterdir() if references.library_of(p))


@pytest.fixture(scope="module")
def read() -> dict[str, tuple[list[references.Variable], dict[str, str]]]:
    """Values that the libraries read from each file."""
    return {name: references.variables(FOLDER / name) for name in NAMES}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict]]:
    """One server of all files: its lines by the file's name."""
    home = tmp_path_factory.mktemp("server")
    paths = [str(FOLDER / name) for name in NAMES]
    with running(home, "serve", *paths, "--listen", "127.0.0.1:0", "--json", lines=len(paths)) as program:
        yield _by_name(program)


def _by_name(program: Program) -> dict[str, dict]:
    assert len(program.lines) == len(NAMES)
    return dict(zip(NAMES, program.lines, strict=True))


@pytest.fixture(autouse=True, scope="module")
def own_side_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The Python package, too, keeps what it makes in a folder of this run."""
    before = dict(os.environ)
    os.environ["CORRIDOR_CACHE_DIR"] = str(tmp_path_factory.mktemp("side"))
    yield
    os.environ.clear()
    os.environ.update(before)


COUNTS: Counter[str] = Counter()


@pytest.fixture(autouse=True, scope="module")
def table() -> Iterator[None]:
    yield
    report("field files: " + ", ".join(f"{name} {count}" for name, count in sorted(COUNTS.items())))


def is_text(values: np.ndarray) -> bool:
    return values.dtype.kind in "SUOT"


def keys_of(shape: tuple[int, ...], chance: random.Random) -> list[interfaces.Key]:
    """Returns the whole and random selections with steps; none is empty along an axis that has elements."""
    found = [tuple(slice(0, n, 1) for n in shape)]
    for _ in range(SELECTIONS if shape else 0):
        key = []
        for n in shape:
            start = chance.randint(0, max(n - 1, 0))
            stop = chance.randint(min(start + 1, n), n)
            key.append(slice(start, stop, chance.choice([1, 1, 2, 3])))
        found.append(tuple(key))
    return found


def sample(variables: list[references.Variable]) -> list[references.Variable]:
    """Returns all variables, or a sample of very many."""
    if len(variables) <= MAX_VARIABLES:
        return variables
    return random.Random(len(variables)).sample(variables, MAX_VARIABLES)


def equal(found, expect: np.ndarray, what: str, exact_type: bool = True) -> None:
    """Bit for bit, but for the payload of NaN; text as text."""
    found = np.asanyarray(found)
    assert found.shape == expect.shape, f"{what}: expected the shape {expect.shape}, found {found.shape}"
    if is_text(expect):
        assert _texts(found) == _texts(expect), f"{what}: expected {_texts(expect)[:5]}, found {_texts(found)[:5]}"
    else:
        if exact_type:
            assert found.dtype == expect.dtype, f"{what}: expected {expect.dtype}, found {found.dtype}"
        np.testing.assert_array_equal(found, expect, err_msg=what)
    COUNTS["selections equal"] += 1


def _texts(values: np.ndarray) -> list[str]:
    return [v.decode("utf-8", "surrogateescape") if isinstance(v, bytes) else str(v) for v in values.ravel().tolist()]


def left_out(file: str, name: str, reason: str) -> None:
    """Checks that the variable is expected to be left out, with this reason."""
    known = LEFT_OUT.get((file, name))
    assert known is not None, f"{file}: `{name}` is left out: {reason}"
    assert known in reason, f"{file}: `{name}`: expected a reason with `{known}`, found `{reason}`"
    COUNTS["variables left out"] += 1
    report(f"left out: {file}: {name}: {reason}")


def same_attributes(found: dict, expect: dict, what: str) -> None:
    """Each attribute of the library is there, with its value and its kind."""
    for name, value in expect.items():
        assert name in found, f"{what}: the attribute `{name}` is missing"
        mine = found[name]
        if isinstance(value, (dict, list, bool, str)) or value is None:
            assert mine == value and isinstance(mine, bool) == isinstance(value, bool), f"{what}: {name}: expected {value!r}, found {mine!r}"
        else:
            np.testing.assert_array_equal(np.asarray(mine), np.asarray(value), err_msg=f"{what}: {name}")
            kinds = np.asarray(mine).dtype.kind, np.asarray(value).dtype.kind
            assert kinds[0] == kinds[1] or set(kinds) <= set("iu"), f"{what}: {name}: expected {value!r}, found {mine!r}"
        COUNTS["attributes equal"] += 1


def check_python(location: str, file: str, variables: list[references.Variable], others: dict[str, str]) -> None:
    array, dataset = interfaces.by_python(location)
    chance = random.Random(file)
    for variable in sample(variables):
        what = f"{file}: {variable.name}"
        stored = array(variable.name, False)
        if isinstance(stored, interfaces.Refused):
            left_out(file, variable.name, stored.reason)
            continue
        COUNTS["variables"] += 1
        for key in keys_of(variable.stored.shape, chance):
            equal(stored[key], variable.stored[key], f"{what}[{interfaces.in_text(key)}]")
            if variable.decoded is not None and not is_text(variable.stored):
                equal(array(variable.name, True)[key], variable.decoded[key], f"{what}[{interfaces.in_text(key)}] decoded")
        if variable.dims is not None and len(set(variable.dims)) == len(variable.dims):
            assert stored.dims == variable.dims, f"{what}: expected the dimensions {variable.dims}, found {stored.dims}"
        if variable.attributes is not None:
            same_attributes(stored.attrs, variable.attributes, what)
    for name in others:
        assert name in dataset.left_out, f"{file}: `{name}` is neither read nor named as left out"
        COUNTS["variables left out"] += 1
        report(f"left out: {file}: {name}: {dataset.left_out[name]}")


@pytest.mark.parametrize("file", NAMES)
def test_python(file, read):
    check_python(str(FOLDER / file), file, *read[file])


@pytest.mark.parametrize("file", NAMES)
def test_python_through_a_server(file, read, served):
    check_python(served[file]["url"], file, *read[file])


@pytest.mark.parametrize("file", NAMES)
def test_command_line(file, read, served, home):
    command_line = interfaces.CommandLine(home, served[file]["url"])
    # A line of the listing is a selection: a name with a line break cannot be in it.
    variables = [v for v in sample(read[file][0]) if not is_text(v.stored) and "\n" not in v.name]
    chance = random.Random(file)
    for decoded in (False, True):
        wanted, expected = [], []
        for variable in variables:
            name = variable.name or next(iter(command_line.arrays), "")
            values = variable.decoded if decoded else variable.stored
            if name not in command_line.arrays or values is None:
                assert name in command_line.arrays or name in command_line.left_out, f"{file}: `{name}` is neither served nor left out"
                continue
            assert tuple(command_line.arrays[name]["shape"]) == values.shape, f"{file}: {name}"
            for key in keys_of(values.shape, chance):
                part = values[key]
                wanted.append((name, part.dtype, key, part.shape))
                expected.append(part)
        if not wanted:
            continue
        for (name, _, key, _), found, expect in zip(wanted, command_line.read(wanted, decoded), expected, strict=True):
            equal(found, expect, f"{file}: {name}[{interfaces.in_text(key)}]{' --decoded' if decoded else ''}")


def by_xarray(file: str) -> bool:
    """True for files that xarray itself opens."""
    return references.library_of(FOLDER / file) in ("netCDF4", "zarr")


@pytest.mark.parametrize("file", [n for n in NAMES if by_xarray(n)])
def test_xarray_engine(file, read, served):
    by_name = {v.name: v for v in read[file][0]}
    for group in references.groups_of(FOLDER / file):
        if not references.is_opened_by_xarray(FOLDER / file, group):
            continue
        found = interfaces.by_engine(served[file]["url"], group)
        for name in sorted(by_name):
            path, _, own = name.rpartition("/")
            if path != group or (file, name) in LEFT_OUT:
                continue
            variable = by_name[name]
            if variable.decoded is None and not is_text(variable.stored):
                continue
            assert own in found.variables, f"{file}: `{name}` is missing"
            expect = variable.decoded if variable.decoded is not None else variable.stored
            if references.library_of(FOLDER / file) == "netCDF4" and not is_text(expect):
                equal(found.variables[own].values, expect, f"{file}: {name} by the engine")
            if variable.dims is not None and len(set(variable.dims)) == len(variable.dims):
                assert found.variables[own].dims == variable.dims, f"{file}: {name}"


@pytest.mark.parametrize("file", NAMES)
def test_zarr_over_http(file, read, served):
    line = served[file]
    group = interfaces.by_http(line["zarr"], line["token"])
    for variable in sample(read[file][0]):
        what = f"{file}: {variable.name} over HTTP"
        name = variable.name or next(iter(interfaces.by_python(line["url"])[1]))
        # zarr-python's client does not escape these, and cuts the address there.
        if (file, variable.name) in LEFT_OUT or set(name) & set("#?\n\t"):
            continue
        found = group[name]
        expect, dims = variable.stored, variable.dims
        if expect.dtype == "S1" and found.ndim + 1 == expect.ndim:  # characters are joined
            expect = np.ascontiguousarray(expect).view(f"S{expect.shape[-1]}")[..., 0]
            dims = dims and dims[:-1]
        equal(found[...], expect, what, exact_type=not is_text(variable.stored))
        if variable.attributes is not None:
            # Missing values are judged by what xarray makes of them: see the next test.
            others = {k: v for k, v in variable.attributes.items() if k not in ("_FillValue", "missing_value")}
            same_attributes(found.attrs.asdict(), others, what)
        if dims is not None:
            assert tuple(found.metadata.dimension_names) == dims, what


@pytest.mark.parametrize("file", [n for n in NAMES if by_xarray(n)])
def test_xarray_over_http(file, read, served):
    """Decoded values, to the precision of the stored ones: JSON has no single precision for scale and offset."""
    line = served[file]
    by_name = {v.name: v for v in read[file][0]}
    for group in references.groups_of(FOLDER / file):
        if not references.is_opened_by_xarray(FOLDER / file, group):
            continue
        found = interfaces.xarray_by_http(line["zarr"], line["token"], group)
        for name, variable in by_name.items():
            path, _, own = name.rpartition("/")
            if path != group or (file, name) in LEFT_OUT or variable.decoded is None or is_text(variable.stored):
                continue
            values = found.variables[own].values
            np.testing.assert_allclose(values, variable.decoded, rtol=1e-6, err_msg=f"{file}: {name}")
            COUNTS["selections equal"] += 1
