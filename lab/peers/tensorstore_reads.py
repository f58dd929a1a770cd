"""Reads by TensorStore from Zarr v3 over HTTP.

Rows are read with many requests in flight; the hyperslab with TensorStore's defaults.
"""

import collections

import field
import numpy as np
import tensorstore as ts

given = field.job()
UNDER_WAY = 512
rows = field.asked_rows(given)
# TensorStore's own default is 32 requests at a time.
context = {} if rows is None else {"http_request_concurrency": {"limit": UNDER_WAY}}
array = ts.open(
    {
        "driver": "zarr3",
        "kvstore": {"driver": "http", "base_url": f"http://{given['address']}:{given['port']}", "path": "/field.zarr/"},
        "context": {"cache_pool": {"total_bytes_limit": 256 << 20}, **context},
    },
    read=True,
    open=True,
).result()

if rows is None:
    clock = field.Clock()
    found = array[field.slices(given)].read().result()
    took = clock.read()
    field.check_selection(found, given)
    field.answer(took, 1, 1, "defaults; 256 MiB cache, unencrypted HTTP, one row per chunk in shards of up to 1000")
else:
    places = field.places(given, rows)
    out = np.empty((len(rows), field.ROW_BYTES), dtype=np.uint8)
    under_way: collections.deque = collections.deque()
    clock = field.Clock()
    done = 0
    for number, (t, z, y) in enumerate(places):
        if clock.secs() > given["limit_secs"]:
            break
        under_way.append((number, array[int(t), int(z), int(y)].read()))
        if len(under_way) == 2 * UNDER_WAY:
            at, reading = under_way.popleft()
            out[at] = reading.result()
            done += 1
    for at, reading in under_way:
        out[at] = reading.result()
        done += 1
    took = clock.read()
    field.check_rows(out[:done], rows[:done])
    field.answer(took, done, len(rows), f"{UNDER_WAY} HTTP requests under way, 256 MiB cache, one row per chunk in shards")
