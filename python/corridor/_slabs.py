"""Slabs: pictures of parts of a volume that can be composited for other cameras."""

import json
import os
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from . import _native
from ._pixels import PIXELS, Pixels, check_pixels


class Slabs:
    """Slabs of a volume, the nearest first, each rendered on the plane in its middle; a result of
    :func:`corridor.render_with_slabs`. Views of nearby cameras are drawn from them without the data.

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
        """Read a file written by :meth:`save` or ``corridor render --slabs``.

        Raises :class:`CorruptError` for other files.
        """
        return cls(_native.Slabs.read(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file as ``corridor render --slabs`` does, losslessly or as JPEG, whichever is smaller."""
        with open(path, "wb") as file:
            file.write(self._native.encoded())

    @property
    def camera(self) -> dict[str, Any]:
        """Camera of the slabs, as in a view: that of the picture, with a guard band on each side."""
        return dict(self._facts["camera"])

    @property
    def guard(self) -> float:
        """Width of the guard band on each side, as a fraction of the picture's width and height."""
        return float(self._facts["guard"])

    @property
    def of_picture(self) -> dict[str, Any]:
        """Camera of the picture, as in a view."""
        return dict(self._facts["picture"])

    @property
    def size(self) -> tuple[int, int]:
        """Size of the whole picture of :attr:`camera`, texels across and down."""
        width, height = self._facts["size"]
        return width, height

    @property
    def normal(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Normal of the slabs, away from the camera: ``[x, y, z]`` of length 1 in world space."""
        return np.array(self._facts["normal"], dtype=np.float64)

    @property
    def borders(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Positions of the borders between slabs along :attr:`normal`, world units; one more than slabs. The picture of slab
        ``i`` lies on the plane midway between borders ``i`` and ``i + 1``, as projected by :attr:`camera`."""
        return np.array(self._facts["borders"], dtype=np.float64)

    @property
    def rects(self) -> list[tuple[int, int, int, int]]:
        """Rectangle of each slab in the whole picture: left, top, width and height, texels; empty if nothing is visible."""
        return [(left, top, width, height) for left, top, width, height in self._facts["rects"]]

    def texels(self, slab: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return the picture of a slab: (height, width, 4), premultiplied, sRGB-encoded, 0 to 1."""
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
        """Draw the view of a camera as a numpy array, as :func:`corridor.render` does. ``camera`` is as in a view; the default
        is :attr:`of_picture`."""
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
