"""The xarray expression printed by `serve` works without this package."""

import json
import pathlib
import re
import socket
import ssl

import aiohttp
import conftest
import numpy as np
import pytest
import xarray as xr


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "run42.nc"
    xr.Dataset({"t": (("y", "x"), np.arange(6.0).reshape(2, 3))}, {"x": [1, 2, 3]}).to_netcdf(path, engine="netcdf4")
    return path


def opened(line: str) -> xr.Dataset:
    """Evaluates the printed line as a user would."""
    return eval(line, {"xr": xr, "aiohttp": aiohttp}).compute()


def test_on_this_machine(file: pathlib.Path) -> None:
    with conftest.running(file.parent, "serve", file.name, "--listen", "127.0.0.1:0", "--json") as program:
        line = program.lines[0]["xarray"]
        assert line.startswith('xr.open_zarr("http://127.0.0.1:') and '{"Authorization": "Bearer ' in line
        with xr.open_dataset(file, engine="netcdf4") as expected:
            xr.testing.assert_equal(opened(line), expected)


def test_certificate_is_checked_by_fingerprint_from_another_host(file: pathlib.Path) -> None:
    try:
        socket.gethostbyname(socket.gethostname())
    except OSError:
        pytest.skip("this machine does not know its own name")
    with conftest.running(file.parent, "serve", file.name, "--listen", "0.0.0.0:0", "--json") as program:
        line = program.lines[0]["xarray"]
        assert line.startswith('xr.open_zarr("https://') and "aiohttp.Fingerprint(" in line
        with xr.open_dataset(file, engine="netcdf4") as expected:
            xr.testing.assert_equal(opened(line), expected)
            # Those who do not care who answers:
            careless = re.sub(r"aiohttp\.Fingerprint\(.*?\)\)", "False", line)
            xr.testing.assert_equal(opened(careless), expected)
        wrong = re.sub(r'fromhex\("..', 'fromhex("00', line) if 'fromhex("00' not in line else line.replace('("00', '("11')
        with pytest.raises(aiohttp.ServerFingerprintMismatch):
            opened(wrong)
        with pytest.raises((aiohttp.ClientConnectorCertificateError, ssl.SSLError)):
            opened(re.sub(r', "ssl".*?\)\)', "", line))


def test_names_and_tokens_are_quoted(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'a "b" #1.nc'
    xr.Dataset({"t": ("x", [1.0, 2.0])}).to_netcdf(path, engine="netcdf4")
    arguments = ("serve", path.name, "--token", 'q"u\\ote', "--listen", "127.0.0.1:0", "--json")
    with conftest.running(tmp_path, *arguments) as program:
        assert json.dumps("Bearer " + 'q"u\\ote') in program.lines[0]["xarray"]
        assert opened(program.lines[0]["xarray"]).t.values.tolist() == [1, 2]
