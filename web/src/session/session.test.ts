//! Own and others' changes of the view, waiting, playing, tokens.

import { describe, expect, it } from "vitest";

import { isEnlarged, pictureSize, screenSize } from "../draw/picture.ts";
import type { Json } from "../json.ts";
import { EMPTY_VIEW } from "../view/schema.ts";
import { backoffMillis } from "./backoff.ts";
import { parseItem } from "./messages.ts";
import { NoteQueue } from "./note-queue.ts";
import { CompleteSteps, MAX_STEPS_KNOWN, runs } from "./complete-steps.ts";
import { firstTime, nextStepMillis, nextTime } from "./playback.ts";
import { storeToken, storedToken } from "./token.ts";
import { SEQ_STEP, ViewSync } from "./view-sync.ts";

const bytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

function joined(): ViewSync {
  const views = new ViewSync();
  views.joined({ v: 1, array: "rho", time: 0 }, {});
  return views;
}

describe("own changes", () => {
  it("are bundled into one note, numbered upwards", () => {
    const views = joined();
    views.change({ time: 1 }, true);
    views.change({ time: 2, level: 1 }, true);
    const note = views.takeNote();
    expect(note).toEqual({ kind: "view", seq: SEQ_STEP, view: { v: 1, time: 2, level: 1 }, moving: true });
    expect(views.takeNote()).toBeNull();
    views.rest();
    expect(views.takeNote()).toEqual({ kind: "view", seq: 2 * SEQ_STEP, view: { v: 1 }, moving: false });
    expect(views.takeNote()).toBeNull();
  });

  it("make the picture current only after a frame shows them", () => {
    const views = joined();
    expect(views.isCurrent(0)).toBe(true);
    views.change({ time: 1 }, true);
    expect(views.isCurrent(0)).toBe(false);
    views.takeNote();
    views.rest();
    views.takeNote();
    expect(views.isCurrent(SEQ_STEP - 1)).toBe(false);
    expect(views.isCurrent(SEQ_STEP)).toBe(true);
  });

  it("from a link go out at once after joining", () => {
    const views = new ViewSync();
    views.joined({ v: 1, array: "rho", time: 0 }, { time: 5 });
    expect(views.view).toMatchObject({ array: "rho", time: 5 });
    expect(views.takeNote()).toMatchObject({ view: { time: 5 }, moving: false });
  });
});

describe("changes by the node", () => {
  it("make the picture current only after a frame shows them", () => {
    const views = joined();
    views.incoming(7, { v: 1, transfer: null });
    expect([views.isCurrent(6), views.isCurrent(7)]).toEqual([false, true]);
  });

  it("are applied, except to fields with a newer own change that the node has not seen yet", () => {
    const views = joined();
    views.change({ time: 3 }, false);
    views.takeNote();
    views.incoming(1, { v: 1, array: "u", time: 0 });
    expect(views.view).toMatchObject({ array: "u", time: 3 });
    views.incoming(SEQ_STEP + 1, { v: 1, array: "u", time: 9 });
    expect(views.view.time).toBe(9);
  });

  it("do not change fields that wait to be sent, and numbering continues after theirs", () => {
    const views = joined();
    views.change({ level: 2 }, false);
    views.incoming(70_000, { v: 1, level: null });
    expect(views.view.level).toBe(2);
    expect(views.takeNote()).toMatchObject({ seq: 70_000 + SEQ_STEP });
  });

  it("clear fields again after a new connection", () => {
    const views = joined();
    const server: Json = { v: 1, array: "rho", time: 0, level: 2, stereo: 0.04 };
    views.joined(server, { ...EMPTY_VIEW, array: "rho" });
    expect(views.takeNote()).toMatchObject({ view: { level: null, stereo: null } });
  });

  it("start again with a new connection", () => {
    const views = joined();
    views.change({ time: 3 }, false);
    views.takeNote();
    views.joined({ v: 1, array: "rho", time: 0 }, views.view);
    expect(views.takeNote()).toMatchObject({ seq: SEQ_STEP, view: { time: 3 } });
  });
});

