"""People in one session, in real browsers: blocks are fetched once for all, and nothing is lost when connections break."""

import contextlib
import json
import socket
import socketserver
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from conftest import report, running
from test_viewer import OUT, VOLUMES, run_browser_tests

# Small enough to be loaded as a whole, at the same level for each camera.
WAVES = "synthetic:waves?shape=96,96,96&dtype=u8"


class BreakableProxy:
    """Passes connections on to a port of this machine; a request to ``/cut`` of another port breaks them all."""

    def __init__(self, target: int) -> None:
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.cuts = 0
        proxy = self

        class Passing(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", target)) as server:
                    with proxy._lock:
                        proxy._open |= {self.request, server}
                    back = threading.Thread(target=proxy._pass, args=(server, self.request), daemon=True)
                    back.start()
                    proxy._pass(self.request, server)
                    back.join()

        class Control(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                proxy.cut()
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        class Listening(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 64

        self._servers = [Listening(("127.0.0.1", 0), Passing), HTTPServer(("127.0.0.1", 0), Control)]
        self.port, self.control = (server.server_address[1] for server in self._servers)
        for server in self._servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open -= {source, target}

    def cut(self) -> None:
        self.cuts += 1
        with self._lock:
            cut = list(self._open)
        for one in cut:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self.cut()


@contextlib.contextmanager
def breakable(url: str) -> Iterator[tuple[BreakableProxy, str]]:
    """Yields a proxy before a viewer, and the viewer's link through it."""
    parts = urllib.parse.urlsplit(url)
    assert parts.port is not None
    proxy = BreakableProxy(parts.port)
    try:
        yield proxy, parts._replace(netloc=f"127.0.0.1:{proxy.port}").geturl()
    finally:
        proxy.close()


def test_two_people_talk_point_and_present(home):
    """Names, presenting, pointers, chat, notes, bookmarks, undo, and a reload."""
    with running(home, "view", VOLUMES["tooth"], "--listen", "127.0.0.1:0", "--json") as viewer:
        run_browser_tests(viewer.url, "together", "together")


@pytest.mark.parametrize("people", [2, 8])
def test_people_share_blocks_and_lose_nothing(home, people):
    """Each block is fetched once for all; ten broken connections and two late joiners lose nothing; pointers arrive."""
    with (
        running(home, "serve", WAVES, "--listen", "127.0.0.1:0", "--json") as server,
        running(home, "view", server.url, "--listen", "127.0.0.1:0", "--json") as viewer,
        breakable(viewer.url) as (proxy, url),
    ):
        parts = urllib.parse.urlsplit(server.url)
        name = f"together-{people}"
        run_browser_tests(
            url,
            name,
            "people",
            CORRIDOR_E2E_PEOPLE=str(people),
            CORRIDOR_E2E_CUT=f"http://127.0.0.1:{proxy.control}/cut",
            CORRIDOR_E2E_METRICS=f"http://{parts.netloc}/metrics",
            CORRIDOR_E2E_TOKEN=dict(urllib.parse.parse_qsl(parts.fragment))["token"],
        )
        assert proxy.cuts == 10
    found = json.loads((OUT / name / "people.json").read_text())
    report(
        f"browser: {people} people: {found['blocks']} blocks fetched once; pointers seen after "
        f"{found['pointer_millis']} ms"
    )


def test_somebody_is_removed(home):
    """An owner removes a guest, whose page says so and does not come back; another guest of the same link stays."""
    arguments = ("view", VOLUMES["tooth"], "--listen", "127.0.0.1:0", "--json", "--invite", "steer")
    with running(home, *arguments) as viewer:
        invitation = viewer.lines[0]["invitations"]["steer"]
        run_browser_tests(viewer.url, "together-removed", "removed", CORRIDOR_E2E_INVITATION=invitation)
