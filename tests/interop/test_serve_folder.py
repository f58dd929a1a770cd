"""`serve FOLDER`: all data sets in a folder at any depth, also if they are added, changed or removed while it is served."""

import json
import os
import pathlib
import subprocess
import time
import urllib.request

import netCDF4
import numpy as np
import pytest
import zarr
from conftest import BINARY, corridor, environment, running


def until(check, within: float = 15) -> None:
    """Tries until it holds: a folder is looked at once a second."""
    end = time.monotonic() + within
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A NumPy file, a NetCDF file deeper, a Zarr store, a NRRD pair, notes, a broken file and a link that leads out."""
    root = tmp_path / "runs"
    (root / "deep" / "er").mkdir(parents=True)
    np.save(root / "a.npy", np.arange(24, dtype="<i4").reshape(2, 3, 4))
    with netCDF4.Dataset(root / "deep" / "er" / "b.nc", "w") as file:
        file.createDimension("x", 5)
        file.createVariable("v", "f4", ("x",))[:] = np.arange(5)
    store = zarr.create_array(str(root / "store.zarr"), shape=(4, 4), chunks=(2, 2), dtype="i2")
    store[:] = 7
    (root / "head.nhdr").write_text("NRRD0004\ntype: uint8\ndimension: 1\nsizes: 4\nencoding: raw\ndata file: head.raw\n")
    (root / "head.raw").write_bytes(b"\1\2\3\4")
    (root / "notes.txt").write_text("words")
    (root / "broken.nc").write_bytes(b"CDF\x01" + b"\xff" * 40)
    np.save(tmp_path / "outside.npy", np.zeros(3))
    os.symlink(tmp_path / "outside.npy", root / "out.npy")
    return root


def test_folder_exports_all_its_data_sets(home, folder):
    with running(home, "serve", str(folder), "--listen", "127.0.0.1:0", "--json", lines=4) as server:
        served = {line["zarr"].split("/zarr/")[1] for line in server.lines}
        assert served == {"a.npy", "deep%2Fer%2Fb.nc", "head.nhdr", "store.zarr"}
        by_name = {line["zarr"].split("/zarr/")[1]: line for line in server.lines}
        out = home / "out.npy"
        for name, expected in [
            ("a.npy", np.arange(24).reshape(2, 3, 4)),
            ("deep%2Fer%2Fb.nc", np.arange(5)),
            ("store.zarr", np.full((4, 4), 7)),
            ("head.nhdr", [1, 2, 3, 4]),
        ]:
            done = corridor(home, "get", by_name[name]["url"], "-o", str(out))
            assert done.returncode == 0, done.stderr
            assert np.array_equal(np.load(out), expected)
        line = by_name["deep%2Fer%2Fb.nc"]
        asked = urllib.request.Request(line["zarr"] + "/v/zarr.json", headers={"Authorization": f"Bearer {line['token']}"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert json.load(answer)["shape"] == [5]


def test_added_changed_and_removed_files_are_noticed(home, folder):
    with running(home, "serve", str(folder), "--listen", "127.0.0.1:0", "--json", lines=4) as server:
        base = server.url.split("/a.npy")[0] if "/a.npy" in server.url else server.url.rsplit("/", 1)[0]
        fragment = server.url.split("#")[1]
        out = home / "out.npy"

        def got(name: str) -> np.ndarray:
            done = corridor(home, "get", f"{base}/{name}#{fragment}", "-o", str(out))
            assert done.returncode == 0, done.stderr
            return np.load(out)

        (folder / "new").mkdir()
        np.save(folder / "new" / "c.npy", np.arange(3))
        until(lambda: np.testing.assert_array_equal(got("new%2Fc.npy"), [0, 1, 2]))
        np.save(folder / "new" / "c.npy", np.arange(5))
        until(lambda: np.testing.assert_array_equal(got("new%2Fc.npy"), [0, 1, 2, 3, 4]))
        with netCDF4.Dataset(folder / "broken.nc", "w") as file:
            file.createDimension("x", 2)
            file.createVariable("v", "i4", ("x",))[:] = [8, 9]
        until(lambda: np.testing.assert_array_equal(got("broken.nc"), [8, 9]))
        (folder / "a.npy").unlink()

        def is_gone() -> None:
            done = corridor(home, "get", f"{base}/a.npy#{fragment}", "-o", str(out))
            assert done.returncode == 3, (done.returncode, done.stderr)

        until(is_gone)


def test_files_left_out_are_counted_and_named_with_verbose(home, folder):
    def said(*more: str) -> str:
        process = subprocess.Popen(
            [BINARY, "serve", str(folder), "--listen", "127.0.0.1:0", "--json", *more],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(home), text=True,
        )
        for _ in range(4):
            process.stdout.readline()
        process.terminate()
        return process.communicate(timeout=30)[1]

    warnings = [line for line in said().splitlines() if "left out" in line]
    assert len(warnings) == 2, warnings  # what is no data, and what is broken
    assert "2 files or folders that are not data" in warnings[0] and "broken.nc" in warnings[1]
    words = said("-v")
    for name in ("notes.txt", "out.npy", "broken.nc"):
        assert name in words
    assert "leads out of the folder" in words and "head.raw" not in "".join(l for l in words.splitlines() if "left out" in l)


def test_listing_many_files_does_not_open_them(home, tmp_path):
    """2,000 files: the server is there in seconds, the list names all, and few files are open."""
    root = tmp_path / "many"
    root.mkdir()
    for number in range(2000):
        np.save(root / f"{number:04}.npy", np.full(4, number, dtype="<i4"))
    begun = time.monotonic()
    with running(home, "serve", str(root), "--listen", "127.0.0.1:0", "--json", lines=2000) as server:
        assert time.monotonic() - begun < 60
        open_files = os.listdir(f"/proc/{server.process.pid}/fd")
        assert len(open_files) < 200, len(open_files)
        out = home / "out.npy"
        for number in (0, 999, 1999):
            done = corridor(home, "get", server.lines[number]["url"], "-o", str(out))
            assert done.returncode == 0, done.stderr
            assert np.load(out).tolist() == [number] * 4


def test_empty_folder_is_served(home, tmp_path):
    root = tmp_path / "empty"
    root.mkdir()
    with running(home, "serve", str(root), "--listen", "127.0.0.1:0", "--json") as server:
        np.save(root / "first.npy", np.arange(2))
        out = home / "out.npy"

        def comes() -> None:
            done = corridor(home, "get", server.url, "-o", str(out))
            assert done.returncode == 0, done.stderr

        until(comes)
        assert np.load(out).tolist() == [0, 1]


def test_two_folders_of_the_same_name_are_distinguished(home, tmp_path):
    folders = [tmp_path / parent / "runs" for parent in ("a", "b")]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        np.save(folder / "x.npy", np.full(3, number))
    paths = [str(folder) for folder in folders]
    with running(home, "serve", *paths, "--listen", "127.0.0.1:0", "--json", lines=2) as server:
        out = home / "out.npy"
        for number, line in enumerate(server.lines):
            done = corridor(home, "get", line["url"], "-o", str(out))
            assert done.returncode == 0, done.stderr
            assert np.load(out).tolist() == [number] * 3
