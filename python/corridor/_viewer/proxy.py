"""Address of a viewer behind a proxy of notebooks, which passes requests on to ports of the kernel's machine."""

import importlib
import os
import socket
import sys
from urllib.parse import urlsplit

from .._errors import InvalidError

_WHERE = (
    "give the address by which the browser reaches ports of the kernel, such as "
    '`proxy="https://hub.example.org/user/me/proxy/{port}/"`'
)


def public_address(proxy: str | bool, port: int) -> str | None:
    """Returns the address by which browsers reach a port of this machine; None without a proxy.

    ``proxy`` is an address with ``{port}`` in it, or True for the one of this environment: of jupyter-server-proxy on
    JupyterHub, or of Colab.

    >>> public_address("https://hub.example.org/user/me/proxy/{port}/", 4000)
    'https://hub.example.org/user/me/proxy/4000/'

    Raises :class:`InvalidError` if there is none.
    """
    if proxy is False:
        return None
    address = _of_environment(port) if proxy is True else proxy.replace("{port}", str(port))
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidError(f"expected the whole address of a proxy, found `{address}`; {_WHERE}")
    if str(port) not in address and proxy is not True:
        raise InvalidError(f"expected `{{port}}` in the address of the proxy, found `{address}`; {_WHERE}")
    return address if address.endswith("/") else f"{address}/"


def _of_environment(port: int) -> str:
    if "google.colab" in sys.modules:
        found: str = importlib.import_module("google.colab.output").eval_js(f"google.colab.kernel.proxyPort({port})")
        return found
    # JupyterHub tells it to the servers of its users since version 5, if an administrator has set it.
    if server := os.environ.get("JUPYTERHUB_PUBLIC_URL"):
        return f"{server.rstrip('/')}/proxy/{port}/"
    where = "JupyterHub does not tell its public address" if "JUPYTERHUB_SERVICE_PREFIX" in os.environ else "this is neither JupyterHub nor Colab"
    raise InvalidError(f"{where}; {_WHERE}")


def free_port() -> int:
    """Returns a port of loopback that no program uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
