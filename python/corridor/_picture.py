"""Pictures of volumes as numpy arrays."""

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsFloat, cast

import numpy as np

from . import _native
from ._errors import InvalidError
from ._pixels import PIXELS, Pixels, check_pixels
from ._slabs import Slabs

if TYPE_CHECKING:
    from ._array import Array
    from ._dataset import Dataset

# Distance of the eyes of a stereo pair, as a share of that to what they look at.
_PARALLAX = 1 / 30


_Picture = np.ndarray[Any, np.dtype[Any]]


def drawn(
    dataset: "Dataset",
    array: str | None,
    *,
    size: tuple[int, int] = (1024, 800),
    pixels: Pixels = "rgb",
    device: str = "auto",
    **what: Any,
) -> _Picture:
    """One finished picture; see :func:`corridor.render`."""
    return _drawn(dataset, _wish(array, **what), size, pixels, device, None)[0]


def drawn_with_slabs(
    dataset: "Dataset",
    array: str | None,
    *,
    slab_count: int = 32,
    slab_cut: str = "planes",
    slab_texel: int | None = None,
    size: tuple[int, int] = (1024, 800),
    pixels: Pixels = "rgb",
    device: str = "auto",
    **what: Any,
) -> tuple[_Picture, Slabs]:
    """One finished picture and slabs beside it; see :func:`corridor.render_with_slabs`."""
    if slab_cut not in ("planes", "axis"):
        raise InvalidError(f"expected slab_cut as planes or axis, found {slab_cut!r}")
    slabs = slab_cut == "axis", slab_count, slab_texel
    picture, native = _drawn(dataset, _wish(array, **what), size, pixels, device, slabs)
    assert native is not None
    return picture, Slabs(native)


def _drawn(
    dataset: "Dataset",
    wish: dict[str, object],
    size: tuple[int, int],
    pixels: Pixels,
    device: str,
    slabs: tuple[bool, int, int | None] | None,
) -> tuple[_Picture, _native.Slabs | None]:
    check_pixels(pixels)
    values, lacks, native = _native.render(dataset._connection, wish, size, pixels, device, slabs)
    if lacks is not None:
        warnings.warn(lacks, stacklevel=4)
    (width, height), (count, dtype) = size, PIXELS[pixels]
    return cast("_Picture", values.view(dtype).reshape(height, width, count)), native


def _wish(
    array: str | None,
    *,
    view: Mapping[str, Any] | str | None = None,
    camera: Mapping[str, Any] | str | None = None,
    tf: Mapping[str, Any] | str | None = None,
    colour_by: "Mapping[str, Any] | Array | str | None" = None,
    iso: SupportsFloat | str | Sequence[SupportsFloat | str] = (),
    slices: Mapping[str, float | str] | Sequence[str] = (),
    mode: str | None = None,
    shading: bool | None = None,
    grids: bool | None = None,
    stereo: bool | float | None = None,
    time: int | None = None,
    level: int | None = None,
    range: str | Sequence[SupportsFloat] | None = None,  # noqa: A002
) -> dict[str, object]:
    return {
        "view": _json(view),
        "array": array,
        "camera": _json(camera),
        "transfer": _json(tf),
        "colour_by": _colours(colour_by),
        # One or several, numbers of numpy among them.
        "surfaces": [str(value) for value in np.ravel(np.asarray(iso, dtype=object))],
        "slices": _slices(slices),
        "mode": mode,
        "shading": shading,
        "grids": grids,
        "stereo": _PARALLAX if stereo is True else stereo or None,
        "time": time,
        "level": level,
        "range": range if range is None or isinstance(range, str) else ",".join(repr(float(v)) for v in range),
    }


def _json(value: Mapping[str, Any] | str | None) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, default=_plain)


def _plain(value: object) -> object:
    # Numbers and arrays of numpy, such as the extreme values of what was read.
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise InvalidError(f"expected numbers, texts, lists and mappings, found {value!r}")


def _colours(by: "Mapping[str, Any] | Array | str | None") -> str | None:
    return _json(getattr(by, "name", None) or cast("Mapping[str, Any] | str | None", by))


def _slices(slices: Mapping[str, float | str] | Sequence[str]) -> list[str]:
    if isinstance(slices, Mapping):
        return [f"{axis}={at}" for axis, at in slices.items()]
    return [slices] if isinstance(slices, str) else list(slices)
