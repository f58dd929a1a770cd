"""Pictures of volumes as numpy arrays."""

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsFloat, Unpack, cast

import numpy as np

from . import _native
from ._errors import InvalidError
from ._pixels import PIXELS, Pixels, check_pixels
from ._slabs import Slabs
from ._view import FORMER_KEYWORDS, ViewOptions

if TYPE_CHECKING:
    from ._dataset import Dataset


class PictureOptions(ViewOptions, total=False):
    """Keywords of :func:`corridor.render`: fields of a view, and these."""

    size: tuple[int, int]
    """Pixels across and down, (1024, 800) if not given."""
    pixels: Pixels
    """`rgb`, bytes over the view's background; `rgba`, bytes with transparency, not premultiplied; or `float`, float32 in
    full precision, premultiplied. Colors are sRGB-encoded."""
    device: str
    """`cpu`, `gpu`, or `auto`, a graphics processor where there is one."""
    view: Mapping[str, Any] | str | None
    """A whole view, as a link of the viewer holds it; other keywords replace parts of it."""
    range: str | Sequence[SupportsFloat] | None
    """Values that the colors cover, where neither `tf` nor `view` says it: `usual`, `full`, or the lowest and the highest."""


class SlabPictureOptions(PictureOptions, total=False):
    """Keywords of :func:`corridor.render_with_slabs`: those of a picture, and these."""

    slab_count: int
    """Number of slabs, 1 to 64; 32 if not given."""
    slab_cut: str
    """`planes`, parallel to the picture, or `axis`, across the axis of the volume that the camera sees most nearly from the
    front."""
    slab_texel: int | None
    """Pixels of the picture along a side of each texel; 2 if not given, across an axis 1."""


_Picture = np.ndarray[Any, np.dtype[Any]]


def drawn(dataset: "Dataset", array: str | None, /, **how: Unpack[PictureOptions]) -> _Picture:
    """One finished picture; see :func:`corridor.render`."""
    return _drawn(dataset, array, how, None)[0]


def drawn_with_slabs(
    dataset: "Dataset", array: str | None, /, **how: Unpack[SlabPictureOptions]
) -> tuple[_Picture, Slabs]:
    """One finished picture and slabs beside it; see :func:`corridor.render_with_slabs`."""
    count, cut, texel = how.pop("slab_count", 32), how.pop("slab_cut", "planes"), how.pop("slab_texel", None)
    if cut not in ("planes", "axis"):
        raise InvalidError(f"expected slab_cut as planes or axis, found {cut!r}")
    picture, native = _drawn(dataset, array, how, (cut == "axis", count, texel))
    assert native is not None
    return picture, Slabs(native)


def _drawn(
    dataset: "Dataset",
    array: str | None,
    how: PictureOptions,
    slabs: tuple[bool, int, int | None] | None,
) -> tuple[_Picture, _native.Slabs | None]:
    size, pixels = how.pop("size", (1024, 800)), how.pop("pixels", "rgb")
    device = how.pop("device", "auto")
    check_pixels(pixels)
    keywords = _json(_present(how))
    values, lacks, native = _native.render(
        dataset._connection, array, keywords, (size, pixels, device), slabs
    )
    if lacks is not None:
        warnings.warn(lacks, stacklevel=4)
    (width, height), (count, dtype) = size, PIXELS[pixels]
    return cast("_Picture", values.view(dtype).reshape(height, width, count)), native


def _present(how: Mapping[str, object]) -> dict[str, object]:
    """The keywords by their present names."""
    keywords = dict(how)
    for former in FORMER_KEYWORDS.keys() & keywords.keys():
        name = FORMER_KEYWORDS[former]
        warnings.warn(f"`{former}` is spelled `{name}` now", DeprecationWarning, stacklevel=5)
        keywords.setdefault(name, keywords.pop(former))
    return keywords


def _json(keywords: dict[str, object]) -> str:
    try:
        return json.dumps(keywords, default=_plain, allow_nan=False)
    except InvalidError:
        raise
    except ValueError:
        raise InvalidError(f"expected finite numbers, found {keywords!r}") from None


def _plain(value: object) -> object:
    """A value that JSON has: of numpy's numbers and arrays, such as the extreme values of what was read, and of arrays of a data
    set, which are meant by their names."""
    from ._array import Array

    if isinstance(value, Array):
        return value.name
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, SupportsFloat):
        return float(value)
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return list(value)
    raise InvalidError(f"expected numbers, texts, lists and mappings, found {value!r}")
