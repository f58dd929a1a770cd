"""`--receive-rate`: it does not change the data, and invalid rates are refused."""

import pytest
from conftest import SAMPLE, corridor, running


@pytest.mark.parametrize("link", ["tcp", "quic", "lossy"])
def test_receive_rate_does_not_change_the_data(home, tmp_path, link):
    plain, divided = tmp_path / "plain.npy", tmp_path / "divided.npy"
    with running(home, "serve", str(SAMPLE), "--json") as server:
        url = server.lines[0]["url"]
        for path, more in [(plain, []), (divided, ["--receive-rate", "80Mb/s"])]:
            done = corridor(home, "get", url, "-o", str(path), "--link", link, *more)
            assert done.returncode == 0, done.stderr
    assert divided.read_bytes() == plain.read_bytes()


@pytest.mark.parametrize(("rate", "found"), [("fast", "`fast`"), ("0.1Mb/s", "at least 65536 bytes per second")])
def test_invalid_receive_rate_is_refused(home, tmp_path, rate, found):
    done = corridor(home, "get", str(SAMPLE), "-o", str(tmp_path / "out.npy"), "--receive-rate", rate)
    assert done.returncode == 2
    assert found in done.stderr
