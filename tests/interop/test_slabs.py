"""Slabs in files: written beside pictures, and drawn from other cameras without the data."""

import json
import math
import pathlib
import struct
import subprocess
import sys
import zlib

import av
import numpy as np
import pytest
from conftest import BINARY, corridor, environment

SIZE = (160, 120)
DATA = "synthetic:waves?shape=48,48,48&dtype=u8"
TARGET = [23.5, 23.5, 23.5]


def camera(degrees: float) -> dict:
    """About the volume's middle, from the front."""
    turn = math.radians(degrees)
    eye = [TARGET[0] + 110 * math.sin(turn), TARGET[1] - 110 * math.cos(turn), TARGET[2] + 20]
    return {"eye": eye, "target": TARGET, "up": [0, 0, 1], "projection": {"perspective": {"fov_y_rad": 0.5}}}


def drawn(home, location, output, *arguments) -> dict:
    size = "x".join(map(str, SIZE))
    done = corridor(home, "render", str(location), "--size", size, "-o", str(output), "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def pixels(path: pathlib.Path) -> np.ndarray:
    with av.open(str(path)) as picture:
        return next(picture.decode(video=0)).to_ndarray(format="rgb24").astype(float)


def psnr(one: pathlib.Path, other: pathlib.Path) -> float:
    square = np.mean((pixels(one) - pixels(other)) ** 2)
    return 10 * math.log10(255**2 / max(square, 1e-9))


@pytest.mark.parametrize("cut", ["planes", "axis"])
def test_slabs_show_the_view_of_a_nearby_camera(home, tmp_path, cut):
    here, aside = json.dumps(camera(10)), json.dumps(camera(16))
    slabs = tmp_path / "x.slabs"
    more = ["--slabs", str(slabs), "--slab-cut", cut, "--slab-texel", "1"]
    # The light stands at the camera: what moves with it would be compared, too.
    flat = ["--shading", "off"]
    result = drawn(home, DATA, tmp_path / "here.png", "--camera", here, *more, *flat)
    assert result["slabs"] == str(slabs)
    # The range of values that was chosen for it holds for the other one too.
    drawn(home, DATA, tmp_path / "aside.png", "--camera", aside, *flat)
    again = drawn(home, slabs, tmp_path / "again.png", "--camera", here)
    assert (again["pictures"], again["slabs"]) == (1, 32)
    drawn(home, slabs, tmp_path / "seen.png", "--camera", aside)
    assert psnr(tmp_path / "again.png", tmp_path / "here.png") > 35
    moved, seen = psnr(tmp_path / "here.png", tmp_path / "aside.png"), psnr(tmp_path / "seen.png", tmp_path / "aside.png")
    assert seen > 30 and seen > moved + 4, (moved, seen)


def test_a_film_of_slabs_turns_without_the_data(home, tmp_path):
    drawn(home, DATA, tmp_path / "x.png", "--camera", "front", "--slabs", str(tmp_path / "x.slabs"))
    drawn(home, tmp_path / "x.slabs", tmp_path / "same.png")
    assert psnr(tmp_path / "same.png", tmp_path / "x.png") > 35, "from where the picture was taken"
    way = ["--journey", "turn:20", "--pictures", "6"]
    result = drawn(home, tmp_path / "x.slabs", tmp_path / "x.mp4", *way)
    assert result["pictures"] == 6
    with av.open(str(tmp_path / "x.mp4")) as film:
        frames = [frame.to_ndarray(format="rgb24").astype(float) for frame in film.decode(film.streams.video[0])]
    assert len(frames) == 6 and np.abs(frames[0] - frames[-1]).mean() > 0.4


def test_several_pictures_have_slabs_each(home, tmp_path):
    way = ["--journey", "turn:20", "--pictures", "2", "--slab-count", "8"]
    drawn(home, DATA, tmp_path / "x-%d.png", *way, "--slabs", str(tmp_path / "x-%d.slabs"))
    assert [(tmp_path / f"x-{n}.slabs").read_bytes()[:4] for n in range(2)] == [b"CSLB"] * 2


def refused(home, *arguments) -> str:
    done = corridor(home, "render", *map(str, arguments))
    assert done.returncode == 2, (done.returncode, done.stderr)
    return done.stderr


def test_unsupported_slab_options_are_refused(home, tmp_path):
    picture = tmp_path / "x.png"
    said = refused(home, DATA, "-o", picture, "--slabs", tmp_path / "x.bin")
    assert "ends in .slabs" in said
    said = refused(home, DATA, "-o", tmp_path / "x-%d.png", "--journey", "turn", "--slabs", tmp_path / "x.slabs")
    assert "x-%04d.slabs" in said
    said = refused(home, DATA, "-o", picture, "--slab-count", "8")
    assert "--slabs" in said
    drawn(home, DATA, picture, "--slabs", str(tmp_path / "x.slabs"))
    said = refused(home, tmp_path / "x.slabs", "-o", picture, "--iso", "0.5")
    assert "only options of the camera" in said and "--iso" in said
    said = refused(home, tmp_path / "x.slabs", "-o", picture, "--camera", "front")
    assert "names of sides need the data" in said


def test_a_file_that_holds_no_slabs_is_refused(home, tmp_path):
    picture = tmp_path / "x.png"
    drawn(home, DATA, picture, "--slabs", str(tmp_path / "x.slabs"), "--slab-count", "4")
    whole = (tmp_path / "x.slabs").read_bytes()
    for content in [b"", b"CSLB", whole[:-7], b"PNG!" + whole[4:], whole[:8] + b"\xff" * 12 + whole[20:]]:
        (tmp_path / "bad.slabs").write_bytes(content)
        done = corridor(home, "render", str(tmp_path / "bad.slabs"), "-o", str(picture))
        assert done.returncode != 0 and "slabs" in done.stderr and "panicked" not in done.stderr, done.stderr


def noise(path: pathlib.Path, side: int, count: int) -> pathlib.Path:
    """Writes slabs in the lossless form with random texels, which deflate cannot compress: the file is as large as they are."""
    texels = np.random.default_rng(7).integers(0, 256, side * side * 4, np.uint8).tobytes()
    deflate = zlib.compressobj(0, wbits=-15)
    part = deflate.compress(texels) + deflate.flush()
    place = [0, -9, 0, 0, 0, 0, 0, 0, 1]
    head = b"CSLB" + bytes([1, 0, 0, 1]) + struct.pack("<3I", count, side, side)
    head += struct.pack(f"<{count + 15}d", *place, 2, 0, 0, 1, 0, *(n / count for n in range(count + 1)))
    with open(path, "wb") as file:
        file.write(head + struct.pack("<6I", 0, 0, side, side, len(part), 0) * count)
        for _ in range(count):
            file.write(part)
    return path


def peak_bytes(home, *arguments) -> int:
    """The most memory that a process held. A small process starts it: what whoever starts one holds counts as the other's."""
    start = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
    tell = "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    command = [sys.executable, "-c", start + tell, BINARY, *map(str, arguments)]
    done = subprocess.run(command, env=environment(home), cwd=home, capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024


def test_slabs_take_the_memory_of_their_texels_while_they_are_read(home, tmp_path):
    def peak(path):
        return peak_bytes(home, "render", path, "--size", "64x64", "-o", tmp_path / "x.png")

    side, count = 1024, 24
    least = peak(noise(tmp_path / "small.slabs", 8, count))
    most = peak(noise(tmp_path / "large.slabs", side, count))
    texels = side * side * 4 * count
    assert texels < most - least < 1.3 * texels, (least, most)
