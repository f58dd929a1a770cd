//! Saving: commands and code that give the same view, sizes and places, progress and bytes of files.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

import { describe, expect, it, vi } from "vitest";

import { Calls } from "../../app/calls.ts";
import { parseJson, type Json, type JsonObject } from "../../json.ts";
import { parseView } from "../../view/parse.ts";
import { EMPTY_VIEW, type View } from "../../view/schema.ts";
import { pythonLiteral, renderCommand, renderPython, shellWord, viewJson, type PictureCode } from "./code.ts";
import { allFields, stillParameters } from "./picture-form.ts";
import { progressOf, startSaving } from "./saving.ts";
import { filmSize, filmSizes, MAX_FILM_PIXELS, MAX_SIDE, pictureSizes, placesIn, readSide } from "./sizes.ts";

const ROOT = new URL("../../../../", import.meta.url);
/** Limit of a test that starts other programs, which takes long on a busy machine. */
const PROGRAMS_MILLIS = 60_000;

const VIEW: View = {
  ...EMPTY_VIEW,
  array: 'it\'s $HOME `rho` "x"',
  time: 3,
  at: { channel: 1 },
  camera: {
    eye: [1.25e-7, -4.000000000000001, 5_412_345.00025],
    target: [0, 0, 0],
    up: [0, 0, 1],
    projection: { perspective: { fov_y_rad: 0.5 } },
  },
  transfer: {
    range: [-1, 2.5],
    map: "viridis_r",
    opacity: [
      [-1, 0],
      [2.5, 0.75],
    ],
  },
  clip: [
    [0, 0, 0],
    [1, 0.5, 1],
  ],
  background: [255, 255, 255],
  layout: "planes",
  grids: true,
};

const PICTURE: PictureCode = {
  location: "corridor://127.0.0.1:26775/my%20data.nc#token=a'b$(c)",
  view: VIEW,
  width: 16_000,
  height: 9000,
  hasMarks: true,
  isTransparent: true,
  file: "my-data_t3.png",
};

/** Words that a shell makes of a command. */
function words(command: string): string[] {
  const script = `set -- ${command}\nfor word do printf '%s\\0' "$word"; done`;
  return execFileSync("/bin/sh", ["-c", script], { encoding: "utf8" }).split("\0").slice(0, -1);
}

