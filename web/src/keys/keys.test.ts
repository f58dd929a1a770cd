import { describe, expect, it, vi } from "vitest";

import { INITIAL_STATE, type Actions, type State } from "../app/state.ts";
import { parseDataset } from "../dataset/dataset.ts";
import { filterHelp, helpRows } from "../ui/page/help.ts";
import { texts } from "../texts/texts.ts";
import type { Camera } from "../view/schema.ts";
import { keyHandlers, type KeyTarget } from "./handlers.ts";
import { usesKey } from "./listen.ts";
import { capsOf, commandOf, COMMANDS, hintOf, KEYS, type KeyBinding, type KeyPress } from "./table.ts";

function press(key: string, modifiers: Partial<KeyPress> = {}): KeyPress {
  return { key, shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, ...modifiers };
}

/** A press that a binding describes. */
function pressOf(binding: KeyBinding, key: string): KeyPress {
  return press(key, { ctrlKey: binding.ctrl === true, shiftKey: binding.shift === true });
}

describe("the table of keys", () => {
  it("has one command for each key with its modifiers", () => {
    for (const id of COMMANDS) {
      const binding: KeyBinding = KEYS[id];
      for (const key of binding.keys) expect(commandOf(pressOf(binding, key)), `${id} ${key}`).toBe(id);
    }
  });

  it("does not take keys of the browser and of the system", () => {
    expect(commandOf(press("r", { ctrlKey: true }))).toBeNull();
    expect(commandOf(press("l", { metaKey: true }))).toBeNull();
    expect(commandOf(press("ArrowLeft", { altKey: true }))).toBeNull();
    expect(commandOf(press("R", { shiftKey: true }))).toBe("resetCamera");
    expect(commandOf(press("Z", { metaKey: true, shiftKey: true }))).toBe("redo");
  });

  it("names keys as they stand on keyboards", () => {
    expect([capsOf("axisView"), capsOf("undo"), capsOf("open")]).toEqual([
      ["1", "…", "6"],
      ["Ctrl", "Z"],
      ["D"],
    ]);
    expect([hintOf("undo"), hintOf("play"), hintOf("zoomIn")]).toEqual(["Ctrl+Z", "Space", "+"]);
  });
});

describe("keys of a control that has the focus", () => {
  it("are handled by the control; all others are commands", () => {
    const commands = (control: Parameters<typeof usesKey>[0]) =>
      ["r", "1", " ", "ArrowUp", "Home", "?"].filter((key) => !usesKey(control, key)).join(" ");
    expect(commands("none")).toBe("r 1   ArrowUp Home ?");
    expect(commands("text")).toBe("");
    expect(commands("slider")).toBe("r 1   ?");
    expect(commands("toggle")).toBe("r 1 Home ?");
    expect(commands("button")).toBe("r 1 ArrowUp Home ?");
  });
});

const CAMERA: Camera = {
  eye: [0, -10, 0],
  target: [0, 0, 0],
  up: [0, 0, 1],
  projection: { perspective: { fov_y_rad: 0.5 } },
};

function target(isImage: boolean, more: Partial<State> = {}, shown: "space" | "planes" = "space") {
  const called: string[] = [];
  const record = (prefix: string) =>
    new Proxy({}, { get: (_, name) => () => called.push(`${prefix}${String(name)}`) });
  const together = record("together.");
  const actions = new Proxy(
    {},
    { get: (_, name) => (name === "together" ? together : () => called.push(String(name))) },
  ) as Actions;
  const state: State = { ...INITIAL_STATE, view: { ...INITIAL_STATE.view, camera: CAMERA }, ...more };
  const told: string[] = [];
  const move = vi.fn<(camera: Camera) => void>();
  const keys: KeyTarget = {
    actions,
    layouts: {
      isImage,
      layout: shown,
      isPossible: (layout) => layout !== "planes",
      set: (layout) => called.push(`set ${layout}`),
      setGrid: () => called.push("setGrid"),
      step: (by) => called.push(`step ${by}`),
      zoomed: (camera) => camera,
    },
    state: () => state,
    size: () => ({ width: 800, height: 600 }),
    diagonal: () => 10,
    move,
    rest: () => called.push("rest"),
    stepTime: (by) => called.push(`time ${by}`),
    tell: (text) => told.push(text),
    activeAxis: () => 2,
  };
  return { handlers: keyHandlers(keys), called, told, move };
}

describe("every key of the table", () => {
  it("does something", () => {
    for (const id of COMMANDS) {
      vi.useFakeTimers();
      const { handlers, called, move } = target(false);
      const binding: KeyBinding = KEYS[id];
      expect(handlers[id](pressOf(binding, binding.keys[0] ?? "")), id).not.toBe(false);
      // The grid needs a data set.
      if (id !== "grid") expect(called.length + move.mock.calls.length, id).toBeGreaterThan(0);
      vi.useRealTimers();
    }
  });

  it("moves an image instead of turning it", () => {
    vi.useFakeTimers();
    const { handlers, move } = target(true);
    handlers.turn(press("ArrowRight"));
    const [camera] = move.mock.calls[0] ?? [];
    // The same direction of sight from another place.
    expect(camera?.eye[0]).toBeCloseTo(camera?.target[0] ?? NaN, 9);
    expect(camera?.target[0]).toBeGreaterThan(0);
    const turned = target(false);
    turned.handlers.turn(press("ArrowRight"));
    expect(turned.move.mock.calls[0]?.[0].target).toEqual([0, 0, 0]);
    vi.useRealTimers();
  });
});

describe("a key that can do nothing", () => {
  it("says why: a grid beside three planes, an arrangement that the array does not allow, time without steps", () => {
    const array = parseDataset({
      name: "d",
      arrays: [{ name: "a", axes: [{ name: "x", kind: "x" }], levels: [{ shape: [4] }] }],
    }).arrays[0];
    const { handlers, called, told } = target(false, { array: array ?? null }, "planes");
    handlers.grid(press("g"));
    handlers.planes(press("m"));
    handlers.play(press(" "));
    handlers.timeForward(press("."));
    expect(called).toEqual([]);
    const noPlanes = texts.layout.notPossible(texts.layout.planes);
    expect(told).toEqual([texts.layout.noGridOfPlanes, noPlanes, texts.layout.noTime, texts.layout.noTime]);
    handlers.image(press("i"));
    expect(called).toEqual(["set image"]);
  });
});

describe("the help", () => {
  it("has a row for every command, and finds rows by words and keys", () => {
    const rows = helpRows();
    for (const id of COMMANDS) {
      const found = rows.filter((row) => row.does === texts.keys[id]).map((row) => row.caps);
      expect(found, id).toContainEqual(capsOf(id));
    }
    const found = (words: string) => filterHelp(rows, words).map((row) => row.does);
    expect(found("full")).toContain(texts.keys.fullscreen);
    expect(found("ctrl z")).toContain(texts.keys.undo);
    expect(found("  ")).toHaveLength(rows.length);
    expect(found("no such thing")).toEqual([]);
  });
});
