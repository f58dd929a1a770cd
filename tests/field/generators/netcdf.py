"""NetCDF-3 and NetCDF-4: packing, missing values, unsigned bytes, records, groups, times, odd coordinates and names."""

import pathlib

import netCDF4
import numpy as np

DIMENSION_NAMES_OF_FILES = ("run #3", "50% done", "a b", "q?", "ü", "x[1]", "a&b=c")


def write(folder: pathlib.Path) -> None:
    """Writes all files of this module."""
    repeated_dimension(folder / "repeated_dimension.nc")
    unsigned_bytes(folder / "unsigned_bytes.nc")
    signed_bytes(folder / "signed_bytes.nc")
    missing_values(folder / "missing_values.nc")
    for variables in (1, 2):
        records(folder / f"records_{variables}.nc", variables)
    cut_padding(folder / "records_2.nc", folder / "records_cut.nc")
    wide_integers(folder / "records_cdf5.nc")
    groups(folder / "groups.nc")
    only_groups(folder / "only_groups.nc")
    times(folder / "times.nc")
    for format in ("NETCDF4", "NETCDF3_CLASSIC"):
        no_records(folder / f"no_records_{format.lower()}.nc", format)
    odd_coordinates(folder / "odd_coordinates.nc")
    shorter_than_its_dimension(folder / "shorter.nc")
    bad_single_coordinates(folder / "single_coordinates.nc")
    for name in DIMENSION_NAMES_OF_FILES:
        with netCDF4.Dataset(folder / f"{name}.nc", "w") as file:
            file.createDimension("x", 3)
            file.createVariable("v", "i4", ("x",))[:] = [1, 2, 3]


def stored(file, name, dtype, dimensions, values, fill=None, **attributes):
    """Writes values as they are to be stored, whatever the attributes say."""
    variable = file.createVariable(name, dtype, dimensions, fill_value=fill)
    variable.setncatts(attributes)
    variable.set_auto_maskandscale(False)
    variable[:] = np.asarray(values, dtype)
    return variable


def repeated_dimension(path):
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("band", 4)
        file.createDimension("time", 2)
        file.createVariable("band", "f8", ("band",))[:] = [10, 20, 30, 40]
        file.createVariable("covariance", "f4", ("time", "band", "band"))[:] = np.arange(32).reshape(2, 4, 4)


def unsigned_bytes(path):
    """Signed bytes that mean unsigned ones, as NetCDF-3 writers say it."""
    values = [-1, -2, -128, 0, 1, 127]
    packed = {"scale_factor": np.float32(0.5), "add_offset": np.float32(10)}
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 6)
        fill = np.int8(-1)
        stored(file, "plain", "i1", ("x",), values, fill, _Unsigned="true")
        stored(file, "packed", "i1", ("x",), values, fill, _Unsigned="true", **packed)
        stored(file, "in_range", "i1", ("x",), values, fill, _Unsigned="true", valid_range=np.array([0, -2], "i1"))
        stored(file, "said_signed", "i1", ("x",), values, fill, _Unsigned="false")
        stored(file, "capital", "i1", ("x",), values, fill, _Unsigned="True")
        stored(file, "short", "i2", ("x",), [-1, -2, -32768, 0, 1, 5], np.int16(-1), _Unsigned="true")