describe("notes that wait", () => {
  it("are one of each kind, and the newest fields of the view win", () => {
    const queue = new NoteQueue();
    queue.push({ kind: "view", seq: 1, view: { v: 1, time: 1, level: 2 }, moving: true });
    queue.push({ kind: "shown", frame: 7 });
    queue.push({ kind: "resize", width: 10, height: 20 });
    queue.push({ kind: "shown", frame: 6 });
    queue.push({ kind: "resize", width: 30, height: 40 });
    queue.push({ kind: "view", seq: 2, view: { v: 1, time: 3 }, moving: false });
    expect(queue.take()).toEqual({ kind: "shown", frame: 7 });
    expect(queue.take()).toEqual({ kind: "resize", width: 30, height: 40 });
    const view = { v: 1, time: 3, level: 2 };
    expect(queue.take()).toEqual({ kind: "view", seq: 2, view, moving: false });
    expect(queue.take()).toBeNull();
  });
});

describe("items", () => {
  it("that are malformed cause an error with the expected value", () => {
    expect(() => parseItem(bytes([1]))).toThrow("an item of the session");
    expect(() => parseItem(bytes({ kind: "frame", codec: "gif" }))).toThrow("jpeg or png");
    expect(() => parseItem(bytes({ kind: "truth", truth: { state: "tired" } }))).toThrow("tired");
    expect(() => parseItem(bytes({ kind: "view", seq: -1 }))).toThrow("`seq`");
  });

  it("report positions without a complete level", () => {
    const truth = { level_wanted: 0, blocks_present: 1, blocks_total: 25, state: "loading" };
    const shown = (level: number | null) => {
      const item = parseItem(bytes({ kind: "truth", truth: { ...truth, level_shown: level } }));
      return item.kind === "fidelity" ? item.fidelity.levelShown : undefined;
    };
    expect([shown(null), shown(2)]).toEqual([null, 2]);
    expect(() => parseItem(bytes({ kind: "truth", truth }))).toThrow("`level_shown`");
  });

  it("of a newer node are ignored", () => {
    expect(parseItem(bytes({ kind: "sound", at: [1, 2, 3] }))).toEqual({ kind: "unknown" });
  });
});

describe("waiting", () => {
  it("grows, is bounded, and is randomized", () => {
    const waits = Array.from({ length: 40 }, (_, attempt) => backoffMillis(attempt, 1));
    expect(waits[0]).toBe(500);
    expect(waits).toEqual([...waits].sort((a, b) => a - b));
    expect(Math.max(...waits)).toBe(15_000);
    expect(backoffMillis(3, 0)).toBe(0.75 * backoffMillis(3, 1));
  });
});

describe("changes by the page itself", () => {
  it("neither end a movement nor count as the person's", () => {
    const views = joined();
    views.change({ time: 1 }, true);
    views.takeNote();
    views.change({ level: 2 }, false, true);
    expect(views.takeNote()).toMatchObject({ automatic: true, moving: true });
    views.rest();
    expect(views.takeNote()).toMatchObject({ moving: false });
  });

  it("wait until the node has told what changes with another array", () => {
    const views = joined();
    expect(views.isSettling).toBe(false);
    views.change({ array: "other" }, false);
    expect(views.isSettling).toBe(true);
    const note = views.takeNote();
    if (note?.kind !== "view") throw new Error("expected a change of the view");
    views.incoming(note.seq - 1, { v: 1 });
    expect(views.isSettling).toBe(true);
    views.incoming(note.seq + 1, { v: 1, array: "other", time: 0 });
    expect(views.isSettling).toBe(false);
  });
});

