"""fsspec's protocol on a real server: what is listed and read is what Zarr's own libraries expect."""

import pathlib
import time
from collections.abc import Iterator

import conftest
import fsspec
import h5py
import numpy as np
import pytest
import xarray as xr
import zarr


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> h5py.File:
    path = tmp_path_factory.mktemp("fsspec") / "run.h5"
    with h5py.File(path, "w") as file:
        values = np.random.default_rng(1).random((90, 130, 140), dtype=np.float32)
        file.create_dataset("grid/rho", data=values, chunks=(30, 65, 70), compression="gzip")
        file["line"] = np.arange(11)
        file["one"] = 7.5
    return h5py.File(path, "r")


@pytest.fixture(scope="module")
def program(truth: h5py.File) -> Iterator[conftest.Program]:
    folder = pathlib.Path(truth.filename).parent
    arguments = ("serve", "run.h5", "--listen", "127.0.0.1:0", "--json")
    with conftest.running(folder, *arguments) as program:
        yield program


@pytest.fixture
def served(program: conftest.Program) -> str:
    return program.url


@pytest.fixture
def fs(served: str) -> fsspec.AbstractFileSystem:
    return fsspec.core.url_to_fs(served)[0]


def test_data_sets_arrays_and_chunks_are_listed(fs: fsspec.AbstractFileSystem, served: str) -> None:
    root = fs._strip_protocol(served).split("/")[0]
    assert fs.ls(root, detail=False) == [f"{root}/run.h5"]
    below = [path.removeprefix(f"{root}/run.h5/") for path in fs.ls(f"{root}/run.h5", detail=False)]
    assert below == ["zarr.json", "grid", "line", "one"]
    assert fs.isdir(f"{root}/run.h5/grid") and not fs.exists(f"{root}/run.h5/other")
    found = fs.find(f"{root}/run.h5/grid/rho")
    assert f"{root}/run.h5/grid/rho/zarr.json" in found and len(found) > 1
    assert sum(fs.size(path) for path in found) > 90 * 130 * 140 * 4


def test_bytes_and_ranges_of_bytes_are_read(fs: fsspec.AbstractFileSystem, served: str) -> None:
    chunk = f"{fs._strip_protocol(served)}/line/c/0"
    assert np.array_equal(np.frombuffer(fs.cat_file(chunk), "<i8")[:11], np.arange(11))
    assert np.array_equal(np.frombuffer(fs.cat_file(chunk, 8, 24), "<i8"), [1, 2])
    with fs.open(chunk) as file:
        file.seek(-8, 2)
        assert len(file.read()) == 8
    with pytest.raises(FileNotFoundError, match="line/c/1"):
        fs.cat_file(chunk[:-1] + "1")
    with pytest.raises(ValueError, match="read only"):
        fs.open(chunk, "wb")


def sent_at_rest(program: conftest.Program) -> int:
    """What the server has sent, once it sends no more."""
    sent, before = conftest.sent_bytes(program.process.pid), -1
    while sent != before:
        time.sleep(0.05)
        sent, before = conftest.sent_bytes(program.process.pid), sent
    return sent


def test_of_a_range_of_bytes_nothing_else_is_fetched(
    fs: fsspec.AbstractFileSystem, served: str, program: conftest.Program
) -> None:
    base = f"{fs._strip_protocol(served)}/grid/rho/c"
    first, last = f"{base}/0/0/0", max(fs.find(base))
    for chunk in (first, last):
        whole = fs.cat_file(chunk)
        assert len(whole) == fs.size(chunk) > 100_000
        for start, end in [(50_001, 50_030), (-20, None), (-30, -9), (7, 8)]:
            before = sent_at_rest(program)
            assert fs.cat_file(chunk, start, end) == whole[start:end]
            assert sent_at_rest(program) - before < 4096
        assert fs.cat_file(chunk, 9, 9) == b"" and fs.cat_file(chunk, len(whole), None) == b""
    with fs.open(first, block_size=256) as file:
        before = sent_at_rest(program)
        file.seek(40_000)
        assert len(file.read(100)) == 100
        assert sent_at_rest(program) - before < 4096


def test_files_are_found_without_a_word_to_the_server(
    fs: fsspec.AbstractFileSystem, served: str, program: conftest.Program
) -> None:
    path = fs._strip_protocol(served)
    fs.ls(path)
    before = sent_at_rest(program)
    assert sum(fs.du(path, total=False).values()) > 90 * 130 * 140 * 4
    assert fs.glob(f"{path}/grid/rho/c/0/*/0")[0].endswith("c/0/0/0")
    assert sent_at_rest(program) == before


def test_other_libraries_read_it_by_its_address(served: str, truth: h5py.File) -> None:
    group = zarr.open_group(served, mode="r")
    assert np.array_equal(group["grid/rho"][...], truth["grid/rho"][...])
    assert group["one"][()] == 7.5
    with xr.open_dataset(served, engine="zarr", chunks={}) as dataset:
        assert np.array_equal(dataset["line"].values, np.arange(11))
