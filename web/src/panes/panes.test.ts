//! Views of further pictures, and their participation in the session.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { parseDataset } from "../dataset/dataset.ts";
import type { Json } from "../json.ts";
import { EMPTY_VIEW, type Camera, type View } from "../view/schema.ts";
import { webSocketTransport } from "../worker/transport.ts";
import { Connection } from "../worker/connection.ts";
import { FakeSocket } from "../worker/fake-socket.ts";
import type { FromWorker } from "../worker/messages.ts";
import { MAX_PANES } from "../worker/pane-joins.ts";
import { cellView, difference, firstCells, panesOf, planeView, resizedGrid, withCell } from "./pane-views.ts";

function axis(name: string, kind: string): Json {
  return { name, kind, units: "", coordinates: "index" };
}

const SPACE = [axis("z", "z"), axis("y", "y"), axis("x", "x")];
const dataset = parseDataset({
  id: "0".repeat(32),
  generation: 0,
  name: "d",
  format: "NetCDF-4",
  warnings: [],
  arrays: [
    {
      name: "t",
      dtype: "<f4",
      axes: [axis("time", "time"), axis("member", "other"), ...SPACE],
      levels: [{ shape: [5, 3, 8, 9, 10] }],
    },
    { name: "q", dtype: "<f4", axes: SPACE, levels: [{ shape: [8, 9, 10] }] },
    { name: "other", dtype: "<f4", axes: SPACE, levels: [{ shape: [4, 4, 4] }] },
  ],
});
const [t, q] = dataset.arrays;
if (!t || !q) throw new Error("expected two arrays");
const camera: Camera = {
  eye: [0, 0, 9],
  target: [0, 0, 0],
  up: [0, 1, 0],
  projection: { orthographic: { height_world: 4 } },
};
const transfer = { range: [0, 1], map: "gray", opacity: [[0, 1]] } as const;
const layers = [{ array: "q", visible: true, opacity: 0.5 }];
const view: View = { ...EMPTY_VIEW, array: "t", time: 3, at: { member: 1 }, camera, transfer, layers };

describe("a plane", () => {
  it("shows its slice of the crosshair alone, with the colors of the view", () => {
    const slices = [
      { axis: "x", at: 4 },
      { axis: "y", at: 5, hidden: true },
    ] as const;
    const shown = planeView({ ...view, slices, mode: "maximum" }, t, 1, camera, true);
    expect(shown).toMatchObject({
      mode: "surfaces",
      slices: [{ axis: "y", at: 5, nearest: true }],
      transfer,
      time: 3,
      layers,
    });
    expect(panesOf(view, "planes").map((spec) => spec.kind === "plane" && spec.axis)).toEqual([2, 1, 0]);
  });
});

describe("a cell", () => {
  it("differs from the view where it says so", () => {
    expect(cellView(view, dataset, { time: 1 }, null)).toMatchObject({
      array: "t",
      time: 1,
      at: { member: 1 },
      transfer,
      camera,
      layers,
    });
    const free: Camera = { ...camera, eye: [0, 0, 5] };
    expect(cellView(view, dataset, { at: { member: 2 } }, free)).toMatchObject({
      time: 3,
      at: { member: 2 },
      camera: free,
    });
  });

  it("of another array has its own colors, only positions that exist there, and no slices of another space", () => {
    const sliced: View = { ...view, slices: [{ axis: "x", at: 4 }], mode: "surfaces" };
    const same = cellView(sliced, dataset, { array: "q" }, null);
    expect(same).toMatchObject({
      array: "q",
      time: 0,
      at: {},
      slices: sliced.slices,
      mode: "surfaces",
      camera,
      layers,
    });
    expect(same).not.toHaveProperty("transfer");
    const other = cellView(sliced, dataset, { array: "other" }, null);
    expect(other).toMatchObject({ array: "other", slices: [], layers: [], mode: "composite", camera: null });
  });

  it("beyond the last time step or index shows the last one", () => {
    expect(cellView(view, dataset, { time: 99, at: { member: 7 } }, null)).toMatchObject({
      time: 4,
      at: { member: 2 },
    });
  });

  it("is opened with the next time step, index or array", () => {
    expect(firstCells(dataset, t, view, 3)).toEqual([{ time: 4 }, { time: 0 }, { time: 1 }]);
    expect(firstCells(dataset, q, { ...view, array: "q", time: 0 }, 2)).toEqual([{ array: "t" }, {}]);
    const grid = resizedGrid(null, 2, 2, dataset, t, view);
    expect(grid).toMatchObject({ rows: 2, columns: 2, tied: true });
    expect(panesOf({ grid }, "image")).toHaveLength(3);
    const changed = grid && withCell(grid, 2, { array: "q" });
    const wider = resizedGrid(changed, 2, 3, dataset, t, view);
    expect(wider?.cells).toEqual([{ time: 4 }, { array: "q" }, { time: 1 }, { time: 2 }, { time: 3 }]);
    expect(resizedGrid(wider, 1, 1, dataset, t, view)).toBeNull();
  });

  it("sends only the fields that differ", () => {
    expect(difference({ time: 3, array: "q", camera }, view)).toEqual({ array: "q" });
    // The node has chosen the colors of a layer for this picture, and wrote its members in another order.
    const chosen = [{ opacity: 0.5, array: "q", visible: true, transfer }];
    expect(difference({ layers }, { ...view, layers: chosen })).toEqual({});
    const other = [{ array: "q", visible: true, opacity: 0.5, transfer: { ...transfer, map: "magma" } }];
    expect(difference({ layers: other }, { ...view, layers: chosen })).toEqual({ layers: other });
    expect(difference({ layers: [] }, view)).toEqual({ layers: [] });
  });
});

