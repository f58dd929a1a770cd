import { describe, expect, it } from "vitest";
import { viewToJson } from "../view/parse.ts";
import type { Camera } from "../view/schema.ts";
import { ViewSync } from "./view-sync.ts";

describe("cameras of frames", () => {
  const camera = (height: number): Camera => ({
    eye: [0, 0, -9],
    target: [0, 0, 0],
    up: [0, 1, 0],
    projection: { orthographic: { height_world: height } },
  });

  const sent = (sync: ViewSync) => {
    const note = sync.takeNote();
    return note?.kind === "view" ? note.seq : 0;
  };

  it("are those of the newest view that a frame can show", () => {
    const sync = new ViewSync();
    expect(sync.cameraAt(5)).toBeNull();
    sync.joined({ ...viewToJson({ camera: camera(1) }) }, {}, 3);
    sync.change({ camera: camera(2) }, true);
    const first = sent(sync);
    sync.change({ camera: camera(3) }, true);
    sync.incoming(first + 1, viewToJson({ camera: camera(4) }));
    const second = sent(sync);
    const heights = [3, first, first + 1, second - 1, second].map((seq) => sync.cameraAt(seq));
    expect(heights).toEqual([1, 2, 4, 4, 3].map(camera));
    expect(sync.view.camera).toEqual(camera(3));
  });

  it("are forgotten with a new connection, and after many", () => {
    const sync = new ViewSync();
    for (let i = 1; i <= 1000; i += 1) {
      sync.change({ camera: camera(i) }, true);
      sync.takeNote();
    }
    expect(sync.cameraAt(1024)).toBeNull();
    sync.joined(viewToJson({ camera: camera(7) }), {}, 2);
    expect(sync.cameraAt(1e9)).toEqual(camera(7));
  });
});
