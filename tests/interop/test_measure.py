"""Values and measurements in the viewer, compared with numpy on the file, read by the format's own library."""

import json
import pathlib
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager

import h5py
import netCDF4
import nibabel
import numpy as np
import pytest
import xarray as xr
import zarr
from conftest import running
from wire_client import Client, WireError

SIZE = {"width": 240, "height": 180}
# Most positions of one request.
MOST_POSITIONS = 64
OPAQUE = {"map": "gray", "range": [-1e4, 1e4], "opacity": [[-1e9, 1.0]]}


class Node:
    """A viewing node and what it answers."""

    def __init__(self, client: Client):
        self.client = client

    def call(self, name: str, parameters: dict) -> list[dict]:
        op = self.client.request(name, json.dumps(parameters).encode())
        return [item.json for item in self.client.items(op)]

    def pick(self, at: list[list[float]], **view: object) -> list[dict]:
        # Without a camera, that which shows the whole array.
        picks = []
        for first in range(0, max(len(at), 1), MOST_POSITIONS):
            some = at[first : first + MOST_POSITIONS]
            [answer] = self.call("pick", {"view": {"camera": None, **view}, "at": some, **SIZE})
            picks += answer["picks"]
        return picks

    def measure(self, kind: str, view: dict | None = None, **parameters: object) -> dict:
        *progress, last = self.call("measure", {"kind": kind, "view": view or {}, **parameters})
        done = [item["progress"]["done"] for item in progress]
        assert done == sorted(done)
        return last["result"]


@contextmanager
def viewing(home: pathlib.Path, path: pathlib.Path) -> Iterator[Node]:
    with running(home, "view", str(path), "--listen", "127.0.0.1:0", "--json") as program:
        parts = urllib.parse.urlsplit(program.url)
        token = dict(urllib.parse.parse_qsl(parts.fragment))["token"]
        with Client(f"ws://{parts.netloc}/wire", token) as client:
            yield Node(client)


def everywhere() -> list[list[float]]:
    """Positions all over the picture."""
    return [[x + 0.5, y + 0.5] for y in range(10, 180, 11) for x in range(7, 240, 13)]


def number(scalar: float | str | None) -> float:
    return np.nan if scalar is None else float(scalar)


@pytest.fixture
def packed(tmp_path: pathlib.Path) -> pathlib.Path:
    """Temperatures as packed integers with fill values, on uneven pressure levels, over 20 days; and a mask with names."""
    path = tmp_path / "packed.nc"
    rng = np.random.default_rng(7)
    with netCDF4.Dataset(path, "w") as out:
        for name, size in {"time": 20, "lev": 7, "lat": 12, "lon": 18}.items():
            out.createDimension(name, size)
        time = out.createVariable("time", "f8", ("time",))
        time.setncatts({"units": "hours since 2001-02-27", "calendar": "noleap"})
        time[:] = 24 * np.arange(20)
        lev = out.createVariable("lev", "f8", ("lev",))
        lev.setncatts({"units": "hPa", "positive": "down", "axis": "Z"})
        lev[:] = [1000, 925, 850, 700, 500, 250, 100]
        for name, units, values in [
            ("lat", "degrees_north", np.linspace(-55, 55, 12)),
            ("lon", "degrees_east", np.arange(18) * 20.0),
        ]:
            axis = out.createVariable(name, "f8", (name,))
            axis.units = units
            axis[:] = values
        t = out.createVariable("t", "i2", ("time", "lev", "lat", "lon"), fill_value=-32000, chunksizes=(3, 7, 5, 18))
        t.setncatts({"scale_factor": 0.01, "add_offset": 273.15, "units": "K"})
        t.set_auto_maskandscale(False)
        values = rng.integers(-9000, 9000, (20, 7, 12, 18)).astype("i2")
        values[rng.random(values.shape) < 0.05] = -32000
        t[:] = values
        mask = out.createVariable("surface_labels", "u1", ("lat", "lon"))
        mask.setncatts({"flag_values": np.array([1, 2, 5], "u1"), "flag_meanings": "sea land sea_ice"})
        mask[:] = rng.choice([1, 2, 5], (12, 18))
    return path


def stored(path: pathlib.Path, name: str) -> np.ndarray:
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        return np.asarray(file[name][:])


