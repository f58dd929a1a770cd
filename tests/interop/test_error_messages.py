"""Messages for common mistakes of new users: a helpful sentence and the right exit code."""

import http.client
import json
import pathlib
import subprocess
import time
import urllib.parse

import h5py
import netCDF4
import numpy as np
import pytest
from conftest import BINARY, SAMPLE, corridor, environment, running


@pytest.fixture
def run42(tmp_path: pathlib.Path) -> pathlib.Path:
    """Two arrays, and one that cannot be served."""
    path = tmp_path / "run42.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("rho", data=np.arange(24, dtype="f4").reshape(2, 3, 4))
        file.create_dataset("packed", data=np.arange(12, dtype="i2"))
        file.create_dataset("ragged", (2,), h5py.vlen_dtype("i4"))
    return path


def said(home: pathlib.Path, code: int, *arguments: str) -> str:
    """Standard error of a command that ends with `code`."""
    done = corridor(home, *map(str, arguments))
    assert done.returncode == code, (done.returncode, done.stderr)
    return done.stderr


def test_a_fill_value_alone_invents_no_scale(home, tmp_path):
    path = tmp_path / "run42.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 12)
        file.createVariable("rho", "f4", ["x"], fill_value=-1)[:] = np.arange(12)
        file.createVariable("packed", "i2", ["x"]).scale_factor = 0.5
    with running(home, "serve", str(path), "--json", "--listen", "127.0.0.1:0") as server:
        zarr = urllib.parse.urlsplit(server.lines[0]["zarr"])
        connection = http.client.HTTPConnection(zarr.hostname, zarr.port, timeout=30)
        token = {"Authorization": f"Bearer {server.lines[0]['token']}"}
        attributes = {}
        for name in ["rho", "packed"]:
            connection.request("GET", f"{zarr.path}/{name}/zarr.json", headers=token)
            attributes[name] = json.loads(connection.getresponse().read())["attributes"]
    assert "_FillValue" in attributes["rho"] and not {"scale_factor", "add_offset"} & set(attributes["rho"])
    assert attributes["packed"]["scale_factor"] == 0.5 and "add_offset" not in attributes["packed"]
    said(home, 0, "get", path, "rho", "-o", tmp_path / "copy.h5")
    with h5py.File(tmp_path / "copy.h5") as file:
        found = dict(file["rho"].attrs)
    assert found["_FillValue"] == -1 and not {"scale_factor", "add_offset"} & set(found)


