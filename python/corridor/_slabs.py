"""Slabs: a picture of a volume that can still be looked at when the camera has moved on."""

import json
import os
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from . import _native
from ._pixels import PIXELS, Pixels, check_pixels


class Slabs:
    """A volume cut into slabs, the nearest first, each a picture on the plane in its middle: what
    :func:`corridor.render_with_slabs` gives beside a picture. A camera nearby sees them without the data.

    >>> import corridor
    >>> _, slabs = corridor.render_with_slabs("synthetic:waves?shape=16,16,16&dtype=u8", size=(32, 24))
    >>> len(slabs), slabs.draw(size=(64, 48)).shape
    (32, (48, 64, 3))
    """

    def __init__(self, native: _native.Slabs) -> None:
        self._native = native
        self._facts: dict[str, Any] = json.loads(native.facts())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Slabs":
        """Read what :meth:`save` or ``corridor render --slabs`` wrote.

        Raises :class:`CorruptError` for what is none.
        """
        return cls(_native.Slabs.read(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write them as ``corridor render --slabs`` does, losslessly or as JPEG, whichever is smaller."""
        with open(path, "wb") as file:
            file.write(self._native.encoded())

    @property
    def camera(self) -> dict[str, Any]:
        """The camera that they were cast from, as in a view: that of the picture beside them, with a guard band on each side."""
        return dict(self._facts["camera"])

    @property
    def guard(self) -> float:
        """By how much :attr:`camera` sees more on each side, as a share of the picture's width and height."""
        return float(self._facts["guard"])

    @property
    def of_picture(self) -> dict[str, Any]:
        """The camera of the picture beside them, as in a view."""
        return dict(self._facts["picture"])

    @property
    def size(self) -> tuple[int, int]:
        """What the whole picture of :attr:`camera` would be, texels across and down."""
        width, height = self._facts["size"]
        return width, height

    @property
    def normal(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Across the slabs, away from the camera: ``[x, y, z]`` of length 1 in world space."""
        return np.array(self._facts["normal"], dtype=np.float64)

    @property
    def borders(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Where each slab begins, and the last one ends: :attr:`normal` by any point of the border, world units. The picture of
        slab ``i`` lies on the plane in the middle of borders ``i`` and ``i + 1``, each texel where :attr:`camera` sees it."""
        return np.array(self._facts["borders"], dtype=np.float64)

    @property
    def rects(self) -> list[tuple[int, int, int, int]]:
        """Which part of the whole picture each slab's is: left, top, width and height, texels; empty where nothing is seen."""
        return [(left, top, width, height) for left, top, width, height in self._facts["rects"]]

    def texels(self, slab: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The picture of a slab: (height, width, 4), premultiplied, sRGB-encoded, 0 to 1."""
        slab = range(len(self))[slab]
        _, _, width, height = self._facts["rects"][slab]
        roots = self._native.texels(slab).astype(np.float32) / 255
        return cast("np.ndarray[Any, np.dtype[np.float32]]", (roots * roots).reshape(height, width, 4))

    def __len__(self) -> int:
        return len(self._facts["rects"])

    def draw(
        self,
        camera: Mapping[str, Any] | str | None = None,
        *,
        size: tuple[int, int] = (1024, 800),
        pixels: Pixels = "rgb",
        background: tuple[int, int, int] = (13, 14, 18),
    ) -> np.ndarray[Any, np.dtype[Any]]:
        """What a camera sees of them: a numpy array as :func:`corridor.render` gives. ``camera`` is as in a view; without it, that
        of the picture beside them."""
        check_pixels(pixels)
        text = camera if camera is None or isinstance(camera, str) else json.dumps(camera)
        width, height = size
        values = self._native.draw(text, (width, height), pixels, background)
        count, dtype = PIXELS[pixels]
        return cast("np.ndarray[Any, np.dtype[Any]]", values.view(dtype).reshape(height, width, count))

    def __reduce__(self) -> tuple[Any, ...]:
        return _decoded, (self._native.encoded(),)

    def __repr__(self) -> str:
        width, height = self.size
        return f"<corridor.Slabs, {len(self)} of {width} x {height} texels at most>"


def _decoded(encoded: bytes) -> Slabs:
    return Slabs(_native.Slabs.decoded(encoded))
