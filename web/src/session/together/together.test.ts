//! Shared content, pointers, paths and exports.

import { describe, expect, it } from "vitest";

import type { ArrayInfo } from "../../dataset/dataset.ts";
import { EMPTY_VIEW, type Camera, type Vec3, type View } from "../../view/schema.ts";
import { parseItem } from "../messages.ts";
import { NoteQueue } from "../note-queue.ts";
import { ViewSync } from "../view-sync.ts";
import {
  applied,
  ContentSync,
  EMPTY_CONTENT,
  MAX_CHAT_LINES,
  MAX_PENDING_EDITS,
  parseUpdate,
  type SharedChange,
  type SharedContent,
  type SharedEdit,
} from "./content.ts";
import { notesToJson, notesToMarkdown } from "./export.ts";
import { initials, leaveResume, storedName, storeName, takeResume } from "./identity.ts";
import { cameraAt, journeyOf, stepBetween, stopsOf, viewAt } from "./path.ts";
import { pointerPlace, project, seenAt, worldPoint } from "./space.ts";
import { Throttle } from "./throttle.ts";

const author = (id: number) => ({ id, name: `P${id}`, color: "#4cc9f0" });
const bytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

/** Server of the shared content: orders the edits of all. */
class Server {
  content: SharedContent = EMPTY_CONTENT;
  changes: SharedChange[] = [];
  readonly heard = new Map<number, number>();

  take(by: number, seq: number, edit: SharedEdit): void {
    if (seq <= (this.heard.get(by) ?? 0)) return;
    this.heard.set(by, seq);
    const change = { rev: this.changes.length + 1, author: author(by), seq, atMillis: 5, edit };
    const next = applied(this.content, change);
    if (next === this.content) return;
    this.content = next;
    this.changes.push(change);
  }

  update(to: number, since: number | null) {
    const heard = this.heard.get(to) ?? 0;
    const rev = this.changes.length;
    return since === null
      ? { rev, heard, content: this.content, changes: [] }
      : { rev, heard, content: null, changes: this.changes.slice(since) };
  }
}

function joined(id: number): ContentSync {
  const sync = new ContentSync();
  sync.joined(id, 0);
  sync.setAuthor(author(id));
  sync.receive({ rev: 0, heard: 0, content: EMPTY_CONTENT, changes: [] });
  return sync;
}

const mark = (name: string): SharedEdit => ({ op: "add_bookmark", name, thumbnail: "", view: { v: 1 } });

