import { expect, it } from "vitest";

import { insetsOf } from "./free-space.ts";

const rect = (left: number, top: number, right: number, bottom: number) => ({ left, top, right, bottom });

it("pictures keep clear of side panels and of the bar of time, but never vanish", () => {
  const page = { width: 1280, height: 800 };
  expect(insetsOf(page, { left: [], top: [], bottom: [] })).toEqual({ left: 0, top: 0, bottom: 0 });
  const people = rect(14, 120, 330, 500);
  const time = rect(340, 730, 900, 786);
  expect(insetsOf(page, { left: [people], top: [], bottom: [time] })).toEqual({
    left: 338,
    top: 0,
    bottom: 78,
  });
  const low = { width: 1280, height: 150 };
  expect(insetsOf(low, { left: [], top: [], bottom: [rect(0, 90, 900, 150)] }).bottom).toBe(0);
  expect(insetsOf({ width: 400, height: 800 }, { left: [people], top: [], bottom: [time] }).left).toBe(0);
});
