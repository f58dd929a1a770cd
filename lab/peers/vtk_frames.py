"""Frames by VTK: its fixed-point CPU mapper on all cores, or its GPU mapper on the OpenGL that is installed.

Each line of standard input is a JSON job, answered by one line. The volume stays in memory between frames, as for all
contestants. The time of the CPU mapper ends when the picture is in memory: showing it in the window is measured by itself and
subtracted. The time of the GPU mapper ends when a pixel was read back.
"""

import json
import os
import sys
import time
from typing import Any

given = json.loads(sys.argv[1])
# The window is off-screen, by EGL: a display that is named but absent would only be complained about.
os.environ.pop("DISPLAY", None)

import numpy as np  # noqa: E402
import vtk  # noqa: E402
from vtk.util.numpy_support import numpy_to_vtk, vtk_to_numpy  # noqa: E402

if given.get("only_import"):
    print("true")
    sys.exit(0)

TYPES = {"uint8": vtk.VTK_UNSIGNED_CHAR, "float32": vtk.VTK_FLOAT}

# Without this the wheel's back end is Sequential: one core.
vtk.vtkSMPTools.SetBackend("STDThread")
vtk.vtkSMPTools.Initialize(given["threads"])
vtk.vtkObject.GlobalWarningDisplayOff()


class Clock:
    """Wall and processor time since the object was made, seconds."""

    def __init__(self) -> None:
        self._start = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self._start[0], time.process_time() - self._start[1]


def make_mapper(name: str) -> Any:
    """One sample per voxel and one ray per pixel, nothing adjusted by itself."""
    if name == "gpu":
        mapper = vtk.vtkOpenGLGPUVolumeRayCastMapper()
        mapper.UseJitteringOff()
    else:
        mapper = vtk.vtkFixedPointVolumeRayCastMapper()
        mapper.SetNumberOfThreads(given["threads"])
        mapper.SetInteractiveSampleDistance(1.0)
    mapper.SetAutoAdjustSampleDistances(0)
    mapper.SetSampleDistance(1.0)
    mapper.SetImageSampleDistance(1.0)
    mapper.SetBlendModeToComposite()
    return mapper


class Stage:
    """A window with one volume."""

    def __init__(self) -> None:
        self.mapper = make_mapper(given["mapper"])
        self.properties = vtk.vtkVolumeProperty()
        self.properties.SetInterpolationTypeToLinear()
        self.properties.ShadeOff()
        self.properties.SetScalarOpacityUnitDistance(1.0)
        self.actor = vtk.vtkVolume()
        self.actor.SetMapper(self.mapper)
        self.actor.SetProperty(self.properties)
        self.renderer = vtk.vtkRenderer()
        self.renderer.SetBackground(0.0, 0.0, 0.0)
        self.renderer.AddVolume(self.actor)
        self.window = vtk.vtkRenderWindow()
        self.window.SetOffScreenRendering(1)
        self.window.SetMultiSamples(0)
        self.window.AddRenderer(self.renderer)

    def load(self, volume: dict[str, Any]) -> dict[str, Any]:
        """Takes a volume `[z, y, x]` from a raw file; voxel centers lie at whole numbers."""
        nz, ny, nx = volume["shape"]
        values = np.fromfile(volume["file"], dtype=volume["dtype"])
        image = vtk.vtkImageData()
        image.SetDimensions(nx, ny, nz)
        image.GetPointData().SetScalars(numpy_to_vtk(values, deep=True, array_type=TYPES[volume["dtype"]]))
        self.mapper.SetInputData(image)
        return {"tuning": self.tuning()}

    def tuning(self) -> str:
        if given["mapper"] == "gpu":
            return f"VTK {vtk.VTK_VERSION}, GPU mapper in a {self.window.GetClassName()}"
        threads = vtk.vtkSMPTools.GetEstimatedNumberOfThreads()
        return f"VTK {vtk.VTK_VERSION}, fixed-point mapper, {vtk.vtkSMPTools.GetBackend()} with {threads} threads"

    def look(self, frame: dict[str, Any]) -> None:
        """Sets camera, size of the picture and transfer function."""
        self.window.SetSize(*frame["size"])
        camera = self.renderer.GetActiveCamera()
        camera.SetPosition(*frame["eye"])
        camera.SetFocalPoint(*frame["target"])
        camera.SetViewUp(*frame["up"])
        camera.SetViewAngle(frame["fov_y_degrees"])
        self.renderer.ResetCameraClippingRange()
        opacity = vtk.vtkPiecewiseFunction()
        opacity.AllowDuplicateScalarsOn()
        for value, alpha in frame["opacity"]:
            opacity.AddPoint(value, alpha)
        colors = vtk.vtkColorTransferFunction()
        low, high = frame["range"]
        for value, rgb in zip(np.linspace(low, high, len(frame["colors"])), frame["colors"], strict=True):
            colors.AddRGBPoint(value, *(c / 255 for c in rgb))
        self.properties.SetScalarOpacity(opacity)
        self.properties.SetColor(colors)

    def draw(self) -> tuple[float, float]:
        """Draws a frame; returns wall and processor time, seconds."""
        self.renderer.GetActiveCamera().Modified()
        clock = Clock()
        self.window.Render()
        if given["mapper"] == "gpu":
            self.window.GetRGBACharPixelData(0, 0, 0, 0, 0, vtk.vtkUnsignedCharArray())
            return clock.read()
        whole = clock.read()
        clock = Clock()
        self.mapper.DisplayRenderedImage(self.renderer, self.actor)
        shown = clock.read()
        return whole[0] - shown[0], whole[1] - shown[1]

    def save(self, file: str) -> None:
        """Returns the picture as 8-bit RGB, row 0 at the top."""
        grab = vtk.vtkWindowToImageFilter()
        grab.SetInput(self.window)
        grab.SetInputBufferTypeToRGB()
        grab.ReadFrontBufferOff()
        grab.Update()
        width, height = self.window.GetSize()
        pixels = vtk_to_numpy(grab.GetOutput().GetPointData().GetScalars()).reshape(height, width, 3)
        pixels[::-1].tofile(file)


stage = Stage()
seen: Any = None
for line in sys.stdin:
    job = json.loads(line)
    if "volume" in job:
        answer = stage.load(job["volume"])
        seen = None
    else:
        if job["frame"] != seen:
            stage.look(job["frame"])
            # Tables and textures are made with the first frame; nobody's are counted.
            stage.draw()
            seen = job["frame"]
        secs, cpu_secs = stage.draw()
        answer = {"secs": secs, "cpu_secs": cpu_secs}
        if "picture" in job:
            stage.save(job["picture"])
    print(json.dumps(answer), flush=True)
