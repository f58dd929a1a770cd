"""Fixed bugs, each named after its symptom."""

import pathlib
import subprocess

import h5py
import numpy as np
from conftest import BINARY, corridor, environment


def test_get_from_hdf5_crashed_while_the_process_ended(home: pathlib.Path):
    """HDF5's clean-up at exit ran while a storage thread was inside the library: two of three runs crashed."""
    path = home / "small.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("u", data=np.arange(1000).reshape(10, 100), chunks=(3, 7), compression="gzip")
    for _ in range(20):
        done = corridor(home, "get", str(path), "u", "-o", str(home / "u.npy"))
        assert done.returncode == 0, f"{done.returncode}: {done.stderr}"


def test_symbolic_link_beside_a_description_led_out_of_its_folder(home: pathlib.Path):
    """A raw description could read any file of the server's user through a symbolic link."""
    secret = home / "secret.bin"
    secret.write_bytes(b"s" * 100)
    folder = home / "data"
    folder.mkdir()
    (folder / "link.raw").symlink_to(secret)
    (folder / "inside.raw").write_bytes(b"i" * 100)
    (folder / "near.raw").symlink_to(folder / "inside.raw")
    for name, is_allowed in [("link.raw", False), ("near.raw", True)]:
        (folder / "v.toml").write_text(f'file = "{name}"\nshape = [100]\ndtype = "u1"\n')
        done = corridor(home, "get", str(folder / "v.toml"), "-o", str(home / "out.raw"))
        assert (done.returncode == 0) == is_allowed, done.stderr
    assert (home / "out.raw").read_bytes() == b"i" * 100


def test_names_in_files_sent_control_characters_to_the_terminal(home: pathlib.Path):
    """Escape sequences in names, units and attributes were printed as they were."""
    path = home / "names.h5"
    with h5py.File(path, "w") as file:
        array = file.create_dataset("a\x1b[31m\nforged line", data=np.zeros(3, "f4"))
        array.attrs["units"] = "m\x1b]0;title\x07"
        array.attrs["x\x1b[2J"] = "y"
    done = corridor(home, "info", str(path))
    assert done.returncode == 0
    assert "\x1b" not in done.stdout and "\x07" not in done.stdout
    assert not any(line.startswith("forged") for line in done.stdout.splitlines())


def test_temporary_output_file_followed_a_symbolic_link(home: pathlib.Path):
    """Whoever guessed the draft's name could have a file of the user overwritten."""
    victim = home / "victim"
    victim.write_text("untouched")
    source = home / "u.toml"
    (home / "u.raw").write_bytes(bytes(range(100)))
    source.write_text('file = "u.raw"\nshape = [100]\ndtype = "u1"\n')
    script = (
        f"for n in 0 1 2; do ln -s {victim} .u.npy.part$$-$n; done; ln -s {victim} .u.npy.part$$; "
        f"exec {BINARY} get {source} -o u.npy"
    )
    done = subprocess.run(["sh", "-c", script], cwd=home, env=environment(home), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert victim.read_text() == "untouched"
    assert np.array_equal(np.load(home / "u.npy"), np.arange(100, dtype="u1"))
    assert not (home / "u.npy").is_symlink()
