"""`corridor help`: commands and topics, and the error for unknown names."""

import pytest
from conftest import corridor


def test_help_begins_with_usage_and_ends_with_topics(home):
    done = corridor(home, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    first, _, usage, *rest = done.stdout.splitlines()
    assert first.startswith("View and read arrays")
    assert usage.startswith("Usage: corridor ")
    assert "Commands:" in rest and "Options:" in rest
    for topic in ["urls", "exit-codes", "environment"]:
        assert f"corridor help {topic}" in done.stdout
    assert corridor(home, "help").stdout == done.stdout


@pytest.mark.parametrize("command", [["get"], ["serve"], ["cache", "clear"], ["help"]])
def test_a_command_has_one_help(home, command):
    asked, option = corridor(home, "help", *command), corridor(home, *command, "--help")
    assert (asked.returncode, option.returncode) == (0, 0)
    assert asked.stdout == option.stdout
    assert f"Usage: corridor {' '.join(command)}" in asked.stdout


@pytest.mark.parametrize(
    ("topic", "parts"),
    [
        ("urls", ["corridor://", "ssh://", "await://", "synthetic:"]),
        ("exit-codes", ["130 ", "wrong command line"]),
        ("environment", ["CORRIDOR_LISTEN", "corridor.toml", "0600"]),
    ],
)
def test_topics_need_no_configuration(home, topic, parts):
    path = home / "config" / "corridor" / "corridor.toml"
    path.parent.mkdir(parents=True)
    path.write_text("this is no configuration")
    done = corridor(home, "help", topic)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(part in done.stdout for part in parts)


def test_an_unknown_topic_names_those_that_exist(home):
    done = corridor(home, "help", "nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert "`nonsense`" in done.stderr
    assert "urls, exit-codes, environment" in done.stderr
