"""Remote calls: parameters and answers of operations, as JSON and as Python values."""

import json
from typing import Any

import numpy as np


def encode_parameters(parameters: dict[str, Any]) -> str:
    """Encodes parameters as JSON; numbers and arrays of numpy become numbers and lists.

    >>> import numpy as np
    >>> encode_parameters({"q": np.array([5, 50]), "shape": (2, np.int64(3))})
    '{"q": [5, 50], "shape": [2, 3]}'
    """
    return json.dumps(parameters, default=_plain, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"expected numbers, strings, lists and dictionaries, found {type(value).__name__}")


def decode_answer(answer: tuple[str, tuple[str, list[int], np.ndarray] | None]) -> Any:
    """Returns the array of an answer, or its result if it has no array.

    >>> decode_answer(('{"count": 3}', None))
    {'count': 3}
    """
    result, elements = answer
    if elements is None:
        return json.loads(result)
    dtype, shape, raw = elements
    return raw.view(np.dtype(dtype)).reshape(shape)
