"""`corridor.toml`: below the environment and the flags, in the user's own folder only, and clear about mistakes."""

import pathlib

import pytest
from conftest import SAMPLE, corridor, running

TOKEN = "a-token-of-the-file-0123456789"


def configure(home: pathlib.Path, text: str, mode: int = 0o600) -> pathlib.Path:
    path = home / "config" / "corridor" / "corridor.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_server_takes_its_defaults_from_the_file(home):
    configure(home, f'listen = "127.0.0.1:0"\ntoken = "{TOKEN}"\nmemory = "64MiB"\n')
    with running(home, "serve", str(SAMPLE), "--json") as server:
        assert server.lines[0]["token"] == TOKEN
    with running(home, "serve", str(SAMPLE), "--json", "--token", TOKEN[::-1]) as server:
        assert server.lines[0]["token"] == TOKEN[::-1], "flags win"
    with running(home, "serve", str(SAMPLE), "--json", "--no-token") as server:
        assert server.lines[0]["token"] is None


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [("memory = '1GiB'\nlisten_at = ':1'\n", 2, "listen_at"), ("\nmemory = 4\n", 2, "quotes"), ("listen", 1, "")],
)
def test_mistakes_name_file_line_and_keys(home, text, line, found):
    path = configure(home, text)
    done = corridor(home, "info", str(SAMPLE))
    assert done.returncode == 2
    assert f"{path}`, line {line}:" in done.stderr
    assert found in done.stderr
    if found == "listen_at":
        assert "listen, token, cert, key, memory, cache_dir" in done.stderr
    assert corridor(home, "get", "--help").returncode == 0, "help needs no configuration"


def test_a_token_that_others_can_read_is_refused(home):
    configure(home, f'token = "{TOKEN}"\n', mode=0o644)
    done = corridor(home, "info", str(SAMPLE))
    assert done.returncode == 4
    assert "0600" in done.stderr
    assert TOKEN not in done.stderr


def test_configuration_in_the_current_folder_is_ignored(home):
    (home / "corridor.toml").write_text("this is no configuration")
    assert corridor(home, "info", str(SAMPLE)).returncode == 0
