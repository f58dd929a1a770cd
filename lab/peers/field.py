"""Shared by the clients of all peers: job, expected bytes, clock, and the line that is printed."""

import json
import resource
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

ROW_BYTES = 4096
_ROW_WORDS = ROW_BYTES // 8


def job() -> dict[str, Any]:
    """Reads the job on the command line. Ends the program if the job only checks imports."""
    given = json.loads(sys.argv[1])
    if given.get("only_import"):
        print("true")
        sys.exit(0)
    return given


def asked_rows(given: dict[str, Any]) -> np.ndarray | None:
    """Numbers of rows to read one by one; None if a selection is requested."""
    return np.fromfile(given["rows_file"], dtype="<u8") if "rows_file" in given else None


def places(given: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    """`[t, z, y]` of each row."""
    return np.stack(np.unravel_index(rows.astype(np.int64), given["shape"][:3]), axis=1)


def slices(given: dict[str, Any]) -> tuple[slice, ...]:
    """Requested selection as slices with steps."""
    return tuple(slice(r["start"], r["start"] + r["count"] * r["step"], r["step"]) for r in given["selection"])


def expected(rows: np.ndarray) -> np.ndarray:
    """Computes the bytes of rows, `[row, byte]`."""
    with np.errstate(over="ignore"):
        z = rows.astype(np.uint64)[:, None] * np.uint64(_ROW_WORDS) + np.arange(_ROW_WORDS, dtype=np.uint64)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return z.astype("<u8", copy=False).view(np.uint8)


def check_rows(found: np.ndarray, rows: np.ndarray) -> None:
    """Checks every byte of every row; a wrong one ends the program."""
    for start in range(0, len(rows), 16384):
        part = slice(start, start + 16384)
        if not np.array_equal(found[part], expected(rows[part])):
            sys.exit("other bytes than expected")


def check_selection(found: np.ndarray, given: dict[str, Any], last_axis_only: int | None = None) -> None:
    """Checks every byte of the selection, or of its first `last_axis_only` rows if only those were read."""
    shape = given["shape"]
    axes = [np.arange(r["count"]) * r["step"] + r["start"] for r in given["selection"]]
    t, z, y = np.meshgrid(*axes[:3], indexing="ij")
    rows = ((t * shape[1] + z) * shape[2] + y).reshape(-1)[:last_axis_only]
    found = np.asarray(found).reshape(-1, len(axes[3]))
    for start in range(0, len(rows), 16384):
        part = slice(start, start + 16384)
        if not np.array_equal(found[part], expected(rows[part])[:, axes[3]]):
            sys.exit("other bytes than expected")


class Clock:
    """Wall and processor time of this process since the object was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), self._processor()

    @staticmethod
    def _processor() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    def secs(self) -> float:
        return time.monotonic() - self._wall

    def read(self) -> tuple[float, float]:
        """Returns wall and processor time, seconds."""
        return self.secs(), self._processor() - self._cpu


def answer(clock_read: Sequence[float], operations: int, asked: int, tuning: str) -> None:
    """Prints the one line that the benchmark reads."""
    secs, cpu_secs = clock_read
    print(json.dumps({"secs": secs, "cpu_secs": cpu_secs, "operations": operations, "asked": asked, "tuning": tuning}))
