//! Reads views from JSON that others wrote. A field that does not fit is left out with a warning, so that a
//! damaged link still shows the data; fields of newer schemas are kept.

import { texts } from "../texts/texts.ts";
import { isArray, isCount, isFinite, isObject, type Json, type JsonObject } from "../json.ts";
import {
  DEFAULTS,
  FORMER_NAMES,
  LAYER_FACES,
  LAYER_LABELS,
  MAX_GRID_SIDE,
  MAX_LAYERS,
  MAX_OPACITY_POINTS,
  MAX_POSITIONS,
  MAX_SLICES,
  MAX_SURFACES,
  SCHEMA_VERSION,
  SIMPLE_FIELDS,
  SPACE_AXES,
  VALUE_SCALES,
  type Camera,
  type Cell,
  type ColorBy,
  type Grid,
  type Layer,
  type OpacityPoint,
  type Projection,
  type SimpleField,
  type Slice,
  type Surface,
  type Transfer,
  type Vec3,
  type ViewFields,
  type ViewPatch,
} from "./schema.ts";

export interface ParsedView {
  readonly patch: ViewPatch;
  /** One sentence per field that was left out. */
  readonly warnings: readonly string[];
}

type FieldName = keyof ViewFields;
type SimpleName = keyof typeof SIMPLE_FIELDS;
type FieldReader = (value: Json) => unknown;

/** Gives the value of a field that is of no simple type, or `undefined` when it does not fit. */
const READERS: Readonly<Record<Exclude<FieldName, SimpleName>, FieldReader>> = {
  at: readPositions,
  camera: (value) => (value === null ? null : readCamera(value)),
  transfer: (value) => (value === null ? null : readTransfer(value)),
  color_by: (value) => (value === null ? null : readColorBy(value)),
  surfaces: readSurfaces,
  slices: readSlices,
  layers: readLayers,
  clip: (value) => (value === null ? null : readClip(value)),
  grid: (value) => (value === null ? null : readGrid(value)),
};

export function parseView(value: Json): ParsedView {
  if (!isObject(value)) return { patch: {}, warnings: [texts.viewWarnings.notAView] };
  const warnings: string[] = [];
  const patch: Record<string, unknown> = {};
  const other: Record<string, Json> = {};
  for (const [written, field] of Object.entries(value)) {
    const name = FORMER_NAMES.get(written) ?? written;
    if (name === "v") {
      if (field !== SCHEMA_VERSION) warnings.push(texts.viewWarnings.otherSchema(SCHEMA_VERSION));
      continue;
    }
    if (!isFieldName(name)) {
      other[name] = field;
      continue;
    }
    const read = isSimple(name) ? readSimple(SIMPLE_FIELDS[name], field) : READERS[name](field);
    if (read === undefined) warnings.push(texts.viewWarnings.invalidField(name));
    else patch[name] = read;
  }
  if (Object.keys(other).length > 0) patch.other = other;
  return { patch, warnings };
}

/** The value as others read it; only the fields that are there. */
export function viewToJson(patch: ViewPatch): JsonObject {
  const { other, ...fields } = patch;
  const json: unknown = { v: SCHEMA_VERSION, ...other, ...fields };
  return json as JsonObject;
}

function isFieldName(name: string): name is FieldName {
  return Object.hasOwn(DEFAULTS, name);
}

function isSimple(name: FieldName): name is SimpleName {
  return Object.hasOwn(SIMPLE_FIELDS, name);
}

/** The value of a field of a simple type, or `undefined` when it does not fit. */
function readSimple(field: SimpleField, value: Json): unknown {
  if (value === null) return field.isNullable ? null : undefined;
  switch (field.kind) {
    case "text":
      return typeof value === "string" ? value : undefined;
    case "flag":
      return typeof value === "boolean" ? value : undefined;
    case "color":
      return readColor(value);
    case "index":
      return isCount(value) && value <= (field.last ?? value) ? value : undefined;
    case "choice":
      return field.names.find((name) => name === value);
    case "number":
      return isFinite(value) && isInRange(field, value) ? value : undefined;
  }
}

function isInRange(range: SimpleField & { kind: "number" }, value: number): boolean {
  const { low, high, isAboveLow, isBelowHigh } = range;
  const isHighEnough = low === null || (isAboveLow ? value > low : value >= low);
  const isLowEnough = high === null || (isBelowHigh ? value < high : value <= high);
  return isHighEnough && isLowEnough;
}