def signed_bytes(path):
    """Unsigned bytes that mean signed ones, as OPeNDAP servers say it."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 6)
        stored(file, "packed", "u1", ("x",), [255, 254, 128, 0, 1, 127], np.uint8(128), _Unsigned="false",
               scale_factor=np.float32(0.5))
        stored(file, "plain", "u1", ("x",), [255, 254, 128, 0, 1, 127], np.uint8(128), _Unsigned="false")


def missing_values(path):
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 5)

        def variable(name, dtype, values, fill=None, **attributes):
            stored(file, name, dtype, ("x",), values, fill, **attributes)

        f4, f8 = np.float32, np.float64
        variable("both_differ", "f4", [-999, -99, 1, 2, 3], f4(-999), missing_value=f4(-99))
        variable("several", "i2", [-1, -2, 1, 2, 3], np.int16(-1), missing_value=np.array([-2, 3], "i2"))
        variable("double", "f4", [1e20, -999.99, 1, 2, 3], missing_value=f8(1e20))
        variable("double_and_fill", "f4", [-999.99, -999.99, 1, 2, 3], f4(-999.99), missing_value=f8(-999.99))
        variable("text", "f4", [-999, -99, 1, 2, 3], missing_value="-999.")
        variable("scale_array", "i2", [1, 2, 3, 4, 5], np.int16(5), scale_factor=np.array([0.1], "f4"),
                 add_offset=np.array([2.0], "f4"))
        variable("nan_both", "f4", [np.nan, 1, 2, 3, 4], f4(np.nan), missing_value=f4(np.nan))
        variable("float_on_packed", "i2", [-32768, -1, 1, 2, 3], np.int16(-32768), missing_value=f4(-32768),
                 scale_factor=f4(0.01), add_offset=f4(273.15))
        variable("range", "i2", [-5, 0, 50, 100, 200], valid_range=np.array([0, 100], "i2"), scale_factor=f8(0.1))
        variable("scale_f4", "i2", [1, 2, 3, 4, -9], np.int16(-9), scale_factor=f4(0.1))
        variable("scale_f8", "i2", [1, 2, 3, 4, -9], np.int16(-9), scale_factor=f8(0.1))
        variable("offset_only", "u1", [1, 2, 3, 4, 255], np.uint8(255), add_offset=f4(100))
        variable("scaled_float", "f4", [1, 2, 3, 4, -9], f4(-9), scale_factor=f8(0.1))
        variable("scaled_int32", "i4", [1, 2, 3, 2**30, -9], np.int32(-9), scale_factor=f4(0.1))
        variable("i64", "i8", [2**60 + 1, -(2**62) - 1, 5, 6, 7], np.int64(5))
        variable("u64", "u8", [2**63 + 1, 2**64 - 2, 5, 6, 7], np.uint64(2**64 - 1))
        variable("i64_no_fill", "i8", [2**60 + 1, -(2**62) - 1, 5, 6, 7])
        variable("minus_zero", "f4", [-0.0, 0.0, 1, np.inf, -np.inf], f4(-0.0))


def records(path, variables):
    """One record variable of odd size is not padded; two are."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createVariable("b", "i1", ("time", "x"))[:] = np.arange(12, dtype="i1").reshape(4, 3)
        if variables == 2:
            file.createVariable("s", "i2", ("time",))[:] = np.arange(4)


def cut_padding(source, path):
    """The last record's padding is missing at the end of the file."""
    path.write_bytes(source.read_bytes()[:-2])


def wide_integers(path):
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_DATA") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createVariable("u8", "u8", ("time", "x"))[:] = np.arange(6, dtype="u8").reshape(2, 3) + 2**63
        file.createVariable("u1", "u1", ("time", "x"))[:] = np.arange(6, dtype="u1").reshape(2, 3) + 200


def groups(path):
    """Groups that inherit dimensions, and one that has another `x` of its own."""
    with netCDF4.Dataset(path, "w") as file:
        file.title = "root"
        file.createDimension("time", 2)
        file.createDimension("x", 3)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        time[:] = [0, 1]
        file.createVariable("x", "f8", ("x",))[:] = [10, 20, 30]
        file.createVariable("outer", "f4", ("time", "x"))[:] = np.arange(6).reshape(2, 3)
        product = file.createGroup("PRODUCT")
        product.note = "inner"
        product.createDimension("layer", 4)
        product.createDimension("x", 5)
        no2 = product.createVariable("no2", "f4", ("time", "layer", "x"))
        no2[:] = np.arange(40).reshape(2, 4, 5)
        no2.coordinates = "/x /time"
        product.createVariable("layer", "i4", ("layer",))[:] = [1, 2, 3, 4]
        product.createVariable("x", "f8", ("x",))[:] = [1, 2, 3, 4, 5]
        support = product.createGroup("SUPPORT_DATA")
        support.createVariable("amf", "f4", ("time", "layer"))[:] = np.arange(8).reshape(2, 4)


