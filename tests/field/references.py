"""Values that the field's own libraries read, which every interface of Corridor must give."""

import pathlib
import warnings
from dataclasses import dataclass

import h5py
import hdf5plugin  # before netCDF4, whose wheel registers other filters under the same numbers  # noqa: F401, I001
import netCDF4
import nibabel
import nrrd
import numpy as np
import xarray as xr
import zarr
from xarray.backends.zarr import FillValueCoder

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
# Attributes that are the library's own bookkeeping.
BOOKKEEPING = {"DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict",
               "_NCProperties"}


@dataclass
class Variable:
    """One variable as its library reads it; values in C order, in the host's byte order.

    `decoded` is None where the library has no decoded values of its own; `dims` where it has no names.
    """

    name: str
    stored: np.ndarray
    decoded: np.ndarray | None = None
    dims: tuple[str, ...] | None = None
    attributes: dict | None = None


def library_of(path: pathlib.Path) -> str | None:
    """Returns the library that reads this file; None if the file is not a data set by itself."""
    name = path.name.lower()
    if path.is_dir() or name.endswith(".zip"):
        return "zarr"
    if name.endswith((".nhdr", ".nrrd")):
        return "pynrrd"
    if name.endswith((".nii", ".nii.gz", ".hdr", ".hdr.gz", ".mgh", ".mgz")):
        return "nibabel"
    if name.endswith(".npy"):
        return "numpy"
    if name.endswith((".nc", ".cdf")):
        return "netCDF4"
    if name.endswith((".h5", ".hdf5", ".nxs")):
        return "h5py"
    return None


def variables(path: pathlib.Path) -> tuple[list[Variable], dict[str, str]]:
    """Returns the variables of a file, and those that the library cannot read, with its reason."""
    readers = {"zarr": _zarr, "pynrrd": _nrrd, "nibabel": _nifti, "numpy": _npy, "netCDF4": _netcdf, "h5py": _hdf5}
    library = library_of(path)
    assert library, f"no library reads {path.name}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, others = readers[library](path)
    return [part for variable in found for part in _parts(variable)], others


def _parts(variable: Variable) -> list[Variable]:
    """Complex numbers and structures are arrays part by part."""
    values = variable.stored
    if values.dtype.kind == "c":
        parts = {"r": values.real, "i": values.imag}
    elif values.dtype.names:
        parts = {name: values[name] for name in values.dtype.names}
    else:
        return [variable]
    return [Variable(f"{variable.name}.{name}", np.ascontiguousarray(part).reshape(part.shape), None,
                     variable.dims, variable.attributes) for name, part in parts.items()]


def native(values) -> np.ndarray:
    """Values converted to the host's byte order."""
    values = np.asanyarray(values)
    return values.astype(values.dtype.newbyteorder("=")) if values.dtype.byteorder in "<>" else values


def groups_of(path: pathlib.Path) -> list[str]:
    """Paths of the groups of a NetCDF file or a Zarr store, the root first."""
    if library_of(path) == "zarr":
        members = zarr.open_group(path, mode="r").members(max_depth=None)
        return ["", *sorted(name for name, item in members if isinstance(item, zarr.Group))]
    found = []

    def walk(group, prefix):
        found.append(prefix.strip("/"))
        for name, child in group.groups.items():
            walk(child, f"{prefix}/{name}")

    with netCDF4.Dataset(path) as file:
        walk(file, "")
    return found


def _by_xarray(path, group: str) -> tuple[xr.Dataset, xr.Dataset]:
    """A group's stored values, and what xarray decodes of them by scale, offset and missing values (times stay numbers)."""
    engine = {"zarr": "zarr", "netCDF4": "netcdf4"}[library_of(path)]
    options = {"engine": engine, "group": group or None, "decode_times": False, "decode_timedelta": False,
               "decode_coords": False, "concat_characters": False}
    return (xr.open_dataset(path, mask_and_scale=False, **options), xr.open_dataset(path, mask_and_scale=True, **options))


