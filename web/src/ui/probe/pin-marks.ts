//! Marks of the panel on the picture: a cross with a number for each pin, and the lines of the measurements that are listed.

import type { State } from "../../app/state.ts";
import { svg } from "../dom.ts";
import { otherAxes, presenceOf, shownSlice } from "./presence.ts";
import { lineOf, positionsOf } from "./project.ts";
import { pickedSize } from "./requests.ts";
import type { ListedResult } from "./results.ts";
import { shapeOf } from "./shapes.ts";
import type { NumberedPlace } from "./text.ts";

export interface PinMarks {
  readonly element: SVGSVGElement;
  draw(state: State, pins: readonly NumberedPlace[], results: readonly ListedResult[]): void;
}

const CROSS = "M-9 0H-3M3 0H9M0 -9V-3M0 3V9";

export function pinMarks(): PinMarks {
  const element = svg("svg", { class: "probe-crosses", "aria-hidden": "true" });
  const draw: PinMarks["draw"] = (state, pins, results) => {
    const { array, view } = state;
    const { camera, stereo } = view;
    const size = pickedSize(state);
    element.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
    if (!array || !camera) {
      element.replaceChildren();
      return;
    }
    const pixel = Math.max(1, size.height / Math.max(1, element.clientHeight));
    const slice = shownSlice(view, array);
    // The lines would lie in one half of a stereo pair only.
    const lines = stereo !== null ? [] : results.flatMap((result) => resultLines(result));
    const crosses = pins.flatMap((pin) => cross(pin));
    element.replaceChildren(...lines, ...crosses);

    function resultLines({ measurement, array: name, axes }: ListedResult): SVGElement[] {
      if (!array || !camera) return [];
      const path = shapeOf(measurement, array, slice)
        .flatMap((line) => lineOf(line, camera, size) ?? [])
        .map(({ x, y }, i) => `${i % 2 === 0 ? "M" : "L"}${x.toFixed(2)} ${y.toFixed(2)}`)
        .join("");
      if (path === "") return [];
      const isFaded = name !== array.name || otherAxes(axes, array, view).length > 0;
      return [
        svg(
          "g",
          { class: isFaded ? "probe-shape faded" : "probe-shape" },
          svg("path", { class: "halo", d: path }),
          svg("path", { d: path }),
        ),
      ];
    }

    function cross({ id, place }: NumberedPlace): SVGElement[] {
      if (!array || !camera || !place.world) return [];
      const { isOnSlice, isFaded } = presenceOf(place, array, view);
      if (!isOnSlice) return [];
      return positionsOf(place.world, camera, size, stereo).map(({ x, y }) =>
        svg(
          "g",
          {
            transform: `translate(${x} ${y}) scale(${pixel})`,
            class: isFaded ? "probe-cross faded" : "probe-cross",
          },
          svg("path", { class: "halo", d: CROSS }),
          svg("path", { d: CROSS }),
          svg("text", { x: 8, y: -6 }, String(id)),
        ),
      );
    }
  };
  return { element, draw };
}
