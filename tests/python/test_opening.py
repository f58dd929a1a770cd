"""Opening and closing of data sets, by the conventions of Python files."""

import pathlib

import corridor
import h5py
import numpy as np
import pytest


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    with h5py.File(tmp_path / "run.h5", "w") as file:
        file["rho"] = np.arange(60, dtype="<f4").reshape(3, 4, 5)
        file["one"] = np.float64(7)
        file["waves"] = np.ones(3, dtype="c16")
    return tmp_path / "run.h5"


def test_a_path_need_not_be_text(path: pathlib.Path) -> None:
    assert corridor.open(path)["rho"][1, 2, 3] == 33


def test_with_block_closes_a_data_set(path: pathlib.Path) -> None:
    with corridor.open(path) as data:
        rho = data["rho"]
        assert rho[0, 0, 4] == 4
        later = rho.submit((2,))
    assert later.result().shape == (4, 5), "what was asked before still comes"
    with pytest.raises(ValueError, match="closed"):
        rho[0]
    assert (data.name, rho.shape) == ("run.h5", (3, 4, 5)), "what is known of it stays"


def test_missing_file_raises_file_not_found_error(path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match="nosuch"):
        corridor.open(path.parent / "nosuch.h5")
    with pytest.raises(corridor.NotFoundError) as missing:
        corridor.open(f"{path}/nosuch")
    assert not isinstance(missing.value, FileNotFoundError), "the file is there, the array is not"


def test_array_that_is_left_out_raises_key_error_with_the_reason(path: pathlib.Path) -> None:
    with pytest.raises(KeyError, match="`waves` is left out: .*complex"):
        corridor.open(path)["waves"]


def test_an_ellipsis_answers_with_an_array_as_numpy_does(path: pathlib.Path) -> None:
    data = corridor.open(path)
    with h5py.File(path) as file:
        plain = file["rho"][...]
    for key in [(0, 0, 0, ...), (..., 1, 2, 3), (0, 0, 0), ..., (slice(None, None, -2), ..., 1)]:
        found, expected = data["rho"][key], plain[key]
        assert type(found) is type(expected) and np.array_equal(found, expected), key
    assert isinstance(data["one"][...], np.ndarray) and isinstance(data["one"][()], np.float64)


def test_a_token_that_nothing_asks_for_is_refused(path: pathlib.Path) -> None:
    with pytest.raises(corridor.InvalidError, match="token"):
        corridor.open(path, token="t")
