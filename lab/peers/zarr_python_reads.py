"""Reads by zarr-python from Zarr v3 over HTTP, by its asynchronous interface with many requests in flight."""

import asyncio

import aiohttp  # noqa: F401  (fsspec needs it for HTTP)
import field
import numpy as np
import zarr
from zarr.storage import FsspecStore

given = field.job()
UNDER_WAY = 256


async def main() -> None:
    zarr.config.set({"async.concurrency": UNDER_WAY})
    url = f"http://{given['address']}:{given['port']}/field.zarr"
    connections = {"client_kwargs": {"connector": aiohttp.TCPConnector(limit=UNDER_WAY)}}
    store = FsspecStore.from_url(url, read_only=True, storage_options={"asynchronous": True, **connections})
    array = await zarr.AsyncArray.open(store, zarr_format=3)
    rows = field.asked_rows(given)
    clock = field.Clock()
    if rows is None:
        found = await array.getitem(field.slices(given))
        took = clock.read()
        field.check_selection(found, given)
        field.answer(took, 1, 1, f"{UNDER_WAY} requests under way, unencrypted HTTP, one row per chunk in shards")
        return
    places, out, done = field.places(given, rows), np.empty((len(rows), field.ROW_BYTES), dtype=np.uint8), 0

    async def read(number: int) -> None:
        t, z, y = (int(n) for n in places[number])
        out[number] = await array.getitem((t, z, y))

    while done < len(rows) and clock.secs() < given["limit_secs"]:
        part = range(done, min(done + 4 * UNDER_WAY, len(rows)))
        await asyncio.gather(*(read(number) for number in part))
        done = part.stop
    took = clock.read()
    field.check_rows(out[:done], rows[:done])
    field.answer(took, done, len(rows), f"{UNDER_WAY} requests under way, unencrypted HTTP, one row per chunk in shards")


asyncio.run(main())
