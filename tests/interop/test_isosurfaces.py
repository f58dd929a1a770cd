"""Isosurfaces from the command line: as meshes that other programs read, and as pictures."""

import json
import pathlib
import struct
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest
from conftest import corridor, running
from films import pixels

RADIUS = 14.0
# Name in NetCDF-4 of the dimension scale of a dimension that has no coordinates.
NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable.{:10d}"


@pytest.fixture
def ball(tmp_path: pathlib.Path) -> str:
    """Distance from the middle of 40^3 voxels, in chunks that do not divide it, stored scaled as NetCDF-4 does."""
    z, y, x = np.mgrid[:40, :40, :40] - 19.3
    path = tmp_path / "ball.h5"
    with h5py.File(path, "w") as file:
        data = np.round(np.sqrt(x**2 + y**2 + z**2) * 100).astype(np.int16)
        stored = file.create_dataset("distance", data=data, chunks=(16, 13, 40), compression="gzip")
        stored.attrs["scale_factor"] = 0.01
        for axis, name in enumerate("zyx"):
            file[name] = np.arange(40.0)
            file[name].make_scale(NO_VARIABLE.format(40))
            stored.dims[axis].attach_scale(file[name])
    return str(path)


def read_ply(path: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
    header, _, body = path.read_bytes().partition(b"end_header\n")
    words = header.decode().split()
    vertices, faces = (int(words[words.index(name) + 1]) for name in ("vertex", "face"))
    positions = np.frombuffer(body, "<f8", vertices * 3).reshape(-1, 3)
    triangles = np.frombuffer(body, np.dtype([("n", "u1"), ("i", "<u4", 3)]), faces, vertices * 24)
    assert (triangles["n"] == 3).all() and len(body) == vertices * 24 + faces * 13
    return positions, triangles["i"]


def test_a_mesh_is_closed_and_lies_where_the_values_are(home, ball, tmp_path):
    out = tmp_path / "ball.ply"
    done = corridor(home, "get", ball, "--iso", str(RADIUS), "-o", str(out), "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    positions, triangles = read_ply(out)
    assert (said["vertices"], said["triangles"]) == (len(positions), len(triangles))
    assert np.abs(np.linalg.norm(positions - 19.3, axis=1) - RADIUS).max() < 0.05
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    directed = {tuple(edge) for edge in edges}
    assert len(directed) == len(edges) and all((b, a) in directed for a, b in directed)
    assert len(positions) - len(edges) // 2 + len(triangles) == 2


def test_mesh_of_a_selection_has_the_right_position_in_every_format(home, ball, tmp_path):
    part = "[10:40, ::2, :20]"
    for name in ("part.ply", "part.vtp", "part.glb"):
        done = corridor(home, "get", ball, part, "--iso", str(RADIUS), "-o", str(tmp_path / name))
        assert done.returncode == 0, done.stderr
    positions, triangles = read_ply(tmp_path / "part.ply")
    assert positions[:, 0].max() <= 19 and positions[:, 2].min() >= 10
    assert np.abs(np.linalg.norm(positions - 19.3, axis=1) - RADIUS).max() < 0.2
    glb = (tmp_path / "part.glb").read_bytes()
    length = struct.unpack_from("<I", glb, 12)[0]
    document = json.loads(glb[20 : 20 + length])
    assert document["accessors"][0]["count"] == len(positions)
    near = np.frombuffer(glb, "<f4", len(positions) * 3, 28 + length).reshape(-1, 3)
    assert np.allclose(near + document["nodes"][0]["translation"], positions, atol=1e-5)
    assert f'NumberOfPolys="{len(triangles)}"'.encode() in (tmp_path / "part.vtp").read_bytes()


def read_glb(path: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
    """Reads a glTF mesh by its own description of the buffer, in world coordinates."""
    glb = path.read_bytes()
    magic, version, total, length, kind = struct.unpack_from("<4sIIII", glb)
    assert (magic, version, total, kind) == (b"glTF", 2, len(glb), 0x4E4F534A)
    document = json.loads(glb[20 : 20 + length])
    assert struct.unpack_from("<II", glb, 20 + length) == (document["buffers"][0]["byteLength"], 0x004E4942)
    data = glb[28 + length :]
    [primitive] = document["meshes"][0]["primitives"]
    assert primitive.get("mode", 4) == 4

    def accessor(number: int, dtype: str, columns: int) -> np.ndarray:
        about = document["accessors"][number]
        view = document["bufferViews"][about["bufferView"]]
        at = view.get("byteOffset", 0) + about.get("byteOffset", 0)
        return np.frombuffer(data, dtype, about["count"] * columns, at)

    positions = accessor(primitive["attributes"]["POSITION"], "<f4", 3).reshape(-1, 3)
    triangles = accessor(primitive["indices"], "<u4", 1).reshape(-1, 3)
    return positions + document["nodes"][0]["translation"], triangles


def read_vtp(path: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
    """Reads a VTK mesh by the XML description of its appended data."""
    head, _, rest = path.read_bytes().partition(b"<AppendedData")
    root = ElementTree.fromstring(head + b"</VTKFile>")
    assert (root.get("type"), root.get("byte_order"), root.get("header_type")) == ("PolyData", "LittleEndian", "UInt64")
    data = rest[rest.index(b"_") + 1 :]

    def values(element: ElementTree.Element | None, dtype: str) -> np.ndarray:
        assert element is not None
        at = int(element.get("offset", ""))
        return np.frombuffer(data, dtype, struct.unpack_from("<Q", data, at)[0] // 8, at + 8)

    positions = values(root.find(".//Points/DataArray"), "<f8").reshape(-1, 3)
    triangles = values(root.find(".//Polys/DataArray[@Name='connectivity']"), "<i8").reshape(-1, 3)
    ends = values(root.find(".//Polys/DataArray[@Name='offsets']"), "<i8")
    assert np.array_equal(ends, 3 * np.arange(1, len(triangles) + 1))
    return positions, triangles


def test_every_format_holds_the_same_mesh_also_from_a_server(home, ball, tmp_path):
    with running(home, "serve", ball, "--listen", "127.0.0.1:0", "--json") as server:
        for name in ("far.ply", "far.glb", "far.vtp"):
            done = corridor(home, "get", server.url, "--iso", str(RADIUS), "-o", str(tmp_path / name))
            assert done.returncode == 0, done.stderr
    done = corridor(home, "get", ball, "--iso", str(RADIUS), "-o", str(tmp_path / "near.ply"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "far.ply").read_bytes() == (tmp_path / "near.ply").read_bytes()
    positions, triangles = read_ply(tmp_path / "far.ply")
    for read, name, off in [(read_glb, "far.glb", 1e-5), (read_vtp, "far.vtp", 0)]:
        others, same = read(tmp_path / name)
        assert np.array_equal(same, triangles) and np.abs(others - positions).max() <= off, name


def test_a_picture_of_a_surface_from_a_server_has_its_size_and_color(home, ball, tmp_path):
    """A ball of radius 14 before a parallel camera of 40 voxels' height covers a disc of 14/40 of the picture's height."""
    camera = {
        "eye": [19.3, -60, 19.3],
        "target": [19.3, 19.3, 19.3],
        "up": [0, 0, 1],
        "projection": {"orthographic": {"height_world": 40}},
    }
    arguments = ["--iso", f"{RADIUS}:#20c040", "--camera", json.dumps(camera), "--size", "200x200"]
    with running(home, "serve", ball, "--listen", "127.0.0.1:0", "--json") as server:
        done = corridor(home, "render", server.url, *arguments, "-o", str(tmp_path / "far.png"))
        assert done.returncode == 0, done.stderr
    done = corridor(home, "render", ball, *arguments, "-o", str(tmp_path / "near.png"))
    assert done.returncode == 0, done.stderr
    picture = pixels(tmp_path / "far.png")
    assert np.array_equal(picture, pixels(tmp_path / "near.png"))
    is_seen = np.abs(picture - picture[0, 0]).max(axis=2) > 12
    row, column = np.mgrid[:200, :200] - 99.5
    expected = np.hypot(row, column) < RADIUS / 40 * 200
    assert (is_seen != expected).sum() < 0.02 * expected.sum()
    red, green, blue = picture[is_seen].mean(axis=0)
    assert green > 2 * red and green > 2 * blue


def test_arrays_without_isosurface_are_refused(home, ball, tmp_path):
    for arguments, code, says in [
        (["[3]", "--iso", "14", "-o", "x.ply"], 2, "needs a volume"),
        (["--iso", "14", "-o", "x.stl"], 2, ".ply, .glb or .vtp"),
        (["--iso", "nan", "-o", "x.ply"], 2, "finite"),
        (["--iso", "1e9", "-o", "x.glb"], 2, "found none at this value"),
    ]:
        arguments = [str(tmp_path / a) if a.startswith("x.") else a for a in arguments]
        done = corridor(home, "get", ball, *arguments)
        assert (done.returncode, says in done.stderr) == (code, True), done.stderr
    assert not list(tmp_path.glob("x.*"))


def test_a_picture_of_surfaces_is_that_of_the_same_view(home, ball, tmp_path):
    one, same = tmp_path / "one.png", tmp_path / "same.png"
    done = corridor(
        home, "render", ball, "--iso", "14:#d05030:0.5", "--iso", "8", "--size", "160x120", "-o", str(one)
    )
    assert done.returncode == 0, done.stderr
    view = {
        "mode": "surfaces",
        "surfaces": [
            {"value": 14, "color": [208, 80, 48], "opacity": 0.5},
            {"value": 8, "color": [86, 180, 233], "opacity": 1},
        ],
    }
    done = corridor(home, "render", ball, "--view", json.dumps(view), "--size", "160x120", "-o", str(same))
    assert done.returncode == 0, done.stderr
    assert one.read_bytes() == same.read_bytes() and one.stat().st_size > 3000
    done = corridor(home, "render", ball, "--iso", "14:red", "-o", str(one))
    assert done.returncode == 2 and "expected an isosurface such as" in done.stderr
