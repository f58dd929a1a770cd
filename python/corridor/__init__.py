"""Remote arrays, read by indexing as in numpy.

>>> import corridor
>>> data = corridor.open("synthetic:linear?shape=4,5,6&dtype=u8")
>>> data
<corridor.Dataset 'linear' (synthetic), 1 array>
  linear  uint8 (z: 4, y: 5, x: 6), 120 bytes
>>> data["linear"][1:3, ::2, -1].shape
(2, 3)

A location is a path, ``synthetic:...``, ``ssh://[USER@]HOST/PATH``, ``await://ADDRESS:PORT/DATASET`` (a server connects here: ``corridor serve --to``) or ``corridor://HOST[:PORT]/DATASET[/ARRAY]``. Axes are in C order, last fastest.
"""

import os
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from . import _native, _opening
from ._array import Array
from ._batch_read import read_many, read_many_async, submit_many
from ._dataset import Dataset
from ._errors import (
    BusyError,
    CorruptError,
    DeniedError,
    Error,
    InternalError,
    InvalidError,
    MissingFileError,
    MissingGroupError,
    NotFoundError,
    StaleError,
    StorageError,
    TimedOutError,
    TooLargeError,
    UnreachableError,
    UnsupportedError,
    WithdrawnError,
)
from ._picture import PictureOptions, SlabPictureOptions
from ._session import Note, Participant, Session, session
from ._slabs import Slabs
from ._indexing import Key
from ._view import KEYWORDS, ViewOptions
from ._viewer.show import show

__version__: str = _native.VERSION

__all__ = [
    "Array",
    "BusyError",
    "CorruptError",
    "Dataset",
    "DeniedError",
    "Error",
    "InternalError",
    "InvalidError",
    "MissingFileError",
    "MissingGroupError",
    "NotFoundError",
    "Note",
    "Participant",
    "PictureOptions",
    "Session",
    "SlabPictureOptions",
    "Slabs",
    "StaleError",
    "StorageError",
    "TimedOutError",
    "TooLargeError",
    "UnreachableError",
    "UnsupportedError",
    "WithdrawnError",
    "open",
    "read_many",
    "read_many_async",
    "render",
    "render_with_slabs",
    "session",
    "submit_many",
    "view",
]


def open(
    location: str | os.PathLike[str] | Sequence[str],
    *,
    token: str | None = None,
    memory: str | None = None,
    rule: str = "auto",
    compression: str | None = None,
    link: str | None = None,
    controller: str | None = None,
    meaning: str | None = None,
) -> Any:
    """Open a location: a :class:`Dataset`, or one :class:`Array` of it if the location ends with the array's name.

    Several URLs are servers of the same data, which are read in parallel: reading goes on if one fails, and a server with
    other data is left out. If the URLs name no data set (``corridor://HOST/``), the data sets of all servers are one
    catalogue, in which data sets that follow one another in time are one array. ``rule`` is the distribution of the data:
    ``"replicated"``, each server has all; ``"blocks"``, each server has all and caches a share of the blocks;
    ``"files"``, each server has other data sets; or ``"auto"``, as the servers report it.

    ``token`` replaces a token in the URL's fragment; servers of the same user on this machine need none. ``memory``
    limits the memory for reading besides the results (``"512MiB"``), shared by all data sets opened with the same value;
    the default is a quarter of the machine's memory. ``compression`` of data sent by a server is ``"auto"`` (the default:
    where the server measures that it is faster), ``"none"``, ``"lz4"`` or ``"zstd"``. ``link`` is the protocol to a
    server: ``"auto"`` (the default: chosen by measurements of the path, also during a transfer), ``"tcp"``, ``"quic"``,
    ``"lossy"`` or ``"lossy+fec"``. ``controller`` is the congestion controller of the server for QUIC: ``"auto"``,
    ``"polite"``, ``"rate=400Mb/s"`` and others; for TCP only ``"rate=400Mb/s"``. ``meaning`` overrides the meaning of the
    values of a file: ``"labels"``, categories, whose coarser levels are modes, or ``"intensity"``, whose coarser levels
    are means.

    >>> import corridor
    >>> corridor.open("synthetic:noise?shape=2,2,2&dtype=u8")["noise"].dtype
    dtype('uint8')

    Warns (``UserWarning``) of variables that cannot be read, with the reason: see :attr:`Dataset.left_out` and :attr:`Dataset.warnings`.
    Raises :class:`NotFoundError`, :class:`DeniedError`, :class:`UnreachableError`, :class:`InvalidError` and other
    subclasses of :class:`Error`.
    """
    found = _opening.open_location(
        location, _opening.Options(token, memory, rule, compression, link, controller, meaning)
    )
    if isinstance(found, Dataset):
        _opening.warn(found, found.left_out)
    return found


