"""Bad input from outside: a clear error each time, and a server that keeps running and answers correctly."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.parse

import h5py
import numpy as np
import pytest
from conftest import BINARY, SAMPLE, corridor, environment, running


@pytest.fixture
def server(home):
    with running(home, "serve", str(SAMPLE), "--listen", "127.0.0.1:0", "--json") as program:
        yield program
        # Whatever a test did, the server still answers, and rightly.
        done = corridor(home, "info", program.url, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["arrays"][0]["shape"] == [161, 94, 103]


def address(url: str) -> tuple[str, int]:
    parts = urllib.parse.urlsplit(url)
    return parts.hostname, parts.port


def refused(done, *words: str) -> None:
    assert done.returncode not in (0, 101), f"expected an error, found success or a panic: {done.stderr}"
    assert "panicked" not in done.stderr
    assert done.stderr.startswith("error:"), done.stderr
    for word in words:
        assert word in done.stderr, f"expected `{word}` in: {done.stderr}"


def test_selection_out_of_range(home, server):
    refused(corridor(home, "get", server.url, "[500, :, :]", "-o", str(home / "x.npy")), "161", "500")
    assert not (home / "x.npy").exists()


def test_selection_with_too_many_axes(home, server):
    refused(corridor(home, "get", server.url, "[1, 1, 1, 1]", "-o", str(home / "x.npy")), "3")


def test_name_of_no_array(home, server):
    refused(corridor(home, "get", server.url, "density[0]", "-o", str(home / "x.npy")), "density")


def test_name_of_no_data_set(home, server):
    wrong = server.url.replace("tooth", "teeth")
    refused(corridor(home, "info", wrong), "teeth")


def test_wrong_url(home, server):
    refused(corridor(home, "info", "corridr://localhost/x"), "corridor://")
    refused(corridor(home, "info", "corridor://"))


def test_nobody_listens(home):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        # Bound, so that nobody else gets the port meanwhile.
        refused(corridor(home, "info", f"corridor://127.0.0.1:{port}/x", timeout=60), str(port))


def test_wrong_token(home, server):
    token = server.lines[0]["token"]
    wrong = server.url.replace(token, "0" * len(token))
    assert wrong != server.url
    refused(corridor(home, "info", wrong), "token")


def test_wrong_fingerprint(home, server):
    fingerprint = server.lines[0]["fingerprint"]
    digits = fingerprint.split(":")[1]
    wrong = server.url.replace(digits, "0" * len(digits))
    assert wrong != server.url
    refused(corridor(home, "info", wrong), "fingerprint")


def test_random_bytes_on_the_port(server):
    for _ in range(5):
        with socket.create_connection(address(server.url)) as peer:
            peer.settimeout(30)
            try:
                peer.sendall(os.urandom(10_000))
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(4096):
                    pass
            except OSError:
                pass


def test_silent_and_half_open_peers(home, server):
    peers = [socket.create_connection(address(server.url)) for _ in range(50)]
    for peer in peers[:25]:
        peer.sendall(b"\x16\x03\x01")
    done = corridor(home, "info", server.url, "--json", timeout=30)
    assert done.returncode == 0, done.stderr
    for peer in peers:
        peer.close()


def test_more_idle_peers_than_connections_allowed(home, server):
    host, port = address(server.url)
    ask = b"GET /colormaps.json HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (host.encode(), port) * 50
    starts = [ask, b"", b"GET / HT", b"\x16\x03\x01\x02"]
    with contextlib.ExitStack() as peers:
        for number in range(600):
            peer = peers.enter_context(socket.create_connection((host, port), timeout=30))
            peer.setblocking(False)
            with contextlib.suppress(OSError):  # The server may have hung up; none of these reads an answer.
                peer.send(starts[number % len(starts)])
        done = corridor(home, "info", server.url, "--json", timeout=60)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("wrong", [
    "https://localhost/x#token=s3cret", "corridr://localhost/x#token=s3cret", "corridor:/localhost/x#token=s3cret",
    "corridor://localhost/x?token=s3cret", "corridor://localhost/x%23token=s3cret", "localhost:9/x#token=s3cret",
])
def test_token_in_a_wrong_url_is_not_shown(home, wrong):
    done = corridor(home, "info", wrong)
    refused(done)
    assert "s3cret" not in done.stderr + done.stdout


def test_token_in_a_wrong_place_is_not_shown(home):
    done = corridor(home, "get", str(SAMPLE), "corridor://h/x#token=s3cret", "-o", str(home / "x.npy"))
    refused(done)
    assert "s3cret" not in done.stderr + done.stdout


def test_client_killed_while_reading(home, server):
    with running(home, "serve", "synthetic:noise?shape=2048,2048,512&dtype=f32", "--listen", "127.0.0.1:0",
                 "--json") as big:
        for wait in (0.05, 0.3, 0.8):
            reader = subprocess.Popen(
                [BINARY, "get", big.url, "-o", str(home / "big.raw")],
                env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
            time.sleep(wait)
            reader.kill()
            reader.wait()
        out = home / "small.npy"
        done = corridor(home, "get", big.url, "[0:4, 0:4, 0:4]", "-o", str(out), timeout=60)
        assert done.returncode == 0, done.stderr
        assert np.load(out).shape == (4, 4, 4)


def test_request_for_more_than_any_machine_holds(home):
    url = "synthetic:linear?shape=1048576,1048576,1048576&dtype=u8"
    with running(home, "serve", url, "--listen", "127.0.0.1:0", "--json") as huge:
        refused(corridor(home, "get", huge.url, "-o", str(home / "huge.npy"), timeout=120))
        assert not (home / "huge.npy").exists()
        small = corridor(home, "get", huge.url, "[0:2, 0:2, 0:2]", "-o", str(home / "s.npy"))
        assert small.returncode == 0, small.stderr


@pytest.mark.parametrize("name", ["empty.nrrd", "noise.h5", "text.nc", "nothing.zarr", "noise.nii.gz"])
def test_files_that_are_not_what_they_say(home, name):
    path = home / name
    if name.endswith(".zarr"):
        path.mkdir()
    else:
        path.write_bytes(b"" if name.startswith("empty") else os.urandom(3000))
    refused(corridor(home, "info", str(path)), name)


def test_get_does_not_write_over_what_it_reads(home, tmp_path):
    for name in ("tooth.nhdr", "tooth.raw"):
        (tmp_path / name).write_bytes((SAMPLE.parent / name).read_bytes())
    before = (tmp_path / "tooth.raw").read_bytes()
    done = corridor(home, "get", str(tmp_path / "tooth.nhdr"), "-o", str(tmp_path / "tooth.raw"))
    assert done.returncode == 2 and "contains the data that are being read" in done.stderr
    assert (tmp_path / "tooth.raw").read_bytes() == before


def test_an_interrupted_copy_leaves_nothing(home, tmp_path):
    for name, number in [("big.raw", signal.SIGINT), ("big.zarr", signal.SIGTERM), ("big.npy", signal.SIGHUP)] * 2:
        process = subprocess.Popen(
            [BINARY, "get", "synthetic:waves?shape=900,900,900&dtype=u8", "-o", str(tmp_path / name)],
            env=environment(home),
            stderr=subprocess.DEVNULL,
            # Tests may run where a closed terminal is ignored (`nohup`), which programs inherit.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )
        while not [part for room in tmp_path.glob(f".{name}.*") for part in room.rglob("*")]:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        process.wait(timeout=60)
        assert not list(tmp_path.glob("*big*")) and not list(tmp_path.glob(".*big*"))


def test_names_in_files_forge_no_lines(home, tmp_path):
    with h5py.File(tmp_path / "names.h5", "w") as file:
        file["a\nerror: forged"] = [1, 2]
    done = corridor(home, "get", str(tmp_path / "names.h5"), '"a\nerror: forged"[99]', "-o", "x.npy")
    assert done.returncode == 2
    assert len([line for line in done.stderr.splitlines() if line.startswith("error:")]) == 1
