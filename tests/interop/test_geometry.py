"""Geometry: what `corridor info` says of files that the formats' own libraries wrote, pictures with layers, and our own isosurfaces."""

import base64
import json
import pathlib
import zlib

import nibabel
import numpy as np
import pytest
import shapefile
import trimesh
from conftest import SAMPLE, corridor, running
from pictures import pixels

SIZE = "96x80"


def described(home: pathlib.Path, path: pathlib.Path | str) -> dict:
    done = corridor(home, "info", "--json", str(path))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(home: pathlib.Path, path: pathlib.Path, vertices: np.ndarray, triangles: int) -> dict:
    found = described(home, path)
    assert found["triangles"] == triangles, path
    assert found["vertices"] == len(vertices), path
    np.testing.assert_allclose(found["bounds"], [vertices.min(0), vertices.max(0)], rtol=1e-6, atol=1e-6)
    return found


@pytest.fixture
def ball() -> trimesh.Trimesh:
    return trimesh.creation.icosphere(subdivisions=3, radius=12.5).apply_translation([40, -7, 3])


@pytest.mark.parametrize("ending", ["ply", "stl", "glb", "ascii.ply", "ascii.stl"])
def test_surfaces_that_trimesh_wrote(home, ball, ending):
    path = home / f"ball.{ending}"
    kind = ending.rsplit(".", 1)[-1]
    options = {"file_type": "stl_ascii"} if ending == "ascii.stl" else {"file_type": kind}
    if ending == "ascii.ply":
        options["encoding"] = "ascii"
    ball.export(path, **options)
    check(home, path, ball.vertices, len(ball.faces))


def gifti(vertices: np.ndarray, faces: np.ndarray, encoding: str, coordsys=None) -> nibabel.gifti.GiftiImage:
    point = nibabel.gifti.GiftiDataArray(
        vertices.astype("f4"), intent="NIFTI_INTENT_POINTSET", encoding=encoding, coordsys=coordsys
    )
    face = nibabel.gifti.GiftiDataArray(faces.astype("i4"), intent="NIFTI_INTENT_TRIANGLE", encoding=encoding)
    depth = nibabel.gifti.GiftiDataArray(
        vertices[:, 2].astype("f4"), intent="NIFTI_INTENT_SHAPE", encoding=encoding, meta={"Name": "depth"}
    )
    return nibabel.gifti.GiftiImage(darrays=[point, face, depth])


@pytest.mark.parametrize("encoding", ["GIFTI_ENCODING_ASCII", "GIFTI_ENCODING_B64BIN", "GIFTI_ENCODING_B64GZ"])
def test_surfaces_that_nibabel_wrote(home, ball, encoding):
    path = home / "ball.surf.gii"
    nibabel.save(gifti(ball.vertices, ball.faces, encoding), path)
    found = check(home, path, ball.vertices, len(ball.faces))
    (values,) = found["values"]
    assert values["name"] == "depth"
    np.testing.assert_allclose(values["range"], [ball.vertices[:, 2].min(), ball.vertices[:, 2].max()], rtol=1e-6)


def test_gifti_matrices_lead_from_an_unknown_space_to_a_known_one(home, ball):
    matrix = np.eye(4)
    matrix[:3, 3] = [100, 200, 300]
    for data_space, expected in [(0, [100, 200, 300]), (1, [0, 0, 0])]:
        path = home / f"ball{data_space}.gii"
        system = nibabel.gifti.GiftiCoordSystem(dataspace=data_space, xformspace=1, xform=matrix)
        nibabel.save(gifti(ball.vertices, ball.faces, "GIFTI_ENCODING_B64GZ", system), path)
        check(home, path, ball.vertices + expected, len(ball.faces))


def test_freesurfer_surfaces_are_moved_to_scanner_space(home, ball):
    path = home / "lh.pial"
    middle = np.array([5.5, -18.0, 12.25])
    volume = {
        "head": np.array([2, 0, 20], "i4"), "valid": "1  # volume info valid", "filename": "orig.mgz", "volume": np.array([256] * 3),
        "voxelsize": np.ones(3), "xras": np.array([-1.0, 0, 0]), "yras": np.array([0, 0, -1.0]), "zras": np.array([0, 1.0, 0]),
        "cras": middle,
    }
    nibabel.freesurfer.write_geometry(str(path), ball.vertices, ball.faces, volume_info=volume)
    check(home, path, ball.vertices + middle, len(ball.faces))


