import { describe, expect, it } from "vitest";

import { markColors } from "../ui/marks/draw.ts";
import type { Vec3 } from "../view/schema.ts";
import { BACKGROUNDS, backgroundName, isDark, nextBackground, storedTheme, storeTheme } from "./theme.ts";

describe("the colors of the page", () => {
  it("follow the system until the person chooses", () => {
    expect([isDark("system", true), isDark("system", false)]).toEqual([true, false]);
    expect([isDark("light", true), isDark("dark", false)]).toEqual([false, true]);
  });

  it("are remembered, and anything else in the storage is ignored", () => {
    const values = new Map<string, string>();
    const storage = {
      getItem: (key: string) => values.get(key) ?? null,
      setItem: (key: string, value: string) => void values.set(key, value),
      removeItem: (key: string) => void values.delete(key),
    };
    expect(storedTheme(storage)).toBe("system");
    storeTheme("light", storage);
    expect(storedTheme(storage)).toBe("light");
    for (const key of values.keys()) values.set(key, "pink");
    expect(storedTheme(storage)).toBe("system");
  });
});

/** Relative luminance of sRGB. */
function luminance(color: readonly number[]): number {
  const [r = 0, g = 0, b = 0] = color.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: readonly number[], b: readonly number[]): number {
  const [high = 0, low = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

describe("backgrounds", () => {
  it("run from dark to light to white and back", () => {
    let color: Vec3 = BACKGROUNDS[0].color;
    const names = Array.from({ length: 4 }, () => {
      color = nextBackground(color);
      return backgroundName(color);
    });
    expect(names).toEqual(["light", "white", "dark", "light"]);
    expect(backgroundName([1, 2, 3])).toBeNull();
    expect(backgroundName(nextBackground([1, 2, 3]))).toBe("dark");
  });

  it("have marks of enough contrast", () => {
    for (const { name, color } of BACKGROUNDS) {
      const ink = markColors(color).ink;
      const parts = [1, 3, 5].map((at) => parseInt(ink.slice(at, at + 2), 16));
      expect(contrast(parts, color), name).toBeGreaterThan(4);
    }
  });
});
