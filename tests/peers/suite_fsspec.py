"""fsspec's own tests of reading: what is copied from the filesystem `corridor` to this machine. Files of those tests have names
that no store has; each is a chunk of a data set of a server, under the name that the test gives it.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import peers
import pytest
from corridor.fsspec import CorridorFileSystem
from fsspec.tests.abstract import AbstractFixtures, AbstractGetTests


class Renamed(CorridorFileSystem):
    """The filesystem, but for the names of files."""

    cachable = False

    def __init__(self, root: str, chunks: dict[bytes, str], **options: Any) -> None:
        super().__init__(**options)
        self.root = root
        self.chunks = chunks
        self.names: dict[str, str] = {}
        self.folders: set[str] = {root}

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        while path.startswith(self.root):
            self.folders.add(path)
            path = path.rpartition("/")[0]

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        self.makedirs(path)

    def touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        self.pipe(path, b"0")

    def pipe(self, path: str, value: bytes | None = None, **_: Any) -> None:
        self.makedirs(path.rpartition("/")[0])
        self.names[path] = self.chunks[value or b"0"]

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        self.names = {n: c for n, c in self.names.items() if not n.startswith(path)}
        self.folders = {n for n in self.folders if not n.startswith(path)}

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        peers.opened_by_us()
        path = self._strip_protocol(path)
        if path in self.folders:
            return {"name": path, "size": 0, "type": "directory"}
        return await super()._info(self.names.get(path, f"{self.root}/absent")) | {"name": path}

    async def _ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        inside = [n for n in [*self.folders, *self.names] if n.rpartition("/")[0] == path] or [path]
        found = [await self._info(n) for n in inside]
        return found if detail else [one["name"] for one in found]

    async def _get_file(self, rpath: str, lpath: Any, **options: Any) -> None:
        peers.opened_by_us()
        path = self._strip_protocol(rpath)
        if path in self.folders:
            return await super()._get_file(self.root, lpath, **options)
        return await super()._get_file(self.names[path], lpath, **options)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[bytes, str]]]:
    """A data set, and its chunks by what they hold."""
    values = [str(digit).encode() for digit in range(10)]
    path: Path = tmp_path_factory.mktemp("peers") / "run.h5"
    with h5py.File(path, "w") as file:
        for value in values:
            file[f"v{value.decode()}"] = np.frombuffer(value, "u1")
    with ExitStack() as running:
        url = peers.served(running, path)
        root = CorridorFileSystem._strip_protocol(url)
        yield url, {value: f"{root}/v{value.decode()}/c/0" for value in values}


class TestGet(AbstractFixtures, AbstractGetTests):
    """Copies to this machine."""

    @pytest.fixture
    def fs(self, served: tuple[str, dict[bytes, str]]) -> Renamed:
        url, chunks = served
        options = CorridorFileSystem._get_kwargs_from_urls(url)
        return Renamed(CorridorFileSystem._strip_protocol(url), chunks, **options)

    @pytest.fixture
    def fs_path(self, served: tuple[str, dict[bytes, str]]) -> str:
        return str(CorridorFileSystem._strip_protocol(served[0]))
