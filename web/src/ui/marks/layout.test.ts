//! Places for marks.

import { expect, it } from "vitest";

import { convexHull, largestFree, Layout, touchesOutline } from "./layout.ts";
import { meets, type Box } from "./shapes.ts";

const box = (left: number, top: number, right: number, bottom: number): Box => ({ left, top, right, bottom });
const SIZE = { width: 1000, height: 600 };

it("the largest free rectangle meets no panel and cannot grow", () => {
  let seed = 7;
  const random = (to: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return (seed / 2_147_483_647) * to;
  };
  for (let run = 0; run < 50; run += 1) {
    const panels = Array.from({ length: 6 }, () => {
      const [left, top] = [random(900), random(500)];
      return box(left, top, left + 20 + random(250), top + 20 + random(200));
    });
    const free = largestFree(box(0, 0, 1000, 600), panels);
    expect(panels.some((panel) => meets(panel, free))).toBe(false);
    // Brute force on a grid of 20 pixels finds none that is larger.
    const area = (b: Box) => (b.right - b.left) * (b.bottom - b.top);
    let most = 0;
    for (let left = 8; left < 992; left += 60)
      for (let top = 8; top < 592; top += 60)
        for (let right = left + 60; right <= 992; right += 60)
          for (let bottom = top + 60; bottom <= 592; bottom += 60) {
            const tried = box(left, top, right, bottom);
            if (area(tried) > most && !panels.some((panel) => meets(panel, tried))) most = area(tried);
          }
    expect(area(free)).toBeGreaterThanOrEqual(most);
  }
});

it("marks lie near their corner, beside panels, other marks and data", () => {
  const data = convexHull([
    { x: 300, y: 200 },
    { x: 700, y: 200 },
    { x: 700, y: 400 },
    { x: 300, y: 400 },
    { x: 500, y: 300 },
  ]);
  expect(data).toHaveLength(4);
  const layout = new Layout(SIZE, [box(700, 0, 1000, 600)], data);
  const clear = (b: Box) => !layout.isOverData(b);
  const first = layout.corner(["right", "top"], [100, 150], clear);
  expect(first?.right).toBeGreaterThan(650);
  expect(first && first.right < 700 && first.bottom <= 200).toBe(true);
  if (first) layout.take(first);
  const second = layout.corner(["right", "top"], [100, 150], clear);
  expect(first && second && !meets(first, second)).toBe(true);
  expect(layout.corner(["left", "top"], [2000, 10])).toBeNull();
  expect(layout.corner(["left", "top"], [690, 400], clear)).toBeNull();
  expect(touchesOutline(data, box(0, 0, 299, 600))).toBe(false);
  expect(touchesOutline(data, box(690, 390, 800, 500))).toBe(true);
});