def check(pick: dict, raw: np.ndarray, decoded: np.ndarray) -> tuple[int, ...]:
    """Compares a value with the file's, and returns its index."""
    [element] = pick["value"]["elements"]
    index = tuple(element["index"])
    assert index == tuple(axis["index"] for axis in pick["value"]["axes"])
    assert number(element["stored"]) == raw[index] or np.isnan(raw[index])
    if not np.isnan(decoded[index]):
        assert number(element["decoded"]) == decoded[index], (element, decoded[index])
        assert np.float32(element["text"]) == np.float32(decoded[index])
    else:
        assert element["missing"] is not None
    return index


def test_packed_values_on_uneven_levels_are_those_of_the_file(home, packed):
    raw = stored(packed, "t")
    decoded = xr.open_dataset(packed, decode_times=False)["t"].values
    with viewing(home, packed) as node:
        found = set()
        for level in (1.0, 6.0, 12.0):
            slices = [{"axis": "z", "at": level}, {"axis": "x", "at": 7.4}]
            view = {"array": "t", "time": 5, "mode": "surfaces", "slices": slices, "transfer": OPAQUE}
            for pick in node.pick(everywhere(), **view):
                if pick["hit"] == "nothing":
                    continue
                assert pick["hit"] == "slice" and pick["value"]["level"] == 0
                index = check(pick, raw, decoded)
                assert index[0] == 5
                time, lev = pick["value"]["axes"][:2]
                assert (time["text"], time["name"]) == ("2001-03-04", "time"), "of a year without 29 February"
                assert lev["coordinate"] == [1000, 925, 850, 700, 500, 250, 100][index[1]] and lev["units"] == "hPa"
                found.add(index)
        assert len(found) > 30 and len({index[1] for index in found}) >= 3, found
        opaque = node.pick(everywhere(), array="t", time=2, mode="composite", transfer=OPAQUE)
        assert sum(check(pick, raw, decoded)[0] == 2 for pick in opaque if pick["hit"] == "volume") > 10


def test_labels_have_names_and_missing_values_say_so(home, packed, tmp_path):
    names = {1: "sea", 2: "land", 5: "sea_ice"}
    raw = stored(packed, "surface_labels")
    with viewing(home, packed) as node:
        picks = [pick for pick in node.pick(everywhere(), array="surface_labels") if pick["hit"] != "nothing"]
        assert len(picks) > 30 and {pick["hit"] for pick in picks} == {"image"}
        for pick in picks:
            [element] = pick["value"]["elements"]
            assert element["label"] == names[raw[tuple(element["index"])]]
        with pytest.raises(WireError, match="expected"):
            node.pick([[0, 0]], array="nothing")
        with pytest.raises(WireError, match="1 to 64 positions"):
            node.pick([])
    flat = tmp_path / "flat.h5"
    data = np.linspace(0, 1, 30 * 40).reshape(30, 40)
    data[:, 20:] = np.nan
    with h5py.File(flat, "w") as out:
        out["a"] = data
    with viewing(home, flat) as node:
        for pick in node.pick(everywhere()):
            if pick["hit"] == "nothing":
                continue
            row, column = check(pick, data, data)
            assert (pick["value"]["elements"][0]["missing"] == "not a number") == (column >= 20)


