"""Viewers of locations, data sets and objects in memory, without a notebook."""

import gc
import json
import pathlib
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import warnings
import weakref

import corridor
import dask.array
import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

SIZE = (96, 72)


def ball(shape: tuple[int, int, int] = (40, 48, 56)) -> np.ndarray:
    """A ball with a density that falls off, and a plane that tells left from right."""
    z, y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij")
    return (np.exp(-4 * (z**2 + y**2 + x**2)) + 0.3 * (x > 0.5)).astype(np.float32)


def pixels(png: bytes) -> np.ndarray:
    """Decodes a picture, by another library than the one that wrote it."""
    import io

    import av

    with av.open(io.BytesIO(png), format="png_pipe") as file:
        return next(file.decode(video=0)).to_ndarray(format="rgb24")


def drawn(x: object, **fields: object) -> np.ndarray:
    viewer = corridor.view(x, **fields)
    try:
        return pixels(viewer.screenshot(SIZE))
    finally:
        viewer.close()


def test_objects_are_drawn_as_files_with_the_same_values(tmp_path: pathlib.Path) -> None:
    values = ball()
    np.save(tmp_path / "a.npy", values)
    # The name of a side depends on the shape of the picture.
    projection = {"perspective": {"fov_y_rad": 0.5}}
    camera = {"eye": [27.5, -90, 19.5], "target": [27.5, 23.5, 19.5], "up": [0, 0, 1], "projection": projection}
    how = {"camera": camera, "tf": "viridis"}
    expected = corridor.render(tmp_path / "a.npy", size=SIZE, **how)
    assert expected.std() > 5
    store = zarr.create_array(store=str(tmp_path / "a.zarr"), shape=values.shape, dtype="f4", chunks=(16, 16, 16))
    store[:] = values
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=values, chunks=(10, 48, 20))
    held = h5py.File(tmp_path / "a.h5")
    objects = {
        "location": str(tmp_path / "a.npy"),
        "path": tmp_path / "a.npy",
        "numpy": values,
        "Fortran order": np.asfortranarray(values),
        "big-endian": values.astype(">f4"),
        "not contiguous": np.concatenate([values, values], axis=2)[:, :, : values.shape[2]],
        "memory map": np.load(tmp_path / "a.npy", mmap_mode="r"),
        "dask": dask.array.from_array(values, chunks=(7, 48, 31)),
        "h5py": held["a"],
        "zarr": store,
        "data set": corridor.open(tmp_path / "a.npy"),
        "array": corridor.open(tmp_path / "a.npy")["a"],
        "key": corridor.view(np.stack([values * 0, values]), key=np.s_[1], **how),
    }
    for name, x in objects.items():
        found = pixels(x.screenshot(SIZE)) if name == "key" else drawn(x, **how)
        # Means of blocks of other sizes differ in the last bits.
        assert np.abs(found.astype(int) - expected).max() <= 2, name
    held.close()


def test_xarray_keeps_names_axes_units_and_time(tmp_path: pathlib.Path) -> None:
    values = np.stack([ball((24, 20, 28)), ball((24, 20, 28))[:, :, ::-1]])
    data = xr.Dataset(
        {"rho": (("time", "z", "y", "x"), values, {"units": "kg m-3", "long_name": "density"}), "n": ("time", [1, 2])},
        coords={
            "time": np.array(["2001-01-01", "2001-01-02"], "M8[ns]"),
            "z": ("z", np.arange(24) * 2.0, {"units": "m"}),
            "y": ("y", np.arange(20) * 3.0, {"units": "m"}),
            "x": ("x", np.arange(28) * 1.0, {"units": "m"}),
            "place": ("x", ["a"] * 28),
        },
        attrs={"title": "two balls", "version": np.int32(3), "nothing": np.nan},
    )
    data.to_netcdf(tmp_path / "a.nc")
    for x in (data, data["rho"], data.chunk({"time": 1, "z": 10}), xr.open_dataset(tmp_path / "a.nc"),
              xr.open_dataset(tmp_path / "a.nc", engine="corridor")):  # fmt: skip
        viewer = corridor.view(x, time=1, camera="front")
        rho = viewer.dataset["rho"]
        assert (rho.dims, rho.units, rho.world_units) == (("time", "z", "y", "x"), "kg m-3", "m")
        assert rho.coordinates("y")[:3].tolist() == [0, 3, 6]
        assert rho._info["axes"][0]["units"].startswith(("days since 2001", "hours since 2001", "seconds since"))
        assert np.array_equal(rho[1], values[1]) and rho.attrs["long_name"] == "density"
        expected = corridor.render(f"{tmp_path}/a.nc/rho", time=1, camera="front", size=SIZE)
        assert np.abs(pixels(viewer.screenshot(SIZE)).astype(int) - expected).max() <= 2
        viewer.close()


