"""Pictures by several ranks, in one process and by MPI: equal those of one rank, in the files of the usual formats."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import urllib.parse

import av
import numpy as np
import OpenEXR
import pytest
from conftest import BINARY, SAMPLE, Program, corridor, environment, running
from pictures import pixels
from wire_client import Client

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
    """Returns true if the program under test is linked to MPI."""
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


SEVERAL = [
    ("--annotate",),
    ("--annotate", "--tf", "gray", "--iso", "600:#30c0a0:0.5", "--camera", "left"),
    ("--stereo", "--annotate"),
    ("--journey", "turn", "--pictures", "5", "--annotate"),
]


def outputs(folder: pathlib.Path) -> list[np.ndarray]:
    return [pixels(path).astype(int) for path in sorted(folder.glob("*.png"))]


def assert_same(one: pathlib.Path, many: pathlib.Path, count: int) -> None:
    """Asserts that two folders have the same pictures."""
    found = outputs(many)
    assert len(found) == len(outputs(one)) == count
    for expected, picture in zip(outputs(one), found, strict=True):
        assert expected.max() > 60, "something must be seen"
        assert np.abs(expected - picture).max() <= 1


@pytest.mark.parametrize("view", SEVERAL, ids=["notes", "surfaces", "stereo", "journey"])
def test_several_ranks_write_the_same_files_as_one(tmp_path, view):
    plain = [option for option in view if option != "--annotate"]
    count = 5 if "--journey" in view else 1
    for name, arguments in [("one", view), ("many", (*view, "--ranks", "4")), ("plain", plain)]:
        (tmp_path / name).mkdir()
        done = corridor(
            tmp_path, "render", SAMPLE, "--size", SIZE, "-o", str(tmp_path / name / "x-%d.png"), "--device", "cpu", *arguments
        )
        assert done.returncode == 0, done.stderr
    assert_same(tmp_path / "one", tmp_path / "many", count)
    differences = [np.abs(a - b).max() for a, b in zip(outputs(tmp_path / "many"), outputs(tmp_path / "plain"), strict=True)]
    assert min(differences) > 60, "notes are in the pictures"


def frames(path: pathlib.Path) -> list[np.ndarray]:
    with av.open(str(path)) as film:
        return [frame.to_ndarray(format="rgb24").astype(int) for frame in film.decode(video=0)]


def test_film_by_several_ranks_equals_that_of_one(home, series, tmp_path):
    for folder, arguments in [("one", ()), ("many", ("--ranks", "3"))]:
        (tmp_path / folder).mkdir()
        for name, *codec in [("ball-%d.png",), ("h264.mp4",), ("av1.mp4", "--codec", "av1")]:
            options = (*codec, "--array", "rho", "--time", ":", "--size", "96x64", "--device", "cpu", *arguments)
            done = corridor(home, "render", str(series), "-o", str(tmp_path / folder / name), "--json", *options)
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout.splitlines()[-1])["pictures"] == 3
    assert_same(tmp_path / "one", tmp_path / "many", 3)
    pictures = outputs(tmp_path / "many")
    assert np.abs(pictures[0] - pictures[2]).mean() > 3, "the ball grows"
    for name in ("h264.mp4", "av1.mp4"):
        film = frames(tmp_path / "many" / name)
        assert len(film) == 3
        for picture, frame in zip(pictures, film, strict=True):
            assert np.abs(picture - frame).mean() < 3, name


def test_an_exr_picture_by_several_ranks_keeps_its_opacity(tmp_path):
    found = []
    for arguments in [(), ("--ranks", "3")]:
        out = tmp_path / "x.exr"
        done = corridor(tmp_path, "render", SAMPLE, "--size", SIZE, "-o", str(out), "--device", "cpu", *arguments)
        assert done.returncode == 0, done.stderr
        channels = OpenEXR.File(str(out)).channels()
        rgba = channels["RGBA"].pixels if "RGBA" in channels else np.stack([channels[c].pixels for c in "RGBA"], axis=-1)
        found.append(rgba.copy())
    one, many = found
    assert ((one[..., 3] > 0.1) & (one[..., 3] < 0.9)).any() and np.abs(one - many).max() < 1 / 255


def test_unsupported_options_with_ranks_are_refused(tmp_path):
    for arguments, code, says in [
        (("--ranks", "2", "--slabs", str(tmp_path / "x.slabs")), 1, "cannot cast slabs"),
        (("--ranks", "3", "--compositing", "binary-swap"), 2, "power of two"),
        (("--ranks", "2", "--compositing", "shuffle"), 2, "radix"),
        (("--ranks", "64", "--memory", "128MiB"), 2, "each needs"),
        (("--ranks", "2", "--device", "gpu"), 1, "--device cpu"),
    ]:
        done = corridor(tmp_path, "render", SAMPLE, "-o", str(tmp_path / "x.png"), *arguments)
        assert done.returncode == code, done.stderr
        assert says in done.stderr


needs_mpi = pytest.mark.skipif(not has_mpi(), reason="the program was built without MPI, or there is no mpirun")


def mpirun(count: int) -> list[str]:
    """Returns the command that starts MPI processes with one thread each, also in containers with fewer cores than processes."""
    launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(count)]
    return [*launcher, "-x", "RAYON_NUM_THREADS=1"]


@needs_mpi
def test_mpi_processes_draw_the_picture_of_one(tmp_path):
    view = VIEWS[2]
    one = drawn(tmp_path, tmp_path / "one.png", *view)
    command = [*mpirun(8), BINARY, "render", SAMPLE]
    arguments = ["--size", SIZE, "-o", str(tmp_path / "mpi.png"), *view]
    done = subprocess.run(
        [*command, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    assert np.abs(one - pixels(tmp_path / "mpi.png").astype(int)).max() <= 1


@needs_mpi
def test_processes_make_a_film_and_write_notes_as_one_does(home, series, tmp_path):
    # A `:` by itself would be one of mpirun's words.
    options = ("--array", "rho", "--time", "0:3", "--size", "128x96", "--annotate", "--json")
    for folder, launcher in [("one", []), ("many", mpirun(4))]:
        (tmp_path / folder).mkdir()
        for name in ("x-%d.png", "x.mp4"):
            command = [*launcher, BINARY, "render", str(series), "-o", str(tmp_path / folder / name), *options]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment(home))
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout.splitlines()[-1])["pictures"] == 3
    assert_same(tmp_path / "one", tmp_path / "many", 3)
    film = frames(tmp_path / "many" / "x.mp4")
    assert len(film) == 3
    for picture, frame in zip(outputs(tmp_path / "many"), film, strict=True):
        assert np.abs(picture - frame).mean() < 4


@needs_mpi
def test_failure_of_one_process_ends_all_with_one_message(tmp_path):
    (tmp_path / "link.nhdr").symlink_to(tmp_path / "gone.nhdr")
    for location, arguments, code, says in [
        (SAMPLE, ("--array", "nothing"), 3, "nothing"),
        (tmp_path / "link.nhdr", (), 3, "link.nhdr"),
        (SAMPLE, ("--compositing", "shuffle"), 2, "radix"),
    ]:
        command = [*mpirun(3), BINARY, "render", str(location), "-o", str(tmp_path / "x.png"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(tmp_path))
        assert done.returncode == code, done.stderr
        assert done.stderr.count("error:") == 1 and says in done.stderr, done.stderr


@needs_mpi
def test_error_of_one_process_is_reported_by_the_first(tmp_path):
    """Two of three find no such file."""
    home = tmp_path / "home"
    script = 'test "$OMPI_COMM_WORLD_RANK" = 0 || set -- "$1" "$2" "$3.gone" "${@:4}"; exec "$@"'
    shutil.copy(SAMPLE, tmp_path)
    shutil.copy(SAMPLE.with_suffix(".raw"), tmp_path)
    command = [*mpirun(3), "bash", "-c", script, "-", BINARY, "render", str(tmp_path / SAMPLE.name), "-o", str(tmp_path / "x.png")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(home))
    assert done.returncode != 0 and done.stderr.count("error:") == 1, done.stderr
    assert "rank 1" in done.stderr and "gone" in done.stderr, done.stderr
    assert not (tmp_path / "x.png").exists()


class Viewer:
    """Somebody who looks, by the session's protocol."""

    def __init__(self, client: Client, size: str):
        width, height = map(int, size.split("x"))
        join = {"session": "main", "name": "test", "width": width, "height": height}
        self.client, self.seq, self.view, self.codecs = client, 1 << 20, {}, []
        self.op = client.request("join", json.dumps(join).encode())
        self.coming = client.items(self.op, 120)

    def exact(self) -> bytes:
        """The exact picture of the newest view."""
        for item in self.coming:
            kind = item.json["kind"]
            if kind in ("joined", "view"):
                self.view = self.view | item.json["view"]
            if kind == "message":
                raise AssertionError(item.json["text"])
            if kind == "frame":
                self.client.note(self.op, {"kind": "shown", "frame": item.json["id"]})
                self.codecs.append(item.json["codec"])
                if item.json["truth"]["exact"] and (not self.view_is_ours or item.json["seq"] >= self.seq):
                    return item.bulk
        raise AssertionError("the session ended")

    view_is_ours = False

    def change(self, moving: bool, **fields) -> None:
        self.seq += 1
        self.view_is_ours = True
        self.view = self.view | fields
        self.client.note(self.op, {"kind": "view", "seq": self.seq, "view": fields, "moving": moving})

    def turn(self, degrees: float, moving: bool) -> None:
        """Looks from another side, at the same distance."""
        camera = self.view["camera"]
        away = np.array(camera["eye"]) - np.array(camera["target"])
        angle = np.radians(degrees)
        turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
        eye = np.array(camera["target"]) + turn @ away
        self.change(moving, camera=camera | {"eye": eye.tolist()})


