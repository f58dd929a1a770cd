"""Pixel formats of pictures."""

from typing import Literal

import numpy as np

from ._errors import InvalidError

Pixels = Literal["rgb", "rgba", "float"]
# Values per pixel, and their type.
PIXELS: dict[str, tuple[int, type[np.generic]]] = {
    "rgb": (3, np.uint8), "rgba": (4, np.uint8), "float": (4, np.float32),
}  # fmt: skip


def check_pixels(pixels: str) -> None:
    if pixels not in PIXELS:
        raise InvalidError(f"expected pixels as one of {', '.join(PIXELS)}, found {pixels!r}")
