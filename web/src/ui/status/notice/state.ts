//! Choice of the notice over the picture: in every state without a picture of data it says why, and what helps. Pure.

import { statsShown, type State } from "../../../app/state.ts";
import { isDrawable, spaceShape } from "../../../dataset/dataset.ts";
import { formatNumber } from "../../../dataset/labels.ts";
import { hintOf } from "../../../keys/table.ts";
import { texts } from "../../../texts/texts.ts";
import { isAnythingVisible } from "../../../transfer/edit.ts";
import { SPACE_AXES, type Slice } from "../../../view/schema.ts";
import { isVisible, opacityOf } from "../../layers/edit.ts";

export type NoticeAction = "retry" | "token" | "opacity" | "clip" | "camera" | "volume" | "open";

export interface Notice {
  readonly tone: "busy" | "bad" | "hint";
  readonly title: string;
  readonly text: string;
  readonly action: NoticeAction | null;
}

const words = texts.notices;

/** Returns the notice for a state; null if the picture speaks for itself. */
export function noticeFor(state: State, nowMillis: number): Notice | null {
  const { connection } = state;
  switch (connection.kind) {
    case "connecting":
      return state.frame ? null : { tone: "busy", ...words.connecting, action: null };
    case "waiting": {
      const seconds = Math.max(0, Math.ceil((connection.untilMillis - nowMillis) / 1000));
      const broken = state.frame ? words.lost : words.unreachable;
      const text = `${sentence(connection.reason)} ${words.tryingAgain(seconds)}`;
      return { tone: "bad", title: connection.isBusy ? words.busy : broken, text, action: "retry" };
    }
    case "refused":
      if (state.together.removedBy !== null) return removed(state.together.removedBy);
      return refusal(connection.reason, connection.needsToken);
    case "unsupported":
      return { tone: "bad", title: words.unsupported, text: connection.reason, action: null };
    case "open":
      return connection.isSilent ? { tone: "bad", ...words.silent, action: "retry" } : opened(state);
  }
}

function removed(by: string): Notice {
  return { tone: "bad", title: words.removed.title, text: words.removed.text(by), action: "token" };
}

function refusal(reason: string, needsToken: boolean): Notice {
  if (!needsToken) return { tone: "bad", title: words.refused, text: sentence(reason), action: "retry" };
  const text = `${sentence(reason)} ${words.token.how}`;
  return { tone: "bad", title: words.token.title, text, action: "token" };
}

function opened(state: State): Notice | null {
  const { dataset, array, view, fidelity, frame } = state;
  if (dataset && !dataset.arrays.some(isDrawable))
    return { tone: "bad", ...words.nothingToDraw, action: "open" };
  if (dataset && !array && view.array !== "") {
    return { tone: "bad", title: words.noArray.title, text: words.noArray.text(view.array), action: null };
  }
  if (fidelity?.state === "failed" && !frame)
    return { tone: "bad", title: words.noPicture, text: fidelity.text, action: "open" };
  if (!frame) {
    const waiting = dataset ? words.firstPicture : words.description;
    const title = dataset ? words.opening(dataset.name) : words.connected;
    return { tone: "busy", title, text: fidelity?.text || waiting, action: null };
  }
  return empty(state);
}

/** Returns the notice for a picture in which nothing of the data can be seen, if that is known. */
function empty(state: State): Notice | null {
  const { view, fidelity, array } = state;
  const isAtRest = fidelity?.state === "complete";
  const hint = (what: { readonly title: string; readonly text: string }, action: NoticeAction): Notice => ({
    tone: "hint",
    title: what.title,
    text: what.text,
    action,
  });
  const slices = view.slices.filter((slice) => slice.hidden !== true);
  const hasLayers = view.layers.some((layer) => isVisible(layer) && opacityOf(layer) > 0);
  if (view.mode === "surfaces" && view.surfaces.length === 0 && !hasLayers) {
    if (slices.length === 0) return hint(words.nothingChosen, "volume");
    if (array && slices.every((slice) => isOutside(slice, spaceShape(array))))
      return hint(words.sliceOutside, "volume");
  }
  if (isAtRest && fidelity.blocksTotal === 0) {
    if (view.clip) return hint(words.clip, "clip");
    const { title, text } = words.outside;
    return hint({ title, text: text(hintOf("resetCamera")) }, "camera");
  }
  const shown = statsShown(state)?.stats ?? null;
  if (shown && shown.count === 0 && shown.missing > 0) {
    const { title, text } = words.noValues;
    return { tone: "hint", title, text: text(view.clip !== null), action: view.clip ? "clip" : null };
  }
  if (view.mode === "surfaces" && view.surfaces.length > 0 && slices.length === 0 && shown) {
    const isMissed = view.surfaces.every(({ value }) => value < shown.min || value > shown.max);
    const { title, text } = words.surfaceOutside;
    const [low, high] = [formatNumber(shown.min), formatNumber(shown.max)];
    if (isMissed) return hint({ title, text: text(low, high) }, "volume");
  }
  // Without a histogram of this step and channel it is unknown what can be seen.
  const isKnown = shown !== null || state.stats === null;
  const isAlone = view.surfaces.length === 0 && slices.length === 0 && !hasLayers;
  const isVolume = view.mode === "composite" && isAlone;
  if (isVolume && isKnown && view.transfer && !isAnythingVisible(view.transfer, shown?.histogram ?? null))
    return hint(words.transparent, "opacity");
  return null;
}

/** True for a slice across an axis at an index that the volume does not have. */
function isOutside({ axis, at, normal }: Slice, shape: readonly number[]): boolean {
  const size = shape[SPACE_AXES.indexOf(axis)] ?? 1;
  return normal === undefined && (at < -0.5 || at > size - 0.5);
}

/** Makes a sentence of a message, which begins in lower case and has no final period. */
function sentence(message: string): string {
  const text = message.trim();
  if (text === "") return "";
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");
}