def test_an_oblique_nifti_has_the_places_of_its_affine(home, tmp_path):
    turn = np.array([[0.96, -0.2, 0.15], [0.22, 0.97, -0.05], [-0.13, 0.08, 0.98]])
    affine = np.eye(4)
    affine[:3, :3] = turn @ np.diag([-1.0, 1.5, 3.0])
    affine[:3, 3] = [40, -30, 12]
    data = np.random.default_rng(3).integers(-500, 500, (31, 24, 17)).astype("i2")
    image = nibabel.Nifti1Image(data, affine)
    image.header.set_sform(affine, code=1)
    image.header.set_xyzt_units("mm")
    path = tmp_path / "oblique.nii.gz"
    nibabel.save(image, path)
    raw = np.asarray(nibabel.load(path).dataobj).T
    with viewing(home, path) as node:
        slices = [{"axis": "y", "at": 9}, {"axis": "z", "at": 5.2}]
        picks = node.pick(everywhere(), mode="surfaces", slices=slices, transfer=OPAQUE)
        hits = [pick for pick in picks if pick["hit"] == "slice"]
        assert len(hits) > 20
        for pick in hits:
            index = check(pick, raw, raw)
            assert pick["world_units"] == "mm"
            place = np.linalg.inv(affine) @ [*pick["world"], 1]
            assert np.abs(place[:3] - index[::-1]).max() <= 0.5 + 1e-6
            axis = slices[pick["number"]]["axis"]
            assert index[{"z": 0, "y": 1}[axis]] == {"z": 5, "y": 9}[axis]
        a, b = (affine @ [*p, 1] for p in ([2, 3, 4], [25, 20, 15]))
        line = node.measure("profile", **{"from": list(a[:3]), "to": list(b[:3])})
        assert line["distance"][-1] == pytest.approx(np.linalg.norm(b - a)) and len(line["distance"]) == 24
        share = np.linspace(0, 1, 24)[:, None]
        expected = np.floor(np.array([4, 3, 2]) + share * np.array([11, 17, 23]) + 0.5 + 1e-9).astype(int)
        index = np.array(line["index"])
        assert np.abs(index - expected).max() <= 1 and (index == expected).mean() > 0.95
        assert line["channels"][0]["stored"] == [raw[tuple(i)] for i in line["index"]]
        # Voxels whose centers lie in a box along the axes of the world.
        clip = [[0.2, 0.3, 0.1], [0.7, 0.8, 0.9]]
        found = node.measure("clip", {"clip": clip})
        grid = np.stack(np.meshgrid(*(np.arange(n) for n in data.shape), indexing="ij"), -1).reshape(-1, 3)
        corners = np.array([[x, y, z] for x in (-0.5, 30.5) for y in (-0.5, 23.5) for z in (-0.5, 16.5)])
        outer = corners @ affine[:3, :3].T + affine[:3, 3]
        low, high = (outer.min(0) + np.array(c) * np.ptp(outer, axis=0) for c in clip)
        world = grid @ affine[:3, :3].T + affine[:3, 3]
        inside = ((world >= low) & (world < high)).all(1)
        values = data[tuple(grid[inside].T)].astype(float)
        compare(found["channels"][0], values)
        assert found["mask"] == "box"


def compare(found: dict, values: np.ndarray) -> None:
    """Compares statistics with those of numpy; missing values are NaN."""
    present = values[np.isfinite(values)]
    assert (found["elements"], found["count"]) == (values.size, present.size)
    assert found["missing"] == values.size - present.size
    assert (found["min"], found["max"]) == (present.min(), present.max())
    assert found["mean"] == pytest.approx(present.mean(), rel=1e-12)
    assert found["std"] == pytest.approx(present.std(), rel=1e-9)


def test_series_and_statistics_are_those_of_numpy(home, packed):
    decoded = xr.open_dataset(packed, decode_times=False)["t"].values
    view = {"array": "t", "time": 4, "transfer": OPAQUE}
    slices = {"mode": "surfaces", "slices": [{"axis": "z", "at": 9.0}], "transfer": OPAQUE}
    with viewing(home, packed) as node:
        hits = [p for p in node.pick(everywhere(), **view | slices) if p["hit"] == "slice"]
        first, last = hits[0], hits[-1]
        one, two = (tuple(p["value"]["elements"][0]["index"]) for p in (first, last))
        series = node.measure("series", view, at=first["world"])
        values = np.array([number(v) for v in series["channels"][0]["decoded"]])
        assert np.array_equal(values, decoded[(slice(None), *one[1:])].astype(float), equal_nan=True)
        assert series["text"][:3] == ["2001-02-27", "2001-02-28", "2001-03-01"]
        assert series["coordinate"] == list(24.0 * np.arange(20))
        box = node.measure("box", view, corners=[first["world"], last["world"]])
        ranges = tuple(slice(min(a, b), max(a, b) + 1) for a, b in zip(one, two, strict=True))
        assert box["selection"] == [[r.start, r.stop] for r in ranges] and box["mask"] == "all"
        compare(box["channels"][0], decoded[ranges].astype(float))
        whole = node.measure("clip", view)
        compare(whole["channels"][0], decoded[4].astype(float))
        half = node.measure("clip", view | {"clip": [[0, 0, 0], [0.5, 1, 1]]})
        compare(half["channels"][0], decoded[4, :, :, :9].astype(float))
        profile = node.measure("profile", view, **{"from": first["world"], "to": last["world"], "samples": 50})
        values = [number(v) for v in profile["channels"][0]["decoded"]]
        expected = [decoded[tuple(index)].astype(float) for index in profile["index"]]
        assert np.array_equal(values, expected, equal_nan=True) and len(values) == 50
        assert tuple(profile["index"][0]) == one and tuple(profile["index"][-1]) == two
        with pytest.raises(WireError, match="no time axis"):
            node.measure("series", {"array": "surface_labels"}, at=[20.0, 5.0, 0.0])
        with pytest.raises(WireError, match="no voxel's center"):
            node.measure("clip", view | {"clip": [[0.001, 0, 0], [0.002, 1, 1]]})


