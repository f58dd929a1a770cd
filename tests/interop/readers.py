"""Reference readers: every numeric variable of a file with stored values, as the format's library reads it."""

import pathlib
from dataclasses import dataclass

import h5py
import netCDF4
import nibabel
import nrrd
import numpy as np
import zarr

NRRD = (".nhdr", ".nrrd")
NIFTI = (".nii", ".nii.gz")
NETCDF = (".nc", ".cdf", ".nc4", ".k3")
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


@dataclass
class Variable:
    """One numeric variable: `values` in C order; `units` None if the library does not know them."""

    name: str
    values: np.ndarray
    units: str | None = None
    order_is_known: bool = True


def library_of(path: pathlib.Path) -> str | None:
    """Returns the library that reads this file; None if Corridor does not read the format."""
    name = path.name.lower()
    if path.is_dir():
        return "zarr-python" if (path / "zarr.json").exists() or (path / ".zgroup").exists() else None
    if name.endswith(NRRD):
        return "pynrrd"
    if name.endswith(NIFTI):
        return "nibabel"
    if name.endswith(".npy"):
        return "numpy"
    if name.endswith(NETCDF):
        return "netCDF4"
    with path.open("rb") as file:
        return "h5py" if file.read(8) == HDF5_MAGIC else None


def variables(path: pathlib.Path) -> tuple[list[Variable], list[str]]:
    """Numeric variables, and the others as `name: reason`."""
    reader = {
        "pynrrd": _nrrd,
        "nibabel": _nifti,
        "numpy": _npy,
        "netCDF4": _netcdf,
        "h5py": _hdf5,
        "zarr-python": _zarr,
    }[library_of(path)]
    return reader(path)


def _is_numeric(dtype) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "iufb"


def _add(found, others, name, read, **about) -> None:
    """Reads a variable; one that the library fails to read is among the others, with the reason."""
    try:
        found.append(Variable(name, read(), **about))
    except Exception as error:
        others.append(f"{name}: {error}")


def _nrrd(path):
    values, _ = nrrd.read(str(path))
    return [Variable("", values.T)], []


def _nifti(path):
    image = nibabel.load(str(path))
    return [Variable("", np.asanyarray(image.dataobj.get_unscaled()).T)], []


def _npy(path):
    values = np.load(path)
    return [Variable("", values)], []


def _netcdf(path):
    found, others = [], []

    def walk(group, prefix):
        for name, variable in group.variables.items():
            if not _is_numeric(np.dtype(variable.dtype) if variable.dtype is not str else None):
                others.append(f"{prefix}{name}: {variable.dtype}")
                continue
            variable.set_auto_maskandscale(False)
            variable.set_auto_chartostring(False)
            units = str(getattr(variable, "units", ""))
            _add(found, others, prefix + name, lambda v=variable: np.asarray(v[...]), units=units,
                 order_is_known=False)
        for name, child in group.groups.items():
            walk(child, f"{prefix}{name}/")

    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        walk(file, "")
    return found, others


def _hdf5(path):
    found, others = [], []

    def visit(name, item):
        if not isinstance(item, h5py.Dataset):
            return
        if item.shape is None or not _is_numeric(item.dtype) or h5py.check_enum_dtype(item.dtype):
            others.append(f"{name}: {item.dtype}")
            return
        _add(found, others, name, lambda: item[()] if item.shape else np.asarray(item[()], item.dtype))

    with h5py.File(path) as file:
        file.visititems(visit)
    return found, others


def _zarr(path):
    found, others = [], []
    for name, item in zarr.open_group(str(path), mode="r").members(max_depth=None):
        if not isinstance(item, zarr.Array):
            continue
        if not _is_numeric(np.dtype(item.dtype)):
            others.append(f"{name}: {item.dtype}")
            continue
        _add(found, others, name, lambda i=item: np.asarray(i[...]), order_is_known=item.metadata.zarr_format == 2)
    return found, others