def test_a_selection_of_an_array_is_in_its_place(tmp_path: pathlib.Path) -> None:
    values = np.stack([ball(), -ball()])
    data = xr.Dataset({"a": (("t", "z", "y", "x"), (values * 1000).astype("i2"), {"scale_factor": 0.001})},
                      coords={"x": ("x", np.arange(56) * 0.5, {"units": "mm"})})  # fmt: skip
    data.to_netcdf(tmp_path / "a.nc")
    array = corridor.open(tmp_path / "a.nc")["a"]
    viewer = corridor.view(array, key=np.s_[1, 4:, ::2, 10:50:3])
    shown = viewer.dataset["a"]
    assert shown.shape == (1, 36, 24, 14) and "scale_factor" not in shown.attrs
    assert np.array_equal(shown[0], array.decoded[1, 4:, ::2, 10:50:3])
    assert shown.coordinates("x")[:2].tolist() == [5.0, 6.5]
    here, whole = shown.world_from_voxel, array.world_from_voxel
    assert np.allclose(here @ [0, 0, 0, 1], whole @ [4, 0, 10, 1]) and np.allclose(here @ [1, 1, 1, 1], whole @ [5, 2, 13, 1])
    viewer.close()
    with pytest.raises(corridor.InvalidError, match="positive steps"):
        corridor.view(array, key=np.s_[::-1])


def test_blocks_of_dask_are_computed_when_drawn_and_once() -> None:
    computed = []

    def block(block_info: dict) -> np.ndarray:
        computed.append(threading.get_ident())
        return np.full([b - a for a, b in block_info[None]["array-location"]], 1.5, np.float32)

    x = dask.array.map_blocks(block, chunks=((64, 64, 64), (128,), (128,)), dtype=np.float32, meta=np.empty((0, 0, 0), np.float32))
    computed.clear()
    viewer = corridor.view(x)
    assert computed == []
    assert viewer.dataset["data"][70:71:1, ::5, 3].max() == 1.5 and len(computed) == 1
    viewer.screenshot(SIZE)
    assert len(computed) == 3
    viewer.close()
    huge = dask.array.zeros((2000, 2000, 2000), chunks=-1)
    with pytest.raises(corridor.TooLargeError, match="rechunk"):
        corridor.view(huge)


def test_other_elements() -> None:
    masked = np.ma.masked_less(ball(), 0.2)
    viewer = corridor.view(masked)
    assert np.isnan(viewer.dataset["data"][0, 0, 0]) and viewer.dataset["data"][20, 24, 28] > 0.9
    viewer.close()
    z = np.exp(1j * np.arange(512.0)).reshape(8, 8, 8)
    viewer = corridor.view(z)
    assert list(viewer.dataset) == ["data.r", "data.i"]
    assert np.array_equal(viewer.dataset["data.i"][...], z.imag)
    viewer.close()
    for wrong in (np.array(["a"]), np.zeros((0, 3)), np.float64(3)):
        with pytest.raises(corridor.UnsupportedError, match="expected an array of numbers"):
            corridor.view(wrong)
    for wrong in (None, object(), 3, {}):
        with pytest.raises(corridor.InvalidError, match="expected a location"):
            corridor.view(wrong)
    with pytest.raises(TypeError, match="unexpected keyword `tim`; did you mean time"):
        corridor.view(ball(), tim=3)


def test_an_error_of_an_object_is_reported() -> None:
    class Broken:
        shape, dtype = (16, 16, 16), np.dtype("f4")

        def __getitem__(self, key: object) -> np.ndarray:
            raise RuntimeError("the disk is gone")

    viewer = corridor.view(Broken())
    with pytest.raises(corridor.Error, match="the disk is gone"):
        viewer.dataset["data"][0]
    viewer.close()


def test_the_view_can_be_changed() -> None:
    viewer = corridor.view("synthetic:waves?shape=24,24,24&dtype=u8&steps=3")
    front = pixels(viewer.screenshot(SIZE))
    viewer.camera = "top"
    assert isinstance(viewer.camera, dict) and (pixels(viewer.screenshot(SIZE)) != front).any()
    viewer.time = 2
    assert viewer.view["time"] == 2 and viewer.view["camera"] == viewer.camera
    before = viewer.view
    for name, wrong in (("time", -1), ("camera", "inside"), ("array", "nothing"), ("view", {"mode": "x"})):
        with pytest.raises((corridor.Error, KeyError)):
            setattr(viewer, name, wrong)
    assert viewer.view == before
    viewer.array = "waves"
    assert viewer.time == 2 and viewer.camera is None
    viewer.close()