describe("shared content", () => {
  it("shows own edits at once, and all pages end alike after 1000 conflicting edits", () => {
    let state = 7;
    const below = (n: number) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * n);
    };
    const server = new Server();
    const pages = Array.from({ length: 10 }, (_, i) => ({
      id: i + 1,
      sync: joined(i + 1),
      sent: [] as [number, SharedEdit][],
      known: 0,
    }));
    const takeNext = (page: (typeof pages)[number]) => {
      const next = page.sent.shift();
      if (next) server.take(page.id, ...next);
    };
    const refresh = (page: (typeof pages)[number]) => {
      expect(page.sync.receive(server.update(page.id, page.known))).toBe(true);
      page.known = server.changes.length;
    };
    for (let i = 0; i < 1000; i++) {
      const page = pages[below(pages.length)];
      if (!page) continue;
      const ids = page.sync.content.bookmarks.map((b) => b.id);
      const id = ids[below(Math.min(3, ids.length))] ?? "0-0";
      const before = ids[below(ids.length)] ?? null;
      const edits: SharedEdit[] = [
        mark(`b${i}`),
        { op: "rename_bookmark", id, name: `n${i}` },
        { op: "move_bookmark", id, before },
        { op: "move_bookmark", id, before },
        { op: "delete_bookmark", id },
        { op: "say", text: `t${i}` },
      ];
      const edit = edits[below(edits.length)] ?? mark("x");
      const seq = page.sync.edit(edit, 5);
      if (seq !== null) page.sent.push([seq, edit]);
      const other = pages[below(pages.length)];
      if (other) takeNext(other);
      if (other && below(2) === 0) refresh(other);
    }
    for (const page of pages) while (page.sent.length > 0) takeNext(page);
    for (const page of pages) {
      refresh(page);
      expect(page.sync.pendingCount).toBe(0);
      expect(page.sync.content).toEqual(server.content);
    }
    expect(server.content.chat.length).toBeGreaterThan(50);
  });

  it("accepts updates that overtake one another, and an answered edit never flickers", () => {
    const sync = new ContentSync();
    sync.joined(1, 0);
    sync.setAuthor(author(1));
    const change = (rev: number): SharedChange => ({
      rev,
      author: author(2),
      seq: rev,
      atMillis: 0,
      edit: { op: "say", text: `line ${rev}` },
    });
    const chat = () => sync.content.chat.map((line) => line.text);
    const seq = sync.edit({ op: "say", text: "mine" }, 0) ?? 0;
    const mine = { ...change(3), author: author(1), seq, edit: { op: "say", text: "mine" } as const };
    sync.receive({ rev: 3, heard: seq, content: null, changes: [mine] });
    expect(chat()).toEqual(["mine"]);
    sync.receive({ rev: 2, heard: 0, content: null, changes: [change(2)] });
    const first = applied(EMPTY_CONTENT, change(1));
    sync.receive({ rev: 1, heard: 0, content: first, changes: [] });
    expect(chat()).toEqual(["line 1", "line 2", "mine"]);
    expect(sync.pendingCount).toBe(0);
    sync.receive({ rev: 1, heard: 0, content: first, changes: [] });
    expect(chat()).toHaveLength(3);
  });

  it("drops an own edit that the server refused", () => {
    const sync = joined(1);
    sync.edit({ op: "say", text: "x" }, 0);
    sync.receive({ rev: 0, heard: 1, content: null, changes: [] });
    expect(sync.content.chat).toEqual([]);
  });

  it("sends edits again after a reconnection, unless the page is somebody new", () => {
    const sync = joined(1);
    sync.edit(mark("a"), 0);
    sync.edit(mark("b"), 0);
    expect(sync.joined(1, 1)).toMatchObject({ resend: [{ seq: 2 }], dropped: 0 });
    expect(sync.edit(mark("c"), 0)).toBe(3);
    expect(sync.joined(9, 0)).toEqual({ resend: [], dropped: 2 });
    expect(sync.edit(mark("d"), 0)).toBe(1);
  });

  it("is bounded", () => {
    const sync = joined(1);
    const numbers = Array.from({ length: MAX_PENDING_EDITS + 1 }, () =>
      sync.edit({ op: "say", text: "x" }, 0),
    );
    expect(numbers.at(-1)).toBeNull();
    let content = EMPTY_CONTENT;
    for (let seq = 1; seq < 500; seq++)
      content = applied(content, {
        rev: seq,
        author: author(1),
        seq,
        atMillis: 0,
        edit: { op: "say", text: "x" },
      });
    expect(content.chat).toHaveLength(MAX_CHAT_LINES);
    expect(content.chat.at(-1)?.id).toBe("1-499");
  });

  it("is read with care", () => {
    const evil = {
      id: "1-1",
      name: "x",
      thumbnail: "data:image/svg+xml,<svg>",
      view: 3,
      author: { color: "red" },
    };
    const update = parseUpdate({ rev: 1, heard: 0 }, { content: { bookmarks: [evil, 7], notes: "no" } });
    expect(update.content).toMatchObject({ chat: [], notes: [], bookmarks: [{ thumbnail: "", view: {} }] });
    expect(update.content?.bookmarks[0]?.author.color).toBe("#a7aeb8");
    expect(() => parseUpdate({ rev: -1, heard: 0 }, {})).toThrow("update");
    const later = parseUpdate({ rev: 1, heard: 0 }, { changes: [{ rev: 1, seq: 1, edit: { op: "draw" } }] });
    const [change] = later.changes;
    expect(change && applied(EMPTY_CONTENT, change)).toEqual(EMPTY_CONTENT);
  });
});

