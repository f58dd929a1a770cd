"""Programs in a viewing session, with other programs as the people."""

import inspect
import json
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import corridor
import numpy as np
import pytest

SOURCE = "synthetic:waves?shape=16,16,16&dtype=u8&steps=6"


@pytest.fixture
def url() -> Iterator[str]:
    viewer = corridor.view(SOURCE)
    yield viewer.url
    viewer.close()


def eventually(is_so: Callable[[], bool], what: str) -> None:
    for _ in range(2000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError(f"{what} did not happen")


def test_everybody_sees_what_a_program_sets(url: str) -> None:
    with corridor.session(url, name="simulation") as program, corridor.session(url, name="Ada") as ada:
        program.time = 3
        assert program.time == 3
        eventually(lambda: ada.time == 3, "Ada sees the time step")
        program.set({"background": [1, 2, 3]}, time=4)
        eventually(lambda: ada.view["background"] == [1, 2, 3] and ada.time == 4, "Ada sees both")
        assert not any(person.presents for person in program.participants)
        # Ada has her own camera afterwards.
        camera = {**(program.camera or {}), "eye": [9.0, 8.0, 7.0]}
        ada.set(camera=camera, everybody=False)
        assert ada.camera is not None and ada.camera["eye"] == [9, 8, 7]
        assert program.camera is None or program.camera["eye"] != [9, 8, 7]


def test_a_presentation_shows_each_change_and_can_be_handed_over(url: str) -> None:
    with corridor.session(url, name="simulation") as program, corridor.session(url, name="Ada") as ada:
        seen: list[int] = []
        watching = threading.Thread(target=lambda: seen.extend(view["time"] for view in ada.views(timeout=3)))
        with program.presenting() as presenting:
            assert presenting is program
            eventually(lambda: ada.leader == "simulation", "Ada follows the presentation")
            watching.start()
            for step in range(6):
                program.time = step
            assert [person.name for person in program.participants if person.presents] == ["simulation"]
            program.hand_over("Ada")
            eventually(lambda: program.leader == "Ada", "the program follows Ada")
        watching.join()
        assert seen[-1] == 5 and seen == sorted(seen)
        ada.end_presenting()
        eventually(lambda: program.leader is None, "the presentation has ended")


def test_following_and_recording(url: str) -> None:
    with corridor.session(url, name="Ada") as ada, corridor.session(url, name="recorder") as recorder:
        eventually(lambda: ada.camera is not None, "the node chooses a camera")
        camera = dict(ada.camera or {})

        def fly() -> None:
            for x in range(5):
                ada.set(camera={**camera, "eye": [50.0 + x, 40, 30]}, everybody=False)
                time.sleep(0.1)

        flying = threading.Thread(target=fly)
        flying.start()
        path = recorder.record(2, rate=50, leader="Ada")
        flying.join()
        assert recorder.leader == "Ada"
        assert path[-1]["camera"]["eye"] == [54, 40, 30] and len(path) >= 3
        assert all(a != b for a, b in zip(path, path[1:], strict=False))
        recorder.stop_following()
        assert recorder.leader is None
        with pytest.raises(corridor.NotFoundError, match="nobody is called `Eve`; there are: `Ada`"):
            recorder.follow("Eve")


def test_a_recording_is_a_journey(url: str, tmp_path: pathlib.Path) -> None:
    with corridor.session(url, name="Ada") as ada, corridor.session(url, name="recorder") as recorder:
        eventually(lambda: ada.camera is not None, "the node chooses a camera")
        path = recorder.record(0.3, leader="Ada")
    file = tmp_path / "path.json"
    file.write_text(json.dumps(path))
    assert json.loads(file.read_text())[0]["camera"]["eye"] == path[0]["camera"]["eye"]


def test_notes_participants_and_pointers(url: str) -> None:
    with corridor.session(url, name="Ada") as ada:
        ada.set(time=2, everybody=False)
        ada.add_note("a crack", (1, 2.5, np.float32(3)))
        with corridor.session(url, name="late") as late:
            (note,) = late.notes
            assert (note.text, note.author, note.place, note.view["time"]) == ("a crack", "Ada", (1, 2.5, 3), 2)
            assert abs(note.time_millis / 1000 - time.time()) < 600
            assert [(p.name, p.role, p.is_you) for p in late.participants] == [("Ada", "own", False), ("late", "own", True)]
            assert all(p.color.startswith("#") for p in late.participants)
            late.point((1, 2, 3), laser=True)
            late.point(None)
            assert repr(late) == "<corridor.Session with 2 participants, role 'own'>"
        eventually(lambda: all(p.is_away for p in ada.participants if p.name == "late"), "the program has left")
        for wrong in ((1, 2), (1, 2, float("nan"))):
            with pytest.raises(corridor.InvalidError, match="three finite numbers"):
                ada.point(wrong)


def test_waiting_for_changes(url: str) -> None:
    with corridor.session(url, name="Ada") as ada:
        while ada.wait(1):
            pass
        assert not ada.wait(0)
        with corridor.session(url, name="Bob") as bob:
            assert ada.wait(10), "Bob has joined"
            bob.time = 5
            eventually(lambda: ada.wait(0.1) and ada.time == 5, "Ada is told of the change")
        assert [view["time"] for view in ada.views(timeout=0.2)] == [5]


def test_refused_changes(url: str) -> None:
    with corridor.session(url, name="Ada") as ada, corridor.session(url, name="Bob") as bob:
        for everybody in (True, False):
            with pytest.raises(corridor.InvalidError):
                ada.set(time=99, everybody=everybody)
            eventually(lambda: ada.time == 0, "the view is as before")
        ada.set(time=1)
        assert ada.time == 1, "an earlier refusal is not reported again"
        bob.follow("Ada")
        with pytest.raises(corridor.InvalidError, match="follows you already"):
            ada.follow("Bob")
        with pytest.raises(corridor.InvalidError, match="rate"):
            ada.record(1, rate=0)


def test_removing_somebody(url: str) -> None:
    with corridor.session(url, name="Ada") as ada, corridor.session(url, name="Bob") as bob:
        with pytest.raises(corridor.NotFoundError):
            ada.remove("Eve")
        ada.remove("Bob")
        assert [person.name for person in ada.participants] == ["Ada"]
        with pytest.raises(corridor.DeniedError, match="Ada removed you"):
            for _ in range(100):
                bob.wait(0.1)
        with pytest.raises(corridor.DeniedError, match="Ada removed you"):
            bob.add_note("too late")


def test_wrong_links(url: str) -> None:
    with pytest.raises(corridor.DeniedError):
        corridor.session(url.split("#")[0] + "#token=wrong")
    with pytest.raises(corridor.InvalidError, match="expected a link"):
        corridor.session("run42.h5")
    with pytest.raises(corridor.UnreachableError):
        corridor.session("http://127.0.0.1:9/#token=x")


def test_a_closed_session_is_left_and_says_so(url: str) -> None:
    ada = corridor.session(url, name="Ada")
    ada.close()
    with pytest.raises(corridor.UnreachableError):
        ada.add_note("too late")
    viewer = corridor.view("synthetic:waves?shape=8,8,8&dtype=u8")
    bob = corridor.session(viewer.url)
    viewer.close()
    with pytest.raises(corridor.Error):
        for _ in range(100):
            bob.wait(0.1)


def test_public_methods_have_documentation_and_types() -> None:
    for name, member in inspect.getmembers(corridor.Session):
        if not name.startswith("_"):
            assert member.__doc__, name
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "-c", "import corridor\ns = corridor.session('u')\ns.time = 3\nreveal_type(s.notes)"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and "Note" in done.stdout, done.stdout
