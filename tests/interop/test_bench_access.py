"""`corridor bench access` on loopback: its counts and comparisons. No time is asserted."""

import json
import pathlib
import subprocess

import pytest
from conftest import BINARY, environment

HEADERS = 1.15
"""Bytes on the network for each byte of data in small reads, at most: TLS, frames, packets, and the requests."""

ALONE = ["unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
"""Before a command: gives it a loopback of its own, so that nobody else's bytes are counted."""


@pytest.fixture(scope="module")
def is_alone() -> bool:
    """Returns true if this system allows such a loopback."""
    try:
        return subprocess.run([*ALONE, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, is_alone: bool) -> dict:
    home: pathlib.Path = tmp_path_factory.mktemp("home")
    command = [BINARY, "bench", "access", "--quick", "--json", "--peers", "none"]
    done = subprocess.run(
        [*ALONE, *command] if is_alone else command,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=300,
    )
    # Wherever a byte differs from what the file holds, the benchmark ends with an error.
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def cases(report: dict, beginning: str) -> list[dict]:
    found = [case for case in report["cases"] if case["name"].startswith(beginning)]
    assert found, f"no case `{beginning}` among {[case['name'] for case in report['cases']]}"
    return found


def test_all_operations_are_done_and_compared(report):
    random_reads = cases(report, "10000 random reads")[0]
    assert (random_reads["parameters"]["operations"], random_reads["parameters"]["bytes"]) == (10_000, 40_960_000)
    for split in cases(report, "the array as"):
        assert split["parameters"]["bytes"] == 40_960_000
        assert split["ours"] > 0 and split["peers"]["ceiling"] > 0


def test_nothing_crosses_the_network_twice(report, is_alone):
    if not is_alone:
        pytest.skip("no network namespace can be made here: the bytes of others would count")
    small, slab = cases(report, "10000 random reads")[3], cases(report, "one strided hyperslab")[3]
    assert small["name"].endswith("received for each byte read")
    assert 1 <= small["ours"] <= HEADERS
    # Of each row 256 of 4096 bytes are asked for: one byte too many in sixteen would show.
    assert slab["parameters"]["operations"] == 1
    assert 1 <= slab["ours"] <= HEADERS


def test_omitted_cases_are_reported(report):
    case = cases(report, "10000 random reads")[0]
    assert case["meets_goal"] is None and case["why"]
