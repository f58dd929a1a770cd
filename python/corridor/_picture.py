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
    """Width and height in pixels, (1024, 800) by default."""
    pixels: Pixels
    """`rgb`, bytes over the view's background; `rgba`, bytes with transparency, not premultiplied; or `float`, float32 in
    full precision, premultiplied. Colors are sRGB-encoded."""
    device: str
    """`cpu`, `gpu`, or `auto`, a graphics processor if there is one."""
    view: Mapping[str, Any] | str | None
    """A view, as in a link of the viewer; other keywords replace parts of it."""
    range: str | Sequence[SupportsFloat] | None
    """Range of values that the colors cover, if neither `tf` nor `view` has one: `usual`, `full`, or the lowest and the highest
    value."""


class SlabPictureOptions(PictureOptions, total=False):
    """Keywords of :func:`corridor.render_with_slabs`: those of a picture, and these."""

    slab_count: int
    """Number of slabs, 1 to 64; 32 by default."""
    slab_cut: str
    """`planes`, parallel to the picture, or `axis`, across the axis of the volume that is closest to the viewing
    direction."""
    slab_texel: int | None
    """Side of a texel in pixels of the picture; by default 2, or 1 for slabs across an axis."""


_Picture = np.ndarray[Any, np.dtype[Any]]


def drawn(dataset: "Dataset", array: str | None, /, **how: Unpack[PictureOptions]) -> _Picture:
    """Returns one finished picture; see :func:`corridor.render`."""
    return _drawn(dataset, array, how, None)[0]


def drawn_with_slabs(
    dataset: "Dataset", array: str | None, /, **how: Unpack[SlabPictureOptions]
) -> tuple[_Picture, Slabs]:
    """Returns one finished picture and its slabs; see :func:`corridor.render_with_slabs`."""
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
    keywords = _json(_with_layers(dataset, _present(how)))
    values, warning, native = _native.render(
        dataset._connection, array, keywords, (size, pixels, device), slabs
    )
    if warning is not None:
        warnings.warn(warning, stacklevel=4)
    (width, height), (count, dtype) = size, PIXELS[pixels]
    return cast("_Picture", values.view(dtype).reshape(height, width, count)), native


def _present(how: Mapping[str, object]) -> dict[str, object]:
    """Returns the keywords by their current names."""
    keywords = dict(how)
    for former in FORMER_KEYWORDS.keys() & keywords.keys():
        name = FORMER_KEYWORDS[former]
        warnings.warn(f"`{former}` is spelled `{name}` now", DeprecationWarning, stacklevel=5)
        keywords.setdefault(name, keywords.pop(former))
    return keywords


def _with_layers(dataset: "Dataset", keywords: dict[str, object]) -> dict[str, object]:
    """Returns the keywords with layers that are arrays of other data sets by their locations."""
    from ._array import Array

    def located(layer: object) -> object:
        if isinstance(layer, Mapping) and isinstance(layer.get("array"), Array):
            return {**layer, "array": located(layer["array"])}
        if not isinstance(layer, Array) or layer.dataset is dataset:
            return layer
        locations = layer.dataset.locations
        if len(locations) != 1:
            raise InvalidError(
                f"expected a layer of the same data set or of one that was opened by its location, found {layer.name!r} of "
                f"{layer.dataset.name!r}; write it to a file"
            )
        return locations[0] if len(layer.dataset) == 1 else f"{locations[0]}/{layer.name}"

    layers = keywords.get("layers")
    if layers is None or isinstance(layers, str):
        return keywords
    several = [layers] if isinstance(layers, Mapping | Array) else list(cast("Iterable[object]", layers))
    return {**keywords, "layers": [located(layer) for layer in several]}


def _json(keywords: dict[str, object]) -> str:
    try:
        return json.dumps(keywords, default=_plain, allow_nan=False)
    except InvalidError:
        raise
    except ValueError:
        raise InvalidError(f"expected finite numbers, found {keywords!r}") from None


def _plain(value: object) -> object:
    """Converts a value that JSON lacks: numbers and arrays of numpy, other sequences and mappings, and arrays of a data set,
    which become their names."""
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
