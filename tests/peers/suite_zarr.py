"""zarr-python's own tests of a store, its reading half over HTTP: what a test sets is the only chunk of an array that a server
has, and every key is asked for under that chunk's address. What those tests write themselves is put there in the same way.
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import peers
import pytest
import zarr
from fsspec.implementations.http import HTTPFileSystem
from zarr.core.buffer import Buffer, cpu
from zarr.storage import FsspecStore
from zarr.testing.store import StoreTests

HOST = "http://store"
running = ExitStack()


@pytest.fixture(scope="module", autouse=True)
def ended_servers() -> Iterator[None]:
    """Servers live as long as all tests: values come again."""
    yield
    running.close()


class Served:
    """Servers, one for each value."""

    def __init__(self) -> None:
        self.folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        self.known: dict[bytes, tuple[str, str]] = {}

    def chunk(self, value: bytes) -> tuple[str, str]:
        """The address of a chunk of these bytes, and its token."""
        if value not in self.known:
            path = self.folder / f"value{len(self.known)}.npy"
            np.save(path, np.frombuffer(value, "u1"))
            url = peers.served(running, path)
            address, _, fragment = url.partition("#")
            token = dict(part.split("=", 1) for part in fragment.split("&"))["token"]
            host, name = address.removeprefix("corridor://").split("/", 1)
            [array] = peers.described(url)["arrays"]
            self.known[value] = f"http://{host}/zarr/{name}/{array['name']}/c/0", token
        return self.known[value]


class Renamed(HTTPFileSystem):
    """HTTP, but for the addresses: keys that were set are chunks of servers."""

    cachable = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.places: dict[str, tuple[str, str]] = {}

    async def _cat_file(self, url: str, start: Any = None, end: Any = None, **options: Any) -> bytes:
        peers.opened_by_us()
        place, token = self._place(url)
        return await super()._cat_file(place, start, end, headers={"Authorization": f"Bearer {token}"}, **options)

    async def _info(self, url: str, **options: Any) -> Any:
        peers.opened_by_us()
        place, token = self._place(url)
        return await super()._info(place, headers={"Authorization": f"Bearer {token}"}, **options)

    async def _exists(self, url: str, **options: Any) -> bool:
        peers.opened_by_us()
        place, token = self._place(url)
        return await super()._exists(place, headers={"Authorization": f"Bearer {token}"}, **options)

    def _place(self, url: str) -> tuple[str, str]:
        """Address and token of a key; of a key that was never set, an address below no array."""
        chunk, token = served().chunk(b"\x01\x02\x03\x04")
        return self.places.get(url, (chunk[: -len("c/0")] + "absent/" + url.removeprefix(HOST).strip("/"), token))


class Keyed(FsspecStore):
    """A store whose values are written directly to the servers."""

    supports_listing = False
    supports_deletes = False

    async def set(self, key: str, value: Buffer, byte_range: Any = None) -> None:
        self._check_writable()
        self.fs.places[f"{HOST}/{key}"] = served().chunk(value.to_bytes())

    async def _set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        for key, value in values:
            await self.set(key, value)


_served: list[Served] = []


def served() -> Served:
    """Returns the servers that all tests share."""
    if not _served:
        _served.append(Served())
    return _served[0]


class TestHttp(StoreTests[Keyed, cpu.Buffer]):
    """A store over HTTP."""

    store_cls = Keyed
    buffer_cls = cpu.Buffer

    @pytest.fixture
    def store_kwargs(self) -> dict[str, Any]:
        return {"fs": Renamed(asynchronous=True), "path": HOST}

    async def set(self, store: Keyed, key: str, value: Buffer) -> None:
        store.fs.places[f"{HOST}/{key}"] = served().chunk(value.to_bytes())

    async def get(self, store: Keyed, key: str) -> Buffer:
        found = await store.get(key, zarr.core.buffer.default_buffer_prototype())
        assert found is not None
        return found

    def test_store_repr(self, store: Keyed) -> None:
        assert HOST in repr(store)

    def test_store_supports_writes(self, store: Keyed) -> None:
        assert store.supports_writes

    def test_store_supports_listing(self, store: Keyed) -> None:
        assert not store.supports_listing