def test_second_server_reports_its_other_port(home):
    (home / "run").mkdir()
    start = [BINARY, "serve", str(SAMPLE), "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    both = []
    try:
        # Another program may have the usual port: then the first one is told so already.
        for _ in range(2):
            both.append(subprocess.Popen(start, **pipes, env=environment(home), text=True))
            line = json.loads(both[-1].stdout.readline())
    finally:
        for process in both:
            process.terminate()
    words = [process.communicate(timeout=20)[1] for process in both]
    port = urllib.parse.urlsplit(line["url"]).port
    assert f"port 26774 is taken; listening on {port} instead" in words[1]


def test_a_server_that_dies_is_named_in_plain_words(home, tmp_path):
    (home / "run").mkdir()
    field = "synthetic:waves?shape=900,900,900&dtype=u8"
    serve = [BINARY, "serve", field, "--json", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, env=environment(home), text=True) as server:
        address = json.loads(server.stdout.readline())["url"]
        get = subprocess.Popen(
            [BINARY, "get", address, "-o", str(tmp_path / "out.raw")],
            env=environment(home),
            stderr=subprocess.PIPE,
            text=True,
        )
        while not list(tmp_path.glob(".out.raw*/out.raw")):
            assert get.poll() is None
            time.sleep(0.01)
        server.kill()
        words = get.communicate(timeout=60)[1]
    url = urllib.parse.urlsplit(address)
    assert get.returncode == 5 and "close_notify" not in words and "rustls" not in words, words
    assert f"{url.hostname}:{url.port}" in words, words


def test_one_server_of_several_data_sets_is_a_catalogue(home, run42):
    with running(home, "serve", str(SAMPLE), str(run42), "--json", "--listen", "127.0.0.1:0", lines=2) as server:
        url, _, secret = server.url.partition("#")
        root = url.rsplit("/", 1)[0]
        for address in [f"{root}/#{secret}", f"{root}#{secret}"]:
            done = corridor(home, "info", address, "--json")
            assert done.returncode == 0, done.stderr
            names = [array["name"] for array in json.loads(done.stdout)["arrays"]]
            assert len(names) == 3 and "run42.h5/rho" in names, names
        assert "run42.h5" in said(home, 3, "info", f"{root}/absent#{secret}")


def test_what_is_left_out_is_refused_with_the_reason(home, run42, tmp_path):
    words = said(home, 1, "get", run42, "ragged", "-o", tmp_path / "out.npy")
    assert "`ragged` is left out" in words and "lists of" in words
    assert "`ragged` is left out" in said(home, 1, "info", f"{run42}/ragged")


def test_several_selections_are_counted_and_errors_name_the_line(home, run42, tmp_path):
    parts, out = tmp_path / "parts.txt", tmp_path / "parts.raw"
    parts.write_text("# the first plane\nrho[0]\n\n  # and a point\nrho[1, 2, 3]\n")
    assert "2 selections, one after another, 52 bytes" in said(
        home, 0, "get", run42, "--selections", parts, "-o", out
    )
    done = corridor(home, "get", str(run42), "--selections", str(parts), "-o", str(out), "--json")
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["selections"] == [[3, 4], []] and result["bytes"] == 52
    parts.write_text("rho[0]\n\nrho[7]\n")
    words = said(home, 2, "get", run42, "--selections", parts, "-o", out)
    assert "line 3" in words and "from -2 to 1" in words


def test_wrong_arguments_exit_with_2(home, run42, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for output in ["o.txt", "o", "folder"]:
        said(home, 2, "get", run42, "rho", "-o", tmp_path / output)
    said(home, 2, "get", run42, "rho", "--iso", "1", "-o", tmp_path / "o.npy")
    said(home, 2, "render", run42, "-o", tmp_path / "o.jpg")
    said(home, 2, "info", "http://x/y")
    assert "found `tokn`" in said(home, 2, "info", "corridor://127.0.0.1:1/x#tokn=s3cret")
    words = said(home, 2, "get", run42, "[0]", "-o", tmp_path / "o.npy")
    assert "2 arrays, such as `packed` or `packed[0]`" in words
    words = said(home, 2, "render", SAMPLE, "-o", tmp_path / "o.png", "--camera", "side")
    assert "front back left right top bottom" in words and "found `side`" in words


def test_an_unknown_host_has_one_code(home):
    said(home, 5, "info", "corridor://no-such-host.invalid/x")
    said(home, 5, "path", "no-such-host.invalid")


@pytest.mark.parametrize("ending", ["npy", "raw", "zarr", "h5"])
def test_too_little_space_is_seen_before_the_copy_and_names_the_target(home, tmp_path, ending):
    out = tmp_path / f"out.{ending}"
    words = said(home, 7, "get", "synthetic:waves?shape=1000000,1000000,1000000&dtype=u8", "-o", out)
    assert "free space" in words and f"`{out}`" in words and ".part" not in words
    assert not list(tmp_path.glob("*out*"))


def test_unknown_files_are_told_of_zarr_and_of_descriptions(home, tmp_path):
    (tmp_path / "run.dat").write_bytes(bytes(64))
    words = said(home, 1, "info", tmp_path / "run.dat")
    assert "Zarr" in words and "NAME.toml" in words


def test_isovalue_outside_the_values_causes_a_warning(home, run42, tmp_path):
    words = said(home, 0, "get", run42, "rho", "--iso", "99", "-o", tmp_path / "s.ply")
    assert "99 is outside of the values, which go from 0 to 23" in words
    assert "outside of the values" not in said(home, 0, "get", run42, "rho", "--iso", "5.5", "-o", tmp_path / "s.ply")


def test_missing_token_error_explains_how_to_send_it(home):
    with running(home, "serve", str(SAMPLE), "--json", "--listen", "127.0.0.1:0") as server:
        zarr = urllib.parse.urlsplit(server.lines[0]["zarr"])
        connection = http.client.HTTPConnection(zarr.hostname, zarr.port, timeout=30)
        connection.request("GET", f"{zarr.path}/zarr.json")
        answer = connection.getresponse()
        body = answer.read().decode()
    assert answer.status == 401 and "Authorization: Bearer TOKEN" in body and "CORRIDOR_" not in body


def test_small_memory_is_raised_and_short_token_causes_a_warning(home, tmp_path):
    words = said(home, 0, "get", SAMPLE, "-o", tmp_path / "o.npy", "--memory", "1KiB")
    assert "--memory 1KiB is raised to 64.0 MiB" in words
    for token, is_warned in [("abc", True), ("a-token-of-25-characters-x", False)]:
        done = corridor(home, "demo", "--check", "--token", token, "--listen", "127.0.0.1:0")
        assert done.returncode == 0 and ("may be guessed" in done.stderr) == is_warned, done.stderr


def test_files_that_are_no_data_are_left_out(home, run42, tmp_path):
    (tmp_path / "notes.txt").write_text("not data")
    locations = [str(tmp_path / "notes.txt"), str(run42)]
    with running(home, "serve", *locations, "--json", "--listen", "127.0.0.1:0") as server:
        assert server.lines[0]["url"].split("#")[0].endswith("/run42.h5")
    assert "expected HDF5" in said(home, 1, "serve", tmp_path / "notes.txt", tmp_path / "notes.txt")


def test_several_servers_that_refuse_a_token_are_not_worth_another_try(home, run42):
    options = ["--listen", "127.0.0.1:0", "--json", "--token", "a-token-of-the-two-servers"]
    with running(home, "serve", str(run42), *options) as one, running(home, "serve", str(run42), *options) as two:
        hosts = ",".join(urllib.parse.urlsplit(server.lines[0]["url"]).netloc for server in (one, two))
        pin = one.lines[0]["fingerprint"]
        told = said(home, 4, "info", f"corridor://{hosts}/run42.h5#token=another-token-altogether&fp={pin}")
    assert told.count("the token is not the one of this server") == 2, told
    assert "hint" not in told and "WARN" not in told, told


def test_a_file_that_is_written_beside_its_readers_says_so_where_it_cannot_be_read(home, tmp_path):
    path = tmp_path / "live.h5"
    with h5py.File(path, "w", libver="latest") as file:
        frames = file.create_dataset("frames", (0, 64, 64), "u2", maxshape=(None, 64, 64), chunks=(1, 64, 64))
        file.flush()
        file.swmr_mode = True
        for number in range(40):
            frames.resize(number + 1, 0)
            frames[number] = number
            frames.flush()
        done = corridor(home, "get", str(path), "frames[-1,0,0]", "-o", str(tmp_path / "out.npy"))
        assert done.returncode == 0 or "SWMR" in done.stderr, done.stderr
    assert corridor(home, "get", str(path), "frames[-1,0,0]", "-o", str(tmp_path / "out.npy")).returncode == 0
    assert np.load(tmp_path / "out.npy") == 39