def only_groups(path):
    with netCDF4.Dataset(path, "w") as file:
        file.title = "nothing at the root"
        group = file.createGroup("a")
        group.createDimension("x", 2)
        group.createVariable("v", "i4", ("x",))[:] = [1, 2]


def times(path):
    """Reference dates, calendars and units of time as they are found."""
    cases = {
        "year_zero": ("days since 0000-01-01", "standard", [700000.0, 700031.0, 700059.0, 700090.0]),
        "noleap": ("days since 0001-01-01 00:00:00", "noleap", [0, 31, 59, 90]),
        "days360": ("days since 1850-01-01", "360_day", [0, 31, 59, 90]),
        "months": ("months since 1955-01-01 00:00:00", "standard", [0, 31, 59, 90]),
        "short_date": ("days since 1-1-1 00:00:0.0", "standard", [700000.0, 700031.0, 700059.0, 700090.0]),
        "zone": ("hours since 2000-01-01T00:00:00Z", "proleptic_gregorian", [0, 31, 59, 90]),
        "milliseconds": ("milliseconds since 1970-01-01", "gregorian", [0, 31, 59, 90]),
    }
    with netCDF4.Dataset(path, "w") as file:
        for name, (units, calendar, values) in cases.items():
            file.createDimension(name, 4)
            axis = file.createVariable(name, "f8", (name,))
            axis.units, axis.calendar = units, calendar
            axis[:] = values
            file.createVariable(f"v_{name}", "f4", (name,))[:] = np.arange(4)
        file.createDimension("lead", 3)
        lead = file.createVariable("lead", "i4", ("lead",))
        lead.units = "days"
        lead[:] = [1, 2, 3]
        file.createVariable("v_lead", "f4", ("lead",))[:] = [1, 2, 3]


def no_records(path, format):
    """An unlimited dimension of which nothing was written, and a scalar."""
    with netCDF4.Dataset(path, "w", format=format) as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createVariable("time", "f8", ("time",)).units = "days since 2000-01-01"
        file.createVariable("v", "f4", ("time", "x"))
        file.createVariable("x", "f4", ("x",))[:] = [1, 2, 3]
        crs = file.createVariable("crs", "i4", ())
        crs.grid_mapping_name = "latitude_longitude"
        crs[...] = 7


def odd_coordinates(path):
    """Coordinate variables of two axes and of text: their dimensions keep their names all the same."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("depth", 3)
        file.createDimension("x", 2)
        file.createDimension("length", 4)
        file.createVariable("depth", "f4", ("depth", "x"))[:] = np.arange(6).reshape(3, 2)
        file.createVariable("t", "f4", ("depth", "x"))[:] = np.arange(6).reshape(3, 2) + 100
        letters = netCDF4.stringtochar(np.array(["ab", "cd"], "S4"))
        file.createVariable("x", "S1", ("x", "length"))[:] = letters
        file.createVariable("station", str, ("x",))[:] = np.array(["st1", "st2"], object)


def shorter_than_its_dimension(path):
    """Variables along an unlimited dimension that have fewer values than it."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 2)
        file.createVariable("long", "f4", ("time",))[:] = np.arange(5)
        file.createVariable("short", "i2", ("time", "x"), fill_value=np.int16(-7))[:2] = [[1, 2], [3, 4]]
        file.createVariable("never", "f8", ("time", "x"))


def bad_single_coordinates(path):
    """Axes of one element whose coordinate is missing, no number, infinite or outside its range."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("y", 2)
        file.createDimension("x", 3)
        for name, value in (("nan", np.nan), ("infinite", np.inf), ("filled", -999.0), ("outside", 5.0)):
            file.createDimension(name, 1)
            axis = stored(file, name, "f8", (name,), [value], -999.0)
            if name == "outside":
                axis.valid_range = np.array([0.0, 1.0])
            file.createVariable(f"v_{name}", "f4", (name, "y", "x"))[:] = np.arange(6).reshape(1, 2, 3)
