//! The description of a data set with two arrays, as a server sends it: a sample for tests.

const EXTENT = [192, 160, 128] as const;
const STEPS = 24;

const axis = (name: string, kind: string, units: string, coordinates: unknown = "index") => ({
  name,
  kind,
  units,
  coordinates,
});
const SPACE = [axis("z", "z", "km"), axis("y", "y", "km"), axis("x", "x", "km")];
const TIME = axis("time", "time", "hours since 2024-03-01 00:00:00", { regular: { origin: 6, step: 6 } });

function level(lead: number[], number: number) {
  const factor = 2 ** number;
  const [x, y, z] = EXTENT;
  const shift = (factor - 1) / 2;
  return {
    shape: [...lead, z / factor, y / factor, x / factor],
    block: [...lead.map(() => 1), 32, 32, 32],
    origin: number === 0 ? "stored" : "mean",
    factor: [...lead.map(() => 1), factor, factor, factor],
    world_from_voxel: [0, 1, 2].map((row) =>
      [0, 1, 2, 3].map((c) => (c === row ? factor : c === 3 ? shift : 0)),
    ),
  };
}

function array(name: string, units: string, title: string, lead: number[], axes: object[]) {
  return {
    name,
    dtype: "<f4",
    axes: [...axes, ...SPACE],
    units,
    attributes: { long_name: title },
    decoding: { scale: 1, offset: 0, missing: [], valid: null, output: "<f4" },
    meaning: "intensity",
    chunk: null,
    levels: [0, 1, 2].map((number) => level(lead, number)),
    world_units: "km",
    notes: [],
  };
}

export const DATASET = {
  id: "0123456789abcdef0123456789abcdef",
  generation: 0,
  name: "binary-merger.h5",
  format: "HDF5",
  arrays: [
    array("rho", "kg m-3", "density", [STEPS], [TIME]),
    array("speed", "m s-1", "speed of the gas", [3], [axis("member", "other", "")]),
  ],
  attributes: {},
  left_out: [],
  warnings: [],
};
