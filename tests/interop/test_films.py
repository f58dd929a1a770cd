"""Pictures of many time steps and of a camera that travels: numbered files, OpenEXR, films; read by other libraries."""

import json
import pathlib

import av
import netCDF4
import numpy as np
import OpenEXR
import pytest
from conftest import corridor

SIZE = (96, 64)


@pytest.fixture(scope="module")
def series(tmp_path_factory) -> pathlib.Path:
    """A ball that grows, three time steps."""
    path = tmp_path_factory.mktemp("films") / "ball.nc"
    z, y, x = np.mgrid[0:32, 0:32, 0:32] - 15.5
    radius = np.sqrt(x**2 + y**2 + z**2)
    with netCDF4.Dataset(path, "w") as file:
        for name, size in zip(["time", "z", "y", "x"], [3, 32, 32, 32], strict=True):
            file.createDimension(name, size)
        file.createVariable("time", "f8", ["time"])[:] = [0, 6, 12]
        file["time"].units = "hours since 2001-01-01"
        rho = file.createVariable("rho", "f4", ["time", "z", "y", "x"])
        rho[:] = [np.clip(6 + 4 * step - radius, 0, None) for step in range(3)]
    return path


def drawn(home, series, output, *arguments) -> dict:
    size = [] if "--size" in arguments else ["--size", "x".join(map(str, SIZE))]
    done = corridor(home, "render", str(series), "--array", "rho", *size, "-o", str(output), "--json", *arguments)
    assert done.returncode == 0 and "OpenH264" not in done.stderr, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def pixels(path: pathlib.Path) -> np.ndarray:
    with av.open(str(path)) as picture:
        return next(picture.decode(video=0)).to_ndarray(format="rgb24").astype(int)


def test_a_film_has_a_picture_for_each_time_step(home, series, tmp_path):
    result = drawn(home, series, tmp_path / "ball.mp4", "--time", ":", "--fps", "10")
    assert result["pictures"] == 3
    drawn(home, series, tmp_path / "ball-%02d.png", "--time", "0:3")
    with av.open(str(tmp_path / "ball.mp4")) as film:
        video = film.streams.video[0]
        assert (video.codec_context.width, video.codec_context.height) == SIZE
        assert video.frames == 3 and float(video.average_rate) == 10.0
        assert float(video.duration * video.time_base) == pytest.approx(0.3)
        frames = [frame.to_ndarray(format="rgb24").astype(int) for frame in film.decode(video)]
    assert len(frames) == 3
    for step, frame in enumerate(frames):
        picture = pixels(tmp_path / f"ball-{step:02d}.png")
        assert np.abs(frame - picture).mean() < 5, step
    assert np.abs(frames[0] - frames[2]).mean() > 3, "the ball grows"


def test_time_steps_share_a_transfer_function_and_the_first_is_a_still(home, series, tmp_path):
    drawn(home, series, tmp_path / "x-%d.png", "--time", "::2")
    drawn(home, series, tmp_path / "one.png", "--time", "0")
    assert sorted(path.name for path in tmp_path.glob("x-*.png")) == ["x-0.png", "x-1.png"]
    assert np.array_equal(pixels(tmp_path / "x-0.png"), pixels(tmp_path / "one.png"))


def test_a_camera_travels_through_a_file_of_cameras_and_in_a_turn(home, series, tmp_path):
    drawn(home, series, tmp_path / "turn-%d.png", "--journey", "turn", "--pictures", "4", "--camera", "front")
    drawn(home, series, tmp_path / "left.png", "--camera", "right")
    # A quarter of a turn to the right shows what is seen from there.
    difference = np.abs(pixels(tmp_path / "turn-1.png") - pixels(tmp_path / "left.png"))
    assert difference.mean() < 0.5
    eye = {"up": [0, 0, 1], "target": [15.5, 15.5, 15.5], "projection": {"perspective": {"fov_y_rad": 0.5}}}
    cameras = [eye | {"eye": [15.5, y, 15.5]} for y in (-120, -60)]
    (tmp_path / "way.json").write_text(json.dumps(cameras))
    drawn(home, series, tmp_path / "way-%d.png", "--journey", str(tmp_path / "way.json"), "--pictures", "3")
    covered = [(pixels(tmp_path / f"way-{n}.png").max(axis=2) > 40).sum() for n in range(3)]
    assert covered[0] < covered[1] < covered[2], "the camera comes nearer"


def test_an_exr_picture_is_the_png_in_linear_light(home, series, tmp_path):
    drawn(home, series, tmp_path / "one.png", "--time", "1")
    drawn(home, series, tmp_path / "one.exr", "--time", "1")
    channels = OpenEXR.File(str(tmp_path / "one.exr")).channels()
    rgba = channels["RGBA"].pixels if "RGBA" in channels else np.stack([channels[c].pixels for c in "RGBA"], axis=-1)
    assert rgba.dtype == np.float32 and rgba.shape == (SIZE[1], SIZE[0], 4)
    linear, alpha = rgba[..., :3].astype(float), rgba[..., 3:].astype(float)
    straight = linear / np.maximum(alpha, 1e-9)
    encoded = np.where(straight <= 0.0031308, 12.92 * straight, 1.055 * straight ** (1 / 2.4) - 0.055)
    background = np.array([13, 14, 18]) / 255
    over = encoded * alpha + background * (1 - alpha)
    assert np.abs(over * 255 - pixels(tmp_path / "one.png")).max() <= 0.51


def test_what_cannot_be_written_is_told(home, series, tmp_path):
    def told(output: str, *arguments: str) -> str:
        done = corridor(home, "render", str(series), "--array", "rho", "-o", str(tmp_path / output), *arguments)
        assert done.returncode == 2, (done.returncode, done.stderr)
        return done.stderr

    assert "%04d" in told("x.png", "--time", ":")
    assert "between 0 and 3" in told("x.mp4", "--time", "0:4")
    assert "START:STOP:STEP" in told("x.mp4", "--time", "a:b")
    assert "even" in told("x.mp4", "--time", ":", "--size", "95x64")
    assert "a JSON list" in told("x.mp4", "--journey", str(series.with_name("ball.nc")))
    assert not list(tmp_path.glob("*x*")), "nothing is left"


def test_a_picture_can_say_what_it_shows(home, series, tmp_path):
    drawn(home, series, tmp_path / "plain.png", "--time", "2", "--size", "640x480")
    drawn(home, series, tmp_path / "told.png", "--time", "2", "--size", "640x480", "--annotate")
    plain, told = (pixels(tmp_path / name) for name in ("plain.png", "told.png"))
    differs = np.abs(plain - told).max(axis=2) > 20
    legend, scale, middle = differs[100:380, 500:], differs[420:, :200], differs[200:280, 280:360]
    assert legend.sum() > 1000 and scale.sum() > 100 and middle.sum() < 400
