"""Pictures of many time steps and of a camera that travels: numbered files, OpenEXR, films; read by other libraries."""

import json
import pathlib

import av
import numpy as np
import OpenEXR
import pytest
from conftest import corridor
from films import SIZE, pixels


def drawn(home, series, output, *arguments) -> dict:
    size = [] if "--size" in arguments else ["--size", "x".join(map(str, SIZE))]
    done = corridor(home, "render", str(series), "--array", "rho", *size, "-o", str(output), "--json", *arguments)
    assert done.returncode == 0 and "OpenH264" not in done.stderr, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def frames_of(path: pathlib.Path) -> list[np.ndarray]:
    """Decodes all pictures of a film."""
    with av.open(str(path)) as film:
        return [frame.to_ndarray(format="rgb24").astype(int) for frame in film.decode(video=0)]


@pytest.mark.parametrize("codec", ["h264", "av1"])
def test_a_film_has_a_picture_for_each_time_step(home, series, tmp_path, codec):
    name = "ball.mp4"
    result = drawn(home, series, tmp_path / name, "--time", ":", "--fps", "10", "--codec", codec)
    assert result["pictures"] == 3
    drawn(home, series, tmp_path / "ball-%02d.png", "--time", "0:3")
    with av.open(str(tmp_path / name)) as film:
        video = film.streams.video[0]
        assert video.codec_context.name in {"h264": {"h264"}, "av1": {"libdav1d", "av1"}}[codec]
        assert (video.codec_context.width, video.codec_context.height) == SIZE
        assert float(video.average_rate) == pytest.approx(10, rel=0.01)
        assert film.duration / av.time_base == pytest.approx(0.3)
        times = [float(packet.pts * video.time_base) for packet in film.demux(video) if packet.pts is not None]
    assert times == pytest.approx([0, 0.1, 0.2])
    frames = frames_of(tmp_path / name)
    assert len(frames) == 3
    for step, frame in enumerate(frames):
        picture = pixels(tmp_path / f"ball-{step:02d}.png")
        assert np.abs(frame - picture).mean() < 3, step
    assert np.abs(frames[0] - frames[2]).mean() > 3, "the ball grows"


@pytest.mark.parametrize("codec", ["h264", "av1"])
def test_playing_begins_at_the_second_key_picture_too(home, series, tmp_path, codec):
    """After a leap a player knows what the file says of its pictures, and no picture before."""
    name, second, count, rate = "x.mp4", 100, 104, 25
    way = ["--time", "2", "--journey", "turn", "--pictures", str(count), "--size", "64x48"]
    drawn(home, series, tmp_path / name, *way, "--fps", str(rate), "--codec", codec)
    drawn(home, series, tmp_path / "x-%03d.png", *way)
    whole = frames_of(tmp_path / name)
    assert len(whole) == count
    for number, frame in enumerate(whole):
        assert np.abs(frame - pixels(tmp_path / f"x-{number:03d}.png")).mean() < 3, number
    with av.open(str(tmp_path / name)) as film:
        video = film.streams.video[0]
        packets = [packet for packet in film.demux(video) if packet.pts is not None]
        assert [number for number, packet in enumerate(packets) if packet.is_keyframe] == [0, second]
    with av.open(str(tmp_path / name)) as film:
        video = film.streams.video[0]
        film.seek(round((second + 1.5) / rate / video.time_base), stream=video)
        frames = list(film.decode(video))
        assert float(frames[0].pts * video.time_base) == pytest.approx(second / rate, abs=0.002)
        assert len(frames) == count - second
        for frame, same in zip(frames, whole[second:], strict=True):
            assert np.array_equal(frame.to_ndarray(format="rgb24"), same)


def test_a_film_without_further_words_shows_all_time_steps(home, series, tmp_path):
    name = "x.mp4"
    assert drawn(home, series, tmp_path / name)["pictures"] == 3
    assert len(frames_of(tmp_path / name)) == 3
    assert drawn(home, series, tmp_path / name, "--journey", "turn", "--pictures", "4")["pictures"] == 4
    assert drawn(home, series, tmp_path / name, "--time", "2", "--pictures", "1")["pictures"] == 1


