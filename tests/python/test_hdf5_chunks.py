"""Chunks of HDF5 have the positions that h5py reports: every kind of chunk index, any axes unlimited, shrunk, grown and partly
written, filtered or not, chosen by a seeded generator. Many data sets in few files, because each takes milliseconds."""

import collections
import itertools
import pathlib
import random

import corridor
import h5py
import numpy as np

# Names of the kinds of index in the library, as `H5Dget_chunk_index_type` counts them.
KINDS = {"latest": ("single", "implicit", "fixed array", "extensible array", "B-tree 2"), "earliest": ("B-tree 1",)}
CASES_PER_FILE = 220
FILTERS = [{}, {}, {"compression": "gzip"}, {"compression": "gzip", "shuffle": True}, {"fletcher32": True}, {"compression": "lzf"}]


def kind_of(data: h5py.Dataset, libver: str) -> str:
    """The index that the library's rules give to a chunked data set."""
    if libver == "earliest":
        return "B-tree 1"
    unlimited = sum(n is None for n in data.maxshape)
    if unlimited:
        return "extensible array" if unlimited == 1 else "B-tree 2"
    early = data.id.get_create_plist().get_alloc_time() == h5py.h5d.ALLOC_TIME_EARLY
    whole = all(c >= n and m == n for c, n, m in zip(data.chunks, data.shape, data.maxshape, strict=True))
    if whole:
        return "single"
    return "implicit" if early and data.id.get_create_plist().get_nfilters() == 0 else "fixed array"


def create(file: h5py.File, name: str, chance: random.Random) -> h5py.Dataset:
    rank = chance.choice([1, 2, 2, 3, 3, 4])
    shape = [chance.randint(1, 9 if rank > 2 else 14) for _ in range(rank)]
    unlimited = set(chance.sample(range(rank), chance.choice([0, 1, 1, 1, 2, rank]) if rank > 1 else chance.randint(0, 1)))
    largest = [None if a in unlimited else n + chance.choice([0, 0, 3, 7]) for a, n in enumerate(shape)]
    chunk = [chance.randint(1, min(5, n if largest[a] is not None else 5)) for a, n in enumerate(shape)]
    if chance.random() < 0.1 and not unlimited:
        largest, chunk = shape, list(shape)
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chance.random() < 0.45:
        properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    options = dict(chance.choice(FILTERS))
    dtype = chance.choice(["<i4", ">i2", "<f8", "u1"])
    if chance.random() < 0.5:
        options["fillvalue"] = chance.randint(1, 100)
    return file.create_dataset(
        name, tuple(shape), dtype, maxshape=tuple(largest), chunks=tuple(chunk), dcpl=properties, **options
    )


def write_some(data: h5py.Dataset, chance: random.Random, values: "itertools.count[int]") -> None:
    for _ in range(chance.randint(0, 3)):
        start = [chance.randrange(n) if n else 0 for n in data.shape]
        place = tuple(slice(s, s + chance.randint(1, 6)) for s in start)
        shape = data[place].shape
        numbers = np.fromiter(itertools.islice(values, int(np.prod(shape))), "i8").reshape(shape)
        data[place] = (numbers % 251).astype(data.dtype)


def resize(data: h5py.Dataset, chance: random.Random) -> None:
    most = [n + 9 if m is None else m for n, m in zip(data.shape, data.maxshape, strict=True)]
    data.resize(tuple(chance.randint(0 if chance.random() < 0.1 else 1, m) for m in most))


def compare(path: pathlib.Path, chance: random.Random) -> int:
    """Everything whole, and a selection with steps; gives how many elements were not zero."""
    found = corridor.open(path)
    told = 0
    with h5py.File(path) as file:
        for name, data in file.items():
            expected = data[...]
            got = found[name][...]
            what = f"{path.name} {name} {data.shape} of {data.maxshape} in {data.chunks}"
            np.testing.assert_array_equal(got, expected, err_msg=what)
            told += np.count_nonzero(expected)
            if data.size:
                some = tuple(slice(chance.randrange(n), n, chance.randint(1, 3)) for n in data.shape)
                np.testing.assert_array_equal(found[name][some], expected[some], err_msg=f"{what} {some}")
    return told


def test_every_kind_of_chunk_index_reads_as_h5py_reads_it(tmp_path: pathlib.Path) -> None:
    kinds: collections.Counter[str] = collections.Counter()
    for libver, seed in [("latest", 1), ("latest", 2), ("latest", 3), ("earliest", 4)]:
        chance, values = random.Random(seed), itertools.count(1)
        path = tmp_path / f"{libver}-{seed}.h5"
        with h5py.File(path, "w", libver=libver, userblock_size=512 if seed == 3 else 0) as file:
            for number in range(CASES_PER_FILE):
                data = create(file, f"d{number}", chance)
                kinds[kind_of(data, libver)] += 1
                write_some(data, chance, values)
                if any(n is None or n > s for n, s in zip(data.maxshape, data.shape, strict=True)):
                    for _ in range(chance.randint(0, 3)):
                        resize(data, chance)
                        write_some(data, chance, values)
        assert compare(path, chance) > 1000
    for kind in [*KINDS["latest"], *KINDS["earliest"]]:
        assert kinds[kind] >= 10, f"{kind}: {kinds}"


def test_channel_and_time_axes_are_not_swapped(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "recording.h5"
    samples = np.arange(8 * 1000, dtype="i2").reshape(8, 1000)
    with h5py.File(path, "w", libver="latest") as file:
        data = file.create_dataset("eeg", (8, 0), "i2", maxshape=(8, None), chunks=(4, 100))
        for end in range(100, 1001, 100):
            data.resize((8, end))
            data[:, end - 100 : end] = samples[:, end - 100 : end]
    np.testing.assert_array_equal(corridor.open(path)["eeg"][...], samples)
