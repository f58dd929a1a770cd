"""The widget in JupyterLab, in a real browser."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator

import pytest
from conftest import ROOT, environment, report

OUT = pathlib.Path(os.environ.get("CORRIDOR_TEST_OUT", "/tmp"))
TOKEN = "test-token"
CELLS = [
    """import corridor, numpy as np, xarray as xr
z, y, x = np.mgrid[-1:1:32j, -1:1:40j, -1:1:48j]
steps = np.stack([np.exp(-4 * ((x - c) ** 2 + y**2 + z**2)) for c in (-0.6, 0.0, 0.6)]).astype("f4")
data = xr.DataArray(steps, dims=("time", "z", "y", "x"), name="rho")
w = corridor.view(data, height=400)
picks = []
w.on_pick(picks.append)
w""",
    "w.time = 2",
    "print('time', w.time, 'eye', [round(v, 3) for v in w.camera['eye']])",
    "p = picks[-1] if picks else None\nprint('picked', p and p.time, 'at', *(p.at if p else ()), p and p.ray_direction)\n"
    "print('element', p and p.hit, p and p.index is not None and float(steps[p.index]) == p.stored, p and p.position)",
]


@contextlib.contextmanager
def lab(home: pathlib.Path, folder: pathlib.Path) -> Iterator[str]:
    """Runs JupyterLab on `folder`; yields its address."""
    pytest.importorskip("jupyterlab")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = open(folder / "lab.log", "w")
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--ServerApp.port_retries=0",
         f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}", "--LabApp.news_url="],
        env=environment(home), stdout=log, stderr=subprocess.STDOUT, cwd=folder,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{address}/api?token={TOKEN}").close()
                break
            assert process.poll() is None, (folder / "lab.log").read_text()
            time.sleep(0.25)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
        log.close()


def test_the_widget_shows_data_and_is_changed_from_both_sides(home: pathlib.Path, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    cells = [
        {"cell_type": "code", "id": f"c{n}", "source": text, "metadata": {}, "outputs": [], "execution_count": None}
        for n, text in enumerate(CELLS)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (folder / "test.ipynb").write_text(json.dumps(notebook))
    with lab(home, folder) as address:
        out = OUT / "notebook"
        out.mkdir(parents=True, exist_ok=True)
        expected = {
            "CORRIDOR_E2E_URL": address,
            "CORRIDOR_E2E_NOTEBOOK": f"{address}/lab/tree/test.ipynb?token={TOKEN}",
            "CORRIDOR_E2E_OUT": str(out),
        }
        done = subprocess.run(
            ["npm", "run", "--silent", "e2e", "--", "notebook"],
            cwd=ROOT / "web",
            env=os.environ | expected,
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert done.returncode == 0, done.stdout + done.stderr + (folder / "lab.log").read_text()[-3000:]
    report(f"browser: notebook: screenshots in {out}")