describe("items about others", () => {
  it("are read, and pointers without a place are left out", () => {
    const list = [
      { id: 2, at: { world: [1, 2, 3] }, laser: true },
      { id: 3, at: { picture: [0.5, 0.25] } },
      { id: 4, at: { world: [1, "x", 3] } },
    ];
    expect(parseItem(bytes({ kind: "pointers", list }))).toEqual({
      kind: "pointers",
      list: [
        { id: 2, at: { world: [1, 2, 3] }, laser: true },
        { id: 3, at: { picture: [0.5, 0.25] }, laser: false },
      ],
    });
    expect(parseItem(bytes({ kind: "following", leader: null, text: "why" }))).toEqual({
      kind: "following",
      leader: null,
      text: "why",
    });
  });
});

describe("notes that wait", () => {
  it("keep every step, and a change of the view does not pass an undo", () => {
    const queue = new NoteQueue();
    const view = (time: number) => ({ kind: "view", seq: time, view: { time }, moving: false }) as const;
    queue.push(view(1));
    queue.push({ kind: "edit", seq: 1, edit: { op: "say", text: "a" } });
    queue.push({ kind: "undo" });
    queue.push({ kind: "undo" });
    queue.push(view(2));
    queue.push(view(3));
    queue.push({ kind: "edit", seq: 2, edit: { op: "say", text: "b" } });
    const taken = Array.from({ length: 7 }, () => queue.take());
    expect(taken.map((note) => note?.kind)).toEqual([
      "view",
      "edit",
      "undo",
      "undo",
      "view",
      "edit",
      undefined,
    ]);
    expect(taken[4]).toMatchObject({ seq: 3 });
  });
});

describe("automatic changes of the view", () => {
  it("are marked only if the person changed nothing", () => {
    const views = new ViewSync();
    views.joined({ v: 1, array: "rho", time: 0 }, { time: 5 });
    expect(views.takeNote()).toMatchObject({ automatic: true });
    views.change({ level: 1 }, false, true);
    views.change({ time: 2 }, false);
    expect(views.takeNote()).not.toHaveProperty("automatic");
  });

  it("of a participant who is back are only what changed meanwhile, and numbers continue", () => {
    const views = new ViewSync();
    views.joined({ v: 1, array: "rho", time: 3 }, { array: "rho", time: 3 }, 5000);
    expect(views.takeNote()).toBeNull();
    views.joined({ v: 1, array: "rho", time: 3 }, { array: "rho", time: 4 }, 5000);
    const note = views.takeNote();
    expect(note).toMatchObject({ view: { v: 1, time: 4 }, seq: 5000 + 1024 });
    expect(note).not.toHaveProperty("automatic");
  });
});

const SIZE = { width: 800, height: 600 };
const CAMERA: Camera = {
  eye: [50, -200, 30],
  target: [50, 40, 30],
  up: [0, 0, 1],
  projection: { perspective: { fov_y_rad: 0.6 } },
};
const TILTED: Camera = { ...CAMERA, eye: [-120, -90, 160], up: [0.2, 0.1, 1] };
const PARALLEL: Camera = { ...TILTED, projection: { orthographic: { height_world: 200 } } };

/** 100 x 80 x 60 voxels of 1 x 1 x 2 in world space, axes z, y, x. */
const ARRAY = {
  axes: [{ kind: "z" }, { kind: "y" }, { kind: "x" }],
  levels: [
    {
      shape: [60, 80, 100],
      worldFromVoxel: [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 2, -30],
      ],
    },
  ],
} as unknown as ArrayInfo;

const viewWith = (camera: Camera, more: Partial<View> = {}): View => ({ ...EMPTY_VIEW, camera, ...more });

