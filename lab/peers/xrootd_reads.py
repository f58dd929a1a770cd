"""Random reads by XRootD's Python client: vector reads of 1024 ranges, 16 in flight.

A server takes at most 1024 ranges in one vector read. Each run of a selection is one range.
"""

import threading

import field
import numpy as np
from XRootD import client

given = field.job()
STRETCHES, UNDER_WAY = 1024, 16

rows = field.asked_rows(given)
if rows is None:
    axes = [np.arange(r["count"]) * r["step"] + r["start"] for r in given["selection"]]
    t, z, y = np.meshgrid(*axes[:3], indexing="ij")
    numbers = ((t * given["shape"][1] + z) * given["shape"][2] + y).reshape(-1)
    first, length = int(axes[3][0]), len(axes[3])
else:
    numbers, first, length = rows, 0, field.ROW_BYTES
offsets = [int(n) * field.ROW_BYTES + first for n in numbers]

file = client.File()
status, _ = file.open(f"root://{given['address']}:{given['port']}/{given['file']}")
if not status.ok:
    raise SystemExit(status.message)

room = threading.Semaphore(UNDER_WAY)
answers: list[tuple[int, object]] = []
failures: list[str] = []


def taken(start: int):
    def done(status, response, hosts) -> None:
        if not status.ok:
            failures.append(status.message)
        answers.append((start, response))
        room.release()

    return done


clock = field.Clock()
asked = 0
for start in range(0, len(offsets), STRETCHES):
    if failures or clock.secs() > given["limit_secs"]:
        break
    room.acquire()
    part = offsets[start : start + STRETCHES]
    status = file.vector_read([(offset, length) for offset in part], callback=taken(start))
    if not status.ok:
        raise SystemExit(status.message)
    asked += len(part)
for _ in range(UNDER_WAY):
    room.acquire()
took = clock.read()
if failures:
    raise SystemExit(failures[0])

for start, response in answers:
    found = np.stack([np.frombuffer(chunk.buffer, dtype=np.uint8) for chunk in response.chunks])
    expected = field.expected(np.asarray(numbers[start : start + STRETCHES]))[:, first : first + length]
    if not np.array_equal(found, expected):
        raise SystemExit("other bytes than expected")
field.answer(took, asked, len(offsets), f"{UNDER_WAY} vector reads of {STRETCHES} under way, one stream, no encryption")
