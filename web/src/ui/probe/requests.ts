//! Parameters of `pick` and `measure`, and the reading of their answers.

import type { Calls } from "../../app/calls.ts";
import type { State } from "../../app/state.ts";
import { pictureSize } from "../../draw/picture.ts";
import { isCount, isObject, type Json, type JsonObject } from "../../json.ts";
import type { Vec3, View } from "../../view/schema.ts";
import { parseMeasured, type Measured } from "./measured.ts";
import { parsePicks, type PickedPlace } from "./place.ts";
import type { Position } from "./rest.ts";

/** A measurement of points in world space. */
export type Measurement =
  | { readonly kind: "profile"; readonly from: Vec3; readonly to: Vec3 }
  | { readonly kind: "points"; readonly points: readonly Vec3[] }
  | { readonly kind: "series"; readonly at: Vec3 }
  | { readonly kind: "clip" }
  | { readonly kind: "box"; readonly corners: readonly [Vec3, Vec3] }
  | { readonly kind: "polygon"; readonly corners: readonly Vec3[]; readonly axis: string | null };

/** Receiver of a measurement. */
export interface MeasureReceiver {
  progress(done: number, total: number): void;
  measured(measured: Measured): void;
  /** `reason` is null after success. */
  ended(reason: string | null): void;
}

/** The fields of the view that say what is where. Fields that are null are those of the node. */
function viewFields(view: View): JsonObject {
  return Object.fromEntries(
    Object.entries(view).filter(
      ([name, value]) => name !== "other" && (value !== null || name === "color_by" || name === "clip"),
    ),
  );
}

/** Size of the picture that the node draws for the window. */
export function pickedSize(state: State): { width: number; height: number } {
  return pictureSize(state.screen);
}

/** Requests what a position shows, in pixels of the picture; `null` and a reason if that is not known. */
export function requestPick(
  calls: Calls,
  state: State,
  { x, y }: Position,
  done: (place: PickedPlace | null, reason: string | null) => void,
): void {
  const { width, height } = pickedSize(state);
  let place: PickedPlace | null = null;
  let problem: string | null = null;
  calls.call(
    "pick",
    { participant: state.you, view: viewFields(state.view), width, height, at: [[x, y]] },
    {
      item: (item) => {
        try {
          place = parsePicks(item)[0] ?? null;
        } catch (error) {
          problem = String(error);
        }
      },
      ended: (reason) => {
        done(place, reason ?? problem);
      },
    },
  );
}

/** Kind of the answer to a measurement. */
export function resultKind({ kind }: Measurement): Measured["kind"] {
  return kind === "profile" || kind === "points" || kind === "series" ? kind : "region";
}

/** Requests a measurement; returns a function that cancels it. */
export function requestMeasurement(
  calls: Calls,
  state: State,
  measurement: Measurement,
  receiver: MeasureReceiver,
): () => void {
  const parameters: Record<string, Json> = {
    participant: state.you,
    view: viewFields(state.view),
    ...(measurement as unknown as JsonObject),
  };
  let problem: string | null = null;
  return calls.call("measure", parameters, {
    item: (item) => {
      if (!isObject(item)) return;
      const { progress } = item;
      if (isObject(progress) && isCount(progress.done) && isCount(progress.total))
        receiver.progress(progress.done, progress.total);
      if (item.result === undefined) return;
      try {
        receiver.measured(parseMeasured(resultKind(measurement), item.result));
      } catch (error) {
        problem = String(error);
      }
    },
    ended: (reason) => {
      receiver.ended(reason ?? problem);
    },
  });
}

/** Axis across the layer of places on slices: that of their slice in the view, if all lie on slices of one axis. */
export function layerAxis(view: View, places: readonly PickedPlace[]): string | null {
  const axes = new Set(
    places.map(({ hit, number }) => (hit === "slice" ? (view.slices[number ?? -1]?.axis ?? null) : null)),
  );
  const [axis = null] = axes;
  return axes.size === 1 ? axis : null;
}

/** Address of the data for Python: the node answers the operations of a data server too. */
export function dataAddress(host: string, dataset: string): string {
  return `corridor://${host}/${encodeURIComponent(dataset)}`;
}

/** True for an answer of an older node, which does not know the operation. */
export function isUnsupported(reason: string | null): boolean {
  return reason?.includes("expected one of the operations") ?? false;
}
