"""Truncated and bit-flipped files of every format behind one server: for each an error that says what was expected, or
the values that the format's own library reads; and after each the server answers a good request, rightly."""

import multiprocessing
import pathlib
import random
import re
import resource
import shutil
import struct
import time
import tomllib
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import h5py
import numpy as np
import pytest
import readers
import samples
from conftest import corridor, report, running
from wire_client import Client, WireError, text

# Number of times that each file is damaged in each way, with a fixed seed.
ROUNDS = 4
# A server looks again at a file at most once a second.
LOOK_AGAIN_SECONDS = 1.2
# For one answer of the server, or one file in the other library.
PATIENCE_SECONDS = 20
# The other library may take a size in a broken header at its word.
LIBRARY_BYTES = 8 << 30
# Words of errors about data; a broken header may name a file that is not there.
SAYS_WHAT = re.compile(r"expected|not supported|exceeds|No such file.*open `")


def truncated(content: bytes, chance: random.Random) -> bytes:
    """The beginning: of any length, often without the last bytes only."""
    if chance.random() < 0.3:
        return content[: -chance.randint(1, 40)]
    return content[: chance.randrange(len(content))]


def flipped(content: bytes, chance: random.Random) -> bytes:
    """Flips one to eight bits; every second time among the first bytes, which contain headers."""
    out = bytearray(content)
    end = len(out) if chance.random() < 0.5 else min(len(out), 600)
    for _ in range(chance.randint(1, 8)):
        out[chance.randrange(end)] ^= 1 << chance.randrange(8)
    return bytes(out)


def overwritten(content: bytes, chance: random.Random) -> bytes:
    """A few bytes that say "as much as there can be"."""
    out = bytearray(content)
    at = chance.randrange(len(out))
    out[at : at + 8] = b"\xff" * len(out[at : at + 8])
    return bytes(out)


DAMAGES = [truncated, flipped, overwritten]


def break_file(path: pathlib.Path, damage, chance: random.Random) -> None:
    """Damages a file, or one of the files of a store or of a header with its data."""
    if path.is_dir():
        parts = sorted(p for p in path.rglob("*") if p.is_file())
    elif path.suffix in (".toml", ".nhdr"):
        parts = sorted(p for p in path.parent.iterdir())
    else:
        parts = [path]
    victim = chance.choice([p for p in parts if p.stat().st_size])
    victim.write_bytes(damage(victim.read_bytes(), chance))


