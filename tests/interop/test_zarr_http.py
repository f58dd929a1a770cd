"""Data sets as Zarr v3 over HTTP, read by zarr-python, xarray and TensorStore."""

import json
import pathlib
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator

import conftest
import h5py
import numpy as np
import pytest
import tensorstore
import xarray as xr
import zarr
from zarr.storage import FsspecStore


class Served:
    """Addresses of the exports of a server, and the headers with its token."""

    def __init__(self, lines: list[dict]):
        self.address = {line["zarr"].rsplit("/", 1)[1]: line["zarr"] for line in lines}
        self.url = {line["zarr"].rsplit("/", 1)[1]: line["url"] for line in lines}
        self.headers = {"Authorization": f"Bearer {lines[0]['token']}"}
        self.options = {"client_kwargs": {"headers": self.headers}}

    def group(self, address: str) -> zarr.Group:
        return zarr.open_group(FsspecStore.from_url(address, storage_options=self.options), mode="r")

    def ask(self, address: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        return ask(address, method, self.headers | headers)


def ask(address: str, method: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    request = urllib.request.Request(address, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A climate file with packed values, gaps (a NaN among the fill values) and a calendar; an HDF5 file with groups."""
    folder = tmp_path_factory.mktemp("zarr")
    made = np.random.default_rng(3)
    values = made.normal(280, 10, (5, 40, 60))
    values[0, 3, 4] = np.nan
    data = xr.Dataset(
        {
            "t2m": (("time", "lat", "lon"), values, {"units": "K"}),
            "gaps": (("lat", "lon"), np.where(values[1] > 280, values[1], np.nan).astype(np.float32)),
            "count": (("lat",), np.arange(40, dtype=np.uint16)),
        },
        coords={
            "time": xr.date_range("2001-01-30", periods=5, freq="6h"),
            "lat": np.linspace(-81, 81, 40),
            "lon": np.arange(60) * 6.0,
        },
    )
    packing = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768}
    data.to_netcdf(folder / "climate.nc", engine="netcdf4", encoding={"t2m": packing})
    with h5py.File(folder / "run.h5", "w") as file:
        rho = made.random((70, 90, 110))
        file.create_dataset("grid/rho", data=rho, chunks=(16, 32, 50), compression="gzip")
        file["large"] = made.random((128, 128, 256), dtype=np.float32)
        file["swapped"] = made.integers(-9000, 9000, (300, 77)).astype(">i4")
        file["odd/name with space"] = np.arange(7, dtype=np.int8)
    return folder


@pytest.fixture(scope="module")
def served(folder: pathlib.Path) -> Iterator[Served]:
    names = ["climate.nc", "run.h5", "synthetic:waves?shape=256,256,256&dtype=f32", str(conftest.SAMPLE)]
    with conftest.running(
        folder, "serve", *names, "--listen", "127.0.0.1:0", "--json", lines=len(names)
    ) as program:
        yield Served(program.lines)


def test_zarr_python_reads_every_array(served: Served, folder: pathlib.Path) -> None:
    group = served.group(served.address["run.h5"])
    with h5py.File(folder / "run.h5") as truth:
        for name in ["grid/rho", "swapped", "odd/name with space"]:
            found = group[name]
            assert found.dtype == truth[name].dtype.newbyteorder("=")
            assert np.array_equal(found[...], truth[name][...]), name
        assert np.array_equal(group["grid/rho"][5:60:7, :, 3], truth["grid/rho"][5:60:7, :, 3])
    assert sorted(group.group_keys()) == ["grid", "odd"]
    assert group.metadata.consolidated_metadata is not None, "one request describes all"


def test_xarray_gives_what_it_gives_for_the_file(served: Served, folder: pathlib.Path) -> None:
    found = xr.open_zarr(served.address["climate.nc"], storage_options=served.options)
    with xr.open_dataset(folder / "climate.nc", engine="netcdf4") as expected:
        xr.testing.assert_equal(found.compute(), expected)
        assert found.t2m.attrs["units"] == "K"
        assert found["count"].dtype == expected["count"].dtype == np.uint16, "integers stay what they are"


def test_tensorstore_reads_the_same(served: Served, folder: pathlib.Path) -> None:
    base, _, path = served.address["run.h5"].partition("/zarr/")
    for name in ["grid/rho", "swapped"]:
        spec = {
            "driver": "zarr3",
            "kvstore": {
                "driver": "http",
                "base_url": base,
                "path": f"/zarr/{path}/{name}/",
                "headers": [f"{k}: {v}" for k, v in served.headers.items()],
            },
        }
        store = tensorstore.open(spec, open=True, read=True).result()
        with h5py.File(folder / "run.h5") as truth:
            assert np.array_equal(store.read().result(), truth[name][...]), name


def test_levels_are_ome_multiscales(served: Served, folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for export, name in [("run.h5", "large"), ("waves", "waves")]:
        image = served.group(f"{served.address[export].replace('/zarr/', '/ome/')}/{name}")
        [multiscale] = image.attrs["ome"]["multiscales"]
        assert [axis["type"] for axis in multiscale["axes"]] == ["space"] * 3
        scale, moved = multiscale["datasets"][1]["coordinateTransformations"]
        described = json.loads(conftest.corridor(tmp_path, "info", "--json", served.url[export]).stdout)
        [levels] = [a["levels"] for a in described["arrays"] if a["name"] == name]
        shapes = [image[d["path"]].shape for d in multiscale["datasets"]]
        assert shapes == sorted({tuple(lv["shape"]) for lv in levels}, reverse=True)
        assert scale["scale"] == [2.0] * 3
        if name == "large":
            assert moved["translation"] == [0.5] * 3
            with h5py.File(folder / "run.h5") as truth:
                mean = truth["large"][...].astype(float).reshape(64, 2, 64, 2, 128, 2).mean(axis=(1, 3, 5))
            assert np.abs(image["1"][...] - mean).max() < 1e-6, "a level lies where its transformation says"


def test_the_sample_can_be_read_too(served: Served) -> None:
    group = served.group(served.address["tooth.nhdr"])
    [array] = [group[name] for name in group.array_keys()]
    raw = np.fromfile(conftest.SAMPLE.with_suffix(".raw"), dtype=">u2").reshape(array.shape)
    assert np.array_equal(array[...], raw)


@pytest.mark.parametrize("key", ["c/9/0/0", "c/0/0", "c/0/0/0/0", "c/-1/0/0", "c/a/0/0", "c", "zarr.jsonx", ".zarray"])
def test_missing_documents_are_404_and_missing_chunks_410(served: Served, key: str) -> None:
    """A chunk that is not found stands for fill values, so of an array that is not there nothing may be. All else may."""
    expected = 410 if key in ("c/9/0/0", "c/0/0", "c/0/0/0/0") else 404
    for base in [served.address["run.h5"] + "/grid/rho", served.address["waves"] + "/waves"]:
        assert served.ask(f"{base}/{key}")[0] == expected, key
    assert served.ask(served.address["run.h5"] + "/../../etc/passwd")[0] in (404, 410)
    absent = served.address["run.h5"].replace("run.h5", "absent")
    assert served.ask(f"{absent}/zarr.json")[0] == 404
    assert served.ask(f"{absent}/grid/rho/c/0/0/0")[0] == 410
    assert served.ask(served.address["run.h5"] + "/grid/rh")[0] == 404


def test_removed_data_are_an_error(tmp_path: pathlib.Path) -> None:
    token = "for-this-test-alone"
    for name in ("x", "y"):
        np.save(tmp_path / f"{name}.npy", np.ones((300, 200)))
    arguments = ("--token", token, "--json", "--listen")
    with conftest.running(tmp_path, "serve", "x.npy", *arguments, "127.0.0.1:0") as program:
        served = Served(program.lines)
        ones = served.group(served.address["x.npy"])["x"]
        assert np.all(ones[:10] == 1)
        port = urllib.parse.urlsplit(served.address["x.npy"]).port
    with conftest.running(tmp_path, "serve", "y.npy", *arguments, f"127.0.0.1:{port}"), pytest.raises(Exception, match="410"):
        ones[...]


def test_token_is_required(served: Served) -> None:
    document = served.address["run.h5"] + "/zarr.json"
    for headers in [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eA=="}]:
        status, answer, body = ask(document, "GET", headers)
        assert (status, answer["www-authenticate"]) == (401, "Bearer")
        assert b"token" in body and b"zarr_format" not in body
    assert ask(document, "GET", served.headers | {"Host": "evil.example"})[0] == 403


PAGE = {"Origin": "https://viewer.example", "Sec-Fetch-Site": "cross-site"}
PREFLIGHT = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}


def test_cross_origin_requests_are_refused_by_default(
    served: Served, folder: pathlib.Path
) -> None:
    """Whatever token they show: that for everything is not for pages of others."""
    document = served.address["run.h5"] + "/zarr.json"
    refused = [ask(document, "OPTIONS", PAGE | PREFLIGHT), served.ask(document, **PAGE), ask(document, "GET", PAGE)]
    refused.append(served.ask(document, Origin=PAGE["Origin"]))
    arguments = ("--no-token", "--listen", "127.0.0.1:0", "--json")
    with conftest.running(folder, "serve", "run.h5", *arguments) as program:
        document = program.lines[0]["zarr"] + "/zarr.json"
        assert ask(document, "GET", {})[0] == 200
        assert ask(document, "GET", {"Sec-Fetch-Site": "cross-site"})[0] == 403, "an image names no Origin"
        refused.append(ask(document, "GET", PAGE))
    for status, headers, body in refused:
        assert status == 403 and "access-control-allow-origin" not in headers
        assert b"zarr_format" not in body


def test_a_token_for_zarr_lets_pages_of_named_sites_read_and_nothing_else(folder: pathlib.Path) -> None:
    arguments = ("serve", "run.h5", "--cors", PAGE["Origin"], "--listen", "127.0.0.1:0", "--json")
    with conftest.running(folder, *arguments) as program:
        line = program.lines[0]
        base = line["zarr"].partition("/zarr/")[0]
        document = line["zarr"] + "/zarr.json"
        reader = {"Authorization": f"Bearer {line['zarr_token']}"}
        owner = {"Authorization": f"Bearer {line['token']}"}
        # Pages: the named site with its token, and no other way.
        status, headers, _ = ask(document, "OPTIONS", PAGE | PREFLIGHT)
        assert (status, headers["access-control-allow-origin"]) == (204, PAGE["Origin"])
        assert {"authorization", "range"} <= set(headers["access-control-allow-headers"].split(", "))
        status, headers, body = ask(document, "GET", PAGE | reader)
        assert (status, headers["access-control-allow-origin"]) == (200, PAGE["Origin"])
        assert "origin" in headers["vary"].lower() and json.loads(body)["node_type"] == "group"
        assert ask(document, "GET", PAGE)[0] == 401
        assert ask(document, "GET", PAGE | owner)[0] == 403
        for origin in ["https://evil.example", "https://viewer.example.evil.org", "null"]:
            for method, more in [("OPTIONS", PREFLIGHT), ("GET", reader), ("GET", owner)]:
                status, headers, _ = ask(document, method, PAGE | more | {"Origin": origin})
                assert status == 403 and "access-control-allow-origin" not in headers
        # Programs: Zarr with either token, all else with that for everything alone.
        assert ask(document, "GET", reader)[0] == ask(document, "GET", owner)[0] == 200
        assert (ask(f"{base}/path", "GET", owner)[0], ask(f"{base}/path", "GET", reader)[0]) == (200, 403)
        less = line["url"].replace(line["token"], line["zarr_token"])
        for command in [("info", less), ("get", less, "grid/rho", "-o", "x.npy"), ("view", less)]:
            done = conftest.corridor(folder, *command, timeout=60)
            assert (done.returncode, "Zarr over HTTP only" in done.stderr) == (4, True), done.stderr


def test_cross_origin_requests_can_be_allowed_for_all(folder: pathlib.Path) -> None:
    arguments = ("--cors", "*", "--zarr-token", "for-a-workshop", "--listen", "127.0.0.1:0", "--json")
    with conftest.running(folder, "serve", "run.h5", *arguments) as program:
        document = program.lines[0]["zarr"] + "/zarr.json"
        status, headers, _ = ask(document, "GET", PAGE | {"Authorization": "Bearer for-a-workshop"})
        assert (status, headers["access-control-allow-origin"]) == (200, "*")
    for wrong in [("--cors", "viewer.example"), ("--zarr-token", "t", "--token", "t"), ("--cors", "*", "--no-token")]:
        assert conftest.corridor(folder, "serve", "run.h5", *wrong).returncode == 2, wrong


def test_etag_revalidates_a_cached_copy(served: Served) -> None:
    chunk = served.address["run.h5"] + "/grid/rho/c/0/0/0"
    status, headers, body = served.ask(chunk)
    assert status == 200 and len(body) > 0
    assert served.ask(chunk, **{"If-None-Match": headers["etag"]})[0] == 304
    status, again, nothing = served.ask(chunk, "HEAD")
    assert (status, again["content-length"], nothing) == (200, str(len(body)), b"")


def test_head_request_returns_the_size_of_a_chunk_without_reading_it(folder: pathlib.Path) -> None:
    with conftest.running(folder, "serve", "run.h5", "--listen", "127.0.0.1:0", "--json") as program:
        served = Served(program.lines)
        chunk = served.address["run.h5"] + "/grid/rho/c/1/1/1"
        served.ask(served.address["run.h5"] + "/zarr.json")
        before = conftest.io_counts(program.process.pid)["rchar"]
        status, headers, nothing = served.ask(chunk, "HEAD")
        assert (status, nothing, headers["accept-ranges"]) == (200, b"", "bytes")
        read_bytes = conftest.io_counts(program.process.pid)["rchar"] - before
        assert read_bytes < 4096, "the chunk is read"
        assert int(headers["content-length"]) == len(served.ask(chunk)[2])
        assert conftest.io_counts(program.process.pid)["rchar"] - before > 4096


def test_byte_ranges_are_sent_alone(served: Served) -> None:
    for address in [served.address["run.h5"] + "/grid/rho/c/0/0/0", served.address["run.h5"] + "/zarr.json"]:
        _, whole_headers, whole = served.ask(address)
        for text, part in [("10-29", whole[10:30]), ("-7", whole[-7:]), (f"{len(whole) - 3}-", whole[-3:])]:
            status, headers, body = served.ask(address, Range=f"bytes={text}")
            assert (status, body) == (206, part)
            assert headers["content-range"].endswith(f"/{len(whole)}")
        status, headers, _ = served.ask(address, Range=f"bytes={len(whole)}-")
        assert (status, headers["content-range"]) == (416, f"bytes */{len(whole)}")
        known = {"Range": "bytes=0-3", "If-Range": whole_headers["etag"]}
        assert served.ask(address, **known)[0] == 206
        assert served.ask(address, **known | {"If-Range": '"another state"'})[2] == whole
        # Ranges are for GET alone (RFC 9110, section 14.2).
        status, headers, nothing = served.ask(address, "HEAD", Range="bytes=0-3")
        assert (status, headers["content-length"], nothing) == (200, str(len(whole)), b"")


def test_only_canonical_keys_are_accepted(served: Served) -> None:
    image = served.address["run.h5"].replace("/zarr/", "/ome/") + "/grid/rho"
    for key in ("zarr.json", "c/0/0/0"):
        assert served.ask(f"{image}/0/{key}")[0] == 200
        for alias in ("+0", "000", "00"):
            assert served.ask(f"{image}/{alias}/{key}")[0] == (404 if key == "zarr.json" else 410), alias
    for alias in ("c/00/0/0", "c/+0/0/0"):
        assert served.ask(f"{image}/0/{alias}")[0] == 404, alias


def test_thousands_of_arrays_are_described_at_once(tmp_path: pathlib.Path) -> None:
    with h5py.File(tmp_path / "many.h5", "w", libver="latest") as file:
        for number in range(3000):
            file[f"group{number % 30}/a{number}"] = np.full((2, number % 7 + 1), number, np.int32)
    with conftest.running(tmp_path, "serve", "many.h5", "--listen", "127.0.0.1:0", "--json") as program:
        served = Served(program.lines)
        address = served.address["many.h5"]
        first = served.ask(address + "/zarr.json")
        described = json.loads(first[2])["consolidated_metadata"]["metadata"]
        assert sum(d["node_type"] == "array" for d in described.values()) == 3000
        assert sum(d["node_type"] == "group" for d in described.values()) == 30
        assert served.ask(address + "/zarr.json")[2] == first[2]
        found = served.group(address)["group29/a2999"]
        assert np.array_equal(found[...], np.full((2, 2999 % 7 + 1), 2999))


def test_a_store_that_is_one_array_is_read_at_its_root(tmp_path: pathlib.Path) -> None:
    stored = tmp_path / "tooth.zarr"
    assert conftest.corridor(tmp_path, "get", str(conftest.SAMPLE), "-o", str(stored)).returncode == 0
    truth = zarr.open_array(stored, mode="r")[...]
    with conftest.running(tmp_path, "serve", "tooth.zarr", "--listen", "127.0.0.1:0", "--json") as program:
        served = Served(program.lines)
        address = served.address["tooth.zarr"]
        store = FsspecStore.from_url(address, storage_options=served.options)
        assert np.array_equal(zarr.open_array(store, mode="r")[...], truth)
        image = served.group(address.replace("/zarr/", "/ome/"))
        assert np.array_equal(image["0"][...], truth)


@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning", "ignore::zarr.errors.UnstableSpecificationWarning")
def test_texts_of_netcdf_3_open_in_xarray(tmp_path: pathlib.Path) -> None:
    names = ["Zürich", "", "Bern"]
    xr.Dataset({"names": ("station", names)}).to_netcdf(tmp_path / "names.nc", engine="netcdf4", format="NETCDF3_64BIT")
    with conftest.running(tmp_path, "serve", "names.nc", "--listen", "127.0.0.1:0", "--json") as program:
        served = Served(program.lines)
        with xr.open_zarr(served.address["names.nc"], storage_options=served.options) as found:
            assert [str(name) for name in found["names"].values] == names


def test_groups_with_arrays_and_groups_are_complete(tmp_path: pathlib.Path) -> None:
    names = ["A/v", "B/v", "A/C/v", "B/D/v", "A/u"]
    with h5py.File(tmp_path / "deep.h5", "w") as file:
        for number, name in enumerate(names):
            file[name] = np.full(3, number)
    with conftest.running(tmp_path, "serve", "deep.h5", "--listen", "127.0.0.1:0", "--json") as program:
        served = Served(program.lines)
        found = served.group(served.address["deep.h5"])
        assert sorted(name for name, _ in found.members(max_depth=None)) == sorted([*names, "A", "B", "A/C", "B/D"])
        assert [found[name][0] for name in names] == [0, 1, 2, 3, 4]
