"""Servers and files that the tests across processes share."""

import json
import os
import pathlib
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.environ.get("CORRIDOR_BIN", str(ROOT / "target/debug/corridor"))
SAMPLE = ROOT / "data/sample/tooth.nhdr"


class Program:
    """A `corridor` process that prints JSON lines and runs until it is ended."""

    def __init__(self, process: subprocess.Popen[str], lines: list[dict]):
        self.process = process
        self.lines = lines

    @property
    def url(self) -> str:
        """The first export's address with its token and fingerprint."""
        return self.lines[0]["url"]


def environment(home: pathlib.Path) -> dict[str, str]:
    """An environment of its own: no runtime files or side caches of the user are touched."""
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
        assert process.poll() is None, "the program ended by itself while the test was running"
    finally:
        alarm.cancel()
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()


def several(urls: list[str]) -> str:
    """One URL for all of them."""
    parts = [dict(part.split("=", 1) for part in url.split("#")[1].split("&")) for url in urls]
    hosts = ",".join(url.split("/")[2] for url in urls)
    tokens, fingerprints = (",".join(part[key] for part in parts) for key in ("token", "fp"))
    return f"corridor://{hosts}/{urls[0].split('/')[3].split('#')[0]}#token={tokens}&fp={fingerprints}"


def io_counts(pid: int) -> dict[str, int]:
    """What a process has read and written so far, from and to files and sockets, cached by the system or not."""
    lines = pathlib.Path(f"/proc/{pid}/io").read_text().splitlines()
    return {name: int(value) for name, value in (line.split(": ") for line in lines)}


def sent_bytes(pid: int) -> int:
    """What a process has written so far, to sockets mostly."""
    return io_counts(pid)["wchar"]


def corridor(home: pathlib.Path, *arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Runs one command to its end."""
    return subprocess.run(
        [BINARY, *arguments], env=environment(home), capture_output=True, text=True, timeout=timeout, cwd=home
    )


@pytest.fixture
def home(tmp_path: pathlib.Path) -> pathlib.Path:
    """A home directory of its own for each test."""
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def series(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A ball that grows, three time steps."""
    # Only tests of films need what writes it.
    from films import write_series

    return write_series(tmp_path_factory.mktemp("films") / "ball.nc")


REPORT: list[str] = []


def report(line: str) -> None:
    """Remembers a line for the summary that is printed and kept at the end of the run."""
    REPORT.append(line)


def pytest_terminal_summary(terminalreporter) -> None:
    if not REPORT:
        return
    out = os.environ.get("CORRIDOR_TEST_OUT")
    if out:
        (pathlib.Path(out) / "coverage.txt").write_text("\n".join(REPORT) + "\n")
    terminalreporter.section("what was compared, and what was left out")
    for line in REPORT:
        terminalreporter.write_line(line)
