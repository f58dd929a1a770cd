"""`corridor path`: measurements of a path and advice, as text and JSON."""

import json
import pathlib

import conftest


def test_path_without_measurements_queries_the_server(home: pathlib.Path) -> None:
    told = conftest.corridor(home, "path", "127.0.0.1", "--json")
    assert told.returncode == 0, told.stderr
    unknown = json.loads(told.stdout)
    assert unknown["rtt"]["least_secs"] is None
    for choice, advised in unknown["to"]["advice"].items():
        assert advised["value"] is None and advised["basis"].startswith("unknown: "), choice

    with conftest.running(
        home, "serve", "--listen", "127.0.0.1:0", "--json", "synthetic:waves?shape=64,64,64&dtype=u8"
    ) as server:
        authority = server.url.split("/")[2]
        # The server's note says the token.
        told = conftest.corridor(home, "path", authority, "--json")
        assert told.returncode == 0, told.stderr
        known = json.loads(told.stdout)
        assert "requests to its server" in known["measured_now"], known["measured_now"]
        assert known["rtt"]["least_secs"]["samples"] >= 5
        assert known["this_host"]["tcp_rmem_max_bytes"] > 0
        assert any(limit["is_binding"] for limit in known["from"]["limits"])

    text = conftest.corridor(home, "path", "127.0.0.1")
    assert text.returncode == 0 and "round trip" in text.stdout, "it is remembered when the server is gone"
    assert "unknown" not in text.stdout.split("round trip")[1].splitlines()[0]


def test_a_host_without_an_address_is_not_found(home: pathlib.Path) -> None:
    told = conftest.corridor(home, "path", "no-such-host.invalid")
    assert told.returncode == 5 and "no-such-host.invalid" in told.stderr


def test_broken_path_file_is_moved_aside(home: pathlib.Path) -> None:
    folder = home / "state" / "corridor"
    folder.mkdir(parents=True)
    (folder / "paths.sqlite").write_bytes(b"no database" * 1000)
    told = conftest.corridor(home, "path", "127.0.0.1", "--json")
    assert told.returncode == 0 and "renaming it and creating a new one" in told.stderr, told.stderr
    json.loads(told.stdout)
    assert (folder / "paths.sqlite.broken").read_bytes() == b"no database" * 1000