def render(
    data: str | os.PathLike[str] | Sequence[str] | Dataset | Array, **how: Unpack[PictureOptions]
) -> np.ndarray[Any, np.dtype[Any]]:
    """Draw one finished picture of a volume, as ``corridor render`` does: a numpy array of (height, width, values), row 0
    at the top. All blocks that the picture needs are read first. If the memory given to :func:`open` allows only a coarser
    level than the size of the picture requires, a warning says so.

    ``data`` is a location, a data set, or an array. Keywords:

    - ``size``: width and height in pixels, (1024, 800) by default, at most 16384 each.
    - ``pixels``: ``"rgb"``, bytes over the view's background; ``"rgba"``, bytes with transparency, not premultiplied; or
      ``"float"``, float32 in full precision, premultiplied. Colors are sRGB-encoded.
    - ``device``: ``"cpu"``, ``"gpu"``, or ``"auto"``, a graphics processor if there is one.
    - ``view``: a view, as in a link of the viewer; other keywords replace parts of it.
    - ``range``: range of values that the colors cover, if neither ``tf`` nor ``view`` has one: ``"usual"``, ``"full"``, or the
      lowest and the highest value.
    - the fields of a view, which are listed at the end.

    >>> import corridor
    >>> picture = corridor.render("synthetic:waves?shape=16,16,16&dtype=u8", size=(32, 24), pixels="rgba")
    >>> picture.shape, picture.dtype
    ((24, 32, 4), dtype('uint8'))

    Raises as :func:`open` does.
    """
    if isinstance(data, (Dataset, Array)):
        return data.render(**how)
    opened: Dataset | Array = open(data)
    return opened.render(**how)


render.__doc__ = f"{render.__doc__}{KEYWORDS}"


def render_with_slabs(
    data: str | os.PathLike[str] | Sequence[str] | Dataset | Array, **how: Unpack[SlabPictureOptions]
) -> tuple[np.ndarray[Any, np.dtype[Any]], Slabs]:
    """Draw one finished picture as :func:`render` does, and slabs: pictures of thin parts of the volume with their positions in
    space, from which other cameras can be drawn without the data (:meth:`Slabs.draw`).

    Keywords are those of :func:`render`, except ``stereo``, ``iso``, ``slices``, ``grids`` and modes other than
    ``"composite"``; and also:

    - ``slab_count``: number of slabs, 1 to 64; 32 by default.
    - ``slab_cut``: ``"planes"``, parallel to the picture, or ``"axis"``, across the axis of the volume that is closest to the
      viewing direction.
    - ``slab_texel``: side of a texel in pixels of the picture; by default 2, or 1 for slabs across an axis.

    >>> import corridor
    >>> picture, slabs = corridor.render_with_slabs("synthetic:waves?shape=16,16,16&dtype=u8", size=(32, 24), slab_count=8)
    >>> picture.shape, slabs
    ((24, 32, 3), <corridor.Slabs, 8 of 18 x 14 texels at most>)

    Raises as :func:`open` does.
    """
    if isinstance(data, (Dataset, Array)):
        return data.render_with_slabs(**how)
    opened: Dataset | Array = open(data)
    return opened.render_with_slabs(**how)


def view(
    x: Any,
    *,
    key: Key | None = None,
    memory: str | None = None,
    device: str = "auto",
    height: int = 480,
    proxy: str | bool = False,
    **fields: Unpack[ViewOptions],
) -> Any:
    """Open a viewer: in a notebook a widget with the picture, elsewhere an object with a link and ``open()``.

    ``x`` is a location, as for :func:`open`; a :class:`Dataset`; an :class:`Array`; an array of numpy, dask, h5py or zarr, or
    another object that numpy converts; or a data set or array of xarray.

    ``key`` selects elements of an array as indexing does, with positive steps: those of an :class:`Array` are decoded, and read
    when a picture needs them; an integer keeps its axis, with one element. ``memory`` limits the memory of the viewer,
    ``"1GiB"`` by default. ``device`` is ``"cpu"``, ``"gpu"``, or ``"auto"``, a graphics processor if there is one. ``height``
    is that of the widget, in CSS pixels. The fields of a view are listed at the end.

    >>> import corridor, numpy as np
    >>> viewer = corridor.view(np.arange(4096.0).reshape(16, 16, 16), camera="front")
    >>> viewer.array, viewer.screenshot((32, 24))[1:4]
    ('data', b'PNG')
    >>> viewer.close()

    **What is copied.** Objects in this process are not copied as a whole: the viewer is a part of the process and copies the
    blocks that it draws, within ``memory``. Do not change an array while it is shown; after a change call ``view`` again.
    Blocks of dask are computed when a picture needs them, each as a whole and at most 1 GiB; the last 256 MiB are kept. Coarse
    pictures need means of all elements, so a large dask array is computed once, block by block, for its first picture. Names,
    dimensions, coordinates, units and attributes of xarray are kept; coordinates are copied. Masked elements are not drawn.
    The arrays of one location share a viewer, which ends when nothing refers to it, by ``close()``, or with the process.

    Access needs the token of the link, and the viewer listens on this machine only. In a notebook the messages of the page
    pass through the kernel, so that it works behind JupyterHub and in Colab. Widgets need ``pip install 'corridor[notebook]'``.

    ``proxy`` makes links (``url``, ``open()``, the link that is shown without widgets) pass through a proxy, for a page that does
    not wait for the kernel: ``True`` for jupyter-server-proxy on a JupyterHub of version 5 or newer that knows its public
    address, and for Colab; otherwise the address by which the browser reaches ports of the kernel, with ``{port}``, such as
    ``"https://hub.example.org/user/me/proxy/{port}/"``.

    Raises as :func:`open` does; :class:`TooLargeError` for blocks of dask above 1 GiB, with advice; :class:`UnsupportedError`
    for elements that are not numbers.
    """
    return show(x, key, memory, device, height, proxy, dict(fields))


view.__doc__ = f"{view.__doc__}{KEYWORDS}"
