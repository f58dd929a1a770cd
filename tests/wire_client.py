"""A small client of the wire, written from docs/wire.md alone, as a third party would write it."""

import json
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from websockets.sync.client import connect

MAGIC = 0x52444F43
INTERACTIVE = (3, 0.0)


@dataclass
class Item:
    """One item of an operation: its body and bulk bytes."""

    body: bytes
    bulk: bytearray = field(default_factory=bytearray)
    bulk_bytes: int = 0

    @property
    def json(self) -> dict:
        return json.loads(self.body)


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<H", len(raw)) + raw


def raw(value: bytes) -> bytes:
    return struct.pack("<I", len(value)) + value


def hello(token: str, credit: int = 1 << 30) -> bytes:
    """Returns the first message of a client."""
    versions = struct.pack("<BIHH", 0x01, MAGIC, 1, 1) + struct.pack("<H", 1) + text("crc32c")
    return versions + text(token) + struct.pack("<Q", credit) + text("python test")


class Reader:
    """Reads fields of a frame in order."""

    def __init__(self, frame: bytes):
        self.frame, self.at = frame, 0

    def take(self, layout: str):
        values = struct.unpack_from("<" + layout, self.frame, self.at)
        self.at += struct.calcsize("<" + layout)
        return values if len(values) > 1 else values[0]

    def raw(self) -> bytes:
        size = self.take("I")
        self.at += size
        return self.frame[self.at - size : self.at]

    def text(self) -> str:
        size = self.take("H")
        self.at += size
        return self.frame[self.at - size : self.at].decode()

    def texts(self) -> list[str]:
        return [self.text() for _ in range(self.take("H"))]


class WireError(Exception):
    """A failed operation: the server's message, then its context, innermost first."""


class Client:
    """One connection over WebSocket. One operation is read at a time; that is enough for tests."""

    def __init__(self, address: str, token: str, credit: int = 1 << 30):
        self.socket = connect(address, max_size=4 << 20, compression=None, legacy=True)
        self.socket.send(hello(token, credit))
        answer = self.socket.recv(timeout=30)
        if answer[0] != 0x81:
            raise WireError(answer[1:].decode(errors="replace"))
        self.next_op = 0

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_) -> None:
        self.socket.close()

    def request(self, name: str, parameters: bytes = b"") -> int:
        """Starts an operation; returns its number."""
        self.next_op += 1
        head = struct.pack("<BI", 0x02, self.next_op) + text(name) + struct.pack("<BfI", *INTERACTIVE, 0)
        self.socket.send(head + raw(parameters))
        return self.next_op

    def cancel(self, op: int) -> None:
        """Withdraws an operation."""
        self.socket.send(struct.pack("<BI", 0x04, op))

    def note(self, op: int, message: dict) -> None:
        """Sends a message to a running operation."""
        self.socket.send(struct.pack("<BI", 0x06, op) + raw(json.dumps(message).encode()))

    def items(self, op: int, seconds: float = 60) -> Iterator[Item]:
        """Complete items of `op` until it is done."""
        waiting: dict[int, Item] = {}
        end = time.monotonic() + seconds
        while True:
            frame = Reader(self.socket.recv(timeout=max(0.0, end - time.monotonic())))
            kind = frame.take("B")
            if kind == 0x07:
                self.socket.send(struct.pack("<BQ", 0x08, frame.take("Q")))
                continue
            if kind == 0x0F:
                raise WireError("the server closed the connection")
            if kind not in (0x83, 0x84, 0x85, 0x86) or frame.take("I") != op:
                continue
            if kind == 0x85:
                return
            if kind == 0x86:
                frame.take("HB")
                raise WireError(frame.text() + "".join(f"; {place}" for place in frame.texts()))
            number = frame.take("I")
            if kind == 0x83:
                item = Item(frame.raw())
                item.bulk_bytes, _crc = frame.take("QI")
                waiting[number] = item
            else:
                at = frame.take("Q")
                item = waiting[number]
                assert at == len(item.bulk), "chunks of one item come in order"
                item.bulk += frame.frame[frame.at :]
            if len(item.bulk) == item.bulk_bytes:
                yield waiting.pop(number)
