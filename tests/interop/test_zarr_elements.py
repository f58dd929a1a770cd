"""Every element type, filter and fill value that zarr-python writes, read by the program and over HTTP."""

import json
import pathlib
import zipfile
from collections.abc import Iterator

import conftest
import numcodecs
import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.storage import FsspecStore

BASE = np.arange(70, dtype="i4").reshape(7, 10)
FILTERS = {
    "delta": (BASE, [numcodecs.Delta("i4")]),
    "delta_narrow": (BASE, [numcodecs.Delta("i4", astype="i2")]),
    "delta_f4": ((BASE * 0.5).astype("f4"), [numcodecs.Delta("f4")]),
    "scaled": ((BASE * 0.1).astype("f8"), [numcodecs.FixedScaleOffset(offset=3, scale=10, dtype="f8", astype="i2")]),
    "quantized": ((BASE * 0.1).astype("f8"), [numcodecs.Quantize(digits=1, dtype="f8", astype="f4")]),
    "cast": (BASE.astype("f8"), [numcodecs.AsType(encode_dtype="f4", decode_dtype="f8")]),
    "shuffled": (BASE, [numcodecs.Shuffle(4)]),
    "rounded": ((BASE * 0.1).astype("f4"), [numcodecs.BitRound(5)]),
    "bits": (BASE % 3 == 0, [numcodecs.PackBits()]),
    "two": (BASE, [numcodecs.Delta("i4"), numcodecs.Shuffle(4)]),
    "crc32": (BASE, [numcodecs.CRC32()]),
    "adler32": (BASE, [numcodecs.Adler32()]),
}
PACKED = {
    "lz4": numcodecs.LZ4(),
    "lzma": numcodecs.LZMA(),
    "bz2": numcodecs.BZ2(),
    "zlib": numcodecs.Zlib(),
    "zstd": numcodecs.Zstd(),
    "blosc": numcodecs.Blosc("zstd", 3, numcodecs.Blosc.BITSHUFFLE),
}
OTHERS = {
    "complex": BASE.astype("c8") * (1 + 2j),
    "complex_big": BASE.astype(">c16") * 1j,
    "dates": np.array(["2001-02-03T04:05:06", "NaT", "1969-12-31"], "M8[ns]"),
    "days": np.array(["2001-02-03", "NaT"], "M8[D]"),
    "spans": np.array([5, -7], "m8[s]"),
    "fixed": np.array(["a", "größe", "日本"]),
    "fixed_big": np.array(["a", "bb"]).astype(">U4"),
    "bytes": np.array([b"ab", b"cde"]),
    "record": np.array([(1, 2.5), (3, -4.5)], [("x", "i2"), ("y", ">f8")]),
    "big": BASE.astype(">i4"),
    "truth": BASE % 2 == 0,
    "scalar": np.array(3.5),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("kinds") / "v2.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=2)
    chunks = lambda data: tuple(min(4, n) for n in data.shape)  # noqa: E731

    def put(name: str, data: np.ndarray, **options: object) -> None:
        group.create_array(name, shape=data.shape, dtype=data.dtype, chunks=chunks(data), **options)[...] = data

    for name, (data, filters) in FILTERS.items():
        put(name, data, filters=filters)
        put(f"{name}_fortran", data, filters=filters, order="F", compressors=PACKED["blosc"])
    for name, packer in PACKED.items():
        put(name, BASE, compressors=packer)
    for name, data in OTHERS.items():
        put(name, data)
    texts = group.create_array("texts", shape=(5,), dtype=str, chunks=(2,))
    texts[:3] = ["a", "größe", ""]
    for name, fill in {"nothing": None, "nan": np.nan, "infinite": -np.inf}.items():
        group.create_array(f"fill_{name}", shape=(5,), chunks=(2,), dtype="f4", fill_value=fill)[:2] = 1
    three = zarr.open_group(path.with_name("v3.zarr"), mode="w", zarr_format=3)
    for name in ["complex", "dates", "spans", "fixed", "bytes", "truth", "scalar"]:
        data = OTHERS[name]
        three.create_array(name, shape=data.shape, dtype=data.dtype, chunks=chunks(data))[...] = data
    texts = three.create_array("texts", shape=(5,), dtype=str, chunks=(2,), shards=(4,), fill_value="none")
    texts[:2] = ["x", "größe"]
    return path.parent


class Served:
    def __init__(self, lines: list[dict]):
        self.lines = {line["zarr"].rsplit("/", 1)[1]: line for line in lines}
        self.options = {"client_kwargs": {"headers": {"Authorization": f"Bearer {lines[0]['token']}"}}}

    def group(self, name: str, *, below: str = "/zarr/") -> zarr.Group:
        address = self.lines[name]["zarr"].replace("/zarr/", below)
        return zarr.open_group(FsspecStore.from_url(address, storage_options=self.options), mode="r")


@pytest.fixture(scope="module")
def served(store: pathlib.Path) -> Iterator[Served]:
    with conftest.running(store, "serve", "v2.zarr", "v3.zarr", "--listen", "127.0.0.1:0", "--json", lines=2) as program:
        yield Served(program.lines)


def parts(name: str, data: np.ndarray) -> dict[str, np.ndarray]:
    """Arrays by name that Corridor shows for one array: parts of complex numbers, members of compound types."""
    if data.dtype.kind == "c":
        return {f"{name}.r": data.real, f"{name}.i": data.imag}
    if data.dtype.names:
        return {f"{name}.{member}": data[member] for member in data.dtype.names}
    if data.dtype.kind in "mM":
        return {name: data.view("i8")}
    if data.dtype.kind == "S":
        return {name: data.astype("U")}
    return {name: data}


@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning", "ignore::zarr.errors.UnstableSpecificationWarning")
@pytest.mark.parametrize("version", ["v2", "v3"])
def test_every_kind_is_what_zarr_python_reads(store: pathlib.Path, served: Served, version: str) -> None:
    found, compared = served.group(f"{version}.zarr"), 0
    for name, array in zarr.open_group(store / f"{version}.zarr", mode="r").arrays():
        for part, expected in parts(name, np.asarray(array[...])).items():
            got = np.asarray(found[part][...])
            assert got.shape == expected.shape, part
            if expected.dtype.kind in "OTU":
                assert [str(v) for v in got.ravel()] == [str(v) for v in expected.ravel()], part
            else:
                assert got.dtype == expected.dtype.newbyteorder("="), part
                np.testing.assert_array_equal(got, expected, err_msg=part)
            compared += 1
    assert compared >= (40 if version == "v2" else 9)
    told = json.loads(conftest.corridor(store, "info", "--json", f"{version}.zarr").stdout)
    assert told["left_out"] == []


def test_dates_are_times_for_xarray(served: Served) -> None:
    line = served.lines["v3.zarr"]
    found = xr.open_zarr(line["zarr"], storage_options=served.options, decode_timedelta=True)
    np.testing.assert_array_equal(found["dates"].values, OTHERS["dates"])
    assert found["spans"].values[0] == np.timedelta64(5, "s")


@pytest.mark.parametrize("place", ["start", "end"])
@pytest.mark.parametrize("packer", [None, zarr.codecs.ZstdCodec(), zarr.codecs.BloscCodec(cname="lz4")], ids=str)
def test_an_index_of_shards_may_have_its_highest_bytes_first(tmp_path: pathlib.Path, place: str, packer: object) -> None:
    little, big = (zarr.codecs.BytesCodec(endian=order) for order in ["little", "big"])
    for checksum in [[], [zarr.codecs.Crc32cCodec()]]:
        codecs = [little] if packer is None else [little, packer]
        shards = zarr.codecs.ShardingCodec(
            chunk_shape=(2, 5), codecs=codecs, index_codecs=[big, *checksum], index_location=place
        )
        path = tmp_path / f"{len(checksum)}.zarr"
        array = zarr.create_array(path, shape=BASE.shape, dtype="i4", chunks=(4, 10), serializer=shards, compressors=None)
        array[...] = BASE
        out = tmp_path / "out.npy"
        done = conftest.corridor(tmp_path, "get", str(path), "-o", str(out))
        assert done.returncode == 0, done.stderr
        np.testing.assert_array_equal(np.load(out), zarr.open_array(path, mode="r")[...])


@pytest.mark.parametrize("pack", ["stored", "deflated"])
@pytest.mark.parametrize("version", ["v2", "v3"])
def test_a_store_in_an_archive_is_the_same(store: pathlib.Path, tmp_path: pathlib.Path, version: str, pack: str) -> None:
    """Archives written by zarr-python, and archives of a store's folder."""
    archive = tmp_path / f"{version}.zarr.zip"
    method = zipfile.ZIP_STORED if pack == "stored" else zipfile.ZIP_DEFLATED
    prefix = "" if pack == "stored" else f"{version}.zarr/"
    files = [path for path in (store / f"{version}.zarr").rglob("*") if path.is_file()]
    with zipfile.ZipFile(archive, "w", method) as file:
        for path in files:
            file.write(path, f"{prefix}{path.relative_to(store / f'{version}.zarr')}")
    described = [json.loads(conftest.corridor(tmp_path, "info", "--json", str(p)).stdout) for p in (store / f"{version}.zarr", archive)]
    names = [[array["name"] for array in d["arrays"]] for d in described]
    # Parts of shards are not to be had where the shards are packed once more.
    assert (names[0] == names[1]) or (set(names[0]) - set(names[1]) == {"texts"} and pack == "deflated")
    for name in ["two", "dates", "fixed"] if version == "v2" else ["dates", "fixed", "truth"]:
        copies = []
        for source in (store / f"{version}.zarr", archive):
            out = tmp_path / f"{name}{len(copies)}.npy"
            assert conftest.corridor(tmp_path, "get", str(source), name, "-o", str(out)).returncode == 0
            copies.append(np.load(out))
        np.testing.assert_array_equal(copies[0], copies[1])


def image(group: zarr.Group, name: str, kind: str = "u2") -> None:
    """An image of OME-Zarr 0.4 of two levels."""
    shapes = [(2, 3, 8, 10, 12), (2, 3, 8, 5, 6)]
    for number, shape in enumerate(shapes):
        array = group.create_array(str(number), shape=shape, chunks=(1, 1, 4, 5, 6), dtype=kind, chunk_key_encoding={"name": "v2", "separator": "/"})
        array[...] = np.arange(np.prod(shape)).reshape(shape) % 50
    axes = [{"name": "t", "type": "time", "unit": "second"}, {"name": "c", "type": "channel"}]
    axes += [{"name": n, "type": "space", "unit": "micrometer"} for n in "zyx"]
    scales = [[60, 1, 2, 0.5, 0.5], [60, 1, 2, 1.0, 1.0]]
    levels = [{"path": str(n), "coordinateTransformations": [{"type": "scale", "scale": s}]} for n, s in enumerate(scales)]
    group.attrs["multiscales"] = [{"version": "0.4", "name": name, "axes": axes, "datasets": levels}]


def test_images_and_their_labels_are_ome_zarr_again(tmp_path: pathlib.Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    image(group, "img")
    window = {"start": 0, "end": 100, "min": 0, "max": 65535}
    group.attrs["omero"] = {"channels": [{"label": name, "color": "0000FF", "window": window} for name in "abc"]}
    labels = group.create_group("labels")
    labels.attrs["labels"] = ["cells"]
    cells = labels.create_group("cells")
    image(cells, "cells")
    cells.attrs["image-label"] = {"version": "0.4", "colors": [{"label-value": 3, "rgba": [255, 0, 0, 255]}]}
    with conftest.running(tmp_path, "serve", "a.zarr", "--listen", "127.0.0.1:0", "--json") as program:
        served = Served(program.lines)
        for below, path in [("/zarr/", ""), ("/ome/", "/img")]:
            root = zarr.open_group(FsspecStore.from_url(served.lines["a.zarr"]["zarr"].replace("/zarr/", below) + path, storage_options=served.options), mode="r")
            ome = root.attrs["ome"]
            assert ome["version"] == "0.5" and "version" not in ome["multiscales"][0]
            assert [a["type"] for a in ome["multiscales"][0]["axes"]] == ["time", "channel", "space", "space", "space"]
            assert [c["label"] for c in ome["omero"]["channels"]] == ["a", "b", "c"]
            assert root["labels"].attrs["ome"]["labels"] == ["cells"]
            assert root["labels/cells"].attrs["ome"]["image-label"]["colors"][0]["rgba"] == [255, 0, 0, 255]
            for owner, truth in [(root, group), (root["labels/cells"], cells)]:
                for number, level in enumerate(owner.attrs["ome"]["multiscales"][0]["datasets"]):
                    found = owner[level["path"]]
                    assert found.metadata.dimension_names == ("t", "c", "z", "y", "x")
                    np.testing.assert_array_equal(found[...], truth[str(number)][...])
                    scale = next(t["scale"] for t in level["coordinateTransformations"] if t["type"] == "scale")
                    assert scale == ([60, 1, 2, 0.5, 0.5] if number == 0 else [60, 1, 2, 1.0, 1.0])
