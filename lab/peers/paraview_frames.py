"""Frames by ParaView, headless (`xvfb-run -a pvbatch`): its CPU ray caster, used as in a script of a user.

Jobs and answers are as in `vtk_frames.py`. ParaView chooses the distance of samples itself; its time includes
showing the picture in its window, drawn by software.
"""

import json
import sys
import time
from typing import Any

from paraview import simple

given = json.loads(sys.argv[1])
if given.get("only_import"):
    print("true")
    sys.exit(0)

TYPES = {"uint8": "unsigned char", "float32": "float"}
ARRAY = "values"


class Stage:
    """A view with one volume."""

    def __init__(self) -> None:
        self.view = simple.CreateView("RenderView")
        self.view.OrientationAxesVisibility = 0
        self.view.UseColorPaletteForBackground = 0
        self.view.Background = [0.0, 0.0, 0.0]
        self.reader: Any = None
        self.display: Any = None

    def load(self, volume: dict[str, Any]) -> dict[str, Any]:
        """Takes a volume `[z, y, x]` from a raw file; voxel centers lie at whole numbers."""
        if self.reader is not None:
            simple.Delete(self.reader)
        nz, ny, nx = volume["shape"]
        self.reader = simple.ImageReader(
            FileNames=[volume["file"]],
            DataScalarType=TYPES[volume["dtype"]],
            DataByteOrder="LittleEndian" if sys.byteorder == "little" else "BigEndian",
            DataExtent=[0, nx - 1, 0, ny - 1, 0, nz - 1],
            FileDimensionality=3,
            ScalarArrayName=ARRAY,
        )
        self.display = simple.Show(self.reader, self.view)
        self.display.SetRepresentationType("Volume")
        self.display.VolumeRenderingMode = "Ray Cast Only"
        self.display.ScalarOpacityUnitDistance = 1.0
        self.display.Shade = 0
        simple.ColorBy(self.display, ("POINTS", ARRAY))
        self.display.SetScalarBarVisibility(self.view, False)
        return {"tuning": f"ParaView {simple.GetParaViewVersion()}, Ray Cast Only, step of its own"}

    def look(self, frame: dict[str, Any]) -> None:
        """Sets camera, size of the picture and transfer function."""
        self.view.ViewSize = frame["size"]
        self.view.CameraPosition = frame["eye"]
        self.view.CameraFocalPoint = frame["target"]
        self.view.CameraViewUp = frame["up"]
        self.view.CameraViewAngle = frame["fov_y_degrees"]
        low, high = frame["range"]
        step = (high - low) / (len(frame["colors"]) - 1)
        points = []
        for number, rgb in enumerate(frame["colors"]):
            points += [low + number * step, *(c / 255 for c in rgb)]
        colors = simple.GetColorTransferFunction(ARRAY)
        colors.AutomaticRescaleRangeMode = "Never"
        colors.ColorSpace = "RGB"
        colors.RGBPoints = points
        opacity = simple.GetOpacityTransferFunction(ARRAY)
        opacity.AllowDuplicateScalars = 1
        # Middle and sharpness of each way to the next point: straight.
        opacity.Points = [number for value, alpha in frame["opacity"] for number in (value, alpha, 0.5, 0.0)]
        self.display.LookupTable = colors
        self.display.ScalarOpacityFunction = opacity

    def draw(self) -> tuple[float, float]:
        """Draws a frame; returns wall and processor time, seconds."""
        wall, cpu = time.perf_counter(), time.process_time()
        simple.Render(self.view)
        return time.perf_counter() - wall, time.process_time() - cpu

    def save(self, file: str) -> None:
        """Returns the picture as 8-bit RGB, row 0 at the top."""
        from vtkmodules.util.numpy_support import vtk_to_numpy  # noqa: PLC0415

        image = self.view.CaptureWindow(1)
        width, height, _ = image.GetDimensions()
        pixels = vtk_to_numpy(image.GetPointData().GetScalars()).reshape(height, width, -1)[::-1, :, :3]
        pixels.tofile(file)


stage = Stage()
seen: Any = None
# pvbatch replaces Python's own streams.
for line in open(0):  # noqa: SIM115
    job = json.loads(line)
    if "volume" in job:
        answer = stage.load(job["volume"])
        seen = None
    else:
        if job["frame"] != seen:
            stage.look(job["frame"])
            # Tables are made with the first frame; nobody's are counted.
            stage.draw()
            seen = job["frame"]
        secs, cpu_secs = stage.draw()
        answer = {"secs": secs, "cpu_secs": cpu_secs}
        if "picture" in job:
            stage.save(job["picture"])
    print(json.dumps(answer), flush=True)
