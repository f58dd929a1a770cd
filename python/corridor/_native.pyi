from collections.abc import Callable
from os import PathLike
from typing import final

import numpy as np

VERSION: str

_Selection = tuple[int, int, list[tuple[int, int, int]]]
_Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
ReadRequest = tuple["Connection", _Selection, bool]
_Answer = tuple[str, tuple[str, list[int], _Bytes] | None]

# Compression, link, controller and meaning.
LinkOptions = tuple[str | None, str | None, str | None, str | None]

def open(
    locations: list[str],
    token: str | None = None,
    memory: str | None = None,
    rule: str = "auto",
    options: LinkOptions = (None, None, None, None),
) -> Connection: ...

def read_many(requests: list[ReadRequest], tier: int) -> list[_Bytes]: ...

def begin_many(
    requests: list[ReadRequest],
    tier: int,
    done: Callable[[int | None, _Bytes | None, BaseException | None], None],
) -> Reading: ...

def list_datasets(url: str, token: str | None = None) -> list[str]: ...

def render(
    connection: Connection,
    array: str | None,
    keywords: str,
    form: tuple[tuple[int, int], str, str],
    slabs: tuple[bool, int, int | None] | None,
    timeout_secs: float | None = None,
) -> tuple[_Bytes, str | None, Slabs | None]: ...

def resolve_view(connection: Connection, array: str | None, keywords: str, size: tuple[int, int]) -> str: ...

def open_objects(
    description: str,
    read: Callable[[int, list[tuple[int, int, int]]], _Bytes],
    memory: str | None = None,
) -> Connection: ...

def serve_view(
    connection: Connection,
    path: str | None,
    meaning: str | None,
    view: str,
    memory: str,
    device: str,
    address: tuple[int, str | None] = (0, None),
) -> ViewServer: ...

def join_session(url: str, name: str, fingerprint: str | None = None) -> SessionLink: ...

def viewer_page() -> str | None: ...

def viewer_colormaps() -> str: ...

@final
class ViewServer:
    @property
    def page(self) -> str: ...
    @property
    def token(self) -> str: ...
    def connect(
        self,
        on_message: Callable[[bytes | None], None],
        on_taken: Callable[[int], None],
        window_bytes: int,
    ) -> PageRelay: ...
    def close(self) -> None: ...

@final
class PageRelay:
    def send(self, message: bytes) -> None: ...
    def grant(self, size_bytes: int) -> None: ...
    def close(self) -> None: ...

@final
class SessionLink:
    def state(self) -> str: ...
    def wait(self, version: int, timeout_secs: float | None = None) -> bool: ...
    def send(self, action: str) -> int: ...
    def close(self) -> None: ...

@final
class Slabs:
    @staticmethod
    def read(path: str | PathLike[str]) -> Slabs: ...
    @staticmethod
    def decoded(bytes: bytes) -> Slabs: ...
    def encoded(self) -> bytes: ...
    def facts(self) -> str: ...
    def texels(self, slab: int) -> _Bytes: ...
    def draw(
        self, camera: str | None, size: tuple[int, int], pixels: str, background: tuple[int, int, int]
    ) -> _Bytes: ...

@final
class Connection:
    @property
    def name(self) -> str: ...
    @property
    def array(self) -> str: ...
    @property
    def is_sound(self) -> bool: ...
    @property
    def state(self) -> tuple[str, int]: ...
    def has_changed(self) -> bool: ...
    def description(self) -> str: ...
    def read(self, wanted: _Selection, is_decoded: bool, tier: int) -> _Bytes: ...
    def begin(
        self,
        wanted: _Selection,
        is_decoded: bool,
        tier: int,
        done: Callable[[_Bytes | None, BaseException | None], None],
    ) -> Reading: ...
    def zarr_entry(self, key: str) -> tuple[bool, int] | None: ...
    def zarr_list(self, key: str) -> list[tuple[str, tuple[bool, int]]]: ...
    def begin_zarr(
        self,
        key: str,
        bytes: tuple[int, int] | None,
        done: Callable[[tuple[bytes | None] | None, BaseException | None], None],
    ) -> Reading: ...
    def call(
        self,
        name: str,
        wanted: _Selection,
        with_: str,
        progress: Callable[[int, int], object] | None,
    ) -> _Answer: ...
    def begin_call(
        self,
        name: str,
        wanted: _Selection,
        with_: str,
        done: Callable[[_Answer | None, BaseException | None], None],
    ) -> Reading: ...

@final
class Reading:
    def cancel(self) -> None: ...
