"""A real OpenSSH server on loopback, with its own keys and configuration: files of the user are neither read nor written.

The test process owns the port: it accepts each connection and passes it to a new sshd (``sshd -i``).
"""

import getpass
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from conftest import BINARY

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


@dataclass
class Server:
    """A running sshd, reached as `here`, and as `behind` with a jump over itself."""

    folder: pathlib.Path
    home: pathlib.Path
    port: int

    def environment(self, **changes: str) -> dict[str, str]:
        """Returns the variables with which `corridor` connects to this server."""
        return {
            "CORRIDOR_SSH": f"ssh -F {self.folder / 'config'}",
            "CORRIDOR_SSH_COMMAND": BINARY,
        } | changes

    def programs(self) -> list[int]:
        """Returns the processes of `corridor serve --stdio` that this server has started."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
                ours = str(self.home).encode() in (process / "environ").read_bytes()
            except OSError:
                continue
            if ours and b"--stdio" in words:
                found.append(int(process.name))
        return found

    def wait_until_no_programs(self, seconds: float = 20) -> None:
        """Waits until all of them have ended."""
        end = time.monotonic() + seconds
        while self.programs() and time.monotonic() < end:
            time.sleep(0.05)
        assert not self.programs(), "a program on the other host is still running after its client ended"


def _key(path: pathlib.Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path.with_name(path.name + ".pub").read_text().strip()


@contextmanager
def running(folder: pathlib.Path) -> Iterator[Server]:
    """Runs the server; `folder` should be empty."""
    folder.chmod(0o700)
    home = folder / "home"
    (home / "run").mkdir(parents=True)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    host_key, user_key = _key(folder / "host"), _key(folder / "user")
    _key(folder / "stranger")
    (folder / "authorized").write_text(user_key + "\n")
    (folder / "known").write_text(f"[127.0.0.1]:{port} {host_key}\n")
    (folder / "sshd_config").write_text(
        f"""
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
SetEnv HOME={home} XDG_RUNTIME_DIR={home}/run XDG_CACHE_HOME={home}/cache XDG_CONFIG_HOME={home}/config
"""
    )
    common = f"""
HostName 127.0.0.1
Port {port}
User {getpass.getuser()}
IdentitiesOnly yes
IdentityAgent none
BatchMode yes
UserKnownHostsFile {folder}/known
GlobalKnownHostsFile /dev/null
StrictHostKeyChecking yes
"""
    (folder / "config").write_text(
        f"""
Host here
IdentityFile {folder}/user
{common}
Host behind
IdentityFile {folder}/user
ProxyJump here
{common}
Host stranger
IdentityFile {folder}/stranger
{common}
"""
    )
    if os.getuid() == 0:
        os.makedirs("/run/sshd", 0o755, exist_ok=True)
    children: list[subprocess.Popen[bytes]] = []
    command = [SSHD, "-i", "-e", "-f", str(folder / "sshd_config")]
    taking = threading.Thread(target=_take, args=(listener, command, children))
    taking.start()
    try:
        yield Server(folder, home, port)
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        taking.join()
        listener.close()
        for child in children:
            child.terminate()
            child.wait(timeout=20)


def _take(listener: socket.socket, command: list[str], children: "list[subprocess.Popen[bytes]]") -> None:
    """Passes each connection to a new process, until the listener is shut down."""
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        with peer:
            children.append(subprocess.Popen(command, stdin=peer, stdout=peer, stderr=subprocess.DEVNULL))
