"""Pictures by several ranks, in one process and by MPI: those of one rank, in files that people open."""

import pathlib
import shutil
import subprocess

import numpy as np
import pytest
from conftest import BINARY, SAMPLE, corridor, environment
from test_modes import pixels

SIZE = "200x160"
VIEWS = [
    (),
    ("--tf", "viridis", "--camera", "top"),
    ("--iso", "500", "--iso", "900:#30c0a0:0.5", "--tf", "gray", "--shading", "on"),
    ("--mode", "maximum", "--tf", "gray", "--camera", "left"),
    ("--slice", "x=50%", "--slice", "z=30%", "--camera", "front"),
]


def drawn(home: pathlib.Path, out: pathlib.Path, *arguments: str) -> np.ndarray:
    done = corridor(home, "render", SAMPLE, "--size", SIZE, "-o", str(out), "--device", "cpu", *arguments)
    assert done.returncode == 0, done.stderr
    return pixels(out).astype(int)


def has_mpi() -> bool:
    """Whether the program under test was built with MPI: then it is linked to its library."""
    linked = subprocess.run(["ldd", BINARY], capture_output=True, text=True, check=False).stdout
    return shutil.which("mpirun") is not None and "libmpi" in linked


@pytest.mark.parametrize("view", VIEWS, ids=["plain", "top", "surfaces", "maximum", "slices"])
def test_several_ranks_draw_the_picture_of_one(tmp_path, view):
    one = drawn(tmp_path, tmp_path / "one.png", *view)
    assert one.max() > 60, "something must be seen"
    for ranks, method in [(2, "auto"), (8, "direct-send"), (8, "binary-swap"), (6, "radix-3")]:
        arguments = ("--ranks", str(ranks), "--compositing", method)
        many = drawn(tmp_path, tmp_path / "many.png", *view, *arguments)
        assert np.abs(one - many).max() <= 1, (ranks, method)


def test_what_ranks_cannot_do_is_said(tmp_path):
    for arguments, code, says in [
        (("--ranks", "3", "--compositing", "binary-swap"), 2, "power of two"),
        (("--ranks", "2", "--compositing", "shuffle"), 2, "radix"),
        (("--ranks", "64", "--memory", "128MiB"), 2, "each needs"),
        (("--ranks", "2", "--device", "gpu"), 1, "--device cpu"),
    ]:
        done = corridor(tmp_path, "render", SAMPLE, "-o", str(tmp_path / "x.png"), *arguments)
        assert done.returncode == code, done.stderr
        assert says in done.stderr


@pytest.mark.skipif(not has_mpi(), reason="the program was built without MPI, or there is no mpirun")
def test_processes_draw_the_picture_of_one(tmp_path):
    view = VIEWS[2]
    one = drawn(tmp_path, tmp_path / "one.png", *view)
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "8", BINARY, "render", SAMPLE]
    arguments = ["--size", SIZE, "-o", str(tmp_path / "mpi.png"), *view]
    done = subprocess.run(
        [*command, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(tmp_path) | {"RAYON_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert np.abs(one - pixels(tmp_path / "mpi.png").astype(int)).max() <= 1
    # One that fails ends all, with its own exit code and one sentence of each.
    done = subprocess.run(
        [*command, "--array", "nothing", *arguments], capture_output=True, text=True, timeout=120,
        env=environment(tmp_path),
    )
    assert done.returncode == 3 and "nothing" in done.stderr, done.stderr
