"""Opening of viewers: a widget in a notebook, a link elsewhere."""

import importlib
import sys
from typing import Any

from .._indexing import Key
from .server import started
from .viewer import Viewer


def show(
    x: Any,
    key: Key | None,
    memory: str | None,
    device: str,
    height: int,
    proxy: str | bool,
    fields: dict[str, Any],
) -> Any:
    """Returns a viewer; see :func:`corridor.view`."""
    server, view = started(x, key, memory, device, fields, proxy)
    if not _is_notebook():
        return Viewer(server, view)
    try:
        from .widget import ViewerWidget
    except ImportError:
        return Viewer(server, view)
    _allow_in_colab()
    return ViewerWidget(server, view, height)


def _is_notebook() -> bool:
    """True in a kernel of Jupyter: a terminal of IPython shows no widgets."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def _allow_in_colab() -> None:
    """Colab shows widgets of other packages only after this call."""
    if "google.colab" in sys.modules:
        importlib.import_module("google.colab.output").enable_custom_widget_manager()
