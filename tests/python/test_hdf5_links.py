"""Every name of a data set is there: hard, soft and external links, and virtual data sets, as h5py follows them; never out of
the folder."""

import pathlib

import corridor
import h5py
import numpy as np
import pytest


def equal(path: pathlib.Path, names: list[str]) -> None:
    found = corridor.open(path)
    with h5py.File(path) as file:
        for name in names:
            np.testing.assert_array_equal(found[name][...], file[name][...], err_msg=name)
            if file[name].size:
                part = tuple(slice(n // 3, n, 2) for n in file[name].shape)
                np.testing.assert_array_equal(found[name][part], file[name][part], err_msg=f"{name} {part}")


def test_every_name_is_there(tmp_path: pathlib.Path) -> None:
    (tmp_path / "raw").mkdir()
    with h5py.File(tmp_path / "raw/frames.h5", "w") as raw:
        raw["entry/data"] = np.arange(24, dtype="u2").reshape(2, 3, 4)
        raw["entry/back"] = h5py.ExternalLink("../master.h5", "/entry/detector/counts")
    path = tmp_path / "master.h5"
    with h5py.File(path, "w") as file:
        counts = file.create_dataset("entry/detector/counts", data=np.arange(5), chunks=(2,))
        counts.attrs["units"] = "1"
        file["entry/plot/counts"] = counts
        file["entry/again"] = file["entry/detector"]
        file["entry/detector/up"] = file["entry"]
        file["soft"] = h5py.SoftLink("/entry/plot/counts")
        file["entry/relative"] = h5py.SoftLink("detector/counts")
        file["soft group"] = h5py.SoftLink("/entry/detector")
        file["frames"] = h5py.ExternalLink("raw/frames.h5", "/entry/data")
        file["through"] = h5py.SoftLink("/frames")
        file["there and back"] = h5py.ExternalLink("raw/frames.h5", "/entry/back")
        file["nowhere"] = h5py.SoftLink("/entry/none")
        file["gone"] = h5py.ExternalLink("raw/none.h5", "/x")
        file["a"], file["b"] = h5py.SoftLink("/b"), h5py.SoftLink("/a")
        file["out"] = h5py.ExternalLink("/etc/hostname", "/x")
        file["up and out"] = h5py.ExternalLink("../../other.h5", "/x")
    names = ["entry/detector/counts", "entry/plot/counts", "entry/again/counts", "soft", "entry/relative", "frames",
             "soft group/counts", "through", "there and back"]
    equal(path, names)
    found = corridor.open(path)
    assert set(names) <= set(found)
    assert found["soft"].attrs["units"] == "1"
    reasons = found.left_out
    assert "outside of the exported folder" in reasons["out"] and "outside" in reasons["up and out"]
    assert "not there" in reasons["gone"] and "nothing is named" in reasons["nowhere"] and "links" in reasons["a"]


def test_names_without_end_are_bounded(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "many.h5"
    with h5py.File(path, "w") as file:
        group = file
        for level in range(40):
            below = group.create_group("a")
            group["b"] = below
            group = below
        group["x"] = 1.0
    found = corridor.open(path)
    assert "/".join(["a"] * 40 + ["x"]) in found
    assert any("names" in warning for warning in found.warnings)


@pytest.fixture
def sources(tmp_path: pathlib.Path) -> pathlib.Path:
    for number in range(4):
        with h5py.File(tmp_path / f"part-{number}.h5", "w") as file:
            values = np.arange(60, dtype="<f4").reshape(3, 4, 5) + 100 * number
            file.create_dataset("data", data=values, chunks=(1, 4, 5), maxshape=(None, 4, 5), compression="gzip")
    return tmp_path


def test_virtual_data_sets_are_put_together(sources: pathlib.Path) -> None:
    path = sources / "virtual.h5"
    shape, kind = (3, 4, 5), "<f4"
    with h5py.File(path, "w", libver="latest") as file:
        stacked = h5py.VirtualLayout((5, 3, 4, 5), kind)
        joined = h5py.VirtualLayout((12, 4, 5), kind)
        woven = h5py.VirtualLayout((12, 4, 5), kind)
        for number in range(4):
            source = h5py.VirtualSource(f"part-{number}.h5", "data", shape)
            stacked[number] = source
            joined[3 * number : 3 * number + 3] = source
            woven[number::4] = source
        stacked[4] = h5py.VirtualSource("part-9.h5", "data", shape)
        file.create_virtual_dataset("stacked", stacked, fillvalue=-7)
        file.create_virtual_dataset("joined", joined)
        file.create_virtual_dataset("woven", woven)
        some = h5py.VirtualLayout((4, 2, 5), kind)
        some[:, :, ::2] = h5py.VirtualSource("joined.h5", "data", (4, 2, 3))
        file.create_virtual_dataset("holes", some, fillvalue=5)
        file["own"] = np.arange(6.0)
        mine = h5py.VirtualLayout((6,), "f8")
        mine[:] = h5py.VirtualSource(".", "own", (6,))
        file.create_virtual_dataset("mine", mine)
        picked = h5py.VirtualLayout((2, 4), kind)
        picked[:] = h5py.VirtualSource("part-2.h5", "data", shape)[0:3:2, :, 3]
        file.create_virtual_dataset("picked", picked)
        again = h5py.VirtualLayout((2, 4), kind)
        again[:] = h5py.VirtualSource(".", "picked", (2, 4))
        file.create_virtual_dataset("again", again)
    with h5py.File(sources / "joined.h5", "w") as file:
        file["data"] = np.arange(24, dtype=kind).reshape(4, 2, 3)
    equal(path, ["stacked", "joined", "woven", "holes", "mine", "picked", "again"])


def unlimited(path: pathlib.Path, file: str, *, block: bool) -> None:
    """Mappings that follow their source, or count their sources."""
    with h5py.File(path, "w", libver="latest") as out:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_fill_value(np.array(-1, "<f4"))
        space = h5py.h5s.create_simple((3, 4, 5), (h5py.h5s.UNLIMITED, 4, 5))
        if block:
            space.select_hyperslab((0, 0, 0), (h5py.h5s.UNLIMITED, 1, 1), (3, 1, 1), (3, 4, 5))
            source = h5py.h5s.create_simple((3, 4, 5))
        else:
            space.select_hyperslab((0, 0, 0), (1, 1, 1), block=(h5py.h5s.UNLIMITED, 4, 5))
            source = h5py.h5s.create_simple((3, 4, 5), (h5py.h5s.UNLIMITED, 4, 5))
            source.select_hyperslab((0, 0, 0), (1, 1, 1), block=(h5py.h5s.UNLIMITED, 4, 5))
        properties.set_virtual(space, file.encode(), b"data", source)
        kind = h5py.h5t.IEEE_F32LE
        h5py.h5d.create(out.id, b"all", kind, h5py.h5s.create_simple((3, 4, 5), (h5py.h5s.UNLIMITED, 4, 5)), properties)


def test_virtual_axes_follow_their_sources(sources: pathlib.Path) -> None:
    unlimited(sources / "follows.h5", "part-0.h5", block=False)
    with h5py.File(sources / "part-0.h5", "a") as file:
        file["data"].resize((7, 4, 5))
        file["data"][3:] = 9
    equal(sources / "follows.h5", ["all"])
    assert corridor.open(sources / "follows.h5")["all"].shape == (7, 4, 5)


def test_virtual_sources_are_counted(sources: pathlib.Path) -> None:
    unlimited(sources / "counts.h5", "part-%b.h5", block=True)
    with h5py.File(sources / "part-0.h5", "r"):
        pass
    equal(sources / "counts.h5", ["all"])
    assert corridor.open(sources / "counts.h5")["all"].shape == (12, 4, 5)


def test_a_virtual_data_set_that_leads_out_is_left_out(sources: pathlib.Path) -> None:
    inside = sources / "inside"
    inside.mkdir()
    with h5py.File(inside / "master.h5", "w", libver="latest") as file:
        layout = h5py.VirtualLayout((3, 4, 5), "<f4")
        layout[:] = h5py.VirtualSource("../part-0.h5", "data", (3, 4, 5))
        file.create_virtual_dataset("out", layout)
        file["plain"] = np.arange(3)
    found = corridor.open(inside / "master.h5")
    assert list(found) == ["plain"]
    assert "outside of the exported folder" in found.left_out["out"]