function readPositions(value: Json): Record<string, number> | undefined {
  if (!isObject(value)) return undefined;
  const entries = Object.entries(value);
  if (entries.length > MAX_POSITIONS) return undefined;
  const positions = entries.filter((entry): entry is [string, number] => isCount(entry[1]));
  return positions.length === entries.length ? Object.fromEntries(positions) : undefined;
}

function readVec3(value: Json | undefined): Vec3 | undefined {
  if (!isArray(value) || value.length !== 3) return undefined;
  const [x, y, z] = value;
  return isFinite(x) && isFinite(y) && isFinite(z) ? [x, y, z] : undefined;
}

/** Reads a camera; `undefined` if it does not fit. */
export function readCamera(value: Json): Camera | undefined {
  if (!isObject(value)) return undefined;
  const eye = readVec3(value.eye);
  const target = readVec3(value.target);
  const up = readVec3(value.up);
  const projection = readProjection(value.projection);
  if (!eye || !target || !up || !projection) return undefined;
  const distance = Math.hypot(eye[0] - target[0], eye[1] - target[1], eye[2] - target[2]);
  return distance > 0 && Math.hypot(...up) > 0 ? { ...value, eye, target, up, projection } : undefined;
}

function readProjection(value: Json | undefined): Projection | undefined {
  if (!isObject(value)) return undefined;
  if (isObject(value.perspective)) {
    const angle = value.perspective.fov_y_rad;
    return isFinite(angle) && angle > 0 && angle < Math.PI
      ? { perspective: { fov_y_rad: angle } }
      : undefined;
  }
  if (isObject(value.orthographic)) {
    const height = value.orthographic.height_world;
    return isFinite(height) && height > 0 ? { orthographic: { height_world: height } } : undefined;
  }
  return undefined;
}

/** Reads a transfer function; `undefined` if it does not fit. */
export function readTransfer(value: Json): Transfer | undefined {
  if (!isObject(value) || typeof value.map !== "string" || !isArray(value.opacity)) return undefined;
  const range = readRange(value.range);
  const points = value.opacity.map(readPoint);
  const valid = points.filter((point) => point !== undefined);
  if (!range || valid.length !== points.length || points.length === 0 || points.length > MAX_OPACITY_POINTS)
    return undefined;
  const { scale, reversed, ...others } = value;
  const known = VALUE_SCALES.find((name) => name === scale);
  const isLegal =
    (scale === undefined || known !== undefined) && (reversed === undefined || typeof reversed === "boolean");
  if (!isLegal || (known === "log" && range[0] <= 0)) return undefined;
  return {
    ...others,
    ...(known === undefined ? {} : { scale: known }),
    ...(reversed === undefined ? {} : { reversed }),
    range,
    map: value.map,
    opacity: valid.sort((a, b) => a[0] - b[0]),
  };
}

function readRange(value: Json | undefined): readonly [number, number] | undefined {
  if (!isArray(value) || value.length !== 2) return undefined;
  const [low, high] = value;
  return isFinite(low) && isFinite(high) && low < high ? [low, high] : undefined;
}

function readPoint(value: Json): OpacityPoint | undefined {
  if (!isArray(value) || value.length !== 2) return undefined;
  const [at, alpha] = value;
  return isFinite(at) && isFinite(alpha) && alpha >= 0 && alpha <= 1 ? [at, alpha] : undefined;
}

function readColorBy(json: Json): ColorBy | undefined {
  if (!isObject(json) || typeof json.array !== "string") return undefined;
  const { array, at: positions = {}, range: ends = null, map = null } = json;
  const at = readPositions(positions);
  const range = ends === null ? null : readRange(ends);
  const isLegal = at && range !== undefined && (map === null || (typeof map === "string" && map !== ""));
  return isLegal ? { ...json, array, at, range, map } : undefined;
}

function readSurfaces(value: Json): readonly Surface[] | undefined {
  if (!isArray(value) || value.length > MAX_SURFACES) return undefined;
  const surfaces = value.map(readSurface).filter((surface) => surface !== undefined);
  return surfaces.length === value.length ? surfaces : undefined;
}

function readSurface(json: Json): Surface | undefined {
  if (!isObject(json)) return undefined;
  const { colour: former = null, ...fields } = json;
  const { value, opacity } = fields;
  const color = readColor(fields.color ?? former);
  const isLegal = isFinite(value) && isFinite(opacity) && opacity >= 0 && opacity <= 1;
  return isLegal && color ? { ...fields, value, color, opacity } : undefined;
}

