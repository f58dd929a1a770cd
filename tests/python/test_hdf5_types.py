"""Elements of HDF5 that are no plain numbers: compounds and complex numbers part by part, enumerations as their integers,
arrays as elements, integers of fewer bits; each stored in every way, as h5py reads it."""

import pathlib

import corridor
import h5py
import numpy as np
import pytest

WAYS: list[dict] = [
    {},
    {"chunks": True},
    {"chunks": (4, 3), "compression": "gzip", "shuffle": True},
    {"chunks": (4, 3), "compression": "lzf", "fletcher32": True},
]


def written(path: pathlib.Path, dtype: object, values: np.ndarray) -> None:
    with h5py.File(path, "w", libver="latest") as file:
        for number, way in enumerate(WAYS):
            file.create_dataset(f"all {number}", data=values, dtype=dtype, **way)
            some = file.create_dataset(f"some {number}", values.shape, dtype, **way)
            some[2:5] = values[2:5]
        file["group/soft.link"] = h5py.SoftLink("/all 2")
        file["group/hard"] = file["all 1"]


def names(path: pathlib.Path) -> list[str]:
    found: list[str] = []
    with h5py.File(path) as file:
        file.visit(lambda name: found.append(name) if isinstance(file[name], h5py.Dataset) else None)
    return [*found, "group/soft.link", "group/hard"]


def test_compounds_are_read_member_by_member(tmp_path: pathlib.Path) -> None:
    kind = np.dtype([("x", "<i4"), ("y", ">f8"), ("in", [("a", "u1"), ("b", "<i2")]), ("s", "S3"), ("flag", "?")])
    chance = np.random.default_rng(3)
    values = np.zeros((11, 7), kind)
    for name in ("x", "y", "flag"):
        values[name] = chance.integers(0, 2, values.shape) * 9
    values["in"]["a"] = chance.integers(0, 255, values.shape)
    path = tmp_path / "compound.h5"
    written(path, kind, values)
    found = corridor.open(path)
    with h5py.File(path) as file:
        for name in names(path):
            expected = file[name][...]
            for member in ("x", "y", "flag"):
                np.testing.assert_array_equal(found[f"{name}.{member}"][...], expected[member], err_msg=name)
                np.testing.assert_array_equal(found[f"{name}.{member}"][1::3, 2], expected[member][1::3, 2])
            np.testing.assert_array_equal(found[f"{name}.in.a"][...], expected["in"]["a"], err_msg=name)
    assert found.left_out["all 0.s"] == "string"
    with pytest.raises(KeyError, match=r"`all 0` is left out: compound of x, y, .*`all 0\.x`"):
        found["all 0"]


def test_complex_numbers_are_read_in_two_parts(tmp_path: pathlib.Path) -> None:
    chance = np.random.default_rng(4)
    path = tmp_path / "complex.h5"
    written(path, "c8", (chance.normal(size=(9, 6)) + 1j * chance.normal(size=(9, 6))).astype("c8"))
    found = corridor.open(path)
    with h5py.File(path) as file:
        for name in names(path):
            np.testing.assert_array_equal(found[f"{name}.r"][...], file[name][...].real, err_msg=name)
            np.testing.assert_array_equal(found[f"{name}.i"][...], file[name][...].imag, err_msg=name)


def test_enumerations_are_their_integers_and_say_what_they_mean(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "enumeration.h5"
    written(path, h5py.enum_dtype({"RED": 0, "dark green": 1, "BLUE": -2}, "<i2"), np.full((8, 3), -2, "i2"))
    found = corridor.open(path)
    with h5py.File(path) as file:
        for name in names(path):
            np.testing.assert_array_equal(found[name][...], file[name][...], err_msg=name)
    attributes = found["all 0"].attrs
    meanings = dict(zip(attributes["flag_meanings"].split(), np.asarray(attributes["flag_values"]).tolist(), strict=True))
    assert meanings == {"RED": 0, "dark_green": 1, "BLUE": -2}


def test_arrays_as_elements_add_their_axes(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "arrays.h5"
    kind = np.dtype(("<f4", (3, 2)))
    with h5py.File(path, "w", libver="latest") as file:
        for number, way in enumerate(WAYS):
            data = file.create_dataset(f"all {number}", (9, 5), kind, **way)
            data[:7] = np.random.default_rng(number).normal(size=(7, 5, 3, 2))
    found = corridor.open(path)
    with h5py.File(path) as file:
        for name, data in file.items():
            assert found[name].shape == (9, 5, 3, 2)
            np.testing.assert_array_equal(found[name][...], data[...], err_msg=name)
            np.testing.assert_array_equal(found[name][1::3, 2, 1:, 0], data[...][1::3, 2, 1:, 0], err_msg=name)


def test_integers_of_fewer_bits_are_whole_ones(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "bits.h5"
    with h5py.File(path, "w") as file:
        for name, chunk, packed in [("flat", None, False), ("chunks", (16,), False), ("packed", (16,), True)]:
            kind = h5py.h5t.STD_I16BE.copy()
            kind.set_precision(12)
            properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            properties.set_fill_value(np.array(-3, "i2"))
            if chunk:
                properties.set_chunk(chunk)
            if packed:
                properties.set_filter(h5py.h5z.FILTER_NBIT, h5py.h5z.FLAG_MANDATORY)
            data = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple((40,)), properties)
            h5py.Dataset(data)[3:20] = np.arange(-8, 9)
    found = corridor.open(path)
    with h5py.File(path) as file:
        for name, data in file.items():
            np.testing.assert_array_equal(found[name][...], data[...], err_msg=name)
            np.testing.assert_array_equal(found[name][2:30:5], data[2:30:5], err_msg=name)


def test_odd_attributes_spoil_nothing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "attributes.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["x"] = np.arange(4)
        attributes = file["x"].attrs
        attributes["large"] = np.arange(20_000, dtype="f8")
        attributes["long"] = "x" * 100_000
        attributes["empty"] = h5py.Empty("f4")
        attributes["none"] = np.zeros((0,), "i4")
        attributes["compound"] = np.array((1, 2.0), [("x", "i4"), ("y", "f8")])
        attributes["complex"] = 1 + 2j
        attributes["enumeration"] = np.array(1, h5py.enum_dtype({"A": 1}, "i1"))
        attributes["reference"] = file["x"].ref
        attributes["opaque"] = np.void(b"ab")
        attributes["texts"] = np.array(["a", "bc"], dtype=object)
        for number in range(300):
            attributes[f"a{number}"] = number
    found = corridor.open(path)["x"]
    np.testing.assert_array_equal(found[...], np.arange(4))
    assert found.attrs["a299"] == 299 and found.attrs["enumeration"] == 1
    assert len(found.attrs["long"]) == 100_000 and list(found.attrs["texts"]) == ["a", "bc"]
    np.testing.assert_array_equal(found.attrs["large"], np.arange(20_000))