/** Names of the options of `corridor render`, as its source and the table of fields list them. */
function optionNames(): Set<string> {
  const own = readFileSync(new URL("src/cli/mod.rs", ROOT), "utf8");
  const start = own.indexOf("pub(crate) struct RenderOptions");
  const struct = own.slice(start, own.indexOf("\n}\n", start));
  const members = [...struct.matchAll(/pub\(crate\) (\w+):/g)].map((found) => `--${found[1] ?? ""}`);
  const fields = [...readFileSync(new URL("docs/view.md", ROOT), "utf8").matchAll(/`(--[a-z-]+)/g)];
  return new Set([...members, ...fields.map((found) => found[1] ?? "")]);
}

describe("a command", () => {
  it(
    "gives a shell exactly the view, with options that the program has",
    () => {
      const [program, command, location, ...options] = words(renderCommand(PICTURE));
      expect([program, command, location]).toEqual(["corridor", "render", PICTURE.location]);
      const known = optionNames();
      const given = new Map<string, string>();
      while (options.length > 0) {
        const name = options.shift() ?? "";
        if (name !== "-o") expect(known, name).toContain(name);
        given.set(name, name === "--annotate" ? "" : (options.shift() ?? ""));
      }
      expect(given.get("-o")).toBe("my-data_t3.png");
      expect(given.get("--size")).toBe("16000x9000");
      expect(given.get("--background")).toBe("transparent");
      expect(given.has("--annotate")).toBe(true);
      const json = parseJson(given.get("--view") ?? "");
      expect({ ...EMPTY_VIEW, ...parseView(json).patch }).toEqual({ ...VIEW, layout: null });
    },
    PROGRAMS_MILLIS,
  );

  it("names only fields of the schema", () => {
    const schema = JSON.parse(readFileSync(new URL("docs/view.schema.json", ROOT), "utf8")) as {
      properties: object;
    };
    for (const name of Object.keys(viewJson(VIEW))) expect(Object.keys(schema.properties)).toContain(name);
  });

  it(
    "quotes every word that a shell would change",
    () => {
      for (const text of [
        "",
        "a b",
        "it's",
        "$(x)",
        "`x`",
        "a\nb",
        "~",
        "*",
        "!x",
        "\\",
        "é",
        "{a,b}",
        "#x",
        "-",
      ])
        expect(words(shellWord(text))).toEqual([text]);
      expect(shellWord("1024x800")).toBe("1024x800");
    },
    PROGRAMS_MILLIS,
  );
});

describe("Python", () => {
  /** Value of a literal, as Python reads it. */
  const read = (literal: string): Json =>
    parseJson(
      execFileSync(
        "python3",
        ["-c", "import ast,json,sys; print(json.dumps(ast.literal_eval(sys.stdin.read())))"],
        {
          input: literal,
          encoding: "utf8",
        },
      ),
    );

  it(
    "has the same view",
    () => {
      const code = renderPython(PICTURE);
      expect(code).toMatch(/size=\(16000, 9000\),\n {4}pixels="rgba",/);
      const literal = /^ {4}view=(.*),$/m.exec(code)?.[1] ?? "";
      expect({ ...EMPTY_VIEW, ...parseView(read(literal)).patch }).toEqual({ ...VIEW, layout: null });
    },
    PROGRAMS_MILLIS,
  );

  it(
    "has literals that Python reads back",
    () => {
      const value: JsonObject = { a: [null, true, false, -1.5e-300, 1e21], 'b"\\\n': "é \u2028 ' \" \\" };
      expect(read(pythonLiteral(value))).toEqual(value);
    },
    PROGRAMS_MILLIS,
  );
});

describe("sizes", () => {
  it("keep the shape of the window, up to the largest", () => {
    const sizes = pictureSizes({ width: 1600, height: 900 }).map(({ size }) => size);
    expect(sizes[0]).toEqual({ width: 1600, height: 900 });
    expect(sizes.at(-1)).toEqual({ width: MAX_SIDE, height: 9216 });
    for (const { size } of pictureSizes({ width: 9, height: 9000 }))
      expect(Math.max(size.width, size.height)).toBeLessThanOrEqual(MAX_SIDE);
  });

  it("of films are even and bounded", () => {
    for (const screen of [
      { width: 1601, height: 901 },
      { width: 7680, height: 4320 },
      { width: 3, height: 5 },
    ]) {
      const { width, height } = filmSize(screen);
      expect([width % 2, height % 2]).toEqual([0, 0]);
      expect(width * height).toBeLessThanOrEqual(MAX_FILM_PIXELS);
      expect(Math.min(width, height)).toBeGreaterThanOrEqual(16);
    }
    expect(filmSizes({ width: 1601, height: 901 })[0]?.size).toEqual({ width: 1600, height: 900 });
  });

  it("that are typed are whole numbers of pixels", () => {
    expect(["1", "16384", "0", "16385", "1.5", "", "x"].map(readSide)).toEqual([
      1,
      16_384,
      null,
      null,
      null,
      null,
      null,
    ]);
  });

  it("of pictures side by side cover the whole without overlaps", () => {
    const cell = (left: number, top: number) => ({ left, top, width: 33.5, height: 20 });
    const places = [cell(10, 5), cell(43.5, 5), cell(10, 25), cell(43.5, 25)];
    const found = placesIn(places, { width: 101, height: 77 });
    expect(found.map(({ width, height }) => width * height).reduce((a, b) => a + b)).toBe(101 * 77);
    expect(found[3]).toEqual({ left: 51, top: 39, width: 50, height: 38 });
  });
});

describe("parameters of a picture", () => {
  it("contain the view with its nulls, and the places of several", () => {
    const wish = {
      size: { width: 200, height: 100 },
      view: VIEW,
      isTransparent: false,
      hasMarks: true,
      panes: [
        { name: "First picture", view: null, place: { left: 0, top: 0, width: 10, height: 10 } },
        {
          name: "z",
          view: { ...VIEW, stereo: null, time: 5 },
          place: { left: 10, top: 0, width: 10, height: 10 },
        },
      ],
    };
    const { panes, ...rest } = stillParameters(wish, 7);
    expect(rest).toEqual({
      participant: 7,
      view: allFields(VIEW),
      width: 200,
      height: 100,
      annotations: true,
      transparent: false,
    });
    expect(rest.view).toHaveProperty("level", null);
    expect(panes).toMatchObject([
      { left: 0, top: 0, width: 100, height: 100, view: { time: 3 } },
      { left: 100, top: 0, width: 100, height: 100, view: { time: 5, stereo: null } },
    ]);
  });
});

describe("a file", () => {
  const begin = () => {
    const sent: unknown[] = [];
    const calls = new Calls((message) => sent.push(message));
    const receiver = { progress: vi.fn(), saved: vi.fn(), failed: vi.fn() };
    const cancel = startSaving(calls, "still", { width: 4 }, "image/png", receiver);
    const item = (value: Json, bytes: readonly number[] = []) => {
      calls.called(1, value, new Uint8Array(bytes));
    };
    return { sent, calls, receiver, cancel, item };
  };

  it("is made of its pieces in order", async () => {
    const { calls, receiver, item } = begin();
    item({ progress: { what: "rows", done: 1, total: 4 } });
    item({ piece: { offset: 0 } }, [1, 2, 3]);
    item({ piece: { offset: 3 } }, [4]);
    item({ result: { text: "Level 0.", bytes: 4 } });
    calls.ended(1, null);
    expect(receiver.progress).toHaveBeenCalledWith("Drawing: 25 %", 0.25);
    const [file, text] = receiver.saved.mock.calls[0] as [Blob, string];
    expect([...new Uint8Array(await file.arrayBuffer())]).toEqual([1, 2, 3, 4]);
    expect([file.type, text]).toEqual(["image/png", "Level 0."]);
    expect(receiver.failed).not.toHaveBeenCalled();
  });

  it("with a gap, or without its end, fails", () => {
    const gap = begin();
    gap.item({ piece: { offset: 2 } }, [1]);
    expect(gap.receiver.failed).toHaveBeenCalledWith("parts of the file are missing; try again");
    expect(gap.sent).toContainEqual({ kind: "cancelCall", id: 1 });
    const short = begin();
    short.item({ piece: { offset: 0 } }, [1]);
    short.item({ result: { text: "", bytes: 2 } });
    short.calls.ended(1, null);
    expect(short.receiver.failed).toHaveBeenCalledTimes(1);
    expect(short.receiver.saved).not.toHaveBeenCalled();
  });

  it("fails once with the connection, and says nothing after it is cancelled", () => {
    const lost = begin();
    lost.calls.disconnected();
    expect(lost.receiver.failed.mock.calls).toEqual([["the connection was lost"]]);
    const { receiver, cancel, item, sent } = begin();
    cancel();
    item({ piece: { offset: 0 } }, [1]);
    expect(sent).toContainEqual({ kind: "cancelCall", id: 1 });
    expect([receiver.failed, receiver.saved].every((spy) => spy.mock.calls.length === 0)).toBe(true);
  });

  it("has progress in words", () => {
    expect(progressOf({ what: "blocks", done: 5, total: 10 })).toEqual(["Reading the data: 50 %", 0.5]);
    expect(progressOf({ what: "waiting", done: 0, total: 0 })).toEqual([
      "Waiting for another picture or film",
      null,
    ]);
    expect(progressOf({ what: "pictures", done: 10, total: 10 })[0]).toBe("Drawing picture 10 of 10");
  });
});
