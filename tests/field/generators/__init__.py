"""Small files as the field's own libraries write them with their default settings, one property each.

Each module writes the files of one area: `write(folder)` puts them into `folder` under names that no other module uses.
Every property was seen in a public report by users of xarray, netCDF4, h5py, zarr, nibabel, Neuroglancer, napari or ParaView.
"""

import importlib
import pathlib
import pkgutil


def write_all(folder: pathlib.Path) -> None:
    """Writes the files of every module here into `folder`."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}").write(folder)
