"""Bugs that were found, each named after what was seen."""

import pathlib

import h5py
import numpy as np
from conftest import corridor


def test_get_from_hdf5_crashed_while_the_process_ended(home: pathlib.Path):
    """HDF5's clean-up at exit ran while a storage thread was inside the library: two of three runs crashed."""
    path = home / "small.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("u", data=np.arange(1000).reshape(10, 100), chunks=(3, 7), compression="gzip")
    for _ in range(20):
        done = corridor(home, "get", str(path), "u", "-o", str(home / "u.npy"))
        assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
