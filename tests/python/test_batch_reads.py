"""Batch reads: several data sets concurrently, with few threads, decoded on other threads than connections."""

import asyncio
import contextlib
import ctypes
import os
import pathlib
import signal
import sys
import threading
import time
from collections.abc import Iterator

import conftest
import corridor
import netCDF4
import numpy as np
import pytest

SERVE = ("serve", "--listen", "127.0.0.1:0", "--json")
# Unlike functions of `CDLL`, those of `PyDLL` keep Python's lock; finding them gives it away.
sleep_micros_with_the_lock = ctypes.PyDLL(None).usleep


def threads() -> dict[int, str]:
    """The names of this process's threads."""
    found = {}
    for task in pathlib.Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            found[int(task.name)] = (task / "comm").read_text().strip()
    return found


def cpu_nanos(thread: int) -> int:
    """Returns the CPU time of a thread of this process so far; the ticks of `stat` are longer than a job here."""
    return int(pathlib.Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0])


def wait_at_rest_with_the_lock() -> None:
    """Waits until this process is idle: all work has ended, or waits for the GIL."""
    quiet, until = 0, time.perf_counter() + 60
    while quiet < 5:
        assert time.perf_counter() < until, "something computes without end"
        before = time.process_time()
        sleep_micros_with_the_lock(50_000)
        quiet = quiet + 1 if time.process_time() - before < 0.002 else 0


def stop(program: conftest.Program) -> None:
    """Suspends a server (SIGSTOP) and waits until it is stopped."""
    program.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, program.process.pid, os.WSTOPPED)


@pytest.fixture
def two_servers(tmp_path: pathlib.Path) -> Iterator[tuple[conftest.Program, conftest.Program]]:
    with (
        conftest.running(tmp_path, *SERVE, "synthetic:linear?shape=40,50,60&dtype=u16") as first,
        conftest.running(tmp_path, *SERVE, "synthetic:noise?shape=40,50,60&dtype=u16") as second,
    ):
        yield first, second


def test_several_data_sets_are_read_concurrently(two_servers: tuple[conftest.Program, conftest.Program]) -> None:
    first, second = two_servers
    linear, noise = corridor.open(first.url)["linear"], corridor.open(second.url)["noise"]
    expected = [linear[3], noise[5]]
    before = conftest.sent_bytes(second.process.pid)
    found: list[np.ndarray] = []
    reading = threading.Thread(target=lambda: found.extend(corridor.read_many([(linear, 3), (noise, 5)])))
    stop(first)
    try:
        reading.start()
        deadline = time.monotonic() + 20
        while conftest.sent_bytes(second.process.pid) < before + expected[1].nbytes:
            assert time.monotonic() < deadline, "the second data set waits for the first"
            time.sleep(0.01)
    finally:
        first.process.send_signal(signal.SIGCONT)
    reading.join()
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_futures_of_a_batch_complete_independently(two_servers: tuple[conftest.Program, conftest.Program]) -> None:
    first, second = two_servers
    linear, noise = corridor.open(first.url)["linear"], corridor.open(second.url)["noise"]
    expected = [linear[0], noise[0]]
    stop(first)
    try:
        futures = corridor.submit_many([(linear, 0), (noise, 0), (noise, (0, 0, 0))])
        assert np.array_equal(futures[1].result(20), expected[1])
        assert futures[2].result(20) == expected[1][0, 0]
        assert not futures[0].done()
    finally:
        first.process.send_signal(signal.SIGCONT)
    assert np.array_equal(futures[0].result(60), expected[0])


