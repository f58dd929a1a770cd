"""Fixtures and helpers shared by the tests across processes: programs, environments, servers, reports."""

import json
import os
import pathlib
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

# Before netCDF4, which brings an HDF5 library of its own and keeps filters of the other one from working.
import hdf5plugin  # noqa: F401
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.environ.get("CORRIDOR_BIN", str(ROOT / "target/debug/corridor"))
SAMPLE = ROOT / "data/sample/tooth.nhdr"


class Program:
    """A running `corridor` process and the JSON lines that it printed."""

    def __init__(self, process: subprocess.Popen[str], lines: list[dict]):
        self.process = process
        self.lines = lines

    @property
    def url(self) -> str:
        """URL of the first export, with token and fingerprint."""
        return self.lines[0]["url"]


def environment(home: pathlib.Path) -> dict[str, str]:
    """Returns an environment that does not touch runtime files and caches of the user."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith("CORRIDOR_")}
    return keep | {
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home / "run"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
        "CORRIDOR_CACHE_DIR": str(home / "side"),
    }


@contextmanager
def running(home: pathlib.Path, *arguments: str, lines: int = 1, launcher: Sequence[str] = ()) -> Iterator[Program]:
    """Runs `corridor ARGUMENTS`, started by `launcher` if there is one, and waits for its first JSON lines on standard output."""
    (home / "run").mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [*launcher, BINARY, *arguments], stdout=subprocess.PIPE, env=environment(home), text=True, cwd=home
    )
    assert process.stdout is not None
    alarm = threading.Timer(120, process.kill)
    alarm.start()
    try:
        found = [json.loads(process.stdout.readline()) for _ in range(lines)]
        alarm.cancel()
        yield Program(process, found)
        assert process.poll() is None, "the program exited while the test was running"
    finally:
        alarm.cancel()
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()


def several(urls: list[str]) -> str:
    """Returns one URL for several servers."""
    parts = [dict(part.split("=", 1) for part in url.split("#")[1].split("&")) for url in urls]
    hosts = ",".join(url.split("/")[2] for url in urls)
    tokens, fingerprints = (",".join(part[key] for part in parts) for key in ("token", "fp"))
    return f"corridor://{hosts}/{urls[0].split('/')[3].split('#')[0]}#token={tokens}&fp={fingerprints}"


def io_counts(pid: int) -> dict[str, int]:
    """Returns the bytes that a process has read and written so far, files and sockets, cached or not."""
    lines = pathlib.Path(f"/proc/{pid}/io").read_text().splitlines()
    return {name: int(value) for name, value in (line.split(": ") for line in lines)}


def sent_bytes(pid: int) -> int:
    """Returns the bytes that a process has written so far, mostly to sockets."""
    return io_counts(pid)["wchar"]


def corridor(home: pathlib.Path, *arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Runs one command to its end."""
    return subprocess.run(
        [BINARY, *arguments], env=environment(home), capture_output=True, text=True, timeout=timeout, cwd=home
    )


@pytest.fixture
def home(tmp_path: pathlib.Path) -> pathlib.Path:
    """A separate home directory for each test."""
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def series(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Path of a time series: a growing ball, three time steps."""
    # Imported here because only tests of films need its libraries.
    from films import write_series

    return write_series(tmp_path_factory.mktemp("films") / "ball.nc")


REPORT: list[str] = []


def report(line: str) -> None:
    """Adds a line to the summary that is printed and saved at the end of the run."""
    REPORT.append(line)


def pytest_terminal_summary(terminalreporter) -> None:
    if not REPORT:
        return
    out = os.environ.get("CORRIDOR_TEST_OUT")
    if out:
        (pathlib.Path(out) / "coverage.txt").write_text("\n".join(REPORT) + "\n")
    terminalreporter.section("compared and left out")
    for line in REPORT:
        terminalreporter.write_line(line)
