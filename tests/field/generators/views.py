"""Files that are looked at: as xarray writes them by default, maps, thin stacks, outliers, labels, colors, uneven axes."""

import pathlib
import warnings

import netCDF4
import numpy as np
import xarray as xr
import zarr

# Axis sizes of the volumes, [z, y, x].
SHAPE = (30, 40, 50)


def write(folder: pathlib.Path) -> None:
    """Writes all files of this module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zarr-python: consolidated metadata are not specified for v3
        by_xarray(folder)
        series(folder)
        maps(folder)
        pressure_levels(folder / "pressure_levels.nc")
        uneven_heights(folder / "uneven_heights.nc")
        curvilinear(folder / "curvilinear.nc")
        ranges(folder)
        images(folder)
        labels(folder)
        channels(folder / "channels.ome.zarr")


def ball(shape=SHAPE, radius=10.0) -> np.ndarray:
    """1 within the radius of the middle, falling to 0 outside; float32."""
    places = np.indices(shape) - (np.array(shape)[:, None, None, None] - 1) / 2
    return np.clip((radius + 4 - np.sqrt((places**2).sum(0))) / 6, 0, 1).astype("f4")


def by_xarray(folder):
    """Floating-point variables get the fill value NaN where nothing is said."""
    holes = ball()
    holes[:, :5] = np.nan
    coordinates = {name: np.arange(n, dtype="f8") for name, n in zip("zyx", SHAPE, strict=True)}
    ds = xr.Dataset({"q": (("z", "y", "x"), holes, {"units": "kg m-3"})}, coords=coordinates)
    ds.to_netcdf(folder / "xarray_default.nc")
    ds.to_netcdf(folder / "xarray_netcdf3.nc", format="NETCDF3_64BIT")
    for format in (2, 3):
        ds.to_zarr(folder / f"xarray_v{format}.zarr", zarr_format=format)
    steps = np.stack([ball() * 10**i for i in range(4)])
    times = np.datetime64("2001-01-01") + np.arange(4) * np.timedelta64(6, "h")
    grows = xr.Dataset({"q": (("time", "z", "y", "x"), steps)}, coords={"time": times, **coordinates})
    grows.to_netcdf(folder / "xarray_time.nc")


def series(folder):
    """Three years of days in a file each, each with a reference date of its own."""
    days = np.arange(365)
    season = 280 + 10 * np.sin(days / 58)[:, None, None] + 20 * np.cos(np.linspace(-1.5, 1.5, 12))[None, :, None]
    values = np.broadcast_to(season, (365, 12, 24)).astype("f4")
    for year in (2001, 2002, 2003):
        coordinates = {"time": np.datetime64(f"{year}-01-01") + days * np.timedelta64(1, "D"),
                       "lat": np.linspace(-90, 90, 12), "lon": np.arange(0, 360, 15.0)}
        ds = xr.Dataset({"tas": (("time", "lat", "lon"), values + year, {"units": "K"})}, coords=coordinates)
        ds.to_netcdf(folder / f"tas_{year}.nc")


def on_earth(path, latitudes, longitudes, levels, field, fill=None):
    """A NetCDF file of a field over latitude and longitude, and over `levels` = (name, units, positive, values)."""
    with netCDF4.Dataset(path, "w") as file:
        dimensions = []
        if levels:
            name, units, positive, values = levels
            file.createDimension(name, len(values))
            axis = file.createVariable(name, "f8", (name,))
            axis.units, axis.axis, axis.positive = units, "Z", positive
            axis[:] = values
            dimensions.append(name)
        for name, units, values in (("lat", "degrees_north", latitudes), ("lon", "degrees_east", longitudes)):
            file.createDimension(name, len(values))
            axis = file.createVariable(name, "f8", (name,))
            axis.units = units
            axis[:] = values
            dimensions.append(name)
        variable = file.createVariable("t", "f4", dimensions, fill_value=fill)
        variable.units = "K"
        variable[:] = field


def maps(folder):
    """A map of a quarter degree, and three levels of it."""
    latitudes, longitudes = np.linspace(90, -90, 361), np.arange(0, 360, 0.5)
    field = 250 + 40 * np.cos(np.radians(latitudes))[:, None] ** 2 + 3 * np.cos(3 * np.radians(longitudes))[None]
    field = field.astype("f4")
    on_earth(folder / "map.nc", latitudes, longitudes, None, field)
    on_earth(folder / "map_south_first.nc", latitudes[::-1], longitudes, None, field[::-1])
    levels = ("level", "hPa", "down", [850.0, 500.0, 200.0])
    on_earth(folder / "three_levels.nc", latitudes, longitudes, levels, np.stack([field, field - 30, field - 60]))


def pressure_levels(path):
    levels = np.array([1000, 925, 850, 700, 500, 300, 200, 100, 50, 20, 10, 5, 2, 1.0])
    latitudes, longitudes = np.linspace(90, -90, 46), np.arange(0, 360, 4.0)
    field = np.full((len(levels), 46, 90), 10, "f4")
    field[4, 10:20, 5:25] = 90
    on_earth(path, latitudes, longitudes, ("plev", "hPa", "down", levels), field, fill=np.float32(-1e34))


def uneven_heights(path):
    """A ball in meters on levels that lie further and further apart."""
    heights = np.array([0, 20, 45, 75, 110, 150, 200, 260, 330, 420, 530, 660, 820, 1000, 1220, 1480, 1800.0])
    meters = np.arange(40) * 100.0
    z, y, x = np.meshgrid(heights, meters, meters, indexing="ij")
    inside = (np.sqrt((z - 1000) ** 2 + (y - 2000) ** 2 + (x - 2000) ** 2) < 500).astype("f4")
    coordinates = {"z": ("z", heights, {"units": "m", "positive": "up"}), "y": ("y", meters, {"units": "m"}),
                   "x": ("x", meters, {"units": "m"})}
    xr.Dataset({"w": (("z", "y", "x"), inside, {"units": "m s-1"})}, coords=coordinates).to_netcdf(path)


def curvilinear(path):
    rows, columns = np.mgrid[0:80, 0:100]
    angle, radius = columns / 100 * np.pi, 10 + rows * 0.5
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("y", 80)
        file.createDimension("x", 100)
        for name, units, values in (("lat", "degrees_north", 80 - radius * np.sin(angle)),
                                    ("lon", "degrees_east", radius * np.cos(angle))):
            place = file.createVariable(name, "f8", ("y", "x"))
            place.units = units
            place[:] = values
        sst = file.createVariable("sst", "f4", ("y", "x"))
        sst.units, sst.coordinates = "degC", "lat lon"
        sst[:] = rows


def ranges(folder):
    """Values of which few, or most, lie far from what is worth seeing."""
    random = np.random.default_rng(5)
    clean = ball() + (0.05 * random.random(SHAPE)).astype("f4")
    with_one = clean.copy()
    with_one[3, 4, 5] = 1e30
    np.save(folder / "outlier.npy", with_one)
    several = clean.copy()
    several[3:6, 4, 5] = [-9999, 3e38, 1e20]
    np.save(folder / "outliers.npy", several)
    padded = np.where(ball(radius=14) > 0, clean, -9999).astype("f4")
    np.save(folder / "padded.npy", padded)
    np.save(folder / "density.npy", (np.exp(random.standard_normal(SHAPE) * 3) * 1e-28).astype("f4"))
    np.save(folder / "all_nan.npy", np.full((8, 9, 10), np.nan, "f4"))
    np.save(folder / "infinite.npy", np.where(random.random(SHAPE) < 0.001, np.inf, clean).astype("f4"))
    np.save(folder / "constant.npy", np.full((8, 9, 10), 7.5, "f4"))
    np.save(folder / "long.npy", np.repeat(np.sin(np.arange(100_000) / 5000).astype("f4"), 16).reshape(-1, 4, 4))
    np.save(folder / "line.npy", np.sin(np.arange(1000) / 50))


def images(folder):
    rows, columns = np.mgrid[0:300, 0:500]
    waves = (128 + 100 * np.sin(columns / 20) * np.cos(rows / 30)).astype("u1")
    waves[:60, :60] = 255
    np.save(folder / "image.npy", waves)
    np.save(folder / "one_slice.npy", waves[None])
    np.save(folder / "thin_last.npy", np.ascontiguousarray(waves[..., None]))
    np.save(folder / "fortran.npy", np.asfortranarray(waves))
    letter = np.zeros((60, 160), "u1")
    letter[8:52, 20:28] = letter[8:16, 20:70] = letter[26:34, 20:55] = 255
    np.save(folder / "letter_f.npy", letter)  # row 0 is on top, the arms point right
    colors = np.zeros((*SHAPE, 3), "u1")
    colors[:, :, :16, 0] = colors[:, :, 16:33, 1] = colors[:, :, 33:, 2] = 255
    np.save(folder / "rgb.npy", colors)
    np.save(folder / "rgba.npy", np.concatenate([colors, np.full((*SHAPE, 1), 255, "u1")], -1))


def multiscale(name_of_axes, scale):
    axes = [{"name": n, "type": "channel"} if n == "c" else {"name": n, "type": "space", "unit": "micrometer"}
            for n in name_of_axes]
    return [{"version": "0.4", "axes": axes, "datasets": [
        {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": scale}]}]}]


def labels(folder):
    """Nine cells, some with ids beyond what 32 bits or a double's mantissa hold."""
    ids = [1, 2, 2**32 + 1, 2**33 + 1, 2**40, 2**40 + 1, 2**53, 2**53 + 1, 2**63 + 5]
    cells = np.zeros((20, 60, 60), "u8")
    for place, number in enumerate(ids):
        row, column = divmod(place, 3)
        cells[4:16, 3 + row * 19 : 20 + row * 19, 3 + column * 19 : 20 + column * 19] = number
    np.save(folder / "labels_u64.npy", cells)
    np.save(folder / "mask.npy", (cells > 0).astype("u1"))
    group = zarr.open_group(folder / "labels.ome.zarr", mode="w", zarr_format=2)
    keys = {"name": "v2", "separator": "/"}
    group.create_array("0", shape=cells.shape, chunks=cells.shape, dtype="u1", chunk_key_encoding=keys)[:] = (cells > 0) * 200
    group.attrs["multiscales"] = multiscale("zyx", [1, 1, 1])
    found = group.create_group("labels")
    found.attrs["labels"] = ["cells"]
    of_cells = found.create_group("cells")
    of_cells.create_array("0", shape=cells.shape, chunks=cells.shape, dtype="u8", chunk_key_encoding=keys)[:] = cells
    of_cells.attrs["multiscales"] = multiscale("zyx", [1, 1, 1])
    of_cells.attrs["image-label"] = {"version": "0.4", "colors": [{"label-value": 1, "rgba": [255, 0, 0, 255]}]}


def channels(path):
    values = np.zeros((3, 16, 64, 64), "u2")
    values[0, :, 10:30, 10:30] = 900
    values[1, :, 30:50, 30:50] = 9000
    values[2, 4:12, 20:40, 20:40] = 300
    group = zarr.open_group(path, mode="w", zarr_format=2)
    keys = {"name": "v2", "separator": "/"}
    group.create_array("0", shape=values.shape, chunks=(1, 16, 64, 64), dtype="u2", chunk_key_encoding=keys)[:] = values
    group.attrs["multiscales"] = multiscale("czyx", [1, 2, 0.5, 0.5])
    group.attrs["omero"] = {"channels": [
        {"label": name, "color": color, "window": {"start": 0, "end": end, "min": 0, "max": 65535}}
        for name, color, end in (("DAPI", "0000FF", 1000), ("GFP", "00FF00", 10000), ("RFP", "FF0000", 400))]}