def is_opened_by_xarray(path: pathlib.Path, group: str) -> bool:
    """True if xarray's own engine opens this group."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stored, decoded = _by_xarray(path, group)
    except Exception:
        return False
    with stored, decoded:
        return True


def _netcdf(path):
    found = []
    for group in groups_of(path):
        try:
            stored, decoded = _by_xarray(path, group)
        except Exception:  # xarray refuses some files as a whole, such as those with one dimension twice
            return _netcdf4_alone(path)
        with stored, decoded:
            for name, variable in stored.variables.items():
                attributes = {k: v for k, v in variable.attrs.items() if k not in BOOKKEEPING}
                found.append(Variable(f"{group}/{name}".strip("/"), native(variable.values),
                                      native(decoded.variables[name].values), tuple(map(str, variable.dims)), attributes))
    return found, {}


def _netcdf4_alone(path):
    found, others = [], {}

    def walk(group, prefix):
        for name, variable in group.variables.items():
            variable.set_auto_chartostring(False)
            try:
                variable.set_auto_maskandscale(False)
                stored = np.asarray(variable[...])
                variable.set_auto_maskandscale(True)
                decoded = variable[...]
            except Exception as error:
                others[prefix + name] = str(error)
                continue
            if np.ma.isMaskedArray(decoded) and decoded.mask.any():
                decoded = np.ma.filled(decoded.astype("f8"), np.nan)
            attributes = {k: variable.getncattr(k) for k in variable.ncattrs()}
            found.append(Variable(prefix + name, native(stored), native(np.asarray(decoded)), variable.dimensions, attributes))
        for name, child in group.groups.items():
            walk(child, f"{prefix}{name}/")

    with netCDF4.Dataset(path) as file:
        walk(file, "")
    return found, others


def _decoded_by_xarray(path) -> dict[str, np.ndarray]:
    """Values that xarray decodes from the groups of a store."""
    found = {}
    for group in groups_of(path):
        try:
            stored, decoded = _by_xarray(path, group)
        except Exception:  # of arrays without names of dimensions, for instance
            continue
        with stored, decoded:
            for name, variable in decoded.variables.items():
                found[f"{group}/{name}".strip("/")] = native(variable.values)
    return found


def _zarr(path):
    found, others = [], {}
    decoded = _decoded_by_xarray(path)
    for name, item in zarr.open_group(path, mode="r").members(max_depth=None):
        if not isinstance(item, zarr.Array):
            continue
        try:
            values = np.asarray(item[...])
        except Exception as error:
            others[name] = str(error)
            continue
        dims = item.metadata.dimension_names if item.metadata.zarr_format == 3 else item.attrs.get("_ARRAY_DIMENSIONS")
        named = tuple(dims) if dims and all(dims) else None
        attributes = {k: v for k, v in item.attrs.asdict().items() if k != "_ARRAY_DIMENSIONS"}
        if values.dtype.kind in "mM":  # times are numbers, with what they count from among the attributes
            values, decoded[name] = values.view("i8"), None
        fill = attributes.get("_FillValue")
        if isinstance(fill, str) and values.dtype.kind == "f":  # as xarray writes it
            attributes["_FillValue"] = FillValueCoder.decode(fill, values.dtype)
        found.append(Variable(name, native(values), decoded.get(name), named, attributes))
    return found, others


def _hdf5(path):
    found, others = [], {}
    done: dict = {}

    def visit(group, prefix):
        for name in group:
            full = f"{prefix}{name}"
            try:
                item = group[name]
            except Exception as error:
                others[full] = str(error)
                continue
            if isinstance(item, h5py.Group):
                if item.id not in done:
                    done[item.id] = full
                    visit(item, f"{full}/")
            elif isinstance(item, h5py.Dataset):
                try:
                    values = item.asstr()[()] if h5py.check_string_dtype(item.dtype) else item[()]
                    assert item.shape is not None, "it has no values (a null dataspace)"
                except Exception as error:
                    others[full] = str(error)
                    continue
                values = np.asarray(values)
                found.append(Variable(full, native(values.reshape(item.shape)) if item.shape == () else native(values)))

    with h5py.File(path) as file:
        visit(file, "")
    return found, others


def _nifti(path):
    image = nibabel.load(path)
    unscaled = image.dataobj.get_unscaled() if hasattr(image.dataobj, "get_unscaled") else image.dataobj
    stored = np.asanyarray(unscaled).T
    if stored.dtype.names:  # colors: one more axis, last
        return [Variable("", np.stack([stored[c] for c in stored.dtype.names], axis=-1))], {}
    if stored.dtype.kind == "c":
        return [Variable("image", native(stored))], {}
    decoded = np.asanyarray(image.dataobj).T
    return [Variable("", native(stored), native(decoded))], {}


def _nrrd(path):
    values, _ = nrrd.read(str(path), index_order="C")
    return [Variable("", native(values))], {}


def _npy(path):
    values = np.load(path)
    return [Variable(path.stem if values.dtype.kind == "c" else "", native(values))], {}