def test_shapefiles_that_pyshp_wrote(home):
    path = home / "coast.shp"
    with shapefile.Writer(str(path), shapeType=shapefile.POLYLINE) as writer:
        writer.field("name", "C")
        writer.line([[[1, 5], [5, 5], [5, 1]], [[-3, 3], [-2, 6]]])
        writer.record("two lines")
    found = described(home, path)
    assert (found["segments"], found["vertices"], found["space"]) == (3, 5, "geographic")
    assert found["bounds"] == [[-3, 1, 0], [5, 6, 0]]


def test_compressed_vtp(home, ball):
    def array(values: np.ndarray, kind: str, name: str, columns: int = 1) -> str:
        data = values.tobytes()
        blocks = [zlib.compress(data[at : at + 4096]) for at in range(0, len(data), 4096)]
        head = np.array([len(blocks), 4096, len(data) % 4096, *map(len, blocks)], "<u8").tobytes()
        text = (base64.b64encode(head) + base64.b64encode(b"".join(blocks))).decode()
        return f'<DataArray type="{kind}" Name="{name}" NumberOfComponents="{columns}" format="binary">{text}</DataArray>'

    ends = np.arange(3, 3 * len(ball.faces) + 1, 3, dtype="<i8")
    path = home / "ball.vtp"
    path.write_text(
        '<VTKFile type="PolyData" version="1.0" byte_order="LittleEndian" header_type="UInt64" compressor="vtkZLibDataCompressor">'
        f'<PolyData><Piece NumberOfPoints="{len(ball.vertices)}" NumberOfPolys="{len(ball.faces)}"><Points>'
        + array(ball.vertices.astype("<f8"), "Float64", "Points", 3)
        + "</Points><Polys>"
        + array(ball.faces.astype("<i8"), "Int64", "connectivity")
        + array(ends, "Int64", "offsets")
        + "</Polys></Piece></PolyData></VTKFile>"
    )
    check(home, path, ball.vertices, len(ball.faces))


@pytest.mark.parametrize("ending", ["ply", "vtp", "glb"])
def test_our_own_isosurfaces_are_read_and_drawn_where_they_were(home, ending):
    surface = home / f"surface.{ending}"
    done = corridor(home, "get", str(SAMPLE), "--iso", "600", "-o", str(surface))
    assert done.returncode == 0, done.stderr
    assert described(home, surface)["triangles"] > 1_000
    nothing = json.dumps({"transfer": {"map": "gray", "range": [0, 1000], "opacity": [[0, 0], [1000, 0]]}})
    pictures = []
    for layer in (["--iso", "600:#c8c8c8"], ["--layer", f"{surface},color=#c8c8c8"]):
        out = home / "out.png"
        done = corridor(home, "render", str(SAMPLE), "--view", nothing, *layer, "--size", SIZE, "-o", str(out))
        assert done.returncode == 0, done.stderr
        pictures.append(pixels(out)[:, :, :3].astype(int))
    by_rays, by_triangles = pictures
    covered = [np.abs(picture - picture[0, 0]).max(axis=-1) > 20 for picture in pictures]
    assert covered[0].mean() > 0.05
    # The silhouettes differ by a part of a pixel; colors, by the light of gradients and of faces.
    assert (covered[0] != covered[1]).mean() < 0.03
    both = covered[0] & covered[1]
    assert np.abs(by_rays - by_triangles)[both].mean() < 25


def test_a_served_folder_gives_the_geometry_in_it_and_nothing_else(home, ball):
    folder = home / "served"
    folder.mkdir()
    np.save(folder / "field.npy", np.zeros((8, 8, 8), "f4"))
    ball.export(folder / "ball.ply")
    ball.export(home / "outside.ply")
    (folder / "link.ply").symlink_to(home / "outside.ply")

    def render(url: str, layer: str):
        return corridor(home, "render", url, "--layer", layer, "--size", SIZE, "-o", str(home / "out.png"))

    with running(home, "serve", "--json", str(folder)) as server:
        url = server.url
        assert render(url, "ball.ply").returncode == 0
        for layer in ("link.ply", "../outside.ply", "none.ply"):
            assert render(url, layer).returncode != 0, layer
    with running(home, "serve", "--json", str(folder / "field.npy")) as server:
        done = render(server.url, "ball.ply")
        assert done.returncode != 0 and "corridor serve FOLDER" in done.stderr


def test_geometry_alone_is_refused_with_what_to_do(home, ball):
    path = home / "ball.ply"
    ball.export(path)
    done = corridor(home, "render", str(path), "-o", str(home / "out.png"))
    assert done.returncode != 0 and "--layer" in done.stderr
