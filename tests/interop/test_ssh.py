"""`ssh://` through a real OpenSSH server on loopback: same data, clear errors, no processes left behind."""

import json
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator

import conftest
import h5py
import numpy as np
import pytest
import sshd

ODD = "it's \"a\" $(touch pwned); `x`\\ é #?%&"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshd.Server]:
    with sshd.running(tmp_path_factory.mktemp("ssh")) as running:
        shutil.copytree(conftest.SAMPLE.parent, running.home / ODD)
        with h5py.File(running.home / "run.h5", "w") as file:
            file["grid/rho"] = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
            file["other"] = np.zeros(3)
        yield running


@pytest.fixture
def here(server: sshd.Server, home: pathlib.Path):
    """Runs a command that may use the server, and sees that nothing stays there."""

    def run(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [conftest.BINARY, *arguments],
            env=conftest.environment(home) | server.environment(**changes),
            capture_output=True,
            text=True,
            timeout=120,
            cwd=home,
            stdin=subprocess.DEVNULL,
        )
        server.wait_until_no_programs()
        return done

    return run


def failed(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    last = done.stderr.strip().splitlines()[-1]
    if last.startswith("hint:"):
        last = done.stderr.strip().splitlines()[-2]
    assert done.returncode == code and last.startswith("error:"), done.stderr
    for word in words:
        assert word in last, f"expected `{word}` in: {last}"


def address(server: sshd.Server, path: str, host: str = "here") -> str:
    return f"ssh://{host}{urllib.parse.quote(str(server.home / path))}"


@pytest.mark.parametrize("direct", ["yes", "no"])
@pytest.mark.parametrize("host", ["here", "behind"])
def test_data_over_ssh_equal_the_file(here, server: sshd.Server, home, host: str, direct: str) -> None:
    there = address(server, f"{ODD}/{conftest.SAMPLE.name}", host)
    done = here("info", there, "--json", CORRIDOR_SSH_DIRECT=direct)
    assert done.returncode == 0, done.stderr
    local = conftest.corridor(home, "info", str(server.home / ODD / conftest.SAMPLE.name), "--json")
    assert json.loads(done.stdout) == json.loads(local.stdout)
    assert here("get", there, "-o", "there.npy", CORRIDOR_SSH_DIRECT=direct).returncode == 0
    assert conftest.corridor(home, "get", str(conftest.SAMPLE), "-o", "local.npy").returncode == 0
    assert (home / "there.npy").read_bytes() == (home / "local.npy").read_bytes()
    assert not list(server.home.rglob("pwned")) and not (home / "pwned").exists()


def test_the_home_folder_and_arrays_in_files(here, home) -> None:
    done = here("get", "ssh://here/~/run.h5/grid/rho", "[1, :, 2]", "-o", "rho.npy")
    assert done.returncode == 0, done.stderr
    assert np.load(home / "rho.npy").tolist() == [14.0, 18.0, 22.0]
    done = here("info", "ssh://here/~/run.h5/grid/rho")
    assert "grid/rho" in done.stdout and "other" not in done.stdout
    done = here("render", "ssh://here/~/run.h5/grid/rho", "-o", "rho.png", "--size", "64x64")
    assert done.returncode == 0, done.stderr


def test_a_direct_link_takes_over_where_there_can_be_one(here, server: sshd.Server, home) -> None:
    values = np.random.default_rng(5).integers(0, 255, (48, 512, 512), dtype=np.uint8)
    np.save(home / "large.npy", values)
    values.tofile(server.home / "large.bin")
    (server.home / "large.toml").write_text('file = "large.bin"\nshape = [48, 512, 512]\ndtype = "u1"\n')
    for direct, taken in [("yes", True), ("no", False)]:
        done = here("-v", "get", "ssh://here/~/large.toml", "-o", "got.npy", CORRIDOR_SSH_DIRECT=direct)
        assert done.returncode == 0, done.stderr
        assert ("has taken over from ssh" in done.stderr) == taken, done.stderr
        assert np.array_equal(np.load(home / "got.npy"), values)


@pytest.mark.parametrize("direct", ["yes", "no"])
def test_a_killed_client_leaves_nothing_running(server: sshd.Server, home, direct: str) -> None:
    environment = conftest.environment(home) | server.environment(CORRIDOR_SSH_DIRECT=direct)
    (home / "run").mkdir()
    arguments = [conftest.BINARY, "view", "ssh://here/~/run.h5/grid/rho", "--listen", "127.0.0.1:0", "--json"]
    for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        viewer = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True, cwd=home)
        assert "url" in json.loads(viewer.stdout.readline())
        assert server.programs()
        viewer.send_signal(how)
        viewer.wait(timeout=20)
        server.wait_until_no_programs()


def test_interrupt_during_a_slow_start_leaves_nothing_running(server: sshd.Server, home) -> None:
    slow, ended = home / "slow", home / "ended"
    slow.write_text(f'#!/bin/sh\nsleep 3\n{conftest.BINARY} "$@"\necho $? > {ended}\n')
    slow.chmod(0o755)
    environment = conftest.environment(home) | server.environment(CORRIDOR_SSH_COMMAND=str(slow))
    arguments = [conftest.BINARY, "info", "ssh://here/~/run.h5"]
    client = subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, cwd=home)
    with pytest.raises(subprocess.TimeoutExpired):
        client.wait(timeout=1)
    client.kill()
    client.wait()
    end = time.monotonic() + 60
    while not ended.exists():
        assert time.monotonic() < end, "the program on the other host has not ended"
        time.sleep(0.05)
    server.wait_until_no_programs()