def test_the_link_needs_its_token_and_shows_the_page() -> None:
    viewer = corridor.view(ball())
    page, fragment = viewer.url.split("#")
    assert page.startswith("http://127.0.0.1:") and fragment.startswith("token=") and "&view=" in fragment
    with urllib.request.urlopen(page) as answer:
        assert b'id="picture"' in answer.read()
    with pytest.raises(urllib.error.HTTPError, match="40[134]"):
        urllib.request.urlopen(f"{page}zarr/")
    assert viewer.url in repr(viewer)
    viewer.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(page)
    with pytest.raises(corridor.InvalidError, match="closed"):
        _ = viewer.url
    assert "closed" in repr(viewer)


def test_a_link_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The link has the address of the proxy, whose origin and path the viewer accepts."""
    viewer = corridor.view(ball(), proxy="https://hub.example.org/user/me/proxy/{port}/")
    public, port = viewer.url.split("#")[0], viewer.url.split("/proxy/")[1].split("/")[0]
    assert public == f"https://hub.example.org/user/me/proxy/{port}/"
    headers = {"Origin": "https://hub.example.org", "Host": f"localhost:{port}"}
    for path in ("/", f"/user/me/proxy/{port}/"):
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
        assert b'id="picture"' in urllib.request.urlopen(request).read()
    other = {"Origin": "https://other.example.org"}
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/reach", headers=other, method="POST"))
    viewer.close()

    monkeypatch.setenv("JUPYTERHUB_PUBLIC_URL", "https://hub.example.org/user/me/")
    viewer = corridor.view(ball(), proxy=True)
    assert viewer.url.startswith("https://hub.example.org/user/me/proxy/")
    viewer.close()
    monkeypatch.delenv("JUPYTERHUB_PUBLIC_URL")
    for wrong in (True, "/user/me/proxy/{port}/", "https://hub.example.org/"):
        with pytest.raises(corridor.InvalidError, match="proxy"):
            corridor.view(ball(), proxy=wrong)


def test_a_location_has_one_server_which_ends_with_its_last_viewer(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "a.npy", ball())
    first = corridor.view(tmp_path / "a.npy")
    second = corridor.view(str(tmp_path / "a.npy"), camera="front")
    page = first.url.split("#")[0]
    assert second.url.startswith(page)
    del first
    gc.collect()
    urllib.request.urlopen(page).close()
    del second
    gc.collect()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(page)


def test_an_array_is_released_with_its_viewer() -> None:
    values = ball()
    gone = weakref.ref(values)
    viewer = corridor.view(values)
    viewer.screenshot(SIZE)
    del values
    gc.collect()
    assert gone() is not None
    viewer.close()
    del viewer
    # Tasks that held it end on other threads; what these release is freed by the next call into the native module.
    for _ in range(100):
        corridor.open("synthetic:linear?shape=2,2,2&dtype=u8").close()
        gc.collect()
        if gone() is None:
            break
        time.sleep(0.1)
    assert gone() is None


def test_the_oldest_of_many_viewers_is_closed() -> None:
    from corridor._viewer.server import MAX_SERVERS

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        viewers = [corridor.view(np.zeros((4, 4, 4))) for _ in range(MAX_SERVERS + 1)]
    assert "closed" in repr(viewers[0]) and "closed" not in repr(viewers[1])
    assert any("viewers are open" in str(w.message) for w in said)
    for viewer in viewers:
        viewer.close()


def test_the_interpreter_ends_with_open_viewers() -> None:
    """No thread keeps the process, none calls Python after its end, and no server is left."""
    script = """
import corridor, numpy as np, json, urllib.request
class Slow:
    shape, dtype = (256, 256, 256), np.dtype("f4")
    def __getitem__(self, key):
        import time
        time.sleep(0.01)
        return np.zeros((256, 256, 256), "f4")[key]
viewers = [corridor.view(np.random.rand(32, 32, 32)), corridor.view(Slow())]
import threading
threading.Thread(target=viewers[1].screenshot, daemon=True).start()
print(json.dumps([v.url for v in viewers]), flush=True)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    for url in json.loads(done.stdout):
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(url.split("#")[0])
