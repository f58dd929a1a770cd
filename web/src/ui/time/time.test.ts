import { describe, expect, it } from "vitest";

import type { Axis } from "../../dataset/dataset.ts";
import { positionLabel, positionTitle, shortUnits } from "../../dataset/labels.ts";
import { completeBackground } from "./axes.ts";
import { typedIndex } from "./jump.ts";

const axis = (name: string, kind: Axis["kind"], coordinates: Axis["coordinates"], units = ""): Axis => ({
  name,
  kind,
  units,
  coordinates,
});

describe("jumping along an axis", () => {
  it("reads step numbers, channels, coordinates and dates", () => {
    const plain = axis("member", "other", { kind: "index" });
    expect(typedIndex("#3", plain, 5, "standard", [])).toEqual({ place: 2 });
    expect(typedIndex("3", plain, 5, "standard", [])).toEqual({ place: 2 });
    expect(typedIndex("6", plain, 5, "standard", [])).toEqual({ problem: "Enter a step from #1 to #5" });
    expect(typedIndex("x", plain, 5, "standard", [])).toEqual({
      problem: "Axis member has no coordinates; enter a step such as #3",
    });
    const channel = axis("c", "channel", { kind: "index" });
    expect(typedIndex("c gfp", channel, 2, "standard", ["DAPI", "GFP"])).toEqual({ place: 1 });
    const level = axis("lev", "other", { kind: "explicit", values: [1000, 850, 500] }, "hPa");
    expect(typedIndex("860 hPa", level, 3, "standard", [])).toEqual({ place: 1 });
    const time = axis("time", "time", { kind: "regular", origin: 0, step: 30 }, "days since 2000-01-01");
    expect(typedIndex("2000-03-02", time, 12, "360_day", [])).toEqual({ place: 2 });
  });

  it("has a short label for times that are no dates, whose whole text has the date they are counted from", () => {
    const values = [366, 1096.485, 1826.97];
    const time = axis("TIME", "time", { kind: "explicit", values }, "hour since 0000-01-01 00:00:00");
    expect(positionLabel(time, 0)).toBe("366 h");
    expect(positionTitle(time, 0)).toBe("366 hour since 0000-01-01 00:00:00");
    for (const typed of ["366 h", "366 hours", "366", "366 hour since 0000-01-01 00:00:00"])
      expect(typedIndex(typed, time, 3, "standard", [])).toEqual({ place: 0 });
    expect(typedIndex("366 d", time, 3, "standard", [])).toHaveProperty("problem");
    const dated = axis("time", "time", { kind: "regular", origin: 0, step: 1 }, "days since 2000-01-01");
    expect([positionLabel(dated, 1), positionTitle(dated, 1)]).toEqual(["2000-01-02", "2000-01-02"]);
    const level = axis("lev", "other", { kind: "regular", origin: 0, step: 5 }, "degrees_north");
    expect([positionLabel(level, 1), positionTitle(level, 1)]).toEqual(["5 °N", "5 °N"]);
    expect(["months since 1", "Seconds since 1970-01-01", "ms", ""].map(shortUnits)).toEqual([
      "months",
      "s",
      "ms",
      "",
    ]);
  });

  it("lights the runs of complete steps", () => {
    expect(completeBackground([], 10)).toBe("none");
    expect(completeBackground([[2, 4]], 10)).toContain("var(--good) 20.000%, var(--good) 50.000%");
  });
});