def looking(program: Program) -> Client:
    parts = urllib.parse.urlsplit(program.url)
    return Client(f"ws://{parts.netloc}/wire", urllib.parse.parse_qs(parts.fragment)["token"][0])


def ranks_of(program: Program) -> dict[int, int]:
    """Process of each rank that a launcher has started."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            variables = (path / "environ").read_bytes().split(b"\0")
            parent = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        rank = [v.split(b"=")[1] for v in variables if v.startswith(b"OMPI_COMM_WORLD_RANK=")]
        if rank and parent == program.process.pid:
            found[int(rank[0])] = int(path.name)
    return found


def all_end(ranks: dict[int, int]) -> bool:
    """Returns true if all processes end soon; zombies count as ended."""

    def is_there(pid: int) -> bool:
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    for _ in range(300):
        if not any(map(is_there, ranks.values())):
            return True
        time.sleep(0.1)
    return False


VIEW = ("view", SAMPLE, "--listen", "127.0.0.1:0", "--json")


@needs_mpi
@pytest.mark.parametrize("count", [2, 4])
def test_processes_render_a_rotating_view_as_one_does(home, tmp_path, count):
    with running(home, *VIEW, launcher=mpirun(count)) as program, looking(program) as client:
        ada = Viewer(client, SIZE)
        ada.exact()
        for step in range(20):
            # Some views rest, so that a picture in full is under way when the next one comes.
            ada.turn(9, moving=step % 4 != 0)
            time.sleep(0.02 * (step % 3))
        ada.turn(5, moving=False)
        (tmp_path / "many.png").write_bytes(ada.exact())
        many = pixels(tmp_path / "many.png").astype(int)
        assert {"jpeg", "png"} == set(ada.codecs)
        # What the volume is drawn with beside values that are leapt over: a surface, and extreme values.
        views = [{"surfaces": [{"value": 600.0, "color": [200, 90, 60], "opacity": 0.6}]}, {"mode": "maximum"}]
        pictures = [(dict(ada.view), many)]
        for fields in views:
            ada.change(False, **fields)
            (tmp_path / "many.png").write_bytes(ada.exact())
            pictures.append((dict(ada.view), pixels(tmp_path / "many.png").astype(int)))
    for view, many in pictures:
        one = drawn(tmp_path, tmp_path / "one.png", "--view", json.dumps(view))
        assert one.max() > 60, "something must be seen"
        assert np.abs(one - many).max() <= 1


@needs_mpi
def test_death_of_a_process_ends_all(home):
    with pytest.raises(AssertionError, match="exited while the test was running"):
        with running(home, *VIEW, launcher=mpirun(3)) as program:
            ranks = ranks_of(program)
            assert sorted(ranks) == [0, 1, 2]
            os.kill(ranks[2], signal.SIGKILL)
            assert program.process.wait(timeout=60) != 0
    assert all_end(ranks)


@needs_mpi
def test_processes_of_a_viewer_end_together(home):
    with running(home, *VIEW, launcher=mpirun(3)) as program, looking(program) as client:
        Viewer(client, SIZE).exact()
        ranks = ranks_of(program)
        assert sorted(ranks) == [0, 1, 2]
    assert all_end(ranks)


@needs_mpi
def test_processes_of_a_viewer_do_not_draw_on_a_graphics_processor(home):
    done = subprocess.run(
        [*mpirun(2), BINARY, *VIEW, "--device", "gpu"], capture_output=True, text=True, timeout=120, env=environment(home)
    )
    assert done.returncode == 1 and "--device cpu" in done.stderr, done.stderr
