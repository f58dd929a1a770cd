"""Exit codes as `corridor help exit-codes` lists them: scripts depend on them."""

import pathlib
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest
from conftest import BINARY, SAMPLE, corridor, environment


@pytest.fixture
def broken(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "broken.nrrd"
    path.write_bytes(b"NRRD0004\ntype: float\ndimension: 1\nsizes: 4\nencoding: raw\nendian: little\n\nshort")
    return str(path)


@pytest.fixture
def giant(tmp_path: pathlib.Path) -> str:
    """One stored chunk that is larger than the memory given."""
    path = tmp_path / "giant.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("u", data=np.zeros(40 << 20, np.uint8), chunks=(40 << 20,), compression="gzip")
    return str(path)


def code(home: pathlib.Path, *arguments: str) -> int:
    return corridor(home, *arguments).returncode


def test_each_kind_of_failure_has_its_exit_code(home, tmp_path, broken, giant):
    out = str(tmp_path / "out.npy")
    assert code(home, "info", str(SAMPLE)) == 0
    assert code(home, "get", str(SAMPLE), "[999999]", "-o", out) == 2
    assert code(home, "info", str(tmp_path / "absent.nrrd")) == 3
    assert code(home, "info", "corridor://127.0.0.1:1/x") == 5
    assert code(home, "get", broken, "-o", out) == 6
    assert code(home, "get", giant, "-o", out, "--memory", "64MiB") == 7
    assert not pathlib.Path(out).exists(), "nothing is left under the output's name"


def test_a_server_outlives_its_terminal_only_if_that_is_wanted(home):
    (home / "run").mkdir()
    for ignores, how in [(False, signal.SIG_DFL), (True, signal.SIG_IGN)]:
        server = subprocess.Popen(
            [BINARY, "serve", "synthetic:linear?shape=4,4,4", "--listen", "127.0.0.1:0", "--json"],
            stdout=subprocess.PIPE,
            env=environment(home),
            preexec_fn=lambda how=how: signal.signal(signal.SIGHUP, how),
        )
        server.stdout.readline()
        server.send_signal(signal.SIGHUP)
        if ignores:
            with pytest.raises(subprocess.TimeoutExpired):
                server.wait(timeout=2)
            server.terminate()
        assert server.wait(timeout=60) == 0
        assert not list((home / "run").rglob("*.json")), "no token is left behind"


def test_closed_output_pipe_is_no_failure(home):
    command = f"set -o pipefail; {BINARY} info synthetic:linear?shape=4,4,4 | true"
    for _ in range(5):
        done = subprocess.run(["bash", "-c", command], env=environment(home), capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_interrupt_has_its_exit_code(home, tmp_path):
    process = subprocess.Popen(
        [BINARY, "get", "synthetic:waves?shape=900,900,900&dtype=u8", "-o", str(tmp_path / "out.npy")],
        env=environment(home),
        stderr=subprocess.DEVNULL,
    )
    while not list(tmp_path.glob("*out.npy*")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert not (tmp_path / "out.npy").exists()