describe("pointers", () => {
  it("of the target are in the middle, and above it is up", () => {
    for (const camera of [CAMERA, TILTED, PARALLEL]) {
      expect(project(camera, SIZE, camera.target)?.x).toBeCloseTo(400);
      expect(project(camera, SIZE, camera.target)?.y).toBeCloseTo(300);
    }
    const above = project(CAMERA, SIZE, [50, 40, 40]);
    // 10 of the 240 * 2 * tan(0.3) that fit into 600 pixels.
    expect(above?.y).toBeCloseTo(300 - (10 / (480 * Math.tan(0.3))) * 600);
    expect(project(CAMERA, SIZE, [50, -300, 30])).toBeNull();
  });

  it("are in world space, and everybody sees them at the same place of the data", () => {
    for (const camera of [CAMERA, TILTED, PARALLEL]) {
      for (const at of [
        { x: 400, y: 300 },
        { x: 371, y: 333 },
        { x: 450, y: 260 },
      ]) {
        const world = worldPoint(viewWith(camera), ARRAY, SIZE, at);
        expect(world).not.toBeNull();
        const back = world && project(camera, SIZE, world);
        expect(back?.x).toBeCloseTo(at.x);
        expect(back?.y).toBeCloseTo(at.y);
        if (!world) continue;
        const [x, y, z] = world;
        expect(x >= -0.5 && x <= 99.5 && y >= -0.5 && y <= 79.5 && z >= -31 && z <= 89).toBe(true);
      }
    }
  });

  it("lie on the first slice, and beside the data are a part of the picture", () => {
    const view = viewWith(CAMERA, {
      slices: [
        { axis: "y", at: 60 },
        { axis: "y", at: 20 },
      ],
    });
    expect(worldPoint(view, ARRAY, SIZE, { x: 400, y: 300 })?.[1]).toBeCloseTo(20);
    const clipped = viewWith(CAMERA, {
      clip: [
        [0, 0.75, 0],
        [1, 1, 1],
      ],
    });
    expect(worldPoint(clipped, ARRAY, SIZE, { x: 400, y: 300 })?.[1]).toBeCloseTo(59.5);
    // At the depth of what was seen close by, as far as that is within the data.
    const near = worldPoint(viewWith(CAMERA), ARRAY, SIZE, { x: 410, y: 300 }, [0, 30, 0]);
    expect(near?.[1]).toBeCloseTo(30);
    expect(pointerPlace(viewWith(CAMERA), ARRAY, SIZE, { x: 0, y: 300 })).toEqual({ picture: [0, 0.5] });
    expect(seenAt({ picture: [0, 0.5] }, viewWith(TILTED), SIZE)).toEqual({ x: 0, y: 300 });
    expect(seenAt({ world: [1e6, 0, 0] }, viewWith(CAMERA), SIZE)).toBeNull();
  });

  it("are sent at most 20 times a second, and the newest is not lost", () => {
    const sent: number[] = [];
    let now = 0;
    let due: { at: number; run: () => void } | null = null;
    const timer = {
      now: () => now,
      after: (millis: number, run: () => void) => {
        due = { at: now + millis, run };
      },
    };
    const throttle = new Throttle<number>(50, (value) => sent.push(value), timer);
    const advance = (to: number) => {
      now = to;
      const waiting: { at: number; run: () => void } | null = due;
      if (waiting && waiting.at <= now) {
        due = null;
        waiting.run();
      }
    };
    for (let at = 0; at <= 1000; at += 2) {
      advance(at);
      throttle.push(at);
    }
    advance(2000);
    expect(sent.length).toBeLessThanOrEqual(22);
    expect(sent[0]).toBe(0);
    expect(sent.at(-1)).toBe(1000);
  });
});

