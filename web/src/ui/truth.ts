//! The truth badge, always visible: what the picture shows, what is missing, and whether waiting will help.

import { isFinished, type Part, type State } from "../app/state.ts";
import { isEnlarged } from "../draw/picture.ts";
import type { Truth } from "../session/messages.ts";
import { el, setText } from "./dom.ts";

const ORIGINS: Readonly<Record<string, string>> = {
  stored: "stored values",
  mean: "means",
  mode: "most frequent labels",
  sampled: "samples, not means",
  corners: "corners of blocks",
};

/** Single values of a finer level, until something better is there. */
function isQuickLook(origin: string): boolean {
  return origin === "sampled" || origin === "corners";
}

export function truthBadge(): Part {
  const title = el("span", { class: "truth-title" });
  const level = el("span", { class: "truth-level" });
  const bar = el("span", { class: "bar-fill" });
  const progress = el("div", { class: "bar", role: "progressbar", "aria-label": "Blocks present" }, bar);
  const chips = el("div", { class: "chips" });
  const sentence = el("p", { class: "truth-text" });
  const announcer = el("p", { class: "visually-hidden", "aria-live": "polite" });
  const element = el(
    "section",
    { class: "panel truth", id: "truth", "aria-label": "What the picture shows" },
    el("div", { class: "truth-line" }, el("span", { class: "dot" }), title, level),
    progress,
    chips,
    sentence,
    announcer,
  );
  const update = (state: State) => {
    const { truth } = state;
    const words = headline(state);
    element.dataset.tone = tone(state);
    setText(title, words);
    setText(announcer, words);
    setText(level, truth ? levelText(truth) : "");
    setText(sentence, truth?.text ?? "");
    sentence.hidden = sentence.textContent === "";
    setData(element, truth, isPictureEnlarged(state));
    setProgress(progress, bar, state);
    setChips(chips, truth ? chipsOf(state, truth) : []);
  };
  return { element, update };
}

function headline(state: State): string {
  const { truth, connection } = state;
  if (connection.kind !== "open") return connection.kind === "connecting" ? "Connecting" : "Not connected";
  if (!truth) return "Waiting for the first picture";
  if (truth.state === "failed") return "Incomplete";
  if (truth.state === "moving") return "Moving";
  if (!isFinished(state)) return "Sharpening";
  return truth.exact && !isPictureEnlarged(state) ? "Complete, exact" : "Complete";
}

/** The picture at rest has fewer pixels than the screen: a picture of more than the node draws. */
function isPictureEnlarged(state: State): boolean {
  return isFinished(state) && state.frame !== null && isEnlarged(state.frame, state.screen);
}

function tone(state: State): string {
  if (state.connection.kind !== "open") return "idle";
  if (state.truth?.state === "failed") return "failed";
  return isFinished(state) ? "complete" : "loading";
}

/** 0 is full resolution; people read it as such. */
function levelText(truth: Truth): string {
  const name = (level: number) => (level === 0 ? "full resolution" : `level ${level}`);
  if (truth.levelShown === null) return `parts missing → ${name(truth.levelWanted)}`;
  if (truth.levelShown === truth.levelWanted) return name(truth.levelShown);
  // Samples of a level have a number of their own, which says nothing to a person.
  if (truth.origin === "sampled") return `samples → ${name(truth.levelWanted)}`;
  if (truth.origin === "corners") return `corners → ${name(truth.levelWanted)}`;
  return `level ${truth.levelShown} → ${truth.levelWanted}`;
}

function chipsOf(state: State, truth: Truth): { text: string; tone: string }[] {
  const chips = [
    { text: ORIGINS[truth.origin] ?? truth.origin, tone: isQuickLook(truth.origin) ? "warn" : "" },
  ];
  if (truth.blocksTotal > 0) chips.push({ text: blocksText(truth), tone: "" });
  if (truth.levelsMade) {
    const [done, total] = truth.levelsMade;
    chips.push({ text: `making levels: ${done} of ${total} blocks`, tone: "" });
  }
  if (truth.limit === "memory") chips.push({ text: "limited by memory", tone: "warn" });
  else if (truth.limit === "screen" && truth.levelWanted > 0 && truth.levelShown === truth.levelWanted)
    chips.push({ text: "as fine as the screen", tone: "" });
  if (state.frame && isPictureEnlarged(state)) {
    const { frame, screen } = state;
    const text = `enlarged from ${frame.width} × ${frame.height} to ${screen.width} × ${screen.height} pixels`;
    chips.push({ text, tone: "warn" });
  }
  if (state.frame) chips.push({ text: state.frame.codec === "png" ? "lossless" : "lossy JPEG", tone: "" });
  return chips;
}

function blocksText(truth: Truth): string {
  const { blocksPresent: present, blocksTotal: total } = truth;
  return present >= total ? `${total} ${total === 1 ? "block" : "blocks"}` : `${present} of ${total} blocks`;
}

function setChips(container: Element, chips: readonly { text: string; tone: string }[]): void {
  const key = JSON.stringify(chips);
  if (container instanceof HTMLElement && container.dataset.key !== key) {
    container.dataset.key = key;
    container.replaceChildren(
      ...chips.map((chip) => el("span", { class: `tag ${chip.tone}`.trim() }, chip.text)),
    );
  }
}

function setProgress(progress: HTMLElement, bar: HTMLElement, state: State): void {
  const { truth } = state;
  const share = truth && truth.blocksTotal > 0 ? truth.blocksPresent / truth.blocksTotal : 0;
  const isOpenEnded =
    state.connection.kind !== "open" ? state.connection.kind === "connecting" : truth === null;
  progress.classList.toggle("open-ended", isOpenEnded);
  progress.setAttribute("aria-valuenow", String(Math.round(100 * share)));
  bar.style.transform = isOpenEnded ? "" : `scaleX(${share})`;
}

/** Sets the attributes that tests and people's scripts read. */
function setData(element: HTMLElement, truth: Truth | null, isEnlargedPicture: boolean): void {
  const { dataset } = element;
  dataset.levelShown = truth ? String(truth.levelShown ?? "") : "";
  dataset.levelWanted = truth ? String(truth.levelWanted) : "";
  dataset.blocksPresent = truth ? String(truth.blocksPresent) : "";
  dataset.blocksTotal = truth ? String(truth.blocksTotal) : "";
  dataset.state = truth?.state ?? "";
  dataset.exact = truth ? String(truth.exact && !isEnlargedPicture) : "";
}
