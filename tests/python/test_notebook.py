"""The widget in a kernel of Jupyter, without a browser: an example runs, and a page is played by hand."""

import base64
import json
import pathlib

import nbclient
import nbformat
import pytest
from test_view import pixels

EXAMPLE = pathlib.Path(__file__).parent.parent.parent / "examples/notebook/view.ipynb"


@pytest.mark.filterwarnings("ignore")
def test_the_example_runs_and_saves_a_picture(tmp_path: pathlib.Path) -> None:
    notebook = nbformat.read(EXAMPLE, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output["data"] for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    widgets = [data for data in shown if "application/vnd.jupyter.widget-view+json" in data]
    assert len(widgets) >= 1
    for data in widgets:
        picture = pixels(base64.b64decode(data["image/png"]))
        assert picture.shape == (320, 480, 3) and picture.std() > 5
    # The token is not saved.
    assert "token=" not in json.dumps(notebook)


def test_the_widget_relays_the_messages_of_a_page() -> None:
    """The hello of a page is answered, within the room that it grants; afterwards nothing is left."""
    import threading
    import time

    import corridor
    import numpy as np
    from corridor._viewer.server import started
    from corridor._viewer.widget import ViewerWidget
    from wire_client import hello

    sent: list[tuple[dict, list[bytes]]] = []

    class Recording(ViewerWidget):
        def send(self, content: dict, buffers: list[bytes] | None = None) -> None:
            sent.append((content, [bytes(b) for b in buffers or ()]))

    def wait(kind: str) -> tuple[dict, list[bytes]]:
        for _ in range(1000):
            for message in sent:
                if message[0]["kind"] == kind:
                    return message
            time.sleep(0.01)
        raise AssertionError(f"expected {kind}, found {[m[0] for m in sent]}")

    before = threading.active_count()
    server, view = started(np.random.default_rng(1).random((16, 16, 16)), None, None, "auto", {})
    widget = Recording(server, view, 300)
    widget._receive(widget, {"kind": "page", "to": "a"}, [])
    content, (page,) = wait("page")
    assert b'id="picture"' in page and b"<script" in page and b"assets/index" not in page
    token = content["settings"]["token"]
    widget._receive(widget, {"kind": "open", "relay": "r"}, [])
    wait("opened")
    message = hello(token)
    widget._receive(widget, {"kind": "data", "relay": "r"}, [memoryview(message)])
    assert wait("taken")[0]["bytes"] == len(message)
    assert wait("data")[1][0]
    picked = []
    widget.on_pick(picked.append)
    ray = {"origin": [0, 0, 1], "direction": [0, 0, -1]}
    click = {"kind": "pick", "ray": ray, "at": [0.5, 0.25], "view": {"array": "data", "time": 3}}
    widget._receive(widget, {**click, "place": None}, [])
    first = picked[0]
    assert (first.array, first.time, first.at, first.hit) == ("data", 3, (0.5, 0.25), "nothing")
    assert first.position is None and first.index is None and first.value is None
    place = {
        "hit": "volume", "position": [1.5, 2, 3], "index": [3, 2, 1], "stored": "9007199254740993", "value": 0.5, "units": "K",
        "coordinates": {"z": 3.5, "y": None},
    }  # fmt: skip
    widget._receive(widget, {**click, "place": place}, [])
    second = picked[1]
    assert (second.hit, second.position, second.index) == ("volume", (1.5, 2, 3), (3, 2, 1))
    assert (second.stored, second.value, second.units) == (9007199254740993, 0.5, "K")
    assert second.coordinates == {"z": 3.5, "y": None}
    seen = []
    widget.observe(lambda change: seen.append(change.new), "time")
    page_view = {**widget.view, "time": 0, "lighting": 0.5}
    widget.set_state({"view": page_view})
    assert widget.view["lighting"] == 0.5 and seen == []
    with pytest.raises(corridor.InvalidError):
        widget.camera = "inside"
    assert widget.camera == page_view.get("camera")
    widget.camera = "front"
    assert isinstance(widget.camera, dict) and widget.view["camera"] == widget.camera
    widget.close()
    assert not server.is_open and threading.active_count() <= before + 8
