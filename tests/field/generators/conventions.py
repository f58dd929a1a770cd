"""CF conventions: packing by every type of factor, fill values of other types, unsigned integers, dimensions without names."""

import pathlib

import h5py
import netCDF4
import numpy as np

from .netcdf import stored


def write(folder: pathlib.Path) -> None:
    """Writes all files of this module."""
    packed(folder / "packed.nc")
    named_missing(folder / "named_missing.nc")
    for format in ("NETCDF4", "NETCDF3_64BIT_DATA"):
        turned(folder / f"turned_{format.lower()}.nc", format)
    without_dimensions(folder / "without_dimensions.nc")
    grown(folder / "grown.nc")


def packed(path):
    """Scale and offset in every combination of types that writers use."""
    types = {"i1": np.int8, "i2": np.int16, "i4": np.int32, "i8": np.int64, "u1": np.uint8, "f4": np.float32, "f8": np.float64}
    factors = {"f4": np.float32, "f8": np.float64}
    values = [1, 2, 7, 100, -9]
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 5)
        for name, dtype in types.items():
            plain = np.abs(values) if name == "u1" else values
            fill = dtype(100)
            for kind, factor in factors.items():
                attributes = {
                    "scale": {"scale_factor": factor(0.1)},
                    "offset": {"add_offset": factor(273.15)},
                    "both": {"scale_factor": factor(0.01), "add_offset": factor(273.15)},
                }
                for what, said in attributes.items():
                    stored(file, f"{name}_{what}_{kind}", name, ("x",), plain, **said)
                    stored(file, f"{name}_{what}_{kind}_filled", name, ("x",), plain, fill, **said)
            mixed = {"scale_factor": np.float32(0.01), "add_offset": np.float64(273.15)}
            stored(file, f"{name}_mixed", name, ("x",), plain, fill, **mixed)
            stored(file, f"{name}_neutral", name, ("x",), plain, fill, scale_factor=1.0, add_offset=0.0)
            if name.startswith(("i", "u")):
                stored(file, f"{name}_by_integer", name, ("x",), plain, scale_factor=np.int32(3))
        for kind, factor in factors.items():
            stored(file, f"nan_filled_{kind}", "f4", ("x",), values, np.float32(np.nan), scale_factor=factor(0.1),
                   add_offset=factor(0.3))


def named_missing(path):
    """Values that are missing by attributes of another type, of several values, of no number, or by none."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 4)
        defaults = {dtype: netCDF4.default_fillvals[dtype] for dtype in ("i1", "u1", "i2", "i4", "i8", "u8", "f4", "f8")}
        for dtype, fill in defaults.items():
            stored(file, f"unnamed_{dtype}", dtype, ("x",), np.array([fill, 1, 2, 3], dtype))
            stored(file, f"named_{dtype}", dtype, ("x",), np.array([fill, 1, 2, 3], dtype), missing_value=np.array(1, dtype))
        big = 2**60
        stored(file, "exact", "i8", ("x",), [big, big + 1, big - 1, 3])
        stored(file, "neighbors", "i8", ("x",), [big, big + 1, big - 2048, 3], np.int64(big))
        stored(file, "wide", "i1", ("x",), [44, 1, 2, 3], missing_value=np.int16(300))
        stored(file, "fraction", "i2", ("x",), [-999, 1, 2, 3], missing_value=np.float64(-999.5))
        stored(file, "whole", "i2", ("x",), [-999, 1, 2, 3], missing_value=np.float64(-999))
        stored(file, "nan_of_integers", "i2", ("x",), [0, 1, 2, 3], missing_value=np.float32(np.nan))
        stored(file, "text_of_integers", "i2", ("x",), [-999, 1, 2, 3], missing_value="-999")
        stored(file, "mixed", "f4", ("x",), [-999, np.nan, 2, 3], missing_value=np.array([np.nan, -999, 2], "f4"))
        stored(file, "bounds", "f4", ("x",), [-5, 0, 50, 200], valid_min=np.float32(0), valid_max=np.float32(100))
        stored(file, "infinite", "f8", ("x",), [np.inf, -np.inf, 2, 3], np.inf)


def turned(path, format):
    """`_Unsigned` both ways, with what it turns and what it does not, for every size."""
    with netCDF4.Dataset(path, "w", format=format) as file:
        file.createDimension("x", 6)
        for size in (1, 2, 4, 8):
            bits = 8 * size
            low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
            signed = np.array([-1, -2, low, 0, 1, high], f"i{size}")
            unsigned = signed.view(f"u{size}")
            fill = signed.dtype.type(-1)
            scale = {"scale_factor": np.float64(0.5)}
            name = f"i{size}"
            stored(file, name, name, ("x",), signed, _Unsigned="true")
            stored(file, f"{name}_filled", name, ("x",), signed, fill, _Unsigned="true")
            stored(file, f"{name}_packed", name, ("x",), signed, fill, _Unsigned="true", **scale)
            stored(file, f"{name}_missing", name, ("x",), signed, missing_value=fill, _Unsigned="true")
            stored(file, f"{name}_both", name, ("x",), signed, fill, missing_value=fill, _Unsigned="true")
            stored(file, f"{name}_false", name, ("x",), signed, fill, _Unsigned="false")
            if format != "NETCDF4" and size == 8:
                continue
            name, top = f"u{size}", unsigned.dtype.type(2 ** (bits - 1))
            stored(file, name, name, ("x",), unsigned, _Unsigned="false")
            stored(file, f"{name}_filled", name, ("x",), unsigned, top, _Unsigned="false")
            stored(file, f"{name}_packed", name, ("x",), unsigned, top, _Unsigned="false", **scale)
            stored(file, f"{name}_true", name, ("x",), unsigned, top, _Unsigned="true")
        stored(file, "floats", "f4", ("x",), [0, 1, 2, 3, 4, 5], np.float32(1), _Unsigned="true")


def without_dimensions(path):
    """Data sets that another program added to a NetCDF file: their axes have no names but those that netCDF gives them."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createVariable("named", "f4", ("x",))[:] = [1, 2, 3]
    with h5py.File(path, "r+") as file:
        file["square"] = np.arange(16.0).reshape(4, 4)
        file["table"] = np.arange(8.0).reshape(4, 2)


def grown(path):
    """Several unlimited dimensions, not only the first, along which variables have different lengths."""
    with netCDF4.Dataset(path, "w") as file:
        for name in ("a", "b"):
            file.createDimension(name, None)
        file.createDimension("x", 2)
        file.createVariable("full", "f4", ("a", "b", "x"))[:3, :4] = np.arange(24).reshape(3, 4, 2)
        file.createVariable("part", "i4", ("b", "x"), fill_value=np.int32(-5))[:2] = [[1, 2], [3, 4]]
        file.createVariable("b", "f8", ("b",))[:1] = [10]
        file.createVariable("packed", "i2", ("a",), zlib=True)[:2] = [5, 6]
