"""Shared parts of the suites: servers of files, and a record of the tests that opened something by Corridor."""

import itertools
import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import conftest as shared  # noqa: E402

_opened = itertools.count()
_count = 0


def opened_by_us() -> None:
    """To be called wherever a test is given something of Corridor's."""
    global _count
    _count = next(_opened) + 1


def opened_so_far() -> int:
    """Returns the number of tests that used Corridor."""
    return _count


def served(running: ExitStack, path: Path) -> str:
    """The address of a file or a store, from a server that lives as long as `running`."""
    home = Path(running.enter_context(tempfile.TemporaryDirectory()))
    arguments = ("serve", str(path.resolve()), "--listen", "127.0.0.1:0", "--json")
    return running.enter_context(shared.running(home, *arguments)).url


def described(url: str) -> dict[str, Any]:
    """Description of a data set, from `corridor info`."""
    with tempfile.TemporaryDirectory() as home:
        said: dict[str, Any] = json.loads(shared.corridor(Path(home), "info", "--json", url).stdout)
    return said


def fixtures_of(module: ModuleType) -> dict[str, Any]:
    """Fixtures that a module of tests has for itself."""
    return {name: value for name, value in vars(module).items() if type(value).__name__ == "FixtureFunctionDefinition"}


_outcomes: dict[str, dict[str, Any]] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Notes for each test whether Corridor had a part in it."""
    before = opened_so_far()
    result = yield
    _outcomes.setdefault(item.nodeid, {"outcome": "passed", "why": ""})["is_ours"] = opened_so_far() > before
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Notes how each test ended: the worst of setting up, running and cleaning up."""
    known = _outcomes.setdefault(report.nodeid, {"outcome": "passed", "why": ""})
    if hasattr(report, "wasxfail"):
        known["outcome"] = "skipped"
    elif report.outcome != "passed" and known["outcome"] != "failed":
        crash = getattr(report.longrepr, "reprcrash", None)
        known["outcome"], known["why"] = report.outcome, str(crash.message if crash else report.longrepr)[:400]


def pytest_sessionfinish() -> None:
    """Writes the outcomes to the file of CORRIDOR_PEERS_OUT, if it is set."""
    if out := os.environ.get("CORRIDOR_PEERS_OUT"):
        Path(out).write_text(json.dumps(_outcomes, indent=1))
