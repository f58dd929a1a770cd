"""Pictures of any size: they equal smaller ones, need bounded memory, may be transparent, and say what they show; by the
command, and by the operations `still` and `film` of a viewing node."""

import io
import json
import os
import pathlib
import struct
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager

import av
import h5py
import numpy as np
import pytest
from conftest import BINARY, corridor, environment, running
from wire_client import Client, WireError

TRANSFER = {"map": "viridis", "range": [0, 1], "opacity": [[0.5, 0.0], [0.55, 0.3], [1.0, 0.6]]}
VIEW = json.dumps({"transfer": TRANSFER, "background": [255, 255, 255]})


@pytest.fixture(scope="module")
def ball(tmp_path_factory) -> pathlib.Path:
    """A soft ball at two times, of which the second is smaller."""
    path = tmp_path_factory.mktemp("large") / "ball.h5"
    z, y, x = np.indices((40, 40, 40)) - 19.5
    distance = np.sqrt(x * x + y * y + z * z)
    steps = [np.clip(1.2 - distance / radius, 0, 1) for radius in (24, 14)]
    with h5py.File(path, "w") as file:
        file["ball"] = np.array(steps, np.float32)
    return path


def drawn(home, data, output: pathlib.Path, *options: str, view: str | None = VIEW) -> dict:
    view_options = [] if view is None else ["--view", view]
    arguments = ["render", str(data), "-o", str(output), "--json", "--device", "cpu", *view_options, *options]
    done = corridor(home, *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def pixels(picture: pathlib.Path | io.BytesIO) -> np.ndarray:
    """Reads a picture as sRGB, `[row, column, color]`, with its opacity if the file has one."""
    with av.open(str(picture) if isinstance(picture, pathlib.Path) else picture) as opened:
        frame = next(opened.decode(video=0))
        return frame.to_ndarray(format="rgba" if "a" in frame.format.name else "rgb24").astype(int)


def chunks(path: pathlib.Path) -> Iterator[tuple[bytes, bytes]]:
    """Chunks of a PNG file: kind and content."""
    data, at = path.read_bytes(), 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        yield kind, data[at + 8 : at + 8 + size]
        at += 12 + size


def size_of(path: pathlib.Path) -> tuple[int, int]:
    return struct.unpack(">II", next(chunks(path))[1][:8])


def texts(path: pathlib.Path) -> dict[str, str]:
    """Texts of a PNG file, by keyword."""
    found = {}
    for kind, body in chunks(path):
        if kind == b"iTXt":
            keyword, rest = body.split(b"\0", 1)
            assert rest[:2] == b"\0\0", "not compressed"
            found[keyword.decode("latin-1")] = rest[2:].split(b"\0", 2)[2].decode()
    return found


def test_a_large_picture_equals_a_small_one(home, ball, tmp_path):
    """Averaged to a tenth, a picture of 5000 x 3000 pixels is that of 500 x 300, but for what is smaller than a pixel."""
    drawn(home, ball, tmp_path / "large.png", "--size", "5000x3000")
    drawn(home, ball, tmp_path / "small.png", "--size", "500x300")
    large, small = pixels(tmp_path / "large.png"), pixels(tmp_path / "small.png")
    assert large.shape == (3000, 5000, 3)
    mean = large.reshape(300, 10, 500, 10, 3).mean(axis=(1, 3))
    assert np.abs(mean - small).mean() < 1
    assert np.abs(mean - small).max() < 24
    assert (small < 250).any(axis=2).mean() > 0.05, "something is drawn"


def test_rows_and_columns_of_odd_sizes_are_complete(home, ball, tmp_path):
    for size, shape in [("3001x1999", (1999, 3001, 3)), ("16384x300", (300, 16_384, 3)), ("301x16384", (16_384, 301, 3))]:
        drawn(home, ball, tmp_path / "odd.png", "--size", size, "--annotate")
        assert pixels(tmp_path / "odd.png").shape == shape


def test_a_transparent_background_has_no_opacity_where_nothing_is(home, ball, tmp_path):
    for size in ("320x240", "3000x2000"):
        drawn(home, ball, tmp_path / "clear.png", "--size", size, "--background", "transparent")
        drawn(home, ball, tmp_path / "white.png", "--size", size, "--background", "white")
        clear, white = pixels(tmp_path / "clear.png"), pixels(tmp_path / "white.png")
        assert clear.shape[2] == 4
        alpha = clear[:, :, 3]
        assert (alpha[:20] == 0).all() and (alpha[-20:] == 0).all() and (alpha[:, :20] == 0).all()
        assert alpha[alpha.shape[0] // 2, alpha.shape[1] // 2] > 200
        # Colors are not premultiplied: over white they give the other picture, within rounding of both.
        over = clear[:, :, :3] * (alpha / 255)[:, :, None] + 255 * (1 - alpha / 255)[:, :, None]
        assert np.abs(over - white).max() <= 2
    done = corridor(home, "render", str(ball), "-o", str(tmp_path / "x.mp4"), "--background", "transparent", "--time", ":")
    assert done.returncode == 2 and "background" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("name", "color"),
    [("white", (255, 255, 255)), ("black", (0, 0, 0)), ("dark", (13, 14, 18)), ("#102030", (16, 32, 48))],
)
def test_backgrounds_have_names_and_numbers(home, ball, tmp_path, name, color):
    drawn(home, ball, tmp_path / "x.png", "--size", "64x48", "--background", name)
    assert tuple(pixels(tmp_path / "x.png")[0, 0]) == color
    done = corridor(home, "render", str(ball), "-o", str(tmp_path / "x.png"), "--background", "pinkish")
    assert done.returncode == 2 and "`white`" in done.stderr, done.stderr


@pytest.mark.parametrize("size", ["400x300", "2600x2000"])
def test_a_picture_says_what_it_shows(home, ball, tmp_path, size):
    result = drawn(home, ball, tmp_path / "x.png", "--size", size)
    said = texts(tmp_path / "x.png")
    assert said["Comment"] == result["truth"]["text"]
    assert json.loads(said["Corridor view"])["transfer"] == result["view"]["transfer"]
    assert json.loads(said["Corridor fidelity"])[0]["level_shown"] == 0


def test_a_level_that_does_not_fit_the_memory_is_named(home, tmp_path):
    data = "synthetic:waves?shape=700,700,700&dtype=f32"
    result = drawn(home, data, tmp_path / "x.png", "--size", "2600x2000", "--memory", "64MiB", view=None)
    assert result["truth"]["limit"] == "memory" and result["truth"]["level_shown"] > 0
    assert "memory" in result["truth"]["text"]
    assert result["truth"]["text"] == texts(tmp_path / "x.png")["Comment"]
    assert size_of(tmp_path / "x.png") == (2600, 2000)


# The largest memory of a program, KiB. A process of its own, as a program begins with the memory of the one that starts it.
PEAK_OF = """
import os, subprocess, sys
_, status, usage = os.wait4(subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL).pid, 0)
print(usage.ru_maxrss)
sys.exit(status != 0)
"""


def test_the_largest_picture_needs_little_memory(home, tmp_path):
    """As RGBA in floats it would take 4 GiB, as bytes 768 MiB."""
    data = "synthetic:linear?shape=16,16,16&dtype=u8"
    command = [BINARY, "render", data, "-o", str(tmp_path / "x.png"), "--size", "16384x16384", "--device", "cpu"]
    measured = [sys.executable, "-c", PEAK_OF, *command, "--memory", "128MiB"]
    done = subprocess.run(measured, env=environment(home), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 500 * 1024, f"{done.stdout} KiB"
    assert size_of(tmp_path / "x.png") == (16_384, 16_384)


def test_what_cannot_be_drawn_is_said_before(home, ball, tmp_path):
    for output, size, says in [
        ("x.png", "16385x10", "16384 pixels a side"),
        ("x.exr", "16384x16384", "PNG"),
        ("x-%d.png", "16384x16384", "PNG"),
    ]:
        several = ["--time", ":"] if "%" in output else []
        done = corridor(home, "render", str(ball), "-o", str(tmp_path / output), "--size", size, *several)
        assert done.returncode == 2 and says in done.stderr, (output, done.stderr)


def test_a_journey_through_bookmarks_changes_the_time(home, ball, tmp_path):
    camera = {"eye": [20, -90, 20], "target": [20, 20, 20], "up": [0, 0, 1], "projection": {"perspective": {"fov_y_rad": 0.6}}}
    stops = [{"v": 1, "camera": camera, "time": time} for time in (0, 1)]
    (tmp_path / "bookmarks.json").write_text(json.dumps(stops))
    journey = ["--journey", str(tmp_path / "bookmarks.json"), "--pictures", "2", "--size", "64x48"]
    drawn(home, ball, tmp_path / "x-%d.png", *journey)
    shown = [(pixels(tmp_path / f"x-{number}.png") < 250).any(axis=2).sum() for number in range(2)]
    assert shown[1] < 0.6 * shown[0], "the second ball is smaller"
    drawn(home, ball, tmp_path / "y-%d.png", *journey, "--time", "0")
    assert np.array_equal(pixels(tmp_path / "y-0.png"), pixels(tmp_path / "y-1.png"))


def test_a_film_may_be_webm(home, ball, tmp_path):
    result = drawn(home, ball, tmp_path / "x.webm", "--time", ":", "--fps", "10", "--size", "128x96")
    assert result["pictures"] == 2
    with av.open(str(tmp_path / "x.webm")) as film:
        video = film.streams.video[0]
        assert "webm" in film.format.name and video.codec_context.name in ("libdav1d", "av1")
        frames = [frame.to_ndarray(format="rgb24").astype(int) for frame in film.decode(video=0)]
    drawn(home, ball, tmp_path / "x-%d.png", "--time", ":", "--size", "128x96")
    assert len(frames) == 2
    for number, frame in enumerate(frames):
        assert np.abs(frame - pixels(tmp_path / f"x-{number}.png")).mean() < 3


@contextmanager
def viewing(home, path) -> Iterator[Client]:
    with running(home, "view", str(path), "--listen", "127.0.0.1:0", "--device", "cpu", "--json") as program:
        parts = urllib.parse.urlsplit(program.url)
        token = dict(urllib.parse.parse_qsl(parts.fragment))["token"]
        with Client(f"ws://{parts.netloc}/wire", token) as client:
            yield client


def called(client: Client, name: str, **parameters: object) -> tuple[bytes, dict, list[dict]]:
    """Calls an operation: the file, the result, and all progress."""
    file, result, progress = bytearray(), {}, []
    for item in client.items(client.request(name, json.dumps(parameters).encode())):
        if "piece" in item.json:
            assert item.json["piece"]["offset"] == len(file)
            file += item.bulk
        progress += [item.json["progress"]] if "progress" in item.json else []
        result = item.json.get("result", result)
    assert result["bytes"] == len(file)
    return bytes(file), result, progress


def test_a_node_draws_the_picture_that_the_command_draws(home, ball, tmp_path):
    view = json.loads(VIEW) | {"camera": None, "time": 1}
    with viewing(home, ball) as client:
        for size, options in [((2500, 1700), {}), ((333, 251), {"annotations": True}), ((333, 251), {"transparent": True})]:
            width, height = size
            file, result, progress = called(client, "still", view=view, width=width, height=height, **options)
            arguments = ["--annotate"] if "annotations" in options else []
            arguments += ["--background", "transparent"] if "transparent" in options else []
            drawn(home, ball, tmp_path / "x.png", "--size", f"{width}x{height}", "--view", json.dumps(result["views"][0]),
                  *arguments, view=None)
            assert np.array_equal(pixels(io.BytesIO(file)), pixels(tmp_path / "x.png")), options
            assert result["text"] == result["truth"][0]["text"]
            assert {"blocks", "rows"} >= {step["what"] for step in progress}


def test_a_node_puts_pictures_side_by_side(home, ball):
    view = json.loads(VIEW) | {"camera": None}
    size = {"width": 150, "height": 170}
    with viewing(home, ball) as client:
        alone = [called(client, "still", view=view | {"time": time}, **size)[0] for time in (0, 1)]
        panes = [{"left": 150 * time, "top": 7 * time, "view": {"time": time}, **size} for time in (0, 1)]
        file, result, _ = called(client, "still", view=view, width=310, height=177, panes=panes)
        both = pixels(io.BytesIO(file))
        for time, one in enumerate(alone):
            part = both[7 * time : 7 * time + 170, 150 * time : 150 * time + 150]
            assert np.array_equal(part, pixels(io.BytesIO(one)))
        assert (both[:, 300:] == 255).all() and len(result["views"]) == 2
        overlapping = [pane | {"left": 0} for pane in panes]
        with pytest.raises(WireError, match="overlap"):
            called(client, "still", view=view, width=310, height=177, panes=overlapping)


@pytest.mark.parametrize("form", ["mp4", "webm"])
def test_a_node_makes_films(home, ball, form):
    view = json.loads(VIEW) | {"camera": None}
    with viewing(home, ball) as client:
        for of, pictures in [({"time": {}}, None), ({"turn": {"degrees": 90}}, 5)]:
            more = {} if pictures is None else {"pictures": pictures}
            file, result, progress = called(
                client, "film", view=view, width=128, height=96, of=of, fps=10, format=form, **more
            )
            with av.open(io.BytesIO(file)) as film:
                count = sum(1 for _ in film.decode(video=0))
            assert count == result["pictures"] == (pictures or 2)
            assert progress[-1]["what"] == "pictures"
        with pytest.raises(WireError, match="even sizes"):
            called(client, "film", view=view, width=127, height=96, of={"turn": {"degrees": 90}})


def test_a_cancelled_picture_frees_its_turn(home, ball):
    view = json.loads(VIEW) | {"camera": None}
    with viewing(home, ball) as client:
        op = client.request("still", json.dumps({"view": view, "width": 16384, "height": 16384}).encode())
        client.cancel(op)
        with pytest.raises(WireError):
            list(client.items(op))
        file, _, _ = called(client, "still", view=view, width=64, height=48)
        assert pixels(io.BytesIO(file)).shape == (48, 64, 3)
