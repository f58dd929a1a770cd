"""Contact sheets: the first picture of each file, for visual inspection.

``python tests/field/contact_sheets.py SHEET.png FILE...`` draws every file with ``corridor render`` and its defaults (the program is
``$CORRIDOR_BIN``, or found in the path). ``SHEET.txt`` beside it has a line per file: the array shown, the range of the colors, and the
sentence that the program prints about the picture, or why there is none.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from PIL import Image, ImageDraw

WIDTH, HEIGHT = 256, 200
LINE = 14
COLUMNS = 8
PARALLEL = 2
LIMIT_SECONDS = 300
MAX_REASON_CHARS = 400


class Cell:
    """One file on the sheet."""

    def __init__(self, file: pathlib.Path, folder: pathlib.Path, number: int):
        self.file = file
        self.picture: Image.Image | None = None
        self.facts = ""
        out = folder / f"{number}.png"
        command = [os.environ.get("CORRIDOR_BIN", "corridor"), "render", str(file), "-o", str(out), "--json",
                   "--size", f"{WIDTH}x{HEIGHT}", "--device", "cpu"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.text = f"no picture after {LIMIT_SECONDS} s"
            return
        if done.returncode != 0:
            self.text = (done.stderr.strip().splitlines() or ["failed without a message"])[-1][:MAX_REASON_CHARS]
            return
        told = json.loads(done.stdout.splitlines()[-1])
        view = told["view"]
        low, high = view["transfer"]["range"]
        self.facts = f"{view['array']} {low:.5g} to {high:.5g}"
        self.text = told["truth"]["text"]
        self.picture = Image.open(out).convert("RGB")

    def draw(self, sheet: Image.Image, left: int, top: int) -> None:
        pen = ImageDraw.Draw(sheet)
        pen.text((left + 2, top + 1), self.file.name[-40:], fill="white")
        if self.picture is not None:
            sheet.paste(self.picture, (left, top + LINE))
        else:
            for row in range(0, len(self.text), 40):
                pen.text((left + 4, top + 20 + row // 40 * LINE), self.text[row : row + 40], fill=(255, 120, 120))
        pen.text((left + 2, top + LINE + HEIGHT), self.facts[:42], fill=(180, 220, 255))


def main(out: str, *files: str) -> None:
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        paths = [pathlib.Path(file) for file in files]
        cells = list(pool.map(lambda item: Cell(item[1], pathlib.Path(folder), item[0]), enumerate(paths)))
    rows = -(-len(cells) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * WIDTH, rows * (HEIGHT + 2 * LINE)), (40, 40, 40))
    for number, cell in enumerate(cells):
        cell.draw(sheet, number % COLUMNS * WIDTH, number // COLUMNS * (HEIGHT + 2 * LINE))
    sheet.save(out)
    lines = [f"{cell.file}\t{cell.facts}\t{cell.text}\n" for cell in cells]
    pathlib.Path(out).with_suffix(".txt").write_text("".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
