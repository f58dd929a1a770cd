"""Several servers: reads stay correct when some are killed, and their data sets form one catalogue."""

import contextlib
import json
import signal
import subprocess

import numpy as np
import pytest
from conftest import BINARY, corridor, environment, running, sent_bytes, several

SHAPE = (160, 256, 512)


@pytest.fixture
def data(home):
    """A flat file of 42 MB, and its values."""
    values = np.random.default_rng(7).integers(0, 65536, SHAPE, dtype="<u2")
    values.tofile(home / "flat.bin")
    (home / "flat.toml").write_text(f'file = "flat.bin"\nshape = {list(SHAPE)}\ndtype = "<u2"\n')
    return home / "flat.toml", values


def check(done, output, values):
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(output), values)


@contextlib.contextmanager
def doomed(home, *arguments: str):
    """A server that may be killed."""
    victim = running(home, *arguments)
    yield victim.__enter__()
    with contextlib.suppress(AssertionError):
        victim.__exit__(None, None, None)


@pytest.mark.parametrize("least_bytes", [1, 30_000, 100_000, 200_000])
def test_one_of_four_servers_is_killed_during_a_read(home, tmp_path, data, least_bytes):
    """The victim has sent some of the data, and the read is not over, when it is killed."""
    description, values = data
    arguments = ("serve", str(description), "--listen", "127.0.0.1:0", "--json")
    output = tmp_path / "out.npy"
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(running(home, *arguments)) for _ in range(3)]
        victim = stack.enter_context(doomed(home, *arguments))
        before = sent_bytes(victim.process.pid)
        command = [BINARY, "get", several([victim.url, *(server.url for server in servers)]), "-o", str(output)]
        reading = subprocess.Popen(command, env=environment(home), stderr=subprocess.PIPE, text=True)
        while sent_bytes(victim.process.pid) < before + least_bytes:
            assert reading.poll() is None, "the read was over before the victim had sent so much"
        victim.process.kill()
        assert reading.poll() is None, "the read was over when the victim was killed"
        _, errors = reading.communicate(timeout=300)
        assert reading.returncode == 0, errors
        assert np.array_equal(np.load(output), values)


def test_read_continues_without_a_server_that_stops_responding(home, tmp_path, data):
    description, values = data
    with contextlib.ExitStack() as stack:
        arguments = ("serve", str(description), "--listen", "127.0.0.1:0", "--json")
        servers = [stack.enter_context(running(home, *arguments)) for _ in range(2)]
        url = several([server.url for server in servers])
        servers[1].process.send_signal(signal.SIGSTOP)
        try:
            # Long before a connection without a sign of life would end by itself.
            done = corridor(home, "get", url, "-o", str(tmp_path / "out.npy"), timeout=30)
        finally:
            servers[1].process.send_signal(signal.SIGCONT)
        check(done, tmp_path / "out.npy", values)


def test_peers_replace_the_first_server_when_it_dies(home, tmp_path, data):
    """A client of one server learns its peers, and continues with them."""
    description, values = data
    arguments = ("serve", "--listen", "127.0.0.1:0", "--json", str(description))
    with (
        running(home, *arguments) as peer,
        doomed(home, *arguments, "--peer", peer.url) as first,
        running(home, "serve", "--listen", "127.0.0.1:0", "--json", first.url) as middle,
    ):
        first.process.kill()
        first.process.wait()
        done = corridor(home, "get", middle.url, "-o", str(tmp_path / "out.npy"))
        check(done, tmp_path / "out.npy", values)


def test_servers_of_servers_give_the_same_bytes(home, tmp_path, data):
    description, values = data
    with (
        running(home, "serve", str(description), "--listen", "127.0.0.1:0", "--json") as origin,
        running(home, "serve", origin.url, "--listen", "127.0.0.1:0", "--json") as middle,
    ):
        done = corridor(home, "get", middle.url, "[3:150:7, ::2, 5:]", "-o", str(tmp_path / "out.npy"))
        check(done, tmp_path / "out.npy", values[3:150:7, ::2, 5:])


def test_error_names_all_servers_if_none_is_left(home, tmp_path, data):
    description, _ = data
    urls = []
    for _ in range(2):
        with running(home, "serve", str(description), "--listen", "127.0.0.1:0", "--json") as server:
            urls.append(server.url)
    done = corridor(home, "get", several(urls), "-o", str(tmp_path / "out.npy"))
    assert done.returncode == 5, done.stderr
    for url in urls:
        assert url.split("#")[0] in done.stderr
        assert url.split("token=")[1].split("&")[0] not in done.stderr


def test_time_ranges_on_two_servers_are_one_array(home, tmp_path):
    axes = '[{ name = "time", kind = "time", units = "days since 1990-01-01", spacing = 1, origin = %d }, ' + (
        '{ name = "y", kind = "y" }, { name = "x", kind = "x" }]'
    )
    values = np.random.default_rng(9).normal(size=(10, 20, 30)).astype("<f4")
    for number in range(2):
        values[number * 5 : number * 5 + 5].tofile(home / f"{number}.bin")
        (home / f"{number}.toml").write_text(
            f'file = "{number}.bin"\nshape = [5, 20, 30]\ndtype = "<f4"\nname = "t2m"\naxes = {axes % (number * 5)}\n'
        )
    with contextlib.ExitStack() as stack:
        arguments = ("--listen", "127.0.0.1:0", "--json")
        first = stack.enter_context(running(home, "serve", str(home / "0.toml"), *arguments))
        victim = running(home, "serve", str(home / "1.toml"), *arguments)
        killed = victim.__enter__()
        url = several([first.url, killed.url]).replace("/0.toml#", "/#")
        output = tmp_path / "out.npy"
        check(corridor(home, "get", url, "t2m[1:9:2]", "-o", str(output)), output, values[1:9:2])
        info = corridor(home, "info", url, "--rule", "files", "--json")
        assert info.returncode == 0, info.stderr
        told = json.loads(info.stdout)
        assert [(s["dataset"], s["is_used"]) for s in told["servers"]] == [("0.toml", True), ("1.toml", True)]
        assert told["arrays"][0]["shape"] == [10, 20, 30]
        killed.process.send_signal(signal.SIGKILL)
        with contextlib.suppress(AssertionError):
            victim.__exit__(None, None, None)
        refused = corridor(home, "get", url, "t2m", "--rule", "files", "-o", str(tmp_path / "all.npy"))
        assert refused.returncode == 5 and "remove it from the URL" in refused.stderr
