"""The program and the Python module run with glibc 2.28 (of 2018): they need no newer version of any of its symbols."""

import importlib.util
import os
import platform
import re
import subprocess

import pytest
from conftest import BINARY

OLDEST = (2, 28)


def needed(path: str) -> dict[str, set[str]]:
    """Symbols of glibc that a file needs, by version."""
    names: dict[str, set[str]] = {}
    for line in subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout.splitlines():
        if "*UND*" in line and (found := re.search(r"GLIBC_([0-9.]+)\)? +(\S+)$", line)):
            names.setdefault(found[1], set()).add(found[2])
    return names


def native() -> str | None:
    """The compiled module of the Python package, if that is installed."""
    spec = importlib.util.find_spec("corridor")
    folder = os.path.dirname(spec.origin) if spec and spec.origin else ""
    found = [name for name in os.listdir(folder or ".") if name.startswith("_native") and name.endswith(".so")]
    return os.path.join(folder, found[0]) if folder and found else None


@pytest.mark.skipif(platform.machine() != "x86_64", reason="older versions of names are asked for on x86-64 only")
@pytest.mark.parametrize("which", ["program", "module"])
def test_no_newer_glibc_is_needed(which):
    path = BINARY if which == "program" else native()
    if path is None:
        pytest.skip("the Python package is not installed")
    versions = needed(path)
    assert versions, "it is linked with glibc"
    newer = {v: sorted(names) for v, names in versions.items() if tuple(map(int, v.split(".")[:2])) > OLDEST}
    assert not newer, newer
