"""Runs the tests of xarray, zarr-python and fsspec against Corridor; see README.md.

    python tests/peers/run.py [xarray] [xarray-served] [zarr] [fsspec] [-- pytest's options]
"""

import fnmatch
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
BUILT = TARGET / "peers"
BINARY = os.environ.get("CORRIDOR_BIN", str(TARGET / "debug/corridor"))
PINS = ROOT / "tools/requirements-test.txt"
# Folder of the package in each source archive.
SOURCES = {"xarray": ".", "zarr": "src", "fsspec": "."}
SUITES = {
    "xarray": ("suite_xarray.py", {}),
    "xarray-served": ("suite_xarray.py", {"CORRIDOR_PEERS_SERVED": "1"}),
    "zarr": ("suite_zarr.py", {}),
    "fsspec": ("suite_fsspec.py", {}),
}


def main() -> int:
    """Runs the suites of the command line; returns 0 if all failures are expected ones with a reason."""
    asked, options = sys.argv[1:], []
    if "--" in asked:
        asked, options = asked[: asked.index("--")], asked[asked.index("--") + 1 :]
    if unknown := set(asked) - set(SUITES):
        raise SystemExit(f"expected some of {list(SUITES)}, found {sorted(unknown)}")
    path = [str(source(name)) for name in SOURCES] + [str(helpers()), str(HERE)]
    with open(HERE / "expected_failures.toml", "rb") as file:
        expected = tomllib.load(file)
    rows: list[list[str]] = []
    surprises: list[str] = []
    idle: list[str] = []
    for name in asked or SUITES:
        outcomes = run(name, path, options)
        mark_what_fails_anyway(name, path, outcomes)
        reasons = expected.get(name.removesuffix("-served"), {})
        rows.append(row(name, outcomes, reasons))
        surprises += surprising(name, outcomes, reasons)
        idle += without_a_failure(name, outcomes, reasons) if not options else []
    table(rows)
    for line in surprises + idle:
        print(line)
    return 1 if surprises else 0


def source(name: str) -> Path:
    """The unpacked source archive of a package, of the version that the tests are pinned to."""
    version = pinned(PINS, name)
    folder = BUILT / f"{name}-{version}"
    if not folder.exists():
        archive = download(f"{name}=={version}")
        with tarfile.open(archive) as tar:
            tar.extractall(BUILT, filter="data")
    return folder / SOURCES[name]


def download(requirement: str) -> Path:
    """The source archive of a package, as it was published."""
    BUILT.mkdir(parents=True, exist_ok=True)
    before = set(BUILT.glob("*.tar.gz"))
    options = ["--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(BUILT)]
    subprocess.run([sys.executable, "-m", "pip", "download", *options, requirement], check=True)
    name, version = requirement.split("==")
    [archive] = set(BUILT.glob("*.tar.gz")) - before or {BUILT / f"{name}-{version}.tar.gz"}
    return archive


def helpers() -> Path:
    """Installs the packages that only these suites need, in a folder of their own."""
    folder, wanted = BUILT / "lib", HERE / "requirements.txt"
    mark = folder / "requirements.txt"
    if not mark.exists() or mark.read_text() != wanted.read_text():
        options = ["--quiet", "--no-deps", "--upgrade", "--target", str(folder), "-r", str(wanted)]
        subprocess.run([sys.executable, "-m", "pip", "install", *options], check=True)
        mark.write_text(wanted.read_text())
    return folder


def pinned(file: Path, name: str) -> str:
    """The version of a package in a list of requirements."""
    found = re.search(rf"^{name}==(\S+)$", file.read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"expected a line `{name}==VERSION` in {file}")
    return found[1]


def run(name: str, path: list[str], options: list[str], more: dict[str, str] | None = None) -> dict[str, Any]:
    """Runs the tests of a suite, all or those in a list of names; returns their outcomes."""
    suite, environment = SUITES[name]
    tests = [] if options and options[0].startswith("@") else [str(HERE / suite)]
    environment = environment | (more or {})
    out = BUILT / f"{name}{'-plain' if more else ''}.json"
    out.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "peers", "-p", "no:cacheprovider", "--tb=short"]
    command += ["-c", str(HERE / "pytest.ini"), "--rootdir", str(HERE), *tests, *options]
    if suite == "suite_xarray.py":
        command += ["-p", "xarray.tests.conftest"]
    env = os.environ | environment | {"PYTHONPATH": os.pathsep.join(path), "CORRIDOR_PEERS_OUT": str(out), "CORRIDOR_BIN": BINARY}
    with open(out.with_suffix(".log"), "w") as log:
        subprocess.run(command, env=env, cwd=HERE, stdout=log, stderr=subprocess.STDOUT)
    if not out.exists():
        raise SystemExit(f"expected outcomes of {name}, found none; see {out.with_suffix('.log')}")
    return json.loads(out.read_text())


def mark_what_fails_anyway(name: str, path: list[str], outcomes: dict[str, Any]) -> None:
    """Runs what failed once more with the engines of xarray alone: what fails then too says nothing of Corridor."""
    failed = [test for test, one in outcomes.items() if one["outcome"] == "failed"]
    if not name.startswith("xarray") or not failed:
        return
    listed = BUILT / f"{name}.failed"
    listed.write_text("\n".join(failed))
    plain = run(name, path, [f"@{listed}"], {"CORRIDOR_PEERS_PLAIN": "1"})
    for test in failed:
        outcomes[test]["fails_anyway"] = plain.get(test, {}).get("outcome") == "failed"


def reason(test: str, reasons: dict[str, str]) -> str | None:
    """Returns the reason for which a test is expected to fail; patterns match names after the file name."""
    name = test.split("::", 1)[-1]
    found = (why for pattern, why in reasons.items() if fnmatch.fnmatchcase(name, pattern))
    return next(found, None)


def row(name: str, outcomes: dict[str, Any], reasons: dict[str, str]) -> list[str]:
    """Row of the report for one suite: counts, and failures that have a reason."""
    count = Counter(one["outcome"] for one in outcomes.values())
    ours = sum(one["outcome"] == "passed" and one["is_ours"] for one in outcomes.values())
    failed = [test for test, one in outcomes.items() if one["outcome"] == "failed"]
    anyway = sum(outcomes[test].get("fails_anyway", False) for test in failed)
    known = sum(reason(test, reasons) is not None for test in failed if not outcomes[test].get("fails_anyway"))
    return [name, *map(str, (count["passed"], ours, count["skipped"], len(failed), anyway, known))]


def surprising(name: str, outcomes: dict[str, Any], reasons: dict[str, str]) -> list[str]:
    """Failures without a reason."""
    lines = []
    for test, one in outcomes.items():
        if one["outcome"] == "failed" and not one.get("fails_anyway") and reason(test, reasons) is None:
            lines.append(f"{name}: {test.split('::', 1)[-1]}: {(one['why'].splitlines() or ['failed'])[0]}")
    return lines


def without_a_failure(name: str, outcomes: dict[str, Any], reasons: dict[str, str]) -> list[str]:
    """Reasons for which nothing fails any more."""
    used = {reason(test, reasons) for test, one in outcomes.items() if one["outcome"] == "failed"}
    if name.endswith("-served"):
        return []
    return [f"{name}: nothing fails any more for the reason: {why}" for why in dict.fromkeys(reasons.values()) if why not in used]


def table(rows: list[list[str]]) -> None:
    """Prints a table of outcomes."""
    head = ["suite", "passed", "through Corridor", "skipped", "failed", "without Corridor too", "for a known reason"]
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    for cells in [head, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
