"""Filters of HDF5 that other programs bring are undone as hdf5plugin undoes them: every type, several shapes, chunks that
reach beyond the array, data that pack well and data that do not."""

import pathlib

import corridor
import h5py
import hdf5plugin
import numpy as np

SHAPES = [((1000,), (300,)), ((37, 53), (16, 20)), ((9, 14, 17), (4, 5, 17)), ((3, 4, 5, 30), (2, 3, 5, 7)), ((40, 60), (40, 60))]
TYPES = ["u1", "<i2", ">i4", "<f4", "<f8", ">u8"]


def filters(dtype: np.dtype) -> dict[str, dict]:
    found: dict[str, dict] = {
        "blosc 0": dict(hdf5plugin.Blosc(clevel=0)),
        "blosc2 0": dict(hdf5plugin.Blosc2(clevel=0)),
        "lz4": dict(hdf5plugin.LZ4()),
        "lz4 of 64 bytes": dict(hdf5plugin.LZ4(nbytes=64)),
        "zstd": dict(hdf5plugin.Zstd()),
        "bzip2": dict(hdf5plugin.BZip2()),
        "lzf": {"compression": "lzf", "shuffle": True},
        "gzip": {"compression": "gzip", "shuffle": True, "fletcher32": True},
        "checksum before zstd": {"fletcher32": True, **hdf5plugin.Zstd()},
        "scale-offset": {"scaleoffset": 3 if dtype.kind == "f" else 0},
    }
    for codec in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        for shuffle in (0, 1, 2):
            found[f"blosc {codec} {shuffle}"] = dict(hdf5plugin.Blosc(cname=codec, shuffle=shuffle))
        for filter_ in (0, 1, 2, 3):
            found[f"blosc2 {codec} {filter_}"] = dict(hdf5plugin.Blosc2(cname=codec, filters=filter_))
    for packing in ("none", "lz4", "zstd"):
        found[f"bitshuffle {packing}"] = dict(hdf5plugin.Bitshuffle(cname=packing))
        found[f"bitshuffle {packing} of 64"] = dict(hdf5plugin.Bitshuffle(cname=packing, nelems=64))
    if h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
        for coding in ("nn", "ec"):
            for block in (4, 8, 16):
                found[f"szip {coding} {block}"] = {"compression": "szip", "compression_opts": (coding, block)}
    return found


def numbers(dtype: np.dtype, shape: tuple[int, ...], chance: np.random.Generator) -> np.ndarray:
    """A walk, interrupted by noise, with stretches of one value."""
    flat = np.cumsum(chance.integers(-3, 4, int(np.prod(shape)))) % 251
    flat[len(flat) // 3 : len(flat) // 2] = 7
    flat[::11] = chance.integers(0, 251, len(flat[::11]))
    values = (flat / 7 if dtype.kind == "f" else flat).astype(dtype)
    return values.reshape(shape)


def test_every_filter_decodes_as_in_its_own_library(tmp_path: pathlib.Path) -> None:
    chance = np.random.default_rng(11)
    compared = 0
    for kind in TYPES:
        dtype, path = np.dtype(kind), tmp_path / f"{kind.strip('<>')}.h5"
        with h5py.File(path, "w") as file:
            for number, (shape, chunk) in enumerate(SHAPES):
                for name, options in filters(dtype).items():
                    if name.startswith("szip") and int(name.split()[-1]) > chunk[-1]:
                        continue
                    file.create_dataset(f"{name} {number}", data=numbers(dtype, shape, chance), chunks=chunk, **options)
                for name, options in {"blosc": hdf5plugin.Blosc(), "blosc2": hdf5plugin.Blosc2()}.items():
                    for value in (0, 9):
                        same = np.full(shape, value, dtype)
                        file.create_dataset(f"{name} all {value} {number}", data=same, chunks=chunk, **options)
        found = corridor.open(path)
        with h5py.File(path) as file:
            assert set(found) == set(file)
            for name, data in file.items():
                np.testing.assert_array_equal(found[name][...], data[...], err_msg=f"{name} of {kind}")
                compared += 1
    assert compared > 6 * 5 * 45


def test_unsupported_filter_is_named(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "zfp.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("packed", data=np.ones((8, 8), "f4"), **hdf5plugin.Zfp(reversible=True))
        file["plain"] = np.arange(3)
    found = corridor.open(path)
    assert list(found) == ["plain"]
    try:
        found["packed"]
    except KeyError as error:
        assert "zfp" in str(error)