def test_missing_files_are_named(here, server: sshd.Server) -> None:
    failed(here("info", address(server, "no such file")), 3, "no such file", "ssh to here")
    nowhere = here("info", "ssh://here/~/run.h5", CORRIDOR_SSH_COMMAND="/no/corridor")
    failed(nowhere, 3, "expected the program `corridor` on here", "CORRIDOR_SSH_COMMAND=")
    failed(here("info", "ssh://here/x", CORRIDOR_SSH="/no/ssh"), 3, "`/no/ssh`", "CORRIDOR_SSH")


def test_refused_login_is_reported(here) -> None:
    failed(here("info", "ssh://stranger/~/run.h5"), 4, "the login failed", "Permission denied")
    failed(here("info", "ssh://here:1/~/run.h5"), 5, "refused")


def script(folder: pathlib.Path, text: str) -> str:
    path = folder / "fake"
    path.write_text(f"#!{sys.executable}\nimport os, subprocess, sys, threading\n{text}")
    path.chmod(0o755)
    return str(path)


def test_other_versions_are_reported(here, home) -> None:
    older = "sys.stderr.write(\"error: unexpected argument '--stdio' found\\n\"); sys.exit(2)"
    done = here("info", "ssh://here/~/run.h5", CORRIDOR_SSH_COMMAND=script(home, older))
    failed(done, 1, "version of `corridor` there that supports `serve --stdio`", "unexpected argument '--stdio'")
    words = b"expected version 98 to 99, found 1"
    refusal = b"\x82" + struct.pack("<HBH", 5, 0, len(words)) + words + b"\0\0"
    newer = f"""
sys.stdin.buffer.readline()
refusal = {struct.pack("<I", len(refusal)) + refusal!r}
sys.stdout.buffer.write(b'corridor-stdio {{"program": "corridor 99.1", "news": 1}}\\n' + refusal)
sys.stdout.flush()
sys.stdin.buffer.read()
"""
    done = here("info", "ssh://here/~/run.h5", CORRIDOR_SSH_COMMAND=script(home, newer))
    failed(done, 1, "expected version 98 to 99, found 1", "`corridor 99.1` there", "ssh to here")
    chatty = "sys.stdout.write('hello\\n' * 100000)"
    done = here("info", "ssh://here/~/run.h5", CORRIDOR_SSH_COMMAND=script(home, chatty))
    failed(done, 6, "found other output", "CORRIDOR_SSH_COMMAND")


def test_output_of_the_login_is_ignored(here) -> None:
    noisy = f"echo Welcome; printf 'no end of line'; echo to you >&2; {conftest.BINARY}"
    done = here("info", "ssh://here/~/run.h5", "--json", CORRIDOR_SSH_COMMAND=noisy)
    assert done.returncode == 0 and "to you" in done.stderr, done.stderr
    assert json.loads(done.stdout)["format"]


def test_first_request_is_sent_with_the_first_bytes(here, home) -> None:
    """Tests with a channel that holds back all answers until the description is requested: a further round trip would never end."""
    holding = f"""
program = subprocess.Popen(["{conftest.BINARY}", "serve", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
asked = threading.Event()

def there():
    seen = b""
    while data := os.read(0, 65536):
        seen += data
        if b"describe" in seen:
            asked.set()
        program.stdin.write(data)
        program.stdin.flush()
    program.stdin.close()

threading.Thread(target=there).start()
if not asked.wait(30):
    sys.exit("the description was not asked for")
while data := os.read(program.stdout.fileno(), 65536):
    os.write(1, data)
"""
    sample = urllib.parse.quote(str(conftest.SAMPLE))
    done = here("info", f"ssh://anywhere{sample}", "--json", CORRIDOR_SSH=script(home, holding))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["arrays"][0]["shape"] == [161, 94, 103]


@pytest.mark.parametrize(
    "bad",
    [
        "ssh://-oProxyCommand=touch%20pwned/x",
        "ssh://-oProxyCommand=touch${IFS}pwned/x",
        "ssh://$(touch pwned)/x",
        "ssh://-lx@here/x",
        "ssh://a;touch pwned@here/x",
        "ssh://here/",
        "ssh://here:0/x",
        "ssh://here/a%00b",
        "ssh://here/x#token=secret",
    ],
)
def test_address_cannot_inject_options_or_commands(here, home, bad: str) -> None:
    done = here("info", bad)
    assert done.returncode == 2 and done.stderr.startswith("error: expected"), done.stderr
    assert "secret" not in done.stderr and not (home / "pwned").exists()


def test_a_path_is_a_path_and_no_other_location(here) -> None:
    failed(here("info", "ssh://here/synthetic:waves?shape=4,4,4&dtype=u8"), 3)
    failed(here("info", "ssh://here/~/corridor://localhost/x"), 3)


def test_a_terminal_or_a_file_is_no_channel(home) -> None:
    done = subprocess.run(
        [conftest.BINARY, "serve", "--stdio"],
        env=conftest.environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2 and "ssh://" in done.stderr