def test_a_film_of_one_picture_says_what_would_be_one(home, series, tmp_path):
    arguments = ["--array", "rho", "--time", "1", "-o", str(tmp_path / "x.mp4")]
    done = corridor(home, "render", str(series), *arguments)
    assert done.returncode == 2
    assert "expected several pictures for a film, found one" in done.stderr and "--journey turn" in done.stderr
    assert not list(tmp_path.glob("*x*"))


@pytest.mark.parametrize("codec", ["h264", "av1"])
def test_a_dark_background_keeps_its_tint_and_quality_is_a_choice(home, series, tmp_path, codec):
    name, sizes = "x.mp4", {}
    for background in ([13, 14, 18], [24, 8, 10], [4, 20, 12]):
        view = json.dumps({"background": background})
        for quality in ([], ["--quality", "20"], ["--quality", "100"]):
            drawn(home, series, tmp_path / name, "--view", view, "--size", "320x240", "--codec", codec, *quality)
            sizes[tuple(quality)] = (tmp_path / name).stat().st_size
            if quality and quality[1] == "20":
                continue
            for frame in frames_of(tmp_path / name):
                # Without the edges of the ball, whose colors are spread.
                corner = frame[:40, :60].reshape(-1, 3)
                assert np.abs(corner - background).max() <= 3, (codec, background, quality, corner[0])
    assert sizes["--quality", "20"] < sizes[()] < sizes["--quality", "100"], sizes


def test_quality_and_codec_are_of_films(home, series, tmp_path):
    for output, option, value, says in [
        ("x.png", "--quality", "80", "`--quality` for a film"),
        ("x.mp4", "--quality", "0", "1 (small) to 100"),
        ("x.mp4", "--quality", "best", "1 (small)"),
        ("x.png", "--codec", "av1", "`--codec` for a film"),
        ("x.mp4", "--codec", "vp9", "`h264` or `av1`"),
        ("x.webm", "--codec", "h264", "add `--codec av1`"),
    ]:
        done = corridor(home, "render", str(series), "-o", str(tmp_path / output), option, value)
        assert done.returncode == 2 and says in done.stderr, done.stderr


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


def test_invalid_output_arguments_are_refused(home, series, tmp_path):
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


def test_an_output_is_checked_before_a_server_is_asked(home, tmp_path):
    """Nobody listens at that address: whoever asked there would say so, with another code."""
    nobody = "corridor://127.0.0.1:1/x"
    (tmp_path / "folder.png").mkdir()
    for output, arguments, code, says in [
        ("x.gif", [], 2, ".mp4 or .webm (films)"),
        ("x.webm", ["--codec", "h264"], 2, "add `--codec av1`"),
        ("no/x.png", [], 3, "create it first"),
        ("folder.png", [], 2, "choose another name"),
        ("x.mp4", ["--size", "63x64"], 2, "even sizes"),
        ("x.mp4", ["--fps", "0"], 2, "pictures a second"),
        ("x.png", ["--pictures", "3"], 2, "x-%04d.png"),
        ("x.png", ["--time", "0:3"], 2, "x-%04d.png"),
        ("x.png", ["--journey", "turn"], 2, "x-%04d.png"),
        ("x.png", ["--slabs", str(tmp_path / "no" / "x.slabs")], 3, "create it first"),
        ("x.png", ["--iso", "red"], 2, "expected an isosurface"),
        ("x.png", [], 5, "127.0.0.1"),
    ]:
        done = corridor(home, "render", nobody, "-o", str(tmp_path / output), *arguments)
        assert (done.returncode, says in done.stderr) == (code, True), (output, arguments, done.stderr)


def test_a_picture_can_say_what_it_shows(home, series, tmp_path):
    drawn(home, series, tmp_path / "plain.png", "--time", "2", "--size", "640x480")
    drawn(home, series, tmp_path / "told.png", "--time", "2", "--size", "640x480", "--annotate")
    plain, told = (pixels(tmp_path / name) for name in ("plain.png", "told.png"))
    differs = np.abs(plain - told).max(axis=2) > 20
    legend, scale, middle = differs[100:380, 500:], differs[420:, :200], differs[200:280, 280:360]
    assert legend.sum() > 1000 and scale.sum() > 100 and middle.sum() < 400
