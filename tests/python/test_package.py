"""The Python package on real servers: the elements that h5py reads, by every way of reading."""

import asyncio
import concurrent.futures
import multiprocessing
import pathlib
import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Iterator

import conftest
import corridor
import h5py
import netCDF4
import numpy as np
import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("python")


@pytest.fixture(scope="module")
def truth(folder: pathlib.Path) -> h5py.File:
    """A file with what varies: chunks, byte order, groups, attributes, one axis, none of the values regular."""
    random_numbers = np.random.default_rng(7)
    with h5py.File(folder / "run.h5", "w") as file:
        rho = random_numbers.random((20, 31, 17), dtype=np.float32)
        made = file.create_dataset("grid/rho", data=rho, chunks=(5, 8, 17), compression="gzip", shuffle=True)
        made.attrs["units"] = "kg m-3"
        made.attrs["step"] = 3
        file["swapped"] = random_numbers.integers(-9000, 9000, (40, 12)).astype(">i2")
        file["line"] = np.arange(1000, dtype=np.uint64)
    return h5py.File(folder / "run.h5", "r")


@pytest.fixture(scope="module")
def served(folder: pathlib.Path, truth: h5py.File) -> Iterator[str]:
    with conftest.running(folder, "serve", "run.h5", "--listen", "127.0.0.1:0", "--json") as program:
        yield program.url


@pytest.fixture(scope="module")
def data(served: str) -> corridor.Dataset:
    return corridor.open(served)


