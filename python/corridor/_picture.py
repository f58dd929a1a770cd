"""Pictures of volumes as numpy arrays."""

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from . import _native
from ._errors import InvalidError

if TYPE_CHECKING:
    from ._dataset import Dataset

Pixels = Literal["rgb", "rgba", "float"]
# Values per pixel, and their type.
_PIXELS: dict[str, tuple[int, type[np.generic]]] = {
    "rgb": (3, np.uint8), "rgba": (4, np.uint8), "float": (4, np.float32),
}  # fmt: skip
# Distance of the eyes of a stereo pair, as a share of that to what they look at.
_PARALLAX = 1 / 30


def drawn(
    dataset: "Dataset",
    array: str | None,
    *,
    size: tuple[int, int] = (1024, 800),
    view: Mapping[str, Any] | str | None = None,
    camera: Mapping[str, Any] | str | None = None,
    tf: Mapping[str, Any] | str | None = None,
    iso: float | str | Sequence[float | str] = (),
    slices: Mapping[str, float | str] | Sequence[str] = (),
    mode: str | None = None,
    shading: bool | None = None,
    grids: bool | None = None,
    stereo: bool | float | None = None,
    time: int | None = None,
    level: int | None = None,
    pixels: Pixels = "rgb",
    device: str = "auto",
) -> np.ndarray[Any, np.dtype[Any]]:
    """One finished picture; see :func:`corridor.render`."""
    if pixels not in _PIXELS:
        raise InvalidError(f"expected pixels as one of {', '.join(_PIXELS)}, found {pixels!r}")
    width, height = size
    wish: dict[str, object] = {
        "view": _json(view),
        "array": array,
        "camera": _json(camera),
        "transfer": _json(tf),
        "surfaces": [str(value) for value in ([iso] if isinstance(iso, (str, float, int)) else iso)],
        "slices": _slices(slices),
        "mode": mode,
        "shading": shading,
        "grids": grids,
        "stereo": _PARALLAX if stereo is True else stereo or None,
        "time": time,
        "level": level,
    }
    values, lacks = _native.render(dataset._connection, wish, (width, height), pixels, device)
    if lacks is not None:
        warnings.warn(lacks, stacklevel=3)
    count, dtype = _PIXELS[pixels]
    return cast("np.ndarray[Any, np.dtype[Any]]", values.view(dtype).reshape(height, width, count))


def _json(value: Mapping[str, Any] | str | None) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _slices(slices: Mapping[str, float | str] | Sequence[str]) -> list[str]:
    if isinstance(slices, Mapping):
        return [f"{axis}={at}" for axis, at in slices.items()]
    return [slices] if isinstance(slices, str) else list(slices)
