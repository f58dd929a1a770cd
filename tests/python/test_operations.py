"""Operations of a server called from Python: the three of the example give what numpy gives."""

import asyncio
import pathlib
import subprocess
import threading
from collections.abc import Iterator

import conftest
import corridor
import netCDF4
import numpy as np
import pytest

SERVER = pathlib.Path(conftest.BINARY).with_name("serve-with-operations")


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    """Decoded values; a tenth is missing."""
    random_numbers = np.random.default_rng(3)
    stored = random_numbers.integers(-3000, 3000, (30, 41, 52), dtype=np.int16)
    return np.where(random_numbers.random(stored.shape) < 0.1, np.nan, stored * np.float32(0.5))


@pytest.fixture(scope="module")
def rho(tmp_path_factory: pytest.TempPathFactory, values: np.ndarray) -> Iterator[corridor.Array]:
    folder = tmp_path_factory.mktemp("operations")
    with netCDF4.Dataset(folder / "run.nc", "w") as file:
        for name, size in zip("zyx", values.shape, strict=True):
            file.createDimension(name, size)
        rho = file.createVariable("rho", "i2", tuple("zyx"), fill_value=-9999, zlib=True, chunksizes=(8, 16, 52))
        rho.scale_factor = np.float32(0.5)
        rho[...] = np.ma.masked_array(np.nan_to_num(values), np.isnan(values))
    environment = conftest.environment(folder)
    process = subprocess.Popen(
        [SERVER, "run.nc"], stdout=subprocess.PIPE, env=environment, cwd=folder, text=True
    )
    alarm = threading.Timer(120, process.kill)
    alarm.start()
    try:
        assert process.stdout is not None
        yield corridor.open(process.stdout.readline().strip())["rho"]
    finally:
        alarm.cancel()
        process.kill()
        process.wait()


@pytest.mark.parametrize("key", [..., np.s_[3:20, ::3, 5], np.s_[0, 0, :2]])
def test_percentiles_are_numpys(rho: corridor.Array, values: np.ndarray, key: object) -> None:
    q = [0, 2.5, 50, 99.9, 100]
    found = rho.call("percentile", key=key, q=np.array(q))
    assert found["values"] == pytest.approx(np.nanpercentile(values[key].astype(float), q), rel=1e-15)
    assert found["count"] == np.isfinite(values[key]).sum()
    assert rho.call("percentile", key=key, q=50)["values"] == found["values"][2:3]


def test_cells_without_a_value_at_a_corner_are_none(rho: corridor.Array, values: np.ndarray) -> None:
    corners = np.stack(
        [values[z : 29 + z, y : 40 + y, x : 51 + x] for z in (0, 1) for y in (0, 1) for x in (0, 1)]
    )
    low, high = corners.min(axis=0), corners.max(axis=0)
    found = rho.call("isosurface_cells", isovalues=[-100.0, 700])
    crossed = [int(((low < iso) & (iso <= high)).sum()) for iso in (-100, 700)]
    assert found == {"cells": int(np.isfinite(low).sum()), "crossed": crossed}


def test_resampling_gives_an_array(rho: corridor.Array, values: np.ndarray) -> None:
    found = rho.call("resample", key=np.s_[:, :40], shape=(15, 10, 13))
    groups = values[:, :40].reshape(15, 2, 10, 4, 13, 4)
    assert found.dtype == np.float32
    assert np.allclose(found, np.nanmean(groups, axis=(1, 3, 5)), rtol=1e-5)
    same = rho.call("resample", shape=rho.shape, method="linear")
    assert np.array_equal(same, values, equal_nan=True)


def test_futures_event_loops_and_progress(rho: corridor.Array) -> None:
    expected = rho.call("percentile", q=10)
    assert rho.submit_call("percentile", q=10).result(60) == expected
    assert asyncio.run(rho.call_async("percentile", q=10)) == expected
    heard: list[tuple[int, int]] = []
    rho.call("percentile", q=10, progress=lambda done, total: heard.append((done, total)))
    assert heard and 0 < heard[-1][0] <= heard[-1][1]


def test_errors_of_operations_are_explained(rho: corridor.Array) -> None:
    with pytest.raises(corridor.UnsupportedError, match='"isosurface_cells".*found `median`'):
        rho.call("median")
    with pytest.raises(corridor.InvalidError, match="unknown field `percent`, expected `q`"):
        rho.call("percentile", percent=5)
    with pytest.raises(corridor.InvalidError, match="expected percentages from 0 to 100, found 101"):
        rho.submit_call("percentile", q=101).result(60)
    with pytest.raises(corridor.InvalidError, match="positive steps"):
        rho.call("percentile", key=np.s_[::-1], q=5)
    with pytest.raises(TypeError, match="found set"):
        rho.call("percentile", q={5})
