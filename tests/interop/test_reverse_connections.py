"""Servers behind firewalls that connect to the client (`serve --to`, `await://`)."""

import contextlib
import json
import subprocess

import numpy as np
from conftest import BINARY, SAMPLE, corridor, environment, running


@contextlib.contextmanager
def waiting(home, *arguments: str):
    """Starts a command that waits for a server; returns it and the URL that it printed, on standard error if its output is one
    document."""
    process = subprocess.Popen(
        [BINARY, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(home), text=True, cwd=home
    )
    try:
        stream = process.stderr if arguments[0] == "info" else process.stdout
        assert stream is not None
        yield process, json.loads(stream.readline())["awaiting"]["url"]
    finally:
        process.kill()
        process.wait()


def output(process) -> str:
    """Returns the rest of the output, printed once a server had connected."""
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    return out


def name(process) -> str:
    """Returns the name of the data set that `info` printed."""
    return json.loads(output(process))["name"]


def to(url: str) -> tuple[str, ...]:
    return (str(SAMPLE), "--listen", "127.0.0.1:0", "--json", "--to", url)


def test_get_from_a_server_that_connects_to_the_client(home, tmp_path):
    here, there = tmp_path / "here.npy", tmp_path / "there.npy"
    assert corridor(home, "get", str(SAMPLE), "-o", str(here)).returncode == 0
    command = ("get", "await://127.0.0.1:0/tooth.nhdr", "[10:90:3, :, 5:50]", "-o", str(there), "--json")
    with waiting(home, *command) as (process, url), running(home, "serve", *to(url)):
        output(process)
    assert np.array_equal(np.load(there), np.load(here)[10:90:3, :, 5:50])


def test_the_server_may_wait_first_and_comes_again_for_the_next_client(home):
    token = "chosen-by-both"
    first = ("info", f"await://127.0.0.1:0/#token={token}", "--json")
    with waiting(home, *first) as (process, url):
        port = url.split("/")[2].split(":")[1]
        with running(home, "serve", *to(url)):
            assert name(process) == "tooth.nhdr"
            # The same address and token again: nothing is started anew where the data are.
            again = ("info", f"await://127.0.0.1:{port}/#token={token}", "--json")
            with waiting(home, *again) as (next_process, next_url):
                assert next_url == url
                assert name(next_process) == "tooth.nhdr"


def complaint(home, url: str) -> str:
    """The first thing that a server says on standard error when it is told to connect there."""
    process = subprocess.Popen(
        [BINARY, "serve", *to(url)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(home),
        text=True,
    )
    try:
        assert process.stderr is not None
        return process.stderr.readline()
    finally:
        process.kill()
        process.wait()


def test_server_with_another_token_is_refused(home):
    command = ("info", "await://127.0.0.1:0/#token=right", "--json")
    with waiting(home, *command) as (process, url):
        assert "token" in complaint(home, url.replace("token=right", "token=wrong"))
        assert process.poll() is None
        with running(home, "serve", *to(url)):
            assert name(process) == "tooth.nhdr"


def test_client_with_another_certificate_is_refused(home):
    command = ("info", "await://127.0.0.1:0/#token=right", "--json")
    with waiting(home, *command) as (process, url):
        forged = url[:-1] + ("0" if url[-1] != "0" else "1")
        assert "fingerprint" in complaint(home, forged)
        assert process.poll() is None


def test_invalid_addresses_are_refused(home):
    done = corridor(home, "info", "await://elsewhere.example:70/x")
    assert done.returncode == 2 and "0.0.0.0" in done.stderr
    done = corridor(home, "serve", str(SAMPLE), "--to", "corridor://127.0.0.1:7/")
    assert done.returncode == 2 and "token" in done.stderr
