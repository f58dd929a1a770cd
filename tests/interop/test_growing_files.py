"""Files that grow while they are served: open data sets stay readable, and new ones have all data."""

import pathlib
import threading
import time
from collections.abc import Callable

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr
from conftest import corridor, running

ROWS, COLUMNS = 4, 300


def row(number: int) -> np.ndarray:
    return np.arange(COLUMNS, dtype="<f4") + 1000 * number


def netcdf4(path: pathlib.Path, rows: int) -> pathlib.Path:
    mode = "a" if path.exists() else "w"
    with netCDF4.Dataset(path, mode) as file:
        if mode == "w":
            file.createDimension("t", None)
            file.createDimension("x", COLUMNS)
            file.createVariable("v", "f4", ("t", "x"), chunksizes=(1, COLUMNS), zlib=True)
        for number in range(file["v"].shape[0], rows):
            file["v"][number] = row(number)
    return path


def netcdf3(path: pathlib.Path, rows: int) -> pathlib.Path:
    mode = "a" if path.exists() else "w"
    with netCDF4.Dataset(path, mode, format="NETCDF3_64BIT_OFFSET") as file:
        if mode == "w":
            file.createDimension("t", None)
            file.createDimension("x", COLUMNS)
            file.createVariable("v", "f4", ("t", "x"))
        for number in range(file["v"].shape[0], rows):
            file["v"][number] = row(number)
    return path


def hdf5(path: pathlib.Path, rows: int) -> pathlib.Path:
    with h5py.File(path, "a") as file:
        data = file.require_dataset("v", (ROWS, COLUMNS), "<f4", maxshape=(None, COLUMNS), chunks=(1, COLUMNS)) if "v" not in file else file["v"]
        data.resize(rows, axis=0)
        data[:] = [row(number) for number in range(rows)]
    return path


def store(path: pathlib.Path, rows: int) -> pathlib.Path:
    if not path.exists():
        zarr.create_array(str(path), shape=(0, COLUMNS), chunks=(1, COLUMNS), dtype="<f4", dimension_names=("t", "x"))
    array = zarr.open_array(str(path))
    for number in range(array.shape[0], rows):
        array.append(row(number)[None])
    return path


def npy(path: pathlib.Path, rows: int) -> pathlib.Path:
    np.save(path.with_name("new.npy"), np.stack([row(number) for number in range(rows)]))
    path.with_name("new.npy").replace(path)
    return path


def raw(path: pathlib.Path, rows: int) -> pathlib.Path:
    with path.with_suffix(".bin").open("ab") as file:
        for number in range(file.tell() // (4 * COLUMNS), rows):
            file.write(row(number).tobytes())
    path.write_text(f'file = "{path.stem}.bin"\nshape = [{rows}, {COLUMNS}]\ndtype = "<f4"\n')
    return path


KINDS: dict[str, tuple[str, Callable[[pathlib.Path, int], pathlib.Path]]] = {
    "netcdf4": ("a.nc", netcdf4),
    "netcdf3": ("a.nc", netcdf3),
    "hdf5": ("a.h5", hdf5),
    "zarr": ("a.zarr", store),
    "npy": ("a.npy", npy),
    "raw": ("a.toml", raw),
}


@pytest.mark.parametrize("kind", KINDS)
def test_file_opened_before_it_grew_stays_readable(home, tmp_path, kind):
    import corridor as package

    name, write = KINDS[kind]
    path = write(tmp_path / name, ROWS)
    expected = np.stack([row(number) for number in range(ROWS + 3)])
    with running(home, "serve", str(path), "--listen", "127.0.0.1:0", "--json") as server:
        served, local = package.open(server.url), package.open(str(path))
        arrays = [data[next(iter(data))] for data in (served, local)]
        assert all(np.array_equal(array[0], row(0)) for array in arrays)
        write(path, ROWS + 3)
        for array in arrays:
            assert array.shape == (ROWS, COLUMNS)
            assert np.array_equal(array[...], expected[:ROWS]), "what was there before"
            assert np.array_equal(array[1:3, 5], expected[1:3, 5])
            some = package.read_many([(array, (number, 0)) for number in range(ROWS)])
            assert [float(value) for value in some] == [1000.0 * number for number in range(ROWS)]
        out = home / "out.npy"
        end = time.monotonic() + 20
        while True:
            done = corridor(home, "get", server.url, "-o", str(out))
            assert done.returncode == 0, done.stderr
            if np.load(out).shape == expected.shape or time.monotonic() > end:
                break
        assert np.array_equal(np.load(out), expected), "opened anew it is all there"


@pytest.mark.parametrize("kind", ["netcdf4", "zarr", "npy"])
def test_copy_of_a_growing_file_is_consistent(home, tmp_path, kind):
    """A writer appends all the time; each copy has whole rows, with the right values."""
    name, write = KINDS[kind]
    path = write(tmp_path / name, ROWS)
    is_over = threading.Event()

    def append() -> None:
        rows = ROWS
        while not is_over.wait(0.3):
            rows += 1
            write(path, rows)

    with running(home, "serve", str(path), "--listen", "127.0.0.1:0", "--json") as server:
        writer = threading.Thread(target=append)
        writer.start()
        try:
            for number in range(6):
                out = tmp_path / f"out{number}.npy"
                done = corridor(home, "get", server.url, "-o", str(out))
                assert done.returncode == 0, done.stderr
                found = np.load(out)
                # A row that was being written may not be there yet, and is then what the format says of it.
                whole = np.stack([row(number) for number in range(found.shape[0])])
                complete = [np.array_equal(a, b) for a, b in zip(found, whole, strict=True)]
                assert all(complete[:-1]), complete
        finally:
            is_over.set()
            writer.join()


def test_growing_file_over_zarr_http(home, tmp_path):
    path = netcdf4(tmp_path / "a.nc", ROWS)
    with running(home, "serve", str(path), "--listen", "127.0.0.1:0", "--json") as server:
        line = server.lines[0]
        headers = {"client_kwargs": {"headers": {"Authorization": f"Bearer {line['token']}"}}}
        with xr.open_zarr(line["zarr"], storage_options=headers, chunks=None) as before:
            assert before["v"].shape == (ROWS, COLUMNS)
            netcdf4(path, ROWS + 2)
            assert np.array_equal(before["v"].values, np.stack([row(number) for number in range(ROWS)]))
        time.sleep(1.1)
        with xr.open_zarr(line["zarr"], storage_options=headers, chunks=None) as after:
            assert np.array_equal(after["v"].values, np.stack([row(number) for number in range(ROWS + 2)]))
