import { describe, expect, it } from "vitest";
import { fit, orbit, pan } from "../camera/camera.ts";
import { onScreen } from "../layout/plane-camera.ts";
import type { Camera, Vec3 } from "../view/schema.ts";
import { IN_PLACE, placementOf } from "./placement.ts";

const SIZE = { width: 800, height: 500 };
const perspective: Camera = fit({ center: [5, 4, 3], extent: [10, 8, 6] }, [0, 0, 1], [0, -1, 0], SIZE);
const parallel: Camera = { ...perspective, projection: { orthographic: { height_world: 12 } } };

describe("placement of a picture", () => {
  it("is where the places of the data are now", () => {
    const panned = pan(parallel, 37, -52, SIZE);
    const now: Camera = { ...panned, projection: { orthographic: { height_world: 5 } } };
    const placement = placementOf(parallel, now);
    expect(placement).not.toBeNull();
    if (!placement) return;
    for (const place of [
      [1, 2, 3],
      [9, 0.5, 3],
      [5, 7, 3],
    ] satisfies Vec3[]) {
      const [before, after] = [onScreen(parallel, SIZE, place), onScreen(now, SIZE, place)];
      const x =
        SIZE.width / 2 + (before.x - SIZE.width / 2) * placement.scale + placement.right * SIZE.height;
      const y =
        SIZE.height / 2 + (before.y - SIZE.height / 2) * placement.scale + placement.down * SIZE.height;
      expect(x).toBeCloseTo(after.x, 6);
      expect(y).toBeCloseTo(after.y, 6);
    }
  });

  it("is unchanged for the same camera", () => {
    expect(placementOf(parallel, parallel)).toEqual(IN_PLACE);
  });

  it("does not exist for other directions, for perspective, and for useless scales", () => {
    expect(placementOf(parallel, orbit(parallel, 20, 0, SIZE))).toBeNull();
    expect(placementOf(perspective, perspective)).toBeNull();
    expect(placementOf(parallel, perspective)).toBeNull();
    const far: Camera = { ...parallel, projection: { orthographic: { height_world: 12e6 } } };
    expect(placementOf(parallel, far)).toBeNull();
  });
});