def test_failure_of_one_read_is_its_own(tmp_path: pathlib.Path) -> None:
    with conftest.running(tmp_path, *SERVE, "synthetic:noise?shape=40,50,60&dtype=u16") as second:
        noise = corridor.open(second.url)["noise"]
        with conftest.running(tmp_path, *SERVE, "synthetic:linear?shape=40,50,60&dtype=u16") as first:
            linear = corridor.open(first.url)["linear"]
        values = noise[7]
        futures = corridor.submit_many([(linear, 7), (noise, 7)])
        assert np.array_equal(futures[1].result(60), values)
        assert isinstance(futures[0].exception(60), corridor.UnreachableError)
        with pytest.raises(corridor.UnreachableError):
            corridor.read_many([(noise, 7), (linear, 7)])


def test_event_loops_read_batches_and_cancel_them() -> None:
    linear = corridor.open("synthetic:linear?shape=40,50,60&dtype=u8")["linear"]
    parts = asyncio.run(corridor.read_many_async((linear, z) for z in range(40)))
    assert np.array_equal(np.stack(parts), linear[...])
    slow = corridor.open("synthetic:waves?shape=700,700,700&dtype=u8")["waves"]

    async def work() -> None:
        await asyncio.wait_for(corridor.read_many_async([(slow, ...), (slow, ...)]), timeout=0.05)

    with pytest.raises(TimeoutError):
        asyncio.run(work())
    futures = corridor.submit_many([(slow, ...), (slow, ...)])
    assert all(future.cancel() for future in futures)


def test_completion_of_futures_uses_few_threads() -> None:
    line = corridor.open("synthetic:linear?shape=4,5,600&dtype=u8")["linear"]
    line.submit((0, 0, 0)).result(60)
    before = len(threads())
    switching = sys.getswitchinterval()
    # Longer than the lock is held below, so that nobody asks for it before.
    sys.setswitchinterval(5)
    try:
        futures = [line.submit((0, 0, x)) for x in range(600)]
        # All, or nearly all, end while Python's lock is held here.
        wait_at_rest_with_the_lock()
        assert sum(not future.done() for future in futures) > 300
        after = len(threads())
    finally:
        sys.setswitchinterval(switching)
    assert [int(future.result(60)) for future in futures] == [int(v) for v in line[0, 0]]
    assert after - before <= 4, threads()


def test_a_callback_may_wait_for_another_read() -> None:
    line = corridor.open("synthetic:linear?shape=4,5,600&dtype=u8")["linear"]
    inner: list[int] = []
    outer = line.submit((0, 0, 0))
    outer.add_done_callback(lambda _: inner.append(int(line.submit((0, 0, 599)).result(60))))
    outer.result(60)
    until = time.monotonic() + 60
    while not inner and time.monotonic() < until:
        time.sleep(0.01)
    assert inner == [int(line[0, 0, 599])]


def test_values_are_decoded_on_other_threads_than_connections(tmp_path: pathlib.Path) -> None:
    """Decoding runs on several storage threads; threads of connections do not compute."""
    stored = np.random.default_rng(2).integers(-3000, 3000, (16, 1 << 20), dtype=np.int16)
    with netCDF4.Dataset(tmp_path / "packed.nc", "w") as file:
        for name, size in zip("yx", stored.shape, strict=True):
            file.createDimension(name, size)
        packed = file.createVariable("t", "i2", ("y", "x"))
        packed.set_auto_maskandscale(False)
        packed.scale_factor, packed.add_offset = 0.5, 10.0
        packed[...] = stored
    with conftest.running(tmp_path, *SERVE, "packed.nc") as program:
        array = corridor.open(program.url, compression="none")["t"].decoded
        before = {thread: cpu_nanos(thread) for thread in threads()}
        rows = corridor.read_many([(array, row) for row in range(len(stored))])
        assert np.array_equal(np.stack(rows), stored * 0.5 + 10.0)
        # Names are cut at 15 bytes, so threads of one kind share theirs.
        spent = [(name, cpu_nanos(id) - before.get(id, 0)) for id, name in threads().items()]
        # A row is written in 8 MiB, which no core does in that time; to be woken up takes less.
        decoders = [name for name, nanos in spent if name.startswith("corridor-store") and nanos > 200_000]
        assert len(decoders) > 1, spent
