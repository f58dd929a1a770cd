//! Every state without a picture of data has a sentence that says what to do.

import { describe, expect, it } from "vitest";

import { INITIAL_STATE, type State } from "../../../app/state.ts";
import { parseDataset, type ArrayInfo } from "../../../dataset/dataset.ts";
import { DATASET } from "../../../dataset/sample.ts";
import { statsKey } from "../../../dataset/stats.ts";
import { parseJson } from "../../../json.ts";
import type { FrameInfo } from "../../../session/messages.ts";
import { texts } from "../../../texts/texts.ts";
import type { View } from "../../../view/schema.ts";
import { noticeFor } from "./state.ts";

const words = texts.notices;
const dataset = parseDataset(parseJson(JSON.stringify(DATASET)));
const [array] = dataset.arrays;
if (!array) throw new Error("expected an array");

const FRAME: FrameInfo = {
  id: 1,
  seq: 0,
  width: 4,
  height: 4,
  codec: "png",
  fidelity: {
    levelShown: 0,
    levelWanted: 0,
    origin: "stored",
    limit: "finest",
    blocksPresent: 1,
    blocksTotal: 1,
    state: "complete",
    exact: true,
    levelsMade: null,
    isResampled: false,
    text: "",
  },
};
const TRANSFER = {
  range: [0, 1],
  map: "gray",
  opacity: [
    [0, 0],
    [1, 1],
  ],
} as const;
const OPEN = { kind: "open", isSilent: false } as const;

/** A complete picture of the array, with changes of the view and the state. */
function shown(view: Partial<View> = {}, change: Partial<State> = {}): State {
  const now: View = { ...INITIAL_STATE.view, transfer: TRANSFER, ...view };
  const { fidelity } = FRAME;
  return {
    ...INITIAL_STATE,
    connection: OPEN,
    dataset,
    array: array ?? null,
    view: now,
    frame: FRAME,
    fidelity,
    ...change,
  };
}

/** Statistics of the step that a state shows. */
function withStats(state: State, count: number, missing: number, counts: readonly number[]): State {
  const stats = { count, missing, min: 0, max: 1, mean: 0.5, histogram: { low: 0, high: 1, counts } };
  const position = statsKey(array as ArrayInfo, state.view);
  return { ...state, stats: { array: array?.name ?? "", level: 0, position, stats } };
}

function expectNotice(state: State, title: string, action: string | null, part = ""): void {
  const found = noticeFor(state, 0);
  expect(found?.title).toBe(title);
  expect(found?.action).toBe(action);
  expect(found?.text).toContain(part);
  // A sentence.
  expect(found?.text).toMatch(/^[\p{Lu}\p{N}].*[.…]$/su);
}

describe("without a picture, the notice", () => {
  it("says that the page connects, waits for the description and for the first picture", () => {
    expectNotice(INITIAL_STATE, words.connecting.title, null);
    const none = { frame: null, fidelity: null };
    expectNotice(
      shown({}, { ...none, dataset: null, array: null }),
      words.connected,
      null,
      words.description,
    );
    expectNotice(shown({}, none), words.opening(dataset.name), null, words.firstPicture);
    const loading = { ...FRAME.fidelity, state: "loading", text: "Reading the header." } as const;
    expectNotice(shown({}, { frame: null, fidelity: loading }), words.opening(dataset.name), null, "header");
  });

  it("says why the connection is lost, cannot be made, or has no place, and when it tries again", () => {
    const waiting = {
      kind: "waiting",
      reason: "the network broke",
      isBusy: false,
      untilMillis: 2500,
    } as const;
    expectNotice(
      shown({}, { connection: waiting }),
      words.lost,
      "retry",
      "The network broke. Trying again in 3 s.",
    );
    expectNotice({ ...INITIAL_STATE, connection: waiting }, words.unreachable, "retry");
    const reason = "the session is full: it has 64 participants";
    const full = { ...waiting, reason, isBusy: true, untilMillis: 0 };
    expectNotice(
      { ...INITIAL_STATE, connection: full },
      words.busy,
      "retry",
      "64 participants. Trying again now.",
    );
    const silent = { kind: "open", isSilent: true } as const;
    expectNotice(shown({}, { connection: silent }), words.silent.title, "retry");
  });

  it("says what is wrong with the token, the data or the browser", () => {
    const wrong = {
      kind: "refused",
      reason: "the token is not the one of this server",
      needsToken: true,
    } as const;
    expectNotice({ ...INITIAL_STATE, connection: wrong }, words.token.title, "token", "Open the link");
    const refused = { kind: "refused", reason: "no such session", needsToken: false } as const;
    expectNotice({ ...INITIAL_STATE, connection: refused }, words.refused, "retry", "No such session.");
    for (const reason of [words.noBrowserSupport, words.noWorker, words.unencrypted])
      expectNotice(
        { ...INITIAL_STATE, connection: { kind: "unsupported", reason } },
        words.unsupported,
        null,
      );
  });

  it("says that there is nothing to draw, or no array of that name", () => {
    const empty = parseDataset({
      arrays: [{ name: "a", axes: [{ name: "x", kind: "x" }], levels: [{ shape: [1] }] }],
    });
    expectNotice(shown({}, { dataset: empty, array: null, frame: null }), words.nothingToDraw.title, "open");
    expectNotice(shown({ array: "gone" }, { array: null, frame: null }), words.noArray.title, null, "`gone`");
    const failed = { ...FRAME.fidelity, state: "failed", text: "The file has ended early." } as const;
    expectNotice(shown({}, { frame: null, fidelity: failed }), words.noPicture, "open", "ended early");
  });
});

