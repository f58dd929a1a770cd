//! Reads the components of vectors at the places of arrows: exact values at full resolution, when the view rests.

import type { Calls } from "../../app/calls.ts";
import type { State } from "../../app/state.ts";
import type { Size } from "../../camera/camera.ts";
import type { ArrayInfo } from "../../dataset/dataset.ts";
import type { Vec3 } from "../../view/schema.ts";
import { requestMeasurement } from "../probe/requests.ts";
import { chosenVectors, lattice, longestOf, vectorsOf, type VectorField } from "./field.ts";

/** Time without a change of the view after which vectors are read. */
const REST_MILLIS = 250;

export interface ArrowHost {
  readonly calls: Calls;
  readonly state: State;
  setVectors(field: VectorField | null): void;
}

export function arrowReader(host: ArrowHost, size: () => Size): { update: (state: State) => void } {
  let known = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  let cancel: (() => void)[] = [];
  const read = (state: State, array: ArrayInfo) => {
    if (!state.array) return;
    const { points, spacing } = lattice(state.view, state.array, size());
    cancel = readVectors(host.calls, state, array, points, (vectors) => {
      cancel = [];
      if (!vectors) return;
      const { name, units } = array;
      host.setVectors({ array: name, units, points, vectors, spacing, longest: longestOf(vectors) });
    });
  };
  const update = (state: State) => {
    const { dataset, array, view, connection, arrows } = state;
    const vectors = dataset && array && chosenVectors(dataset, array, arrows.choice);
    const isShown = vectors && connection.kind === "open" && view.camera !== null && view.stereo === null;
    const { camera, slices, time, at, clip } = view;
    const now = isShown
      ? JSON.stringify([dataset.id, dataset.generation, vectors.name, camera, slices, time, at, clip, size()])
      : "";
    if (now === known) return;
    known = now;
    clearTimeout(timer);
    for (const end of cancel) end();
    cancel = [];
    // Arrows stay where they are while the camera moves, and until newer ones are read.
    if (!isShown || arrows.field?.array !== vectors.name) {
      if (arrows.field) host.setVectors(null);
    }
    if (isShown)
      timer = setTimeout(() => {
        read(host.state, vectors);
      }, REST_MILLIS);
  };
  return { update };
}

/** Reads all components at points; `done` gets null if one of them cannot be read. Returns functions that cancel the reads. */
export function readVectors(
  calls: Calls,
  state: State,
  array: ArrayInfo,
  points: readonly Vec3[],
  done: (vectors: readonly (Vec3 | null)[] | null) => void,
): (() => void)[] {
  const { components = [], componentAxis = null } = array;
  const [only = ""] = components;
  const stored = state.dataset?.arrays.find(({ name }) => name === only);
  const axis = stored?.axes.findIndex(({ name }) => name === componentAxis) ?? -1;
  const componentCount = stored?.levels[0]?.shape[axis] ?? 0;
  const sources: { readonly array: string; readonly at: Readonly<Record<string, number>> }[] =
    componentAxis === null
      ? components.map((name) => ({ array: name, at: state.view.at }))
      : Array.from({ length: componentCount }, (_, i) => ({
          array: only,
          at: { ...state.view.at, [componentAxis]: i },
        }));
  if (points.length === 0 || sources.length === 0) {
    done(points.length === 0 ? [] : null);
    return [];
  }
  const found = sources.map((): readonly (number | null)[] | null => null);
  let waiting = sources.length;
  const ended = () => {
    waiting -= 1;
    if (waiting > 0) return;
    const all = found.filter((values) => values !== null);
    done(all.length === sources.length ? vectorsOf(all, points.length) : null);
  };
  return sources.map((source, i) => {
    // Colors and surfaces are those of the shown array.
    const view = { ...state.view, ...source, color_by: null, transfer: null, surfaces: [] };
    return requestMeasurement(
      calls,
      { ...state, view },
      { kind: "points", points },
      {
        progress: () => undefined,
        measured: (measured) => {
          if (measured.kind !== "points") return;
          const [values] = measured.channels;
          found[i] = values ? values.decoded.map((v, at) => (values.missing[at] === true ? null : v)) : null;
        },
        ended,
      },
    );
  });
}