def library_values(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Reads a file with the format's own library."""
    if path.suffix == ".toml":
        said = tomllib.loads(path.read_text())
        dtype, count = np.dtype(said["dtype"]), int(np.prod(said["shape"], dtype=object))
        raw = (path.parent / said["file"]).read_bytes()
        return {"": np.frombuffer(raw, dtype, count, said.get("offset", 0)).reshape(said["shape"])}
    return {variable.name: variable.values for variable in readers.variables(path)[0]}


def salvaged(path: pathlib.Path, names: list[str]) -> dict[str, np.ndarray]:
    """Reads variables one by one from an HDF5 or NetCDF-4 file of which other parts are broken."""
    found = {}
    for name in names:
        with suppress(Exception), h5py.File(path) as file:
            found[name] = np.asarray(file[name])
    return found


def _answer(pipe, path: pathlib.Path, names: list[str]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (LIBRARY_BYTES, LIBRARY_BYTES))
    try:
        pipe.send(library_values(path))
    except Exception:
        pipe.send(salvaged(path, names))


def library_says(path: pathlib.Path, names: list[str]) -> dict[str, np.ndarray]:
    """Reads a file with the library in a separate process, which a broken file may crash or hang; empty if it refuses the file."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    target, arguments = _answer, (theirs, path, names)
    process = multiprocessing.get_context("fork").Process(target=target, args=arguments, daemon=True)
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(PATIENCE_SECONDS) else {}
    except EOFError:
        return {}
    finally:
        process.kill()
        process.join()


def read_parameters(described: dict, number: int) -> bytes:
    shape = described["arrays"][number]["levels"][0]["shape"]
    place = bytes.fromhex(described["id"])[::-1] + struct.pack("<IIB", described["generation"], number, 0)
    return place + struct.pack("<B", len(shape)) + b"".join(struct.pack("<QQQ", 0, n, 1) for n in shape)


def describe(client: Client, name: str) -> dict:
    (item,) = client.items(client.request("describe", text(name)), PATIENCE_SECONDS)
    return item.json


def read(client: Client, described: dict, number: int) -> np.ndarray:
    """Reads a whole array through the server."""
    info = described["arrays"][number]
    shape, dtype = info["levels"][0]["shape"], np.dtype(info["dtype"])
    out = bytearray(int(np.prod(shape, dtype=object)) * dtype.itemsize)
    for item in client.items(client.request("read", read_parameters(described, number)), PATIENCE_SECONDS):
        (at,) = struct.unpack("<Q", item.body)
        out[at : at + len(item.bulk)] = item.bulk
    return np.frombuffer(bytes(out), dtype).reshape(shape)


def same(ours: np.ndarray, theirs: np.ndarray) -> bool:
    native = theirs.dtype.newbyteorder("=")
    return ours.shape == theirs.shape and ours.astype(native).tobytes() == theirs.astype(native).tobytes()


@contextmanager
def connected(program) -> Iterator[Client]:
    parts = urllib.parse.urlsplit(program.url)
    token = urllib.parse.parse_qs(parts.fragment)["token"][0]
    with Client(f"ws://{parts.netloc}/wire", token) as client:
        yield client


class Judge:
    """Compares what the server says of broken files with what the libraries say."""

    def __init__(self, client: Client, good: str, good_values: np.ndarray):
        self.client, self.good, self.good_values = client, good, good_values
        self.verdicts: Counter[str] = Counter()

    def judge(self, name: str, path: pathlib.Path, unbroken: dict[str, np.ndarray]) -> None:
        """One broken file; `unbroken` is what it held before."""
        theirs = library_says(path, list(unbroken))
        try:
            described = describe(self.client, name)
        except WireError as error:
            self.refused(name, error)
        else:
            for number, info in enumerate(described["arrays"]):
                array = info["name"]
                # Formats with one array do not name it.
                expect, before = (v.get(array, v.get("")) for v in (theirs, unbroken))
                self.judge_array(name, described, number, expect, before)
        assert same(read(self.client, describe(self.client, self.good), 0), self.good_values), f"after {name}"

    def judge_array(self, name: str, described: dict, number: int, expect, before) -> None:
        """Checks one array of a damaged file: its values are those that the library reads, or else those before the damage."""
        what = f"{name}: {described['arrays'][number]['name']}"
        try:
            ours = read(self.client, described, number)
        except WireError as error:
            return self.refused(what, error)
        if expect is None and before is None:
            # Texts and parts of complex numbers, which the readers do not compare.
            self.verdicts["values of other kinds"] += 1
        elif expect is not None:
            assert same(ours, expect), f"{what} differs from what the library reads"
            self.verdicts["values of the library"] += 1
        else:
            assert same(ours, before), f"{what} has values, which the library refuses to read"
            self.verdicts["unharmed values, where the library refuses the file"] += 1

    def refused(self, what: str, error: WireError) -> None:
        assert SAYS_WHAT.search(str(error)), f"{what}: {error}"
        assert "panic" not in str(error), f"{what}: {error}"
        self.verdicts["a clear error"] += 1


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> list[pathlib.Path]:
    """Files of every format, unbroken."""
    return samples.write_all(tmp_path_factory.mktemp("made"))


def copy(path: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """A file, or a store, or a header and the data beside it, in a folder of its own."""
    folder.mkdir(parents=True)
    target = folder / f"{folder.name}-{path.name}"
    if path.is_dir():
        shutil.copytree(path, target)
        return target
    if path.suffix in (".toml", ".nhdr"):
        for data in path.parent.glob(f"{path.stem}.*"):
            if data != path and data.suffix in (".bin", ".raw", ".gz"):
                shutil.copy(data, folder)
    shutil.copy(path, target)
    return target


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda d: d.__name__)
def test_files_broken_behind_a_running_server(home, made, damage):
    good = copy(made[0], home / "good")
    copies = [
        (path, copy(path, home / path.name / str(number)))
        for path in made for number in range(ROUNDS)
    ]
    unbroken = {path: library_values(path) for path in made}
    locations = [str(good), *(str(c) for _, c in copies)]
    with running(home, "serve", *locations, "--listen", "127.0.0.1:0", "--json", lines=len(locations)) as server:
        names = [urllib.parse.unquote(urllib.parse.urlsplit(line["url"]).path[1:]) for line in server.lines]
        for path, broken in copies:
            break_file(broken, damage, random.Random(f"{damage.__name__} {broken.name}"))
        time.sleep(LOOK_AGAIN_SECONDS)
        with connected(server) as client:
            judge = Judge(client, names[0], next(iter(unbroken[made[0]].values())))
            for name, (path, broken) in zip(names[1:], copies, strict=True):
                judge.judge(name, broken, unbroken[path])
        # Whoever comes next is served as well.
        done = corridor(home, "info", server.url, "--json")
        assert done.returncode == 0, done.stderr
    report(f"broken files, {damage.__name__}: {len(copies)} files: "
           + ", ".join(f"{count} x {verdict}" for verdict, count in sorted(judge.verdicts.items())))


def test_files_cut_short_between_description_and_read(home, made):
    """Earlier descriptions become stale: never other bytes under the same name."""
    copies = [(path, copy(path, home / path.name / "0")) for path in made if not path.is_dir()]
    locations = [str(c) for _, c in copies]
    with (
        running(home, "serve", *locations, "--listen", "127.0.0.1:0", "--json", lines=len(locations)) as server,
        connected(server) as client,
    ):
        for line, (path, broken) in zip(server.lines, copies, strict=True):
            described = describe(client, urllib.parse.unquote(urllib.parse.urlsplit(line["url"]).path[1:]))
            parts = [p for p in broken.parent.iterdir() if p.suffix not in (".toml", ".nhdr")]
            for part in parts:
                with part.open("r+b") as file:
                    file.truncate(part.stat().st_size // 2)
            before = library_values(path)
            for number, info in enumerate(described["arrays"]):
                expect = before.get(info["name"], before.get(""))
                try:
                    found = read(client, described, number)
                    # The readers do not compare texts and parts of complex numbers.
                    assert expect is None and path.suffix in (".h5", ".nc") or same(found, expect)
                except WireError as error:
                    assert re.search("changed|stale|expected", str(error)), str(error)