describe("playing", () => {
  it("waits for the picture and loops", () => {
    const playback = { rate: 4, repeat: "loop" } as const;
    expect(nextStepMillis(1000, false, playback)).toBe(Infinity);
    expect(nextStepMillis(1000, true, playback)).toBe(1250);
    expect(nextTime(0, 3, 1, "loop")?.time).toBe(1);
    expect(nextTime(2, 3, 1, "loop")?.time).toBe(0);
    expect(nextTime(2, 3, 1, "once")).toBeNull();
    expect(nextTime(2, 3, 1, "bounce")).toEqual({ time: 1, direction: -1 });
    expect(nextTime(0, 3, -1, "bounce")).toEqual({ time: 1, direction: 1 });
    expect(nextTime(0, 1, 1, "loop")).toBeNull();
    expect([firstTime(2, 3, "once"), firstTime(2, 3, "loop"), firstTime(1, 3, "once")]).toEqual([0, 2, 1]);
  });

  it("knows the runs of steps that were complete, until other data are shown", () => {
    expect(runs([5, 3, 4, 9])).toEqual([
      [3, 5],
      [9, 9],
    ]);
    const steps = new CompleteSteps();
    steps.begin("rho");
    steps.add(1);
    steps.add(2);
    const { runs: before } = steps;
    steps.add(2);
    expect(steps.runs).toBe(before);
    expect(before).toEqual([[1, 2]]);
    steps.begin("heat");
    expect(steps.runs).toEqual([]);
    for (let step = 0; step <= MAX_STEPS_KNOWN; step += 1) steps.add(step);
    expect(steps.runs).toEqual([[1, MAX_STEPS_KNOWN]]);
  });
});

describe("token", () => {
  it("is kept per page, and missing storage causes no error", () => {
    const map = new Map<string, string>();
    const store = {
      getItem: (k: string) => map.get(k) ?? null,
      setItem: (k: string, v: string) => map.set(k, v),
    };
    storeToken(store, "/a/", "secret");
    expect([storedToken(store, "/a/"), storedToken(store, "/b/")]).toEqual(["secret", ""]);
    const refuse = () => {
      throw new Error("switched off");
    };
    storeToken({ getItem: refuse, setItem: refuse }, "/", "x");
    expect(storedToken({ getItem: refuse, setItem: refuse }, "/")).toBe("");
  });
});

describe("size of the picture", () => {
  it("is that of the screen, up to 4K", () => {
    expect(screenSize(1280, 800, 1)).toEqual({ width: 1280, height: 800 });
    expect(screenSize(390, 844, 2)).toEqual({ width: 780, height: 1688 });
    expect(screenSize(0, 0, 1)).toEqual({ width: 16, height: 16 });
    const of4k = screenSize(1920, 1080, 2);
    expect(pictureSize(of4k)).toEqual({ width: 3840, height: 2160 });
    expect(isEnlarged(pictureSize(of4k), of4k)).toBe(false);
  });

  it("keeps within the node's limits and the aspect, and then is enlarged", () => {
    const of8k = screenSize(3840, 2160, 2);
    const picture = pictureSize(of8k);
    expect(picture.width * picture.height).toBeLessThanOrEqual(8 << 20);
    expect(picture.width / picture.height).toBeCloseTo(16 / 9, 2);
    expect(isEnlarged(picture, of8k)).toBe(true);
    const long = pictureSize(screenSize(6000, 300, 1));
    expect(long).toEqual({ width: 4096, height: 204 });
  });
});

describe("notes about values", () => {
  it("are read with their position", () => {
    const note = "7 % of the values are above the range of colors.";
    const item = { kind: "values", array: "rho", time: 2, at: { channel: 1, wrong: "x" }, values: { note } };
    const values = { array: "rho", time: 2, at: { channel: 1 }, note, kind: "", quantiles: [] };
    expect(parseItem(bytes(item))).toEqual({ kind: "values", values });
    expect(parseItem(bytes({ ...item, values: { note: null } }))).toMatchObject({ values: { note: "" } });
  });
});
