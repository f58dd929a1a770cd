"""Zarr v2 and v3: fill values, shards, codecs and filters, types, OME-Zarr, stale consolidated metadata."""

import pathlib
import warnings

import numcodecs
import numpy as np
import xarray as xr
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec

BASE = np.arange(70, dtype="i4").reshape(7, 10)


def write(folder: pathlib.Path) -> None:
    """Writes all stores of this module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zarr-python: parts of v3 are not specified yet
        by_xarray(folder / "by_xarray_v3.zarr")
        fill_attributes(folder / "fill_attributes.zarr")
        shards(folder / "shards.zarr")
        version_2(folder / "version_2.zarr")
        version_3(folder / "version_3.zarr")
        for version in ("0.4", "0.5"):
            ome(folder / f"ome_{version}.ome.zarr", version)
        color_last(folder / "color_last.ome.zarr")
        series(folder / "series.ome.zarr")
        for format in (2, 3):
            stale(folder / f"stale_v{format}.zarr", format)


def by_xarray(path):
    """Stores as xarray writes them: a NaN fill value, fill values as base64 text."""
    ds = xr.Dataset({"t": ("x", np.array([1.5, np.nan, 3.5, 4.5], "f4")), "i": ("x", np.array([1.0, np.nan, 3.0, 4.0]))})
    encoding = {"t": {"_FillValue": np.float32(-9999)}, "i": {"dtype": "i2", "_FillValue": -99, "scale_factor": 0.5}}
    ds.to_zarr(path, zarr_format=3, encoding=encoding, consolidated=False)


def fill_attributes(path):
    """Fill values in attributes, and an axis without a name."""
    group = zarr.open_group(path, mode="w", zarr_format=3)
    t = group.create_array("t", shape=(4,), chunks=(4,), dtype="f4", fill_value=0, dimension_names=["x"],
                           attributes={"_FillValue": -9999.0})
    t[:] = np.array([1.5, -9999, 3.5, 4.5], "f4")
    n = group.create_array("n", shape=(2, 4), chunks=(1, 4), dtype="i2", fill_value=0, dimension_names=[None, "x"],
                           attributes={"_FillValue": -99, "scale_factor": 0.5})
    n[:] = np.array([[1, -99, 3, 4], [5, 6, 7, 8]], "i2")


def shards(path):
    group = zarr.open_group(path, mode="w", zarr_format=3)
    group.create_array("a", shape=(1001,), chunks=(10,), shards=(100,), dtype="f8", fill_value=-7.0)[:] = np.linspace(35, 70, 1001)
    holes = group.create_array("holes", shape=(7, 11), chunks=(2, 3), shards=(4, 6), dtype="i4", fill_value=9)
    holes[3:5, 2:8] = np.arange(12).reshape(2, 6)
    inner = [TransposeCodec(order=(1, 0)), BytesCodec(endian="big"), GzipCodec(), Crc32cCodec()]
    start = zarr.create(store=path, path="start", shape=(20, 20), chunks=(10, 10), dtype="i2", zarr_format=3, fill_value=1,
                        codecs=[ShardingCodec(chunk_shape=(5, 2), codecs=inner, index_location="start")])
    start[:, 3:] = np.arange(340).reshape(20, 17)
    nested = zarr.create(store=path, path="nested", shape=(20, 20), chunks=(20, 20), dtype="i2", zarr_format=3, fill_value=1,
                         codecs=[ShardingCodec(chunk_shape=(10, 10), codecs=[ShardingCodec(chunk_shape=(5, 5))])])
    nested[:] = np.arange(400).reshape(20, 20)


def version_2(path):
    group = zarr.open_group(path, mode="w", zarr_format=2)

    def array(name, values, chunks=(3, 4), **options):
        group.create_array(name, shape=values.shape, dtype=values.dtype, chunks=chunks, **options)[...] = values

    array("fortran", BASE, order="F")
    array("slashes", BASE, chunk_key_encoding={"name": "v2", "separator": "/"})
    array("delta", BASE, filters=[numcodecs.Delta("i4")])
    array("scale_offset", BASE * 0.1, filters=[numcodecs.FixedScaleOffset(offset=0, scale=10, dtype="f8", astype="i2")])
    array("shuffle", BASE, filters=[numcodecs.Shuffle(4)])
    array("bitround", (BASE * 0.1).astype("f4"), filters=[numcodecs.BitRound(5)])
    for name, codec in {
        "blosc": numcodecs.Blosc("zstd", 3, numcodecs.Blosc.BITSHUFFLE), "lz4": numcodecs.LZ4(), "lzma": numcodecs.LZMA(),
        "bz2": numcodecs.BZ2(), "zlib": numcodecs.Zlib(), "gzip": numcodecs.GZip(), "zstd": numcodecs.Zstd(),
    }.items():
        array(name, BASE, compressors=codec)
    array("big", BASE.astype(">i4"))
    array("bool", BASE % 2 == 0)
    array("complex", BASE.astype("c8"))
    array("datetime", np.arange(10).astype("M8[ns]"), chunks=(4,))
    array("timedelta", np.arange(10).astype("m8[s]"), chunks=(4,))
    array("scalar", np.array(3.5), chunks=())
    array("chunk_too_large", BASE, chunks=(100, 1000))
    array("zero", np.zeros((0, 5), "f4"), chunks=(1, 5))
    array("fixed_text", np.array(["a", "bb", "ccc"], "U3"), chunks=(2,))
    for name, fill in (("no_fill", None), ("nan_fill", np.nan), ("infinite_fill", -np.inf)):
        group.create_array(name, shape=(5,), chunks=(2,), dtype="f4", fill_value=fill)[:2] = 1


def version_3(path):
    group = zarr.open_group(path, mode="w", zarr_format=3)

    def array(name, values, chunks, **options):
        made = group.create_array(name, shape=values.shape, dtype=values.dtype, chunks=chunks, **options)
        made[...] = values

    array("zero", np.zeros((0, 5), "f4"), (1, 5), dimension_names=["time", "x"])
    array("datetime", np.arange(10).astype("M8[ns]"), (4,))
    array("complex", (np.arange(10) * 1j).astype("c8"), (4,))
    group.create_array("half", shape=(10,), chunks=(4,), dtype="f2", fill_value=np.nan)[:4] = np.arange(4)
    group.create_array("text", shape=(3,), chunks=(2,), dtype=str)[:] = np.array(["a", "bb", "ccc"])
    array("dotted_keys", BASE, (3, 4), chunk_key_encoding={"name": "v2", "separator": "."})
    array("scalar", np.array(2.5), ())
    group.create_array("bool", shape=(4,), chunks=(2,), dtype="bool", fill_value=True)[:2] = False
    group.attrs.update({"nested": {"list": [1, 2.5, "x", None, True]}, "big": 2**62 + 1, "nothing": None, "yes": True})


def scales(*factors):
    return [{"type": "scale", "scale": list(factors)}]


def ome(path, version):
    """Five axes, two levels, transformations of the levels and of the whole."""
    format = 2 if version == "0.4" else 3
    group = zarr.open_group(path, mode="w", zarr_format=format)
    values = np.arange(2 * 3 * 8 * 10 * 12, dtype="u2").reshape(2, 3, 8, 10, 12)
    for name, level in (("s0", values), ("s1", values[..., ::2, ::2])):
        more = {"dimension_names": list("tczyx")} if format == 3 else {"chunk_key_encoding": {"name": "v2", "separator": "/"}}
        group.create_array(name, shape=level.shape, chunks=(1, 1, 4, 5, 6), dtype="u2", **more)[:] = level
    axes = [{"name": "t", "type": "time", "unit": "second"}, {"name": "c", "type": "channel"}]
    axes += [{"name": n, "type": "space", "unit": "micrometer"} for n in "zyx"]
    moved = lambda *v: [{"type": "translation", "translation": list(v)}]
    multiscale = {
        "version": version, "name": "img", "axes": axes,
        "datasets": [
            {"path": "s0", "coordinateTransformations": scales(60, 1, 2, 0.5, 0.5) + moved(0, 0, -10, -20, -30)},
            {"path": "s1", "coordinateTransformations": scales(60, 1, 2, 1.0, 1.0) + moved(0, 0, -10, -19.75, -29.75)},
        ],
        "coordinateTransformations": scales(1, 1, 10, 10, 10) + moved(0, 0, 1000, 0, 0),
    }
    channels = [{"label": n, "color": c, "window": {"start": 0, "end": 100, "min": 0, "max": 65535}}
                for n, c in (("DAPI", "0000FF"), ("GFP", "00FF00"), ("RFP", "FF0000"))]
    if format == 2:
        group.attrs["multiscales"] = [multiscale]
        group.attrs["omero"] = {"channels": channels}
    else:
        group.attrs["ome"] = {"version": version, "multiscales": [multiscale], "omero": {"channels": channels}}


def color_last(path):
    """An image whose channels are the last axis."""
    group = zarr.open_group(path, mode="w", zarr_format=2)
    group.create_array("0", shape=(6, 4, 3), chunks=(6, 4, 3), dtype="u1")[:] = np.arange(72).reshape(6, 4, 3)
    axes = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}, {"name": "c", "type": "channel"}]
    group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": [
        {"path": "0", "coordinateTransformations": scales(0.5, 0.5, 1)}]}]


def series(path):
    """Several images in one store, as bioformats2raw lays them out."""
    group = zarr.open_group(path, mode="w", zarr_format=2)
    group.attrs["bioformats2raw.layout"] = 3
    axes = [{"name": "t", "type": "time"}, {"name": "c", "type": "channel"}] + [{"name": n, "type": "space"} for n in "zyx"]
    for number in range(2):
        image = group.create_group(str(number))
        keys = {"name": "v2", "separator": "/"}
        image.create_array("0", shape=(1, 1, 1, 4, 4), chunks=(1, 1, 1, 4, 4), dtype="u1", chunk_key_encoding=keys)[:] = number + 1
        image.attrs["multiscales"] = [{"version": "0.4", "name": f"series {number}", "axes": axes, "datasets": [
            {"path": "0", "coordinateTransformations": scales(1, 1, 1, 1, 1)}]}]


def stale(path, format):
    """Consolidated metadata that is older than what it describes: zarr-python believes it."""
    group = zarr.open_group(path, mode="w", zarr_format=format)

    def named(name):
        return {"dimension_names": [name]} if format == 3 else {"attributes": {"_ARRAY_DIMENSIONS": [name]}}

    group.create_array("time", shape=(3,), chunks=(3,), dtype="i4", **named("time"))[:] = [1, 2, 3]
    zarr.consolidate_metadata(path)
    group = zarr.open_group(path, mode="r+", zarr_format=format, use_consolidated=False)
    group["time"].resize((6,))
    group["time"][:] = np.arange(6) + 1
    group.create_array("new", shape=(2,), chunks=(2,), dtype="i4", **named("n"))[:] = [7, 8]
