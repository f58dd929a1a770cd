"""fsspec's protocol: copying and caching files, and missing files."""

import pathlib
import time
from collections.abc import Iterator

import conftest
import corridor
import fsspec
import h5py
import numpy as np
import pytest


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("files") / "run.h5"
    with h5py.File(path, "w") as made:
        made.create_dataset("grid/rho", data=np.arange(60, dtype="<i4").reshape(3, 4, 5))
        made["line"] = np.arange(11)
    return path


@pytest.fixture(scope="module")
def served(file: pathlib.Path) -> Iterator[str]:
    with conftest.running(file.parent, "serve", file.name, "--listen", "127.0.0.1:0", "--json") as program:
        yield program.url


@pytest.fixture
def fs(served: str) -> fsspec.AbstractFileSystem:
    return fsspec.core.url_to_fs(served)[0]


@pytest.fixture
def root(fs: fsspec.AbstractFileSystem, served: str) -> str:
    return str(fs._strip_protocol(served))


def test_copies_are_what_is_read(fs: fsspec.AbstractFileSystem, root: str, tmp_path: pathlib.Path) -> None:
    chunk = f"{root}/grid/rho/c/0/0/0"
    fs.get_file(chunk, tmp_path / "deep" / "one")
    assert (tmp_path / "deep" / "one").read_bytes() == fs.cat_file(chunk)
    fs.get(f"{root}/grid", str(tmp_path / "all"), recursive=True)
    copied = {str(p.relative_to(tmp_path / "all")) for p in (tmp_path / "all").rglob("*") if p.is_file()}
    assert copied == {path.removeprefix(f"{root}/grid/") for path in fs.find(f"{root}/grid")}
    fs.download(f"{root}/zarr.json", str(tmp_path / "document"))
    assert b'"zarr_format"' in (tmp_path / "document").read_bytes()


def test_copy_reports_its_progress(fs: fsspec.AbstractFileSystem, root: str, tmp_path: pathlib.Path) -> None:
    callback = fsspec.callbacks.Callback()
    fs.get_file(f"{root}/line/c/0", str(tmp_path / "line"), callback=callback)
    assert callback.size == callback.value == 88


def test_ranges_of_many_files(fs: fsspec.AbstractFileSystem, root: str) -> None:
    paths = [f"{root}/line/c/0", f"{root}/grid/rho/c/0/0/0"]
    found = fs.cat_ranges(paths, [8, 4], [16, 12])
    assert [np.frombuffer(found[0], "<i8").tolist(), np.frombuffer(found[1], "<i4").tolist()] == [[1], [1, 2]]
    missing = fs.cat_ranges([paths[0], f"{root}/absent/zarr.json"], 0, 8)
    assert isinstance(missing[1], FileNotFoundError) and len(missing[0]) == 8


@pytest.mark.parametrize("way", ["simplecache", "filecache", "blockcache"])
def test_cached_copies(served: str, tmp_path: pathlib.Path, way: str) -> None:
    address, _, fragment = served.partition("#")
    url = f"{way}::{address}/line/c/0#{fragment}"
    for _ in range(2):
        with fsspec.open(url, **{way: {"cache_storage": str(tmp_path / "kept")}}) as opened:
            assert np.frombuffer(opened.read(), "<i8").tolist() == list(range(11))
    assert list((tmp_path / "kept").iterdir())


def test_what_is_missing_is_a_file_that_is_not_found(
    fs: fsspec.AbstractFileSystem, root: str, tmp_path: pathlib.Path
) -> None:
    host = root.split("/")[0]
    inside = [f"{root}/{key}" for key in ("none/zarr.json", "line/c/7", "none/c/0", "none")]
    absent = [*inside, f"{host}/none.h5/zarr.json", f"{host}/none.h5"]
    for path in absent:
        assert not fs.exists(path) and not fs.isdir(path) and not fs.isfile(path), path
        for ask in (fs.info, fs.ls, fs.cat_file, fs.open, lambda p: fs.get_file(p, str(tmp_path / "x"))):
            with pytest.raises(FileNotFoundError):
                ask(path)
    assert not (tmp_path / "x").exists(), "nothing is left of a copy that failed"
    assert fs.exists(root) and fs.isdir(f"{root}/grid") and fs.isfile(f"{root}/line/c/0") and fs.isdir(host)


def test_a_chunk_of_what_is_gone_is_not_taken_for_fill_values(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.h5"

    def write(name: str) -> None:
        with h5py.File(tmp_path / "new", "w") as made:
            made[name] = np.arange(5)
        (tmp_path / "new").replace(path)

    write("before")
    with conftest.running(tmp_path, "serve", path.name, "--listen", "127.0.0.1:0", "--json") as program:
        fs, root = fsspec.core.url_to_fs(program.url)
        assert b"before" in fs.cat_file(f"{root}/zarr.json")
        write("after")
        for _ in range(100):
            fs.invalidate_cache()
            if fs.exists(f"{root}/after"):
                break
            time.sleep(0.1)
        with pytest.raises(corridor.Error) as raised:
            fs.cat_file(f"{root}/before/c/0")
        assert not isinstance(raised.value, FileNotFoundError)


def test_the_tree_is_walked(fs: fsspec.AbstractFileSystem, root: str) -> None:
    walked = {path: (sorted(folders), sorted(files)) for path, folders, files in fs.walk(root)}
    assert walked[root] == (["grid", "line"], ["zarr.json"])
    assert walked[f"{root}/grid"] == (["rho"], ["zarr.json"])
    assert fs.ukey(f"{root}/line/c/0") == fs.ukey(f"{root}/line/c/0") != fs.ukey(f"{root}/zarr.json")


def test_data_sets_deep_in_a_folder(file: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "runs" / "deep").mkdir(parents=True)
    (tmp_path / "runs" / "deep" / "run.h5").write_bytes(file.read_bytes())
    with conftest.running(tmp_path, "serve", "runs", "--listen", "127.0.0.1:0", "--json") as program:
        fs, root = fsspec.core.url_to_fs(program.url)
        [found] = fs.ls(root.split("/")[0], detail=False)
        assert found.endswith("/deep%2Frun.h5")
        assert np.frombuffer(fs.cat_file(f"{found}/line/c/0"), "<i8").tolist() == list(range(11))
