"""Keywords that set fields of a view. Made from crates/view/src/fields.rs by
``CORRIDOR_BLESS=1 cargo test -p corridor-view --test generated``; change that file, not this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, TypedDict

if TYPE_CHECKING:
    from ._array import Array


class ViewOptions(TypedDict, total=False):
    """Fields of a view, by keyword. None, like leaving a keyword out, leaves a field as the view has it."""

    time: int | None
    """Index on the time axis."""
    level: int | None
    """Level to draw, 0 is full resolution; None: the finest that is visible and fits into memory."""
    camera: Mapping[str, Any] | str | None
    """Camera in world space; None: one that sees the whole volume. Also `front`, `back`, `left`, `right`,
    `top` or `bottom`."""
    tf: Mapping[str, Any] | str | None
    """Transfer function: color and opacity by value; None: chosen to suit the values. Also the name of a
    color map, reversed with `_r` at its end, or of a preset such as `ct-bone`; members that are left out of a
    mapping are chosen to suit the values; with `color_by` a color map applies to the values of that array."""
    color_by: Mapping[str, Any] | Array | str | None
    """Other array whose values determine all colors, including those of isosurfaces and slices; None: the
    values of the drawn array. Visibility and opacity still come from the drawn array; where the other array
    has no value, nothing is drawn. Not with mode `maximum` or `minimum`. The array, its name, or a
    mapping."""
    iso: SupportsFloat | str | Sequence[SupportsFloat | str | Mapping[str, Any]] | None
    """Isosurfaces. Each a number, `VALUE:COLOR:OPACITY` such as `0.5:#c03020:0.4`, or as in a view."""
    slices: Mapping[str, float | str] | Sequence[str | Mapping[str, Any]] | None
    """Slices across the axes of the volume. Such as `{"z": 40, "lat": "50%"}`; axes may be named as in the
    file."""
    layers: Array | str | Mapping[str, Any] | Sequence[Array | str | Mapping[str, Any]] | None
    """Layers over the array, drawn in this order: other arrays, also of other resolution and position in the
    same space, and geometry. Each the name of an array, the location of a data set, a file of geometry, or a
    mapping such as `{"array": "segmentation", "opacity": 0.5}`."""
    mode: Literal["composite", "surfaces", "maximum", "minimum"] | None
    """Drawing of the volume besides isosurfaces and slices."""
    shading: bool | None
    """Lighting of the volume by the gradient of its values, with a light at the camera; None: on for volumes
    of continuous values, off for images, maps and labels. Isosurfaces are always lit."""
    lighting: float | None
    """Strength of the light on isosurfaces, and on the volume with `shading`, from 0 (flat colors) to 1."""
    occlusion: float | None
    """Ambient occlusion of the volume with `shading`: the share of the light that places lose which opaque
    surroundings enclose, from 0 to 1 [default: 0.7]."""
    depth_cue: float | None
    """Depth cue of isosurfaces, and of the volume with `shading`: the share of the light that the farthest
    places lose, from 0 to 1 [default: 0.3]."""
    grids: bool | None
    """Draw the grids of an adaptive mesh as lines, in one color for each level."""
    stereo: bool | float | None
    """Stereo pair, side by side in one picture, the left eye's on the left: the distance of the eyes divided
    by their distance to the point that the camera looks at; None: one picture. For perspective cameras only.
    `True` is 1/30; each picture is half as wide as `size` says."""
    background: str | Sequence[int] | None
    """Background, sRGB. Also `dark`, `black`, `gray`, `light`, `white` or `#rrggbb`; `pixels="rgba"` has
    none."""


# Former names of keywords, which are still accepted.
FORMER_KEYWORDS: dict[str, str] = {"colour_by": "color_by"}

# The keywords for the documentation of functions.
KEYWORDS = """
    Fields of a view; None leaves a field as the view has it.

    - ``time``: Index on the time axis.
    - ``level``: Level to draw, 0 is full resolution; None: the finest that is visible and fits into memory.
    - ``camera``: Camera in world space; None: one that sees the whole volume. Also `front`, `back`, `left`,
      `right`, `top` or `bottom`.
    - ``tf``: Transfer function: color and opacity by value; None: chosen to suit the values. Also the name of
      a color map, reversed with `_r` at its end, or of a preset such as `ct-bone`; members that are left out of
      a mapping are chosen to suit the values; with `color_by` a color map applies to the values of that array.
    - ``color_by``: Other array whose values determine all colors, including those of isosurfaces and slices;
      None: the values of the drawn array. Visibility and opacity still come from the drawn array; where the
      other array has no value, nothing is drawn. Not with mode `maximum` or `minimum`. The array, its name, or
      a mapping.
    - ``iso``: Isosurfaces. Each a number, `VALUE:COLOR:OPACITY` such as `0.5:#c03020:0.4`, or as in a view.
    - ``slices``: Slices across the axes of the volume. Such as `{"z": 40, "lat": "50%"}`; axes may be named
      as in the file.
    - ``layers``: Layers over the array, drawn in this order: other arrays, also of other resolution and
      position in the same space, and geometry. Each the name of an array, the location of a data set, a file of
      geometry, or a mapping such as `{"array": "segmentation", "opacity": 0.5}`.
    - ``mode``: Drawing of the volume besides isosurfaces and slices.
    - ``shading``: Lighting of the volume by the gradient of its values, with a light at the camera; None: on
      for volumes of continuous values, off for images, maps and labels. Isosurfaces are always lit.
    - ``lighting``: Strength of the light on isosurfaces, and on the volume with `shading`, from 0 (flat
      colors) to 1.
    - ``occlusion``: Ambient occlusion of the volume with `shading`: the share of the light that places lose
      which opaque surroundings enclose, from 0 to 1 [default: 0.7].
    - ``depth_cue``: Depth cue of isosurfaces, and of the volume with `shading`: the share of the light that
      the farthest places lose, from 0 to 1 [default: 0.3].
    - ``grids``: Draw the grids of an adaptive mesh as lines, in one color for each level.
    - ``stereo``: Stereo pair, side by side in one picture, the left eye's on the left: the distance of the
      eyes divided by their distance to the point that the camera looks at; None: one picture. For perspective
      cameras only. `True` is 1/30; each picture is half as wide as `size` says.
    - ``background``: Background, sRGB. Also `dark`, `black`, `gray`, `light`, `white` or `#rrggbb`;
      `pixels="rgba"` has none.
    """
