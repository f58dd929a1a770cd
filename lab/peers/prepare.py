"""Writes the field in the formats that peers read: a sharded Zarr v3 array and an HDF5 file, neither compressed.

The Zarr array has one row per chunk, so that a random read of a row moves no needless bytes, and 1000 rows or fewer per shard,
so that there are few files. TensorStore writes it: zarr-python takes minutes for so many chunks.
"""

import pathlib

import field
import h5py
import numpy as np
import tensorstore as ts

given = field.job()
folder = pathlib.Path(given["folder"])
shape = given["shape"]
data = np.memmap(given["file"], dtype=np.uint8, mode="r", shape=tuple(shape))
depth = max(d for d in range(1, 5) if shape[1] % d == 0)
plain = {"name": "bytes"}
rows = {
    "chunk_shape": [1, 1, 1, shape[3]],
    "codecs": [plain],
    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
}
array = ts.open(
    {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{folder / 'field.zarr'}/", "file_io_sync": False},
        "metadata": {
            "shape": shape,
            "data_type": "uint8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, depth, shape[2], shape[3]]}},
            "codecs": [{"name": "sharding_indexed", "configuration": rows}],
        },
    },
    create=True,
    delete_existing=True,
).result()
with h5py.File(folder / "field.h5", "w") as file:
    contiguous = file.create_dataset("field", shape=shape, dtype="u1")
    for t in range(shape[0]):
        array[t].write(data[t]).result()
        contiguous[t] = data[t]
print("true")