def test_a_polygon_contains_the_pixels_whose_centers_it_contains(home, tmp_path):
    image = np.random.default_rng(5).normal(size=(60, 80)).astype("f4")
    image[10:13, 20:24] = np.nan
    path = tmp_path / "image.h5"
    with h5py.File(path, "w") as out:
        out.create_dataset("a", data=image, chunks=(17, 23))
    corners = [[5.2, 3.1], [70.3, 8.4], [55.5, 50.2], [30.2, 20.7], [8.1, 55.3]]
    with viewing(home, path) as node:
        found = node.measure("polygon", corners=[[x, y, 0.0] for x, y in corners])
        y, x = np.mgrid[:60, :80]
        inside = np.zeros(image.shape, bool)
        for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1], strict=True):
            crosses = (ay > y) != (by > y)
            inside ^= crosses & (x < ax + (y - ay) / (by - ay) * (bx - ax))
        compare(found["channels"][0], image[inside].astype(float))
        rows = [image[i, j:k] for i, j, k in found["spans"]["rows"]]
        assert np.array_equal(np.concatenate(rows), image[inside], equal_nan=True)
        with pytest.raises(WireError, match="at least 3 corners"):
            node.measure("polygon", corners=[[1.0, 1.0, 0.0], [2.0, 2.0, 0.0]])


def test_values_of_ome_zarr_are_those_of_full_resolution_at_any_zoom(home, tmp_path):
    path = tmp_path / "pyramid.zarr"
    data = np.random.default_rng(1).integers(0, 4000, (40, 160, 200)).astype("u2")
    group = zarr.open_group(str(path), mode="w", zarr_format=2)
    datasets = []
    level = data
    for number_, factor in enumerate((1, 2, 4)):
        array = group.create_array(str(number_), shape=level.shape, chunks=(16, 32, 32), dtype="u2")
        array[:] = level
        scale = [2.0 * factor, 0.5 * factor, 0.5 * factor]
        datasets.append({"path": str(number_), "coordinateTransformations": [{"type": "scale", "scale": scale}]})
        z, y, x = (n // 2 for n in level.shape)
        level = level[: 2 * z, : 2 * y, : 2 * x].reshape(z, 2, y, 2, x, 2).mean((1, 3, 5)).astype("u2")
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]
    group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": datasets}]
    drawn = set()
    with viewing(home, path) as node:
        for distance in (40.0, 1800.0):
            camera = {
                "eye": [50.0, 40.0, 40.0 + distance],
                "target": [50.0, 40.0, 40.0],
                "up": [0.0, 1.0, 0.0],
                "projection": {"perspective": {"fov_y_rad": 0.5}},
            }
            near = [[x, y] for x in np.linspace(112, 128, 6) for y in np.linspace(82, 98, 6)]
            view = {"camera": camera, "transfer": OPAQUE | {"range": [0, 4000]}, "mode": "composite"}
            hits = [pick for pick in node.pick(near, **view) if pick["hit"] == "volume"]
            assert len(hits) > 20
            for pick in hits:
                check(pick, data, data.astype(float))
                assert pick["value"]["level"] == 0
                drawn.add(pick["value"]["drawn"]["level"])
    assert 0 in drawn and max(drawn) > 0, f"drawn levels {drawn}: the picture was drawn near and far"


def test_a_participant_reads_what_its_own_picture_shows(home, packed):
    raw, decoded = stored(packed, "t"), xr.open_dataset(packed, decode_times=False)["t"].values
    with viewing(home, packed) as node:
        client = node.client
        join = client.request("join", json.dumps({"session": "main", "name": "Ada", **SIZE}).encode())
        you = None
        for item in client.items(join):
            message = item.json
            if message["kind"] == "joined":
                you = message["you"]
                client.note(join, {"kind": "view", "seq": 1, "view": {"array": "t", "time": 9, "transfer": OPAQUE}})
            if message["kind"] == "frame":
                client.note(join, {"kind": "shown", "frame": message["id"]})
                if message["seq"] >= 1 and message["truth"]["exact"]:
                    break
        at = [[120.5, 90.5], [100.5, 80.5]]
        [answer] = node.call("pick", {"participant": you, "at": at, **SIZE})
        for pick in answer["picks"]:
            assert pick["hit"] == "volume" and check(pick, raw, decoded)[0] == 9