describe("further pictures on a connection", () => {
  const JOIN = { session: "main", name: "", resume: "", width: 64, height: 48 };
  let posted: FromWorker[];

  beforeEach(() => {
    posted = [];
    vi.useFakeTimers();
    vi.stubGlobal("WebSocket", FakeSocket);
  });

  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  function connect(): { connection: Connection; socket: FakeSocket } {
    const connection = new Connection(webSocketTransport("ws://a/wire"), "t", JOIN, (message) =>
      posted.push(message),
    );
    FakeSocket.last.open();
    return { connection, socket: FakeSocket.last };
  }

  const joins = (socket: FakeSocket) =>
    socket.sent.flatMap((frame) => (frame.kind === "request" && frame.name === "join" ? [frame.op] : []));
  const item = (socket: FakeSocket, op: number, value: object) => {
    const body = new TextEncoder().encode(JSON.stringify(value));
    socket.receive({ kind: "item", op, item: 0, body, bulkBytes: 0, checksum: 0 });
  };

  it("join as operations of their own, whose items and notes are told apart", () => {
    const { connection, socket } = connect();
    connection.openPane(7, JOIN);
    const [main = 0, own = 0] = joins(socket);
    item(socket, own, { kind: "joined", you: 2, role: "own", view: {} });
    expect(posted).toMatchObject([{ kind: "pane", pane: 7, item: { kind: "joined", you: 2 } }]);
    connection.paneNote(7, { kind: "shown", frame: 3 });
    connection.note({ kind: "shown", frame: 4 });
    const notes = socket.sent.flatMap((frame) =>
      frame.kind === "note" ? [[frame.op, JSON.parse(new TextDecoder().decode(frame.body)) as Json]] : [],
    );
    expect(notes).toEqual([
      [own, { kind: "pane" }],
      [own, { kind: "shown", frame: 3 }],
      [main, { kind: "shown", frame: 4 }],
    ]);
  });

  it("end alone, and closed ones report nothing", () => {
    const { connection, socket } = connect();
    connection.openPane(1, JOIN);
    connection.openPane(2, JOIN);
    const [, first = 0, second = 0] = joins(socket);
    connection.closePane(1);
    expect(socket.sent.at(-1)).toEqual({ kind: "cancel", op: first });
    socket.receive({ kind: "done", op: first });
    socket.receive({ kind: "done", op: second });
    expect(posted).toMatchObject([{ kind: "pane", pane: 2, item: { kind: "ended" } }]);
  });

  it("are bounded in number", () => {
    const { connection, socket } = connect();
    for (let pane = 0; pane <= MAX_PANES; pane++) connection.openPane(pane, JOIN);
    expect(joins(socket)).toHaveLength(1 + MAX_PANES);
    expect(posted).toMatchObject([{ kind: "pane", pane: MAX_PANES, item: { kind: "ended" } }]);
  });
});
