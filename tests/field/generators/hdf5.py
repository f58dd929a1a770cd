"""HDF5: types, links, virtual data sets, filters, attributes, many arrays, many chunks, odd names."""

import pathlib

import h5py
import hdf5plugin
import numpy as np

NAMES = ["Temp [K]", "a b", "data[0]", "x:y", "50%", "a.b", "größe", "日本", "q?z", "h#h", "..x", "a,b", "-o", "tab\tx",
         "new\nline", '"quo"', "trail ", "g/Temp [K]", "g/sub grp/ü"]
FILTERS = {
    "zstd": hdf5plugin.Zstd(),
    "lz4": hdf5plugin.LZ4(),
    "blosc_zstd": hdf5plugin.Blosc(cname="zstd", shuffle=hdf5plugin.Blosc.BITSHUFFLE),
    "blosc_lz4": hdf5plugin.Blosc(cname="lz4", shuffle=hdf5plugin.Blosc.SHUFFLE),
    "blosc2": hdf5plugin.Blosc2(),
    "bitshuffle": hdf5plugin.Bitshuffle(cname="none"),
    "bitshuffle_lz4": hdf5plugin.Bitshuffle(),
    "bitshuffle_zstd": hdf5plugin.Bitshuffle(cname="zstd"),
    "bzip2": hdf5plugin.BZip2(),
}


def write(folder: pathlib.Path) -> None:
    """Writes all files of this module."""
    raw_frames(folder / "frames.h5")
    links(folder / "links.h5", "frames.h5")
    odd_types(folder / "odd_types.h5")
    names(folder / "names.h5")
    filters(folder / "filters.h5")
    with h5py.File(folder / "many_arrays.h5", "w", libver="latest") as file:
        for i in range(10_000):
            file[f"v{i:05d}"] = np.full(2, i, "f4")
    with h5py.File(folder / "many_chunks.h5", "w", libver="latest") as file:
        file.create_dataset("c", (20_000,), "i4", chunks=(1,))[:] = np.arange(20_000)


def raw_frames(path):
    with h5py.File(path, "w") as file:
        file["entry/data/data_000001"] = np.arange(24, dtype="u2").reshape(2, 3, 4)


def links(path, other):
    """One data set of several names, links within the file and to another, virtual data sets: as NeXus files have them."""
    with h5py.File(path, "w") as file:
        file["own"] = np.arange(6.0)
        file["entry/instrument/detector/data"] = np.arange(12, dtype="i4").reshape(3, 4)
        file["entry/data/data"] = h5py.SoftLink("/entry/instrument/detector/data")
        file["entry/data/hard"] = file["own"]
        file["entry/data/data_000001"] = h5py.ExternalLink(other, "/entry/data/data_000001")
        file["entry/data/nowhere"] = h5py.SoftLink("/not/there")
        layout = h5py.VirtualLayout((2, 3, 4), "u2")
        layout[:] = h5py.VirtualSource(other, "entry/data/data_000001", shape=(2, 3, 4))
        file.create_virtual_dataset("virtual", layout)
        layout = h5py.VirtualLayout((6,), "f8")
        layout[:] = h5py.VirtualSource(".", "own", shape=(6,))
        file.create_virtual_dataset("virtual_own", layout)


def odd_types(path):
    with h5py.File(path, "w", userblock_size=1024, libver="latest") as file:
        file["scalar"] = 3.5
        file["empty"] = h5py.Empty("f4")
        file["zero"] = np.zeros((0, 3))
        file["bool"] = np.array([True, False])
        file["complex"] = np.array([1 + 2j])
        file["big"] = np.arange(5, dtype=">f8")
        file["big_integer"] = np.arange(5, dtype=">i2")
        file["half"] = np.arange(5, dtype="f2")
        colors = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 2}, "i1")
        file.create_dataset("enum", data=[0, 1, 2, 1], dtype=colors)
        file["compound"] = np.array([(1, 2.0), (3, 4.0)], [("x", "i4"), ("y", "f8")])
        file["fixed_text"] = np.array([b"ab", b"cd"])
        file.create_dataset("text", data=["é", "xyz"], dtype=h5py.string_dtype())
        file.create_dataset("inner_array", (2,), dtype=np.dtype(("f4", (3,))))
        file.create_dataset("sequences", (2,), dtype=h5py.vlen_dtype("i4"))
        file["opaque"] = np.array([b"\1\2"], "V2")
        numbers = np.arange(30, dtype="i4").reshape(5, 6)
        file.create_dataset("gzip", data=numbers, chunks=(2, 4), compression="gzip", shuffle=True, fletcher32=True)
        file.create_dataset("lzf", data=np.arange(3000, dtype="i4"), chunks=(512,), compression="lzf")
        file.create_dataset("scaleoffset", data=numbers, chunks=(2, 4), scaleoffset=0)
        file.create_dataset("scaleoffset_float", data=numbers * 0.1, chunks=(2, 4), scaleoffset=2)
        file.create_dataset("partly", (10, 10), "f4", chunks=(3, 3), fillvalue=-5.0)[2:4, 2:4] = 1
        file.create_dataset("never", (4, 5), "i2", fillvalue=-7)
        file.create_dataset("chunk_too_long", data=np.arange(6), chunks=(100,), maxshape=(None,))
        file.attrs["long"] = np.arange(20_000, dtype="f8")
        file.attrs["one"] = 1
        file.attrs["long_text"] = "x" * 100_000
        file.attrs["empty"] = h5py.Empty("f4")
        file.attrs["compound"] = np.array((1, 2.0), [("x", "i4"), ("y", "f8")])


def names(path):
    with h5py.File(path, "w") as file:
        for i, name in enumerate(NAMES):
            file[name] = np.arange(4, dtype="i4") + 10 * i


def filters(path):
    values = np.arange(4096, dtype="u2").reshape(64, 64)
    with h5py.File(path, "w") as file:
        file["plain"] = values
        for name, options in FILTERS.items():
            file.create_dataset(name, data=values, chunks=(16, 24), compression=options)
        file.create_dataset("szip", data=values, chunks=(16, 24), compression="szip") if "szip" in h5py.filters.encode else None