describe("paths through bookmarks", () => {
  const bookmark = (id: number, camera: Camera | null, time = 0) => ({
    id: `1-${id}`,
    author: author(1),
    name: `b${id}`,
    thumbnail: "",
    view: { v: 1, time, camera: camera as never },
  });
  const list = [bookmark(1, CAMERA), bookmark(2, null), bookmark(3, TILTED, 4), bookmark(4, PARALLEL)];

  it("pass each stop and are smooth in between", () => {
    const stops = stopsOf(list);
    expect(stops).toHaveLength(3);
    expect(cameraAt(stops, 0)).toEqual(CAMERA);
    expect(cameraAt(stops, 1)).toEqual(TILTED);
    expect(stops[1]?.rest).toMatchObject({ time: 4 });
    const steps = 400;
    const cameras = Array.from({ length: steps + 1 }, (_, i) => cameraAt(stops, (2 * i) / steps));
    const sizes = cameras.slice(1).map((camera, i) => {
      const before = cameras[i];
      return camera && before ? stepBetween(before, camera) : Infinity;
    });
    const whole = sizes.reduce((sum, size) => sum + size, 0);
    // No jump: no step is many times the average.
    expect(Math.max(...sizes)).toBeLessThan((6 * whole) / steps);
    expect(cameras.every((camera) => camera?.eye.every(Number.isFinite))).toBe(true);
  });

  it("show the whole view of each stop, and otherwise move the camera", () => {
    const stops = stopsOf(list);
    expect(viewAt(stops, 1.1, 0, "rho")).toMatchObject({ array: "rho", time: 4, clip: null, slices: [] });
    expect(Object.keys(viewAt(stops, 1.2, 1, "rho") ?? {})).toEqual(["camera"]);
  });

  it("also between opposite directions", () => {
    const back: Camera = { ...CAMERA, eye: [50, 280, 30] };
    const stops = stopsOf([bookmark(1, CAMERA), bookmark(2, back)]);
    const middle = cameraAt(stops, 0.5);
    const away = middle ? Math.hypot(...middle.eye.map((x, i) => x - (middle.target[i] ?? 0))) : 0;
    expect(away).toBeCloseTo(240);
  });

  it("become journeys with one kind of projection", () => {
    const journey = journeyOf(list);
    expect(journey).toHaveLength(3);
    for (const view of journey) {
      const { projection } = view.camera as unknown as Camera;
      expect("perspective" in projection).toBe(true);
    }
    expect(journey[1]).toMatchObject({ time: 4 });
  });
});

describe("export of notes", () => {
  const note = {
    id: "1-2",
    author: { ...author(1), name: "A_da" },
    atMillis: 0,
    text: "# a *crack*\nsecond line",
    place: [1, 2.25, 1 / 3] as Vec3,
    view: { v: 1, array: "rho", time: 7 },
  };

  it("has text, place, time, array and view", () => {
    const [read] = JSON.parse(notesToJson([note])) as Record<string, unknown>[];
    expect(read).toMatchObject({ author: "A_da", place: note.place, view: note.view, text: note.text });
    const text = notesToMarkdown([note], "run[1]");
    expect(text).toContain("# Notes on run\\[1\\]");
    expect(text).toContain("## A\\_da: \\# a \\*crack\\*");
    expect(text).toContain("array `rho`, time 7, at 1, 2.25, 0.333333, 1970-01-01T00:00:00.000Z");
  });
});

describe("identity", () => {
  it("keeps the name, and gives the secret to one page only", () => {
    const map = new Map<string, string>();
    const store = {
      getItem: (k: string) => map.get(k) ?? null,
      setItem: (k: string, v: string) => map.set(k, v),
      removeItem: (k: string) => map.delete(k),
    };
    expect(storedName(store)).toBeNull();
    storeName(store, "");
    expect(storedName(store)).toBe("");
    leaveResume(store, "/a/", "secret");
    expect([takeResume(store, "/a/"), takeResume(store, "/a/")]).toEqual(["secret", ""]);
  });

  it("has initials", () => {
    expect(["Ada Lovelace", "bob", "", "Élodie de la Tour"].map(initials)).toEqual(["AL", "B", "?", "ÉT"]);
  });
});