describe("with a picture that shows nothing, the notice", () => {
  const nothing = { ...FRAME.fidelity, blocksTotal: 0, blocksPresent: 0 };

  it("is absent if something is shown, and while it loads", () => {
    expect(noticeFor(shown(), 0)).toBeNull();
    expect(noticeFor(withStats(shown(), 8, 0, [4, 4]), 0)).toBeNull();
    const loading = { ...nothing, state: "loading" } as const;
    expect(noticeFor(shown({}, { fidelity: loading }), 0)).toBeNull();
  });

  it("names the transfer function that hides every value", () => {
    const hidden = {
      ...TRANSFER,
      opacity: [
        [0, 0],
        [1, 0],
      ] as const,
    };
    expectNotice(shown({ transfer: hidden }), words.transparent.title, "opacity");
    const some = {
      ...TRANSFER,
      opacity: [
        [0, 0],
        [0.8, 0],
        [0.9, 1],
      ] as const,
    };
    expectNotice(withStats(shown({ transfer: some }), 8, 0, [8, 0]), words.transparent.title, "opacity");
    expect(noticeFor(withStats(shown({ transfer: some }), 8, 0, [0, 8]), 0)).toBeNull();
    // Isosurfaces are seen in any case.
    const surfaces = [{ value: 0.5, color: [1, 2, 3], opacity: 1 }] as const;
    expect(noticeFor(shown({ transfer: hidden, surfaces }), 0)).toBeNull();
  });

  it("is absent where a layer can be seen, without surfaces or with values that are hidden", () => {
    const hidden = { ...TRANSFER, opacity: [[0, 0] as const] };
    const layers = [{ array: "other", visible: true, opacity: 0.5 }];
    expect(noticeFor(shown({ mode: "surfaces", layers }), 0)).toBeNull();
    expect(noticeFor(withStats(shown({ mode: "surfaces", layers }), 8, 0, [4, 4]), 0)).toBeNull();
    expect(noticeFor(shown({ transfer: hidden, layers }), 0)).toBeNull();
    const off = [{ array: "other", visible: false }];
    expectNotice(shown({ mode: "surfaces", layers: off }), words.nothingChosen.title, "volume");
    expectNotice(shown({ transfer: hidden, layers: off }), words.transparent.title, "opacity");
  });

  it("names the clip box, or the camera that looks past the data", () => {
    const clip = [
      [0, 0, 0],
      [0, 0, 0],
    ] as const;
    expectNotice(shown({ clip }, { fidelity: nothing }), words.clip.title, "clip");
    expectNotice(shown({}, { fidelity: nothing }), words.outside.title, "camera", "(R)");
  });

  it("names what is to be drawn but does not exist", () => {
    expectNotice(shown({ mode: "surfaces" }), words.nothingChosen.title, "volume");
    const slice = (at: number) => ({ axis: "x", at }) as const;
    expectNotice(
      shown({ mode: "surfaces", slices: [{ ...slice(0), hidden: true }] }),
      words.nothingChosen.title,
      "volume",
    );
    expectNotice(
      shown({ mode: "surfaces", slices: [slice(1e6), slice(-3)] }),
      words.sliceOutside.title,
      "volume",
    );
    expect(noticeFor(shown({ mode: "surfaces", slices: [slice(1e6), slice(0)] }), 0)).toBeNull();
    const surfaces = [{ value: 7, color: [1, 2, 3], opacity: 1 }] as const;
    const missed = withStats(shown({ mode: "surfaces", surfaces }), 8, 0, [4, 4]);
    expectNotice(missed, words.surfaceOutside.title, "volume", "between 0 and 1");
  });

  it("says that all values are missing", () => {
    expectNotice(withStats(shown(), 0, 8, []), words.noValues.title, null, "this array");
    const clip = [
      [0, 0, 0],
      [0.5, 1, 1],
    ] as const;
    expectNotice(withStats(shown({ clip }), 0, 8, []), words.noValues.title, "clip", "clip box");
  });
});
