"""Cached connections with several users: closed by one, dropped when the data change or the server stops."""

import os
import pathlib
import pickle
import time

import conftest
import corridor
import numpy as np
import pytest

SERVE = ("serve", "--listen", "127.0.0.1:0", "--json")
LINEAR = "synthetic:linear?shape=4,5,6&dtype=u8"


def write(path: pathlib.Path, value: int) -> None:
    """Overwrites a file with equal values; each version is dated a day before the previous one."""
    head = b"NRRD0004\ntype: uint8\ndimension: 2\nsizes: 4 4\nencoding: raw\n\n"
    path.write_bytes(head + bytes([value] * 16))
    os.utime(path, (10**9 - 86400 * value,) * 2)


def test_closing_an_unpickled_data_set_closes_no_other() -> None:
    pickled = pickle.dumps(corridor.open(LINEAR))
    first, second = pickle.loads(pickled), pickle.loads(pickled)
    assert first._connection is second._connection, "one connection per process, not one per task"
    assert first._description is second._description
    with first:
        expected = first["linear"][...]
    with pytest.raises(corridor.InvalidError, match="closed"):
        first["linear"][0]
    for other in (second, pickle.loads(pickled)):
        assert np.array_equal(other["linear"][...], expected)


def test_workers_see_changed_data(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.nrrd"
    write(path, 1)
    pickled = pickle.dumps(corridor.open(path))
    assert pickle.loads(pickled)["image"][0, 0] == 1
    for value in (2, 3):
        write(path, value)
        fresh = corridor.open(path)
        assert pickle.loads(pickle.dumps(fresh))["image"][0, 0] == value
        assert pickle.loads(pickle.dumps(fresh["image"]))[0, 0] == value


@pytest.mark.parametrize("way", ["index", "submit", "read_many", "submit_many"])
def test_pickles_of_changed_data_are_stale_once(tmp_path: pathlib.Path, way: str) -> None:
    path = tmp_path / "run.nrrd"

    def read(image: corridor.Array) -> int:
        ways = {
            "index": lambda: image[0, 0],
            "submit": lambda: image.submit((0, 0)).result(60),
            "read_many": lambda: corridor.read_many([(image, (0, 0))])[0],
            "submit_many": lambda: corridor.submit_many([(image, (0, 0))])[0].result(60),
        }
        return int(ways[way]())

    write(path, 1)
    pickled = pickle.dumps(corridor.open(path)["image"])
    assert read(pickle.loads(pickled)) == 1
    write(path, 2)
    with pytest.raises(corridor.StaleError):
        read(pickle.loads(pickled))
    assert read(pickle.loads(pickled)) == 2


@pytest.mark.parametrize("dtype", ["uint8", "int32", "double"])
def test_open_data_sets_keep_their_state(tmp_path: pathlib.Path, dtype: str) -> None:
    """Others of another type and shape took the place of the data; a read gives them to nobody who opened the old ones."""

    def replace(dtype: str, side: int) -> None:
        size = side * side * np.dtype(dtype).itemsize
        head = f"NRRD0004\ntype: {dtype}\ndimension: 2\nsizes: {side} {side}\nencoding: raw\nendian: little\n\n"
        (tmp_path / "new").write_bytes(head.encode() + bytes([2] * size))
        os.replace(tmp_path / "new", tmp_path / "run.nrrd")

    replace("uint8", 4)
    with conftest.running(tmp_path, "serve", str(tmp_path / "run.nrrd"), "--listen", "127.0.0.1:0", "--json") as program:
        image = corridor.open(program.url)["image"]
        assert image[0, 0] == image.dataset["image"][1, 1] == 2
        replace(dtype, 5)
        time.sleep(1.5)
        ways = [
            lambda: image[0, 0],
            lambda: image[0, 1],
            lambda: image.submit((0, 0)).result(60),
            lambda: corridor.read_many([(image, (0, 0)), (image, (1, 1))]),
            lambda: corridor.submit_many([(image, (0, 0))])[0].result(60),
        ]
        for way in ways * 2:
            with pytest.raises(corridor.StaleError):
                way()
        assert corridor.open(program.url)["image"].shape == (5, 5)


def test_connection_to_a_stopped_server_is_dropped(tmp_path: pathlib.Path) -> None:
    with conftest.running(tmp_path, *SERVE, LINEAR) as program:
        pickled = pickle.dumps(corridor.open(program.url))
        kept = pickle.loads(pickled)
        assert kept["linear"][0, 0, 0] == kept["linear"][0][0, 0]
    with pytest.raises(corridor.UnreachableError):
        kept["linear"][0]
    with pytest.raises(corridor.UnreachableError):
        pickle.loads(pickled)


def test_memory_budget_ends_with_its_last_user() -> None:
    for size in range(100, 120):
        with corridor.open(LINEAR, memory=f"{size}MiB") as data:
            assert data["linear"][0, 0].shape == (6,)
    tasks = pathlib.Path("/proc/self/task").iterdir()
    assert [(task / "comm").read_text().strip() for task in tasks].count("paths") == 1
