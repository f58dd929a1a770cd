"""A 64 GB array through a real server: the first picture comes from few bytes, says what it is, and the viewer keeps to
its memory. Times are measured by `corridor bench first-picture`; what the first picture costs is counted, here as the
kernel counts it for the serving process, and where the file is read in crates/store/tests/first_picture.rs."""

import json
import pathlib
import struct
import urllib.parse

import numpy as np
import pytest
from conftest import Program, corridor, io_counts, report, running
from wire_client import Client

SIDE = 4096
MEMORY = "512MiB"
PEAK_BYTES = 1 << 30
FRAMES = 5
# The coarsest level of 4096^3 voxels has 64^3 samples: one request per row of them, each at most a row of the file.
SAMPLED_ROWS = 64 * 64
# Opening, the description file, and what comes over the network.
OTHER_REQUESTS = 64
# Describing: the same, and the headers.
DESCRIBING_REQUESTS = 64
# Whether data are in memory is looked at three times per 64 small requests, before the disk is told of those.
LOOKS = SAMPLED_ROWS // 64 * 3


def structured_file(folder: pathlib.Path) -> pathlib.Path:
    """64 GB of u8, sparse on disk: a ball in the middle, written on the rows that samples of 16 to 64 voxels meet."""
    path = folder / "big.bin"
    radius, middle = 1500, SIDE // 2
    x = np.arange(SIDE) - middle
    with path.open("wb") as file:
        file.truncate(SIDE**3)
        for factor in (16, 32, 64):
            places = range((factor - 1) // 2, SIDE, factor)
            for z in places:
                for y in places:
                    aside = (z - middle) ** 2 + (y - middle) ** 2
                    if aside > radius**2:
                        continue
                    row = np.clip(255 - np.sqrt(x**2 + aside) * 255 / radius, 0, 255)
                    file.seek((z * SIDE + y) * SIDE)
                    file.write(row.astype("u1").tobytes())
    toml = folder / "big.toml"
    toml.write_text(f'file = "big.bin"\nshape = [{SIDE}, {SIDE}, {SIDE}]\ndtype = "u1"\n')
    return toml


def resident_peak(program: Program) -> int:
    """Most memory that the process ever held, bytes."""
    status = pathlib.Path(f"/proc/{program.process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def read_counts(program: Program) -> tuple[int, int]:
    """Requests and bytes that the process has read so far, from files and sockets, cached by the system or not."""
    counts = io_counts(program.process.pid)
    return counts["syscr"], counts["rchar"]


def join(viewer: Program, seconds: float = 120):
    """Takes part in the session; yields (what, item) as they come."""
    parts = urllib.parse.urlsplit(viewer.url)
    token = urllib.parse.parse_qs(parts.fragment)["token"][0]
    with Client(f"ws://{parts.netloc}/wire", token) as client:
        op = client.request("join", b'{"session": "main", "name": "test", "width": 1024, "height": 800}')
        for item in client.items(op, seconds):
            if item.json["kind"] == "frame":
                client.note(op, {"kind": "shown", "frame": item.json["id"]})
            yield item


def is_picture(item) -> bool:
    """Returns true if the bulk bytes are an image of the size in the item."""
    if item.json["codec"] == "png":
        width, height = struct.unpack(">II", item.bulk[16:24])
        return (width, height) == (item.json["width"], item.json["height"]) and b"IEND" in item.bulk[-12:]
    return item.bulk[:2] == b"\xff\xd8" and item.bulk[-2:] == b"\xff\xd9"


@pytest.fixture(params=["synthetic", "file"])
def location(request, tmp_path) -> str:
    if request.param == "synthetic":
        return f"synthetic:waves?shape={SIDE},{SIDE},{SIDE}&dtype=u8"
    return str(structured_file(tmp_path))


def test_first_picture_of_64_gigabytes(home, location):
    with running(home, "serve", location, "--listen", "127.0.0.1:0", "--json") as server:
        with running(home, "view", server.url, "--listen", "127.0.0.1:0", "--memory", MEMORY, "--json") as viewer:
            frames = []
            for item in join(viewer):
                if item.json["kind"] != "frame":
                    continue
                frames.append(item)
                assert is_picture(item)
                # Go on until all or much has been loaded behind the first picture: the limits must hold then too.
                if len(frames) >= FRAMES or item.json["truth"]["exact"]:
                    break
            first = next(f.json["truth"] for f in frames if f.json["truth"]["blocks_present"] > 0)
            last = frames[-1].json["truth"]
            assert first["origin"] == "sampled", "a quick look is labeled as one"
            assert last["level_wanted"] > 0
            assert last["limit"] == "memory"
            assert "imited by memory" in last["text"]
            peak = resident_peak(viewer)
            assert peak < PEAK_BYTES, f"expected less than {PEAK_BYTES} bytes of memory, found {peak}"
            report(f"64 GB: {location.split('/')[-1]}: first picture at level {first['level_shown']}; "
                   f"then level {last['level_shown']} of {last['level_wanted']} wanted; "
                   f"viewer's peak {peak >> 20} MiB of {MEMORY} for blocks")


def test_a_first_picture_costs_the_server_one_request_per_row_of_samples(home, tmp_path):
    location = str(structured_file(tmp_path))
    with running(home, "serve", location, "--listen", "127.0.0.1:0", "--json") as server:
        # Libraries are loaded and the system's facts are read before a server says where it listens.
        started = read_counts(server)
        info = corridor(home, "info", server.url, "--json")
        levels = json.loads(info.stdout)["arrays"][0]["levels"]
        coarsest = max(n for n, level in enumerate(levels) if level["origin"] == "sampled")
        assert levels[coarsest]["shape"] == [64, 64, 64]
        before = read_counts(server)
        described = before[0] - started[0]
        assert described <= DESCRIBING_REQUESTS, f"describing reads headers only, found {described} requests"
        picture = corridor(
            home, "render", server.url, "--level", str(coarsest), "-o", str(tmp_path / "first.png"), "--json"
        )
        assert picture.returncode == 0, picture.stderr
        truth = json.loads(picture.stdout.splitlines()[-1])["truth"]
        assert (truth["state"], truth["blocks_total"]) == ("complete", 1)
        requests, size = (after - start for after, start in zip(read_counts(server), before, strict=True))
        assert SAMPLED_ROWS <= requests <= SAMPLED_ROWS + LOOKS + OTHER_REQUESTS, f"found {requests} requests"
        assert size <= SAMPLED_ROWS * SIDE, f"found {size} bytes"
        report(f"64 GB: a first picture costs the server {requests} requests and {size >> 10} KiB")
