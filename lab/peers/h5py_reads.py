"""Reads by h5py from an HDF5 file over HTTP, opened by fsspec.

HDF5 requests one range at a time and waits for it. Without readahead, which would only move needless bytes in random
reads.
A read of a selection cannot be interrupted, so that only as many rows of the hyperslab are read as the time allows.
"""

import aiohttp  # noqa: F401  (fsspec needs it for HTTP)
import field
import fsspec
import h5py
import numpy as np

given = field.job()
url = f"http://{given['address']}:{given['port']}/field.h5"
remote = fsspec.filesystem("http").open(url, mode="rb", cache_type="none", block_size=field.ROW_BYTES)
array = h5py.File(remote, "r")["field"]

rows = field.asked_rows(given)
if rows is None:
    axes = [np.arange(r["count"]) * r["step"] + r["start"] for r in given["selection"]]
    t, z, y = np.meshgrid(*axes[:3], indexing="ij")
    places = np.stack([t.reshape(-1), z.reshape(-1), y.reshape(-1)], axis=1)
    last = field.slices(given)[3]
else:
    places, last = field.places(given, rows), slice(None)

found = []
clock = field.Clock()
for t, z, y in places:
    if clock.secs() > given["limit_secs"]:
        break
    found.append(array[int(t), int(z), int(y), last])
took = clock.read()
if rows is None:
    field.check_selection(np.stack(found), given, len(found))
else:
    field.check_rows(np.stack(found), rows[: len(found)])
field.answer(took, len(found), len(places), "contiguous, no readahead, unencrypted HTTP")
