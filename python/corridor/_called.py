"""Parameters and answers of operations that are called by name, between Python's values and JSON."""

import json
from typing import Any

import numpy as np


def encoded(parameters: dict[str, Any]) -> str:
    """Parameters as JSON; numpy's numbers and arrays are numbers and lists.

    >>> import numpy as np
    >>> encoded({"q": np.array([5, 50]), "shape": (2, np.int64(3))})
    '{"q": [5, 50], "shape": [2, 3]}'
    """
    return json.dumps(parameters, default=_plain, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"expected numbers, texts, lists and dictionaries, found {type(value).__name__}")


def answered(told: tuple[str, tuple[str, list[int], np.ndarray] | None]) -> Any:
    """The array of an answer, or its result where it has none.

    >>> answered(('{"count": 3}', None))
    {'count': 3}
    """
    result, elements = told
    if elements is None:
        return json.loads(result)
    dtype, shape, raw = elements
    return raw.view(np.dtype(dtype)).reshape(shape)
