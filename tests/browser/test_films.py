"""Films in a real browser: size, duration, and the colors of a frame in the middle."""

import json
import os
import pathlib
import subprocess

import pytest
from conftest import ROOT, corridor
from films import SIZE, pixels


@pytest.mark.parametrize("codec", ["av1", "h264"])
def test_a_browser_plays_a_film(home, series, tmp_path, codec):
    # Pictures of the same series, as the colors are chosen for the first of it.
    film, stills = tmp_path / "ball.mp4", tmp_path / "still-%d.png"
    size = "x".join(map(str, SIZE))
    for output, *arguments in [(film, "--fps", "10", "--codec", codec), (stills, "--time", ":")]:
        done = corridor(home, "render", str(series), "--array", "rho", "--size", size, "-o", str(output), *arguments)
        assert done.returncode == 0, done.stderr
    picture = pixels(tmp_path / "still-1.png")
    # In the ball beside its middle, nearer to its edge, and in a corner: squares of 5 x 5.
    places = [(SIZE[0] // 2, SIZE[1] // 2 - 5), (SIZE[0] // 2 + 9, SIZE[1] // 2), (4, 4)]
    colors = [picture[y - 2 : y + 3, x - 2 : x + 3].mean(axis=(0, 1)).tolist() for x, y in places]
    expected = {
        "width": SIZE[0],
        "height": SIZE[1],
        "durationSecs": 0.3,
        "atSecs": 0.15,
        "squares": [{"at": at, "color": color} for at, color in zip(places, colors, strict=True)],
    }
    watch(film, expected)


def watch(film: pathlib.Path, expected: dict) -> None:
    asked = {
        "CORRIDOR_E2E_URL": "about:blank",
        "CORRIDOR_E2E_FILM": str(film),
        "CORRIDOR_E2E_EXPECTED": json.dumps(expected),
    }
    done = subprocess.run(
        ["npm", "run", "--silent", "e2e", "--", "film"],
        cwd=ROOT / "web",
        env=os.environ | asked,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
