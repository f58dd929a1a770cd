"""Text arrays in numpy: elements have the type that the library of the file's format returns."""

import numpy as np
import pytest
from corridor._text import text_of


def described(axis: str = "bytes", size: int = 5, **storage: object) -> dict[str, object]:
    """An array of texts, as descriptions have it."""
    axes = [{"name": "x"}, {"name": axis}]
    return {"meaning": "text", "axes": axes, "levels": [{"shape": [3, size]}], "storage": storage}


TEXTS = [b"ab", "dé".encode(), b""]
RAW = np.frombuffer(b"".join(text.ljust(5, b"\0") for text in TEXTS), "u1").reshape(3, 5)


@pytest.mark.parametrize(
    ("info", "dtype", "expected"),
    [
        (described(), "O", ["ab", "dé", ""]),
        (described(text="fixed"), "S5", TEXTS),
        (described(zarr={"dtype": "<U4"}), "U4", ["ab", "dé", ""]),
        (described(zarr={"dtype": "|S5"}), "S5", TEXTS),
        (described(zarr={"data_type": "string"}), "O", ["ab", "dé", ""]),
        (described(zarr={"data_type": {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}}), "U2", ["ab", "dé", ""]),
    ],
)
def test_types(info: dict[str, object], dtype: str, expected: list[object]) -> None:
    text = text_of(info)
    assert text is not None and text.hides_axis and text.dtype == np.dtype(dtype)
    found = text.elements(RAW)
    assert found.dtype == np.dtype(dtype) and found.tolist() == expected


def test_characters_keep_their_axis() -> None:
    text = text_of(described(axis="strlen"))
    assert text is not None and not text.hides_axis
    assert text.elements(RAW).dtype == np.dtype("S1") and text.elements(RAW).shape == (3, 5)


def test_bytes_that_are_not_utf8_can_be_recovered() -> None:
    text = text_of(described(size=2))
    assert text is not None
    [found] = text.elements(np.array([[0xFF, 0x41]], "u1"))
    assert found.encode("utf-8", "surrogateescape") == b"\xffA"


def test_empty_strings_have_no_bytes() -> None:
    text = text_of(described(size=0))
    assert text is not None and text.elements(np.zeros((3, 0), "u1")).tolist() == [""] * 3


def test_numeric_arrays_are_not_text() -> None:
    assert text_of(described() | {"meaning": "labels"}) is None