function readSlices(value: Json): readonly Slice[] | undefined {
  if (!isArray(value) || value.length > MAX_SLICES) return undefined;
  const slices = value.map(readSlice).filter((slice) => slice !== undefined);
  return slices.length === value.length ? slices : undefined;
}

function readSlice(json: Json): Slice | undefined {
  if (!isObject(json)) return undefined;
  const { at, normal = null, point = null, nearest = false, hidden = false } = json;
  const axis = SPACE_AXES.find((name) => name === json.axis);
  if (axis === undefined || !isFinite(at) || typeof nearest !== "boolean" || typeof hidden !== "boolean")
    return undefined;
  if (normal === null && point === null) return { ...json, axis, at };
  const [across, through] = [readVec3(normal), readVec3(point)];
  return across && through && Math.hypot(...across) > 0
    ? { ...json, axis, at, normal: across, point: through }
    : undefined;
}

function readLayers(value: Json): readonly Layer[] | undefined {
  if (!isArray(value) || value.length > MAX_LAYERS) return undefined;
  const layers = value.map(readLayer).filter((layer) => layer !== undefined);
  return layers.length === value.length ? layers : undefined;
}

/** Reads a layer; what it leaves out has its default where that is a value. */
function readLayer(json: Json): Layer | undefined {
  if (!isObject(json)) return undefined;
  const { array, geometry, name, visible = true, opacity = 1, by, size, labels, drawn } = json;
  const { at: positions, transfer: values, color: written, ...others } = json;
  const at = positions === undefined ? undefined : readPositions(positions);
  const transfer = values === undefined || values === null ? null : readTransfer(values);
  const color = written === undefined ? undefined : readColor(written);
  const isText = (text: Json | undefined) => text === undefined || typeof text === "string";
  const isLegal =
    (typeof array === "string") !== (typeof geometry === "string") &&
    [array, geometry, name].every(isText) &&
    typeof visible === "boolean" &&
    isFinite(opacity) &&
    opacity >= 0 &&
    opacity <= 1 &&
    (by === null || isText(by)) &&
    (size === undefined || (isFinite(size) && size >= 0.5 && size <= 64)) &&
    (labels === undefined || LAYER_LABELS.some((known) => known === labels)) &&
    (drawn === undefined || LAYER_FACES.some((known) => known === drawn)) &&
    (positions === undefined || at !== undefined) &&
    transfer !== undefined &&
    (written === undefined || color !== undefined);
  if (!isLegal) return undefined;
  const read = { ...others, visible, opacity, ...(at && { at }), ...(color && { color }) };
  return transfer ? { ...read, transfer } : read;
}

function readGrid(json: Json): Grid | undefined {
  if (!isObject(json)) return undefined;
  const { rows, columns, tied = true, cells = [] } = json;
  const isSide = (value: Json | undefined): value is number =>
    isCount(value) && value >= 1 && value <= MAX_GRID_SIDE;
  if (!isSide(rows) || !isSide(columns) || typeof tied !== "boolean" || !isArray(cells)) return undefined;
  const read = cells.map(readCell).filter((cell) => cell !== undefined);
  const isLegal = read.length === cells.length && read.length < MAX_GRID_SIDE ** 2;
  return isLegal ? { ...json, rows, columns, tied, cells: read } : undefined;
}

function readCell(json: Json): Cell | undefined {
  if (!isObject(json)) return undefined;
  const { array, time, at: positions } = json;
  const at = positions === undefined ? undefined : readPositions(positions);
  const isLegal =
    (array === undefined || typeof array === "string") &&
    (time === undefined || isCount(time)) &&
    (positions === undefined || at !== undefined);
  return isLegal ? json : undefined;
}

function readClip(value: Json): readonly [Vec3, Vec3] | undefined {
  if (!isArray(value) || value.length !== 2) return undefined;
  const low = readVec3(value[0]);
  const high = readVec3(value[1]);
  const isInside = (corner: Vec3) => corner.every((x) => x >= 0 && x <= 1);
  if (!low || !high || !isInside(low) || !isInside(high)) return undefined;
  return low.every((x, axis) => x < (high[axis] ?? 0)) ? [low, high] : undefined;
}

function readColor(value: Json): Vec3 | undefined {
  const color = readVec3(value);
  return color?.every((c) => isCount(c) && c <= 255) ? color : undefined;
}
