"""Small files of every format, written by the other libraries, with what real files have: odd sizes, chunks, filters,
byte orders, scale and offset, fill values, groups, names with strange characters, strings beside numbers."""

import pathlib

import h5py
import netCDF4
import nibabel
import nrrd
import numpy as np
import zarr

SHAPE = (7, 13, 21)
NUMBERS = ["i1", "u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8",
           "<f4", ">f4", "<f8", ">f8"]


def values(dtype: str, shape=SHAPE) -> np.ndarray:
    """Every byte of every element matters: random bits for integers, random floats with some NaN."""
    random = np.random.default_rng(7)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        out = random.normal(size=shape).astype(kind)
        out.reshape(-1)[::37] = np.nan
        return out
    info = np.iinfo(kind)
    return random.integers(info.min, info.max, size=shape, endpoint=True, dtype=kind.newbyteorder("=")).astype(kind)


def write_all(folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes one or more files per format; returns what to serve."""
    return [*_nrrd(folder), *_nifti(folder), _hdf5(folder), *_netcdf(folder), *_zarr(folder), *_npy(folder), _raw(folder)]


def _nrrd(folder):
    for encoding in ("raw", "gzip"):
        for order in "<>":
            path = folder / f"made-{encoding}-{'little' if order == '<' else 'big'}.nrrd"
            header = {"encoding": encoding, "spacings": [0.5, 1.0, 2.0]}
            # pynrrd writes the array's own order into `endian`.
            nrrd.write(str(path), np.ascontiguousarray(values(f"{order}i2").T), header, index_order="F")
            yield path
    detached = folder / "made-detached.nhdr"
    nrrd.write(str(detached), values("<f4").T, {"encoding": "gzip"}, detached_header=True)
    yield detached


def _nifti(folder):
    for dtype in ("u1", "<i2", ">i2", "<f4", ">f8"):
        image_class = nibabel.Nifti1Image
        header = nibabel.Nifti1Header(endianness=">" if dtype.startswith(">") else "<")
        header.set_data_dtype(np.dtype(dtype))
        image = image_class(np.nan_to_num(values(dtype)).T, np.diag([2.0, 1.5, 1.0, 1.0]), header)
        image.header.set_slope_inter(0.5, 3.0)
        path = folder / f"made-{dtype.replace('<', 'l').replace('>', 'b')}.nii{'' if dtype == 'u1' else '.gz'}"
        nibabel.save(image, path)
        yield path


def _npy(folder):
    for dtype in ("u1", ">i2", "<f4", ">f8"):
        path = folder / f"made-{dtype.replace('<', 'l').replace('>', 'b')}.npy"
        np.save(path, values(dtype))
        yield path
    path = folder / "made-fortran.npy"
    np.save(path, np.asfortranarray(values("<i4")))
    yield path


def _hdf5(folder):
    path = folder / "made.h5"
    with h5py.File(path, "w") as file:
        for dtype in NUMBERS:
            file[f"plain/{dtype.replace('<', 'l').replace('>', 'b')}"] = values(dtype)
        data = values("<f4", (19, 23, 29))
        filters = {"gzip": {"compression": "gzip"}, "shuffle": {"compression": "gzip", "shuffle": True},
                   "fletcher": {"fletcher32": True, "compression": "gzip"}, "none": {}, "lzf": {"compression": "lzf"},
                   "scaleoffset": {"scaleoffset": 0}}
        for name, options in filters.items():
            source = values("<i4", (19, 23, 29)) % 1000 if name == "scaleoffset" else data
            file.create_dataset(f"chunked/{name}", data=source, chunks=(5, 8, 29), **options)
        file.create_dataset("sparse", (50, 60), "<i2", chunks=(16, 16), fillvalue=-9)[10:20, 3:9] = 4
        file.create_dataset("growing", (4, 5), "<f8", maxshape=(None, 5))[...] = values("<f8", (4, 5))
        file["scalar"] = np.float64(3.25)
        file["empty"] = np.zeros((0, 4), "<f4")
        file["odd [name] it=0"] = values("<i2", (3, 4))
        file["text"] = "words"
        file["compound"] = np.zeros(3, dtype=[("a", "<i4"), ("b", "<f8")])
        file["complex"] = np.zeros(3, dtype="c16")
    return path


def _netcdf(folder):
    for kind in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF4", "NETCDF4_CLASSIC"):
        path = folder / f"made-{kind.lower()}.nc"
        with netCDF4.Dataset(path, "w", format=kind) as file:
            file.createDimension("time", None)
            for name, n in zip(("lev", "lat", "lon"), SHAPE, strict=True):
                file.createDimension(name, n)
                axis = file.createVariable(name, "f8", (name,))
                axis[:] = np.linspace(0, 10, n)
                axis.units = {"lev": "hPa", "lat": "degrees_north", "lon": "degrees_east"}[name]
            time = file.createVariable("time", "f8", ("time",))
            time.units = "days since 2000-01-01"
            time.calendar = "noleap"
            time[:] = [0.0, 30.0, 61.0]
            for dtype in ("i1", "i2", "i4", "f4", "f8"):
                # Two record variables and more: records interleave in the classic formats.
                record = file.createVariable(f"record_{dtype}", dtype, ("time", "lat", "lon"))
                record.set_auto_maskandscale(False)
                record[:] = values(dtype, (3, *SHAPE[1:]))
            packed = file.createVariable("packed", "i2", ("lev", "lat", "lon"), fill_value=-32767)
            packed.scale_factor, packed.add_offset, packed.units = 0.01, 273.15, "K"
            packed.set_auto_maskandscale(False)
            packed[:] = values("<i2")
            if kind == "NETCDF4":
                group = file.createGroup("inner")
                group.createVariable("deep", "u2", ("lat",), zlib=True, shuffle=True)[:] = np.arange(SHAPE[1])
        yield path


def _zarr(folder):
    for version in (2, 3):
        path = folder / f"made-v{version}.zarr"
        group = zarr.open_group(str(path), mode="w", zarr_format=version)
        for dtype in ("u1", "<i2", "<f4", "<f8", "<u8"):
            item = group.create_array(dtype.strip("<"), shape=SHAPE, chunks=(4, 5, 6), dtype=dtype)
            item[...] = values(dtype)
        holes = group.create_array("inner/holes", shape=(30, 40), chunks=(7, 9), dtype="<i4", fill_value=-5)
        holes[8:12, 3:20] = 1
        if version == 3:
            sharded = group.create_array("sharded", shape=(64, 48), chunks=(8, 8), shards=(32, 16), dtype="<f4")
            sharded[...] = values("<f4", (64, 48))
        else:
            big = group.create_array("big", shape=SHAPE, chunks=(4, 5, 6), dtype=">f4")
            big[...] = values(">f4")
        yield path


def _raw(folder):
    (folder / "made.bin").write_bytes(b"header--" + values(">u2").tobytes())
    path = folder / "made.toml"
    path.write_text('file = "made.bin"\nshape = [7, 13, 21]\ndtype = ">u2"\noffset = 8\n')
    return path
