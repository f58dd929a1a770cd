//! Saving the picture: requests to the node, and messages for the user.

import { afterEach, beforeEach, expect, it, vi } from "vitest";

import type { Picture } from "../draw/picture.ts";
import type { FrameInfo } from "../session/messages.ts";
import { Screenshot } from "./screenshot.ts";
import { INITIAL_STATE, type ConnectionState, type State } from "./state.ts";
import { Toasts } from "./toasts.ts";

const FIDELITY = {
  levelShown: 0,
  levelWanted: 0,
  origin: "stored",
  limit: "finest",
  blocksPresent: 1,
  blocksTotal: 1,
  state: "moving",
  exact: false,
  levelsMade: null,
  isResampled: false,
  text: "",
} as const;
const FRAME: FrameInfo = { id: 1, seq: 0, width: 4, height: 4, codec: "jpeg", fidelity: FIDELITY };
let said: string[];
let stills: number;
let saved: number;

beforeEach(() => {
  vi.useFakeTimers();
  [said, stills, saved] = [[], 0, 0];
});

afterEach(() => {
  vi.useRealTimers();
});

function take(connection: ConnectionState): void {
  const state: State = { ...INITIAL_STATE, connection, frame: FRAME, fidelity: FIDELITY };
  const toPng = () => {
    saved++;
    return Promise.resolve(null);
  };
  new Screenshot({
    picture: { toPng } as unknown as Picture,
    toasts: new Toasts((list) => {
      said = list.map((toast) => toast.text);
    }),
    state: () => state,
    requestStill: () => stills++,
    paint: () => undefined,
  }).take();
}

it("an exact picture is requested if the shown one is not, and a message announces the wait", () => {
  take({ kind: "open", isSilent: false });
  expect([stills, saved]).toEqual([1, 0]);
  expect(said).toEqual(["Waiting for an exact picture to save"]);
  vi.advanceTimersByTime(6000);
  expect(saved).toBe(1);
});

it("without a connection the picture on the screen is saved at once", () => {
  take({ kind: "waiting", reason: "", isBusy: false, untilMillis: 0 });
  expect([stills, saved]).toEqual([0, 1]);
});
