"""fsspec's protocol on a real server: listings and contents are what Zarr libraries expect."""

import os
import pathlib
import shutil
import time
from collections.abc import Iterator

import conftest
import corridor._connection_cache
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
    """Returns the bytes that the server has sent, once it sends no more."""
    sent, before = conftest.sent_bytes(program.process.pid), -1
    while sent != before:
        time.sleep(0.05)
        sent, before = conftest.sent_bytes(program.process.pid), sent
    return sent


@pytest.fixture
def unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is not asked whether its data changed, however slow the test is."""
    monkeypatch.setattr(corridor._connection_cache, "CHECK_INTERVAL_SECS", 3600.0)


def test_byte_range_fetches_only_its_elements(
    fs: fsspec.AbstractFileSystem, served: str, program: conftest.Program, unasked: None
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


def test_file_lookups_need_no_request(
    fs: fsspec.AbstractFileSystem, served: str, program: conftest.Program, unasked: None
) -> None:
    path = fs._strip_protocol(served)
    fs.ls(path)
    before = sent_at_rest(program)
    assert sum(fs.du(path, total=False).values()) > 90 * 130 * 140 * 4
    assert fs.glob(f"{path}/grid/rho/c/0/*/0")[0].endswith("c/0/0/0")
    # The system counts eight bytes for each time that a thread of the server wakes another; less than 24 is no TLS record.
    assert sent_at_rest(program) - before < 24


def test_other_libraries_read_it_by_its_address(served: str, truth: h5py.File) -> None:
    group = zarr.open_group(served, mode="r")
    assert np.array_equal(group["grid/rho"][...], truth["grid/rho"][...])
    assert group["one"][()] == 7.5
    with xr.open_dataset(served, engine="zarr", chunks={}) as dataset:
        assert np.array_equal(dataset["line"].values, np.arange(11))


VALUES = (4, 100, 1000)


def write(path: pathlib.Path, value: int) -> None:
    """Replaces a file by one in which all values are equal."""
    head = b"NRRD0004\ntype: uint16\ndimension: 3\nsizes: 1000 100 4\nencoding: raw\nendian: little\n\n"
    path.with_suffix(".new").write_bytes(head + np.full(VALUES, value, "<u2").tobytes())
    os.replace(path.with_suffix(".new"), path)


@pytest.fixture
def changing(tmp_path: pathlib.Path) -> Iterator[tuple[pathlib.Path, str]]:
    """A file, and the URL of its first chunk."""
    path = tmp_path / "run.nrrd"
    write(path, 1)
    with conftest.running(tmp_path, "serve", "run.nrrd", "--listen", "127.0.0.1:0", "--json") as program:
        yield path, program.url.replace("/run.nrrd", "/run.nrrd/image/c/0/0/0")


def first(url: str) -> int:
    """Reads the first bytes of the file at a URL."""
    with fsspec.open(url) as file:
        return int(np.frombuffer(file.read(2), "<u2")[0])


def test_changed_data_are_seen_when_opened_again(changing: tuple[pathlib.Path, str]) -> None:
    path, url = changing
    fs, chunk = fsspec.core.url_to_fs(url)
    assert (first(url), fs.cat_file(chunk)[0]) == (1, 1)
    for value in (2, 3):
        write(path, value)
        # The server looks at its files once a second, and we ask it as often.
        time.sleep(2.1)
        assert first(url) == fs.cat_file(chunk)[0] == value


def test_a_file_that_is_open_mixes_no_states(changing: tuple[pathlib.Path, str]) -> None:
    path, url = changing
    fs, chunk = fsspec.core.url_to_fs(url)
    with fs.open(chunk, block_size=64) as file:
        assert file.read(2) == b"\1\0"
        write(path, 2)
        time.sleep(2.1)
        assert first(url) == 2
        file.seek(50_000)
        with pytest.raises(corridor.StaleError):
            file.read(2)
    assert first(url) == 2


def test_invalidated_data_are_opened_again(changing: tuple[pathlib.Path, str], unasked: None) -> None:
    path, url = changing
    fs, chunk = fsspec.core.url_to_fs(url)
    assert first(url) == 1
    write(path, 2)
    time.sleep(1.1)
    assert first(url) == 1
    fs.invalidate_cache(chunk)
    assert first(url) == 2


def test_tokens_and_names_with_signs_that_urls_quote(truth: h5py.File, tmp_path: pathlib.Path) -> None:
    names = ["50%25.h5", "a#b.h5"]
    for name in names:
        shutil.copy(truth.filename, tmp_path / name)
    arguments = ("serve", *names, "--token", "a+b/c,d&e=f", "--listen", "127.0.0.1:0", "--json")
    with conftest.running(tmp_path, *arguments, lines=2) as program:
        fs, path = fsspec.core.url_to_fs(program.url)
        listed = fs.ls(path.split("/")[0], detail=False)
        assert len(listed) == 2 and all(fs.isfile(f"{one}/line/zarr.json") for one in listed), listed
