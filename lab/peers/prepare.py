"""Writes the field again in the formats that peers read: a sharded Zarr v3 array and an HDF5 file, neither compressed.

The Zarr array has one row per chunk, so that a random read of a row moves no byte too many, and 1000 rows or fewer per shard,
so that there are few files.
"""

import pathlib

import field
import h5py
import numpy as np
import zarr

given = field.job()
folder = pathlib.Path(given["folder"])
shape = tuple(given["shape"])
data = np.memmap(given["file"], dtype=np.uint8, mode="r", shape=shape)
depth = max(d for d in range(1, 5) if shape[1] % d == 0)
shard = (1, depth, shape[2], shape[3])
array = zarr.create_array(
    folder / "field.zarr", shape=shape, dtype="u1", chunks=(1, 1, 1, shape[3]), shards=shard, compressors=None, overwrite=True
)
with h5py.File(folder / "field.h5", "w") as file:
    contiguous = file.create_dataset("field", shape=shape, dtype="u1")
    for t in range(shape[0]):
        array[t] = data[t]
        contiguous[t] = data[t]
print("true")
