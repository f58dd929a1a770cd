"""One array of a data set: its description, and its elements as numpy arrays."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import numpy as np

from . import _html
from ._description import ArrayInfo
from ._errors import InvalidError
from ._futures import start
from ._indexing import Key, Selection, parse_key
from ._picture import PictureOptions, SlabPictureOptions, drawn, drawn_with_slabs
from ._remote_call import decode_answer, encode_parameters
from ._slabs import Slabs
from ._text import text_of

if TYPE_CHECKING:
    from ._dataset import Dataset

_Each = TypeVar("_Each")

# Priority tier of reads: normal.
ORDINARY = 2
# Rows read ahead by `for row in array`.
_ROWS_AHEAD = 16


class Array:
    """A remote array, read by indexing as numpy does: ``a[0:10, ::2, -1]``. Nothing is read until then.

    >>> import corridor
    >>> a = corridor.open("synthetic:linear?shape=4,5,6&dtype=u8")["linear"]
    >>> a.shape, a.dims, a.ndim, a.nbytes
    ((4, 5, 6), ('z', 'y', 'x'), 3, 120)
    >>> a[-1, ::-2].shape
    (3, 6)

    Elements are as stored, in the host's byte order; :attr:`decoded` is this array with scale, offset and missing values
    applied. Each indexing is one operation on the network, whatever the selection.
    """

    def __init__(
        self, dataset: "Dataset", number: int, info: ArrayInfo, level: int, is_decoded: bool
    ) -> None:
        self._dataset = dataset
        self._number = number
        self._info = info
        self._level = level
        self._is_decoded = is_decoded
        self._text = text_of(info)

    @property
    def name(self) -> str:
        """Name, or path in the file (``grid/rho``)."""
        return self._info["name"]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Elements per axis, last fastest, at this array's level."""
        return self._without_text_axis(self._info["levels"][self._level]["shape"])

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements that reading returns."""
        if self._text is not None:
            return self._text.dtype
        stored = self._info["decoding"]["output"] if self._is_decoded else self._info["dtype"]
        dtype: np.dtype[Any] = np.dtype(stored).newbyteorder("=")
        return dtype

    @cached_property
    def dims(self) -> tuple[str, ...]:
        """Names of the axes."""
        return self._without_text_axis([axis["name"] for axis in self._info["axes"]])

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Elements per axis of a stored chunk; ``None`` if the file is not chunked or the level is not stored."""
        chunk = self._info["levels"][self._level].get("chunk")
        return self._without_text_axis(chunk) if chunk else None

    @property
    def attrs(self) -> dict[str, Any]:
        """Other attributes of the array in the file."""
        return dict(self._info["attributes"])

    @property
    def units(self) -> str:
        """Units of the decoded values; empty if unknown."""
        return self._info["units"]

    @property
    def levels(self) -> list[tuple[int, ...]]:
        """Shape of each level; 0 is full resolution."""
        return [self._without_text_axis(level["shape"]) for level in self._info["levels"]]

    @cached_property
    def world_from_voxel(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Affine map from voxels of this level to world space: a 4 x 4 matrix of doubles.

        It maps the center of the voxel at index ``(k, j, i)`` of the axes z, y, x to ``(x, y, z)`` in the world, which is
        right-handed and points to right, anterior, superior (RAS) if the format defines orientation::

            x, y, z, _ = array.world_from_voxel @ [k, j, i, 1]

        Its columns are in the order of the array's axes; nibabel's ``affine``, which indexes voxels as ``(i, j, k)``, is
        ``array.world_from_voxel[:, [2, 1, 0, 3]]``. Spatial axes that the array lacks have index 0. The units of the result
        are :attr:`world_units`.

        >>> import corridor
        >>> a = corridor.open("synthetic:linear?shape=256,4,4&dtype=u8")["linear"]
        >>> a.world_from_voxel.shape, a.world_from_voxel[2].tolist()
        ((4, 4), [1.0, 0.0, 0.0, 0.0])
        >>> a.level(1).world_from_voxel[2].tolist()
        [2.0, 0.0, 0.0, 0.5]
        """
        rows = np.array(self._info["levels"][self._level]["world_from_voxel"], dtype=np.float64)
        matrix: np.ndarray[Any, np.dtype[np.float64]] = np.eye(4)
        matrix[:3] = rows[:, [2, 1, 0, 3]]
        return matrix

    @property
    def world_units(self) -> str:
        """Units of world space, to which :attr:`world_from_voxel` maps; empty if unknown."""
        return self._info["world_units"]

    @property
    def meaning(self) -> str:
        """``"labels"`` if values are categories, whose coarser levels are modes; else ``"intensity"``."""
        return self._info["meaning"]

    @property
    def dataset(self) -> "Dataset":
        """Data set that contains the array."""
        return self._dataset

    @property
    def decoded(self) -> "Array":
        """This array with scale, offset and missing values applied, as the format's own library does.

        >>> import corridor
        >>> corridor.open("synthetic:linear?shape=4,5,6&dtype=u8")["linear"].decoded.dtype
        dtype('uint8')
        """
        # Text is not decoded.
        return Array(self._dataset, self._number, self._info, self._level, self._text is None)

    def level(self, level: int) -> "Array":
        """This array at another resolution; 0 is the full one.

        >>> import corridor
        >>> a = corridor.open("synthetic:linear?shape=256,256,256&dtype=u8")["linear"]
        >>> a.level(1).shape
        (128, 128, 128)
        """
        if not 0 <= level < len(self._info["levels"]):
            raise InvalidError(f"expected a level below {len(self._info['levels'])}, found {level}")
        return Array(self._dataset, self._number, self._info, level, self._is_decoded)

    def coordinates(self, axis: int | str) -> np.ndarray:
        """Coordinates of the samples of full resolution along an axis, in the axis's units; indices if the file has none.

        >>> import corridor
        >>> corridor.open("synthetic:linear?shape=2,3,4&dtype=u8")["linear"].coordinates("x").shape
        (4,)
        """
        place = self.dims.index(axis) if isinstance(axis, str) else axis
        size = self._info["levels"][0]["shape"][place]
        known = self._info["axes"][place]["coordinates"]
        index: np.ndarray = np.arange(size)
        if known == "index":
            return index
        if "explicit" in known:
            return np.asarray(known["explicit"], dtype=np.float64)
        return index * known["regular"]["step"] + known["regular"]["origin"]

    def __getitem__(self, key: Key) -> np.ndarray:
        selection = parse_key(key, self.shape)
        native = self._dataset._connection
        return self._result(selection, native.read(self._request(selection), self._is_decoded, ORDINARY))

    def render(self, **how: Unpack[PictureOptions]) -> np.ndarray[Any, np.dtype[Any]]:
        """Draw a finished picture of the volume, as :func:`corridor.render` does.

        >>> import corridor
        >>> data = corridor.open("synthetic:waves?shape=16,16,16&dtype=u8")
        >>> data["waves"].render(size=(32, 24), camera="front").shape
        (24, 32, 3)
        """
        if self._level > 0:
            how.setdefault("level", self._level)
        return drawn(self._dataset, self.name, **how)

    def render_with_slabs(
        self, **how: Unpack[SlabPictureOptions]
    ) -> tuple[np.ndarray[Any, np.dtype[Any]], Slabs]:
        """Draw a finished picture and its slabs, as :func:`corridor.render_with_slabs` does."""
        if self._level > 0:
            how.setdefault("level", self._level)
        return drawn_with_slabs(self._dataset, self.name, **how)

    def submit(self, key: Key = ...) -> "Future[np.ndarray]":
        """Begin a read and return at once. Cancelling the future cancels the read, on the server too.

        >>> import corridor
        >>> a = corridor.open("synthetic:linear?shape=4,5,6&dtype=u8")["linear"]
        >>> a.submit((0, slice(2))).result().shape
        (2, 6)

        ``concurrent.futures.as_completed`` gives results as they arrive.
        """
        selection = parse_key(key, self.shape)
        native, request = self._dataset._connection, self._request(selection)

        def convert(elements: np.ndarray) -> np.ndarray:
            return self._result(selection, elements)

        return start(
            lambda done: native.begin(request, self._is_decoded, ORDINARY, done), convert
        )

    async def read_async(self, key: Key = ...) -> np.ndarray:
        """Read without blocking the event loop; cancelling the task cancels the read.

        >>> import asyncio, corridor
        >>> a = corridor.open("synthetic:linear?shape=4,5,6&dtype=u8")["linear"]
        >>> asyncio.run(a.read_async((..., 0))).shape
        (4, 5)
        """
        return await asyncio.wrap_future(self.submit(key))

    def call(
        self,
        operation: str,
        *,
        key: Key = ...,
        progress: Callable[[int, int], object] | None = None,
        **parameters: Any,
    ) -> Any:
        """Call an operation of the server on the selected elements; it is computed where the data are.

        ``key`` selects as indexing does, with positive steps; an integer keeps its axis, with one element. ``parameters``
        are those of the operation. ``progress(done, total)`` is called periodically. The result is the answer of the
        operation: numbers, lists and dictionaries, or a numpy array. Operations work on decoded values.

        >>> import corridor
        >>> a = corridor.open("synthetic:linear?shape=4,5,6&dtype=u8")["linear"]
        >>> a.call("percentile", q=50)
        Traceback (most recent call last):
        ...
        corridor._errors.UnsupportedError: expected data that one server has as a whole for the operation `percentile`; those of `linear` are read here

        :meth:`submit_call` returns a future at once, :meth:`call_async` is for event loops.
        """
        native = self._dataset._connection
        return decode_answer(native.call(operation, self._call_request(key), encode_parameters(parameters), progress))

    def submit_call(
        self, operation: str, *, key: Key = ..., **parameters: Any
    ) -> "Future[Any]":
        """Begin :meth:`call` and return at once. Cancelling the future cancels the operation, on the server too."""
        native = self._dataset._connection
        request, text = self._call_request(key), encode_parameters(parameters)
        return start(lambda done: native.begin_call(operation, request, text, done), decode_answer)

    async def call_async(self, operation: str, *, key: Key = ..., **parameters: Any) -> Any:
        """:meth:`call` without blocking the event loop; cancelling the task cancels the operation."""
        return await asyncio.wrap_future(self.submit_call(operation, key=key, **parameters))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("the elements are remote and have to be copied; omit `copy=False`")
        elements = self[...]
        return elements if dtype is None else elements.astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[np.ndarray]:
        ahead: deque[Future[np.ndarray]] = deque()
        try:
            for row in range(len(self)):
                ahead.append(self.submit(row))
                if len(ahead) > _ROWS_AHEAD:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            # The loop may end early: the other rows are not needed.
            for future in ahead:
                future.cancel()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._dataset, self.name, self._level, self._is_decoded)

    def __repr__(self) -> str:
        level = f", level {self._level}" if self._level else ""
        decoded = ", decoded" if self._is_decoded else ""
        units = f" [{self.units}]" if self.units else ""
        return f"<corridor.Array {self.name!r}{units} {self._summary()}{level}{decoded}>"

    def _repr_html_(self) -> str:
        return _html.of_array(self)

    def _summary(self) -> str:
        axes = ", ".join(f"{dim}: {size}" for dim, size in zip(self.dims, self.shape, strict=True))
        return f"{self.dtype.name} ({axes}), {_size(self.nbytes)}"

    def _request(self, selection: Selection) -> tuple[int, int, list[tuple[int, int, int]]]:
        if self._text is None or not self._text.hides_axis:
            return self._number, self._level, selection.ranges
        return self._number, self._level, [*selection.ranges, (0, self._text.size_bytes, 1)]

    def _call_request(self, key: Key) -> tuple[int, int, list[tuple[int, int, int]]]:
        """Returns the selection of an operation, whose elements are in the array's order."""
        selection = parse_key(key, self.shape)
        if selection.is_reversed:
            raise InvalidError("the key of an operation needs positive steps")
        return self._request(selection)

    def _result(self, selection: Selection, elements: np.ndarray) -> np.ndarray:
        if self._text is None:
            return selection.view(elements.view(self.dtype))
        rest = (self._text.size_bytes,) if self._text.hides_axis else ()
        return selection.view(self._text.elements(elements.reshape(selection.shape() + rest)))

    def _without_text_axis(self, each: Sequence[_Each]) -> tuple[_Each, ...]:
        """Returns values per axis without the value of the hidden axis of text bytes."""
        return tuple(each[:-1] if self._text is not None and self._text.hides_axis else each)


def _unpickle(dataset: "Dataset", name: str, level: int, is_decoded: bool) -> Array:
    array = dataset[name].level(level)
    return array.decoded if is_decoded else array


def _size(count: int) -> str:
    """Formats a size in bytes.

    >>> _size(120), _size(3 << 20)
    ('120 bytes', '3.0 MiB')
    """
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            return f"{count} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} PiB"