def test_stored_chunks_larger_than_an_item_come_whole(tmp_path: pathlib.Path) -> None:
    """80 MiB in one chunk, packed: more than one item of the wire may hold once it is restored."""
    values = np.zeros((80, 1024, 1024), dtype=np.uint8)
    values[::7, 3, :] = 5
    with h5py.File(tmp_path / "chunk.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=values.shape, compression="gzip", compression_opts=1)
    arguments = ("serve", "chunk.h5", "--listen", "127.0.0.1:0", "--json", "--memory", "2GiB")
    with conftest.running(tmp_path, *arguments) as program:
        assert np.array_equal(corridor.open(program.url)["v"][...], values)


def test_compression_on_the_way_changes_nothing_but_the_bytes_that_travel(served: str) -> None:
    plain = corridor.open(served, compression="none")
    for way in ("auto", "lz4", "zstd"):
        packed = corridor.open(served, compression=way)
        for name, array in plain.items():
            assert np.array_equal(packed[name][...], array[...], equal_nan=array.dtype.kind == "f")
    with pytest.raises(corridor.InvalidError, match="zip"):
        corridor.open(served, compression="zip")


def test_other_links_and_controllers_bring_the_same_values(served: str) -> None:
    plain = corridor.open(served)
    for how in ({"link": "quic"}, {"link": "lossy+fec"}, {"controller": "rate=400Mb/s"}, {"link": "auto"}):
        by_it = pickle.loads(pickle.dumps(corridor.open(served, **how)))
        for name, array in plain.items():
            assert np.array_equal(by_it[name][...], array[...], equal_nan=array.dtype.kind == "f")
    with pytest.raises(corridor.InvalidError, match="carrier pigeon"):
        corridor.open(served, link="carrier pigeon")
    with pytest.raises(corridor.InvalidError, match="guess"):
        corridor.open(served, controller="guess")


def random_index(size: int, pick: random.Random) -> int | slice:
    if pick.random() < 0.3:
        return pick.randrange(-size, size)
    bound = lambda: pick.choice([None, pick.randrange(-size - 2, size + 3)])  # noqa: E731
    return slice(bound(), bound(), pick.choice([None, 1, 2, 3, -1, -2, size + 5]))


def random_key(shape: tuple[int, ...], pick: random.Random) -> object:
    entries: list[object] = [random_index(n, pick) for n in shape]
    if pick.random() < 0.5:
        start = pick.randrange(len(entries) + 1)
        end = pick.randrange(start, len(entries) + 1)
        entries[start:end] = [...]
    return tuple(entries) if len(entries) != 1 or pick.random() < 0.5 else entries[0]


def test_describes(data: corridor.Dataset, truth: h5py.File) -> None:
    assert sorted(data) == ["grid/rho", "line", "swapped"]
    rho = data["grid/rho"]
    assert (rho.shape, rho.dtype, rho.chunks, rho.units) == ((20, 31, 17), np.float32, (5, 8, 17), "kg m-3")
    assert rho.attrs["step"] == 3
    assert (rho.ndim, rho.size, rho.nbytes, len(rho)) == (3, 10540, 42160, 20)
    assert data["/grid/rho"].name == rho.name
    assert "grid/rho" in repr(data) and "float32 (dim0: 20, dim1: 31, dim2: 17), 41.2 KiB" in repr(data)
    assert repr(rho).startswith("<corridor.Array 'grid/rho' [kg m-3] float32")


@pytest.mark.parametrize("name", ["grid/rho", "swapped", "line"])
def test_indexes_as_numpy_does(data: corridor.Dataset, truth: h5py.File, name: str) -> None:
    pick = random.Random(name)
    whole = truth[name][...]
    assert np.array_equal(np.asarray(data[name]), whole)
    for _ in range(100):
        key = random_key(whole.shape, pick)
        found, expected = data[name][key], whole[key]
        assert found.shape == np.shape(expected), key
        assert np.array_equal(found, expected), key
        assert found.dtype == whole.dtype.newbyteorder("=")


def test_batch_read_keeps_the_order(data: corridor.Dataset, truth: h5py.File) -> None:
    pick = random.Random(11)
    asked = [(name, random_key(truth[name].shape, pick)) for name in ["grid/rho", "swapped", "line"] * 200]
    found = corridor.read_many((data[name], key) for name, key in asked)
    for (name, key), part in zip(asked, found, strict=True):
        assert np.array_equal(part, truth[name][...][key]), (name, key)
    assert corridor.read_many([]) == []


def test_futures_give_results_as_they_arrive(data: corridor.Dataset, truth: h5py.File) -> None:
    line = data["line"]
    futures = {line.submit(slice(at, at + 10)): at for at in range(0, 1000, 10)}
    seen = set()
    for future in concurrent.futures.as_completed(futures, timeout=60):
        at = futures[future]
        assert np.array_equal(future.result(), np.arange(at, at + 10))
        seen.add(at)
    assert len(seen) == 100


def test_rows_are_read_ahead_in_order(data: corridor.Dataset, truth: h5py.File) -> None:
    rows = list(data["swapped"])
    assert np.array_equal(np.stack(rows), truth["swapped"][...])


def test_event_loops_wait_without_blocking(data: corridor.Dataset, truth: h5py.File) -> None:
    async def work() -> list[np.ndarray]:
        return await asyncio.gather(*(data["grid/rho"].read_async(z) for z in range(20)))

    assert np.array_equal(np.stack(asyncio.run(work())), truth["grid/rho"][...])


def test_cancelled_read_has_no_result() -> None:
    slow = corridor.open("synthetic:waves?shape=700,700,700&dtype=u8")["waves"]
    future = slow.submit()
    assert future.cancel()
    assert future.cancelled()

    async def work() -> None:
        await asyncio.wait_for(slow.read_async(), timeout=0.05)

    with pytest.raises(TimeoutError):
        asyncio.run(work())


def test_cancelled_read_ends_on_the_server(tmp_path: pathlib.Path) -> None:
    size_bytes = 700**3
    arguments = ("serve", "synthetic:waves?shape=700,700,700&dtype=u8", "--listen", "127.0.0.1:0", "--json")
    with conftest.running(tmp_path, *arguments) as program:
        slow = corridor.open(program.url, compression="none")["waves"]
        future = slow.submit()
        while conftest.sent_bytes(program.process.pid) < 1 << 20:
            assert not future.done()
        assert future.cancel()
        # Until the server sends nothing but these.
        before, now = 0, conftest.sent_bytes(program.process.pid)
        while now - before > 64 << 10:
            assert slow[0, 0, 0] == slow[0, 0, 0]
            before, now = now, conftest.sent_bytes(program.process.pid)
        assert now < size_bytes / 2


def test_other_threads_run_while_one_reads() -> None:
    array = corridor.open("synthetic:waves?shape=300,300,300&dtype=u8")["waves"]
    reading = threading.Event()
    ended = threading.Event()

    def read() -> None:
        reading.set()
        array[...]
        ended.set()

    thread = threading.Thread(target=read)
    thread.start()
    reading.wait()
    turns = 0
    while not ended.is_set():
        turns += 1
    thread.join()
    assert turns > 1000, "Python stood still while a read was under way"


def test_elements_are_not_copied_again(data: corridor.Dataset) -> None:
    found = data["grid/rho"][::2, ::-1, 3]
    owner = found
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    assert not owner.flags.owndata, "expected the native module's memory behind the result"
    assert found.strides[1] < 0, "a reversed axis is a view"
    assert owner.nbytes == 10 * 31 * 4, "no element is fetched that was not asked for"
    found[0, 0] = 1
    with pytest.raises(ValueError, match="remote"):
        np.array(data["line"], copy=False)


def test_decoded_values_are_those_of_the_format(tmp_path: pathlib.Path) -> None:
    stored = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    with netCDF4.Dataset(tmp_path / "packed.nc", "w") as file:
        for name, size in zip("zyx", stored.shape, strict=True):
            file.createDimension(name, size)
        packed = file.createVariable("t", "i2", ("z", "y", "x"), fill_value=3)
        packed.set_auto_maskandscale(False)
        packed.scale_factor, packed.add_offset = 0.5, 10.0
        packed[...] = stored
    array = corridor.open(str(tmp_path / "packed.nc"))["t"]
    assert np.array_equal(array[...], stored)
    with netCDF4.Dataset(tmp_path / "packed.nc") as file:
        expected = file["t"][...].filled(np.nan)
    assert np.array_equal(array.decoded[...], expected, equal_nan=True)
    assert array.decoded.dtype == expected.dtype
    assert np.array_equal(array.decoded[:, ::-1, 1], expected[:, ::-1, 1], equal_nan=True)


@pytest.mark.parametrize(
    ("key", "error", "says"),
    [
        (20, IndexError, "below 20 on axis 0"),
        ((0, 0, 0, 0), IndexError, "at most 3"),
        (None, TypeError, "found NoneType"),
        ([1, 2], TypeError, "found list"),
        ((..., ...), corridor.InvalidError, "at most one"),
        (1.5, TypeError, "float"),
    ],
)
def test_invalid_selections_are_explained(
    data: corridor.Dataset, key: object, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        data["grid/rho"][key]


def test_errors_are_subclasses_of_builtin_exceptions(
    data: corridor.Dataset, served: str, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(KeyError, match="grid/rho"):
        data["absent"]
    with pytest.raises(corridor.NotFoundError):
        corridor.open(str(tmp_path / "absent.h5"))
    public, _, secrets = served.partition("#")
    fingerprint = next(part for part in secrets.split("&") if part.startswith("fp="))
    with pytest.raises(PermissionError):
        corridor.open(f"{public}#{fingerprint}", token="wrong-token-wrong-token")
    with pytest.raises(corridor.UnreachableError) as unreachable:
        corridor.open("corridor://127.0.0.1:1/x")
    assert unreachable.value.may_retry
    with pytest.raises(ValueError, match="size such as"):
        corridor.open("synthetic:waves?shape=4,4,4&dtype=u8", memory="much")


def test_a_location_may_end_with_an_array(served: str) -> None:
    public, _, secrets = served.partition("#")
    rho = corridor.open(f"{public}/grid/rho#{secrets}")
    assert isinstance(rho, corridor.Array)
    assert rho[0, 0, :3].shape == (3,)


def test_several_servers_are_one_data_set(served: str, truth: h5py.File) -> None:
    data = corridor.open([served, served])
    assert np.array_equal(data["grid/rho"][...], truth["grid/rho"][...])
    with pytest.raises(corridor.InvalidError, match="same data"):
        corridor.open([served, "synthetic:noise?shape=2,2,2&dtype=u8"])


def mean_of_row(array: corridor.Array, row: int) -> float:
    return float(array[row].mean())


def test_arrays_travel_to_worker_processes(data: corridor.Dataset, truth: h5py.File) -> None:
    rho = pickle.loads(pickle.dumps(data["grid/rho"]))
    assert np.array_equal(rho[1], truth["grid/rho"][1])
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
        found = pool.submit(mean_of_row, rho, 2).result(timeout=120)
    assert found == float(truth["grid/rho"][2].mean())


def test_forked_child_cannot_read(tmp_path: pathlib.Path) -> None:
    program = (
        "import os, corridor\n"
        "a = corridor.open('synthetic:linear?shape=4,4,4&dtype=u8')['linear']\n"
        "if os.fork() == 0:\n"
        "    try:\n"
        "        a[0]\n"
        "    except corridor.UnsupportedError as e:\n"
        "        print(e, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "forked" in done.stdout and "spawn" in done.stdout, done.stderr


def test_ctrl_c_ends_a_read(tmp_path: pathlib.Path) -> None:
    program = (
        "import _thread, signal, threading, corridor\n"
        # Whoever runs the tests in the background may have the signal ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "a = corridor.open('synthetic:waves?shape=1500,1500,1500&dtype=u8')['waves']\n"
        "threading.Timer(0.3, _thread.interrupt_main).start()\n"
        "try:\n"
        "    a[...]\n"
        "except KeyboardInterrupt:\n"
        "    print('ended')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "ended", (done.returncode, done.stderr)
