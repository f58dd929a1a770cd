//! The fidelity badge, always visible: what the picture shows, what is missing, and whether more will arrive.

import { texts } from "../../texts/texts.ts";
import { isFinished, type Component, type State } from "../../app/state.ts";
import { isEnlarged, type PixelSize } from "../../draw/picture.ts";
import type { Fidelity } from "../../session/messages.ts";
import { el, setAttributes, setText } from "../dom.ts";

const words = texts.fidelity;
const ORIGINS: Readonly<Record<string, string>> = words.origins;

/** True for single values of a finer level, shown until better data arrive. */
function isPreview(origin: string): boolean {
  return origin === "sampled" || origin === "corners";
}

export function fidelityBadge(): Component {
  const title = el("span", { class: "fidelity-title" });
  const level = el("span", { class: "fidelity-level" });
  const bar = el("span", { class: "bar-fill" });
  const progress = el(
    "div",
    { class: "bar", role: "progressbar", "aria-label": texts.fidelity.blocksPresent },
    bar,
  );
  const chips = el("div", { class: "chips" });
  const sentence = el("p", { class: "fidelity-text" });
  const announcer = el("p", { class: "visually-hidden", "aria-live": "polite" });
  const element = el(
    "section",
    { class: "panel fidelity", id: "fidelity", "aria-label": texts.fidelity.whatThePictureShows },
    el("div", { class: "fidelity-line" }, el("span", { class: "dot" }), title, level),
    progress,
    chips,
    sentence,
    announcer,
  );
  const update = (state: State) => {
    const { fidelity } = state;
    const words = headline(state);
    element.dataset.tone = tone(state);
    setText(title, words);
    setText(announcer, words);
    setText(level, fidelity ? levelText(fidelity) : "");
    setText(sentence, fidelity?.text ?? "");
    sentence.hidden = sentence.textContent === "";
    setData(element, fidelity, isPictureEnlarged(state));
    setProgress(progress, bar, state);
    setChips(chips, fidelity ? chipsOf(state, fidelity) : []);
  };
  return { element, update };
}

function headline(state: State): string {
  const { fidelity, connection } = state;
  if (connection.kind !== "open")
    return connection.kind === "connecting" ? words.connecting : words.notConnected;
  if (!fidelity) return words.waiting;
  if (fidelity.state === "failed") return words.incomplete;
  if (fidelity.state === "moving") return words.moving;
  if (!isFinished(state)) return words.refining;
  if (fidelity.blocksTotal === 0) return words.nothingInView;
  return fidelity.exact && !fidelity.isResampled && !isPictureEnlarged(state) ? words.exact : words.complete;
}

/** True if the picture at rest has fewer pixels than the screen, because the node renders no larger ones. */
function isPictureEnlarged(state: State): boolean {
  return isFinished(state) && state.frame !== null && isEnlarged(state.frame, state.screen);
}

function tone(state: State): string {
  if (state.connection.kind !== "open") return "idle";
  if (state.fidelity?.state === "failed") return "failed";
  return isFinished(state) ? "complete" : "loading";
}

/** Describes the level; level 0 is full resolution. */
function levelText(fidelity: Fidelity): string {
  const name = (level: number) => (level === 0 ? words.fullResolution : words.level(level));
  if (fidelity.levelShown === null) return words.toward(words.partsMissing, name(fidelity.levelWanted));
  if (fidelity.levelShown === fidelity.levelWanted) return name(fidelity.levelShown);
  // Samples have a level number of their own, which does not help users.
  if (fidelity.origin === "sampled") return words.toward(words.samples, name(fidelity.levelWanted));
  if (fidelity.origin === "corners") return words.toward(words.corners, name(fidelity.levelWanted));
  return words.toward(words.level(fidelity.levelShown), fidelity.levelWanted);
}

function chipsOf(state: State, fidelity: Fidelity): { text: string; tone: string }[] {
  const chips = [{ text: valuesText(state, fidelity), tone: isPreview(fidelity.origin) ? "warn" : "" }];
  if (fidelity.blocksTotal > 0) chips.push({ text: blocksText(fidelity), tone: "" });
  if (fidelity.levelsMade) {
    const [done, total] = fidelity.levelsMade;
    chips.push({ text: words.makingLevels(done, total), tone: "" });
  }
  if (fidelity.limit === "memory") chips.push({ text: words.limitedByMemory, tone: "warn" });
  else if (
    fidelity.limit === "screen" &&
    fidelity.levelWanted > 0 &&
    fidelity.levelShown === fidelity.levelWanted
  )
    chips.push({ text: words.screenResolution, tone: "" });
  if (state.frame && isPictureEnlarged(state)) {
    const { frame, screen } = state;
    const text = words.enlarged(sides(frame), sides(screen));
    chips.push({ text, tone: "warn" });
  }
  if (state.frame) chips.push({ text: state.frame.codec === "png" ? words.lossless : words.lossy, tone: "" });
  return chips;
}

function sides({ width, height }: PixelSize): string {
  return `${width} × ${height}`;
}

/** Says what the values in the picture are; without any, that there are none. */
function valuesText({ array, view }: State, fidelity: Fidelity): string {
  if (fidelity.state === "complete" && fidelity.blocksTotal === 0) return words.nothing;
  const values = ORIGINS[fidelity.origin] ?? fidelity.origin;
  const isCut = view.clip !== null ? words.partOfVolume : "";
  if (array?.meaning === "colors") return `${words.colorsOf(values)}${isCut}`;
  return `${fidelity.isResampled ? words.resampled(values) : values}${isCut}`;
}

function blocksText(fidelity: Fidelity): string {
  const { blocksPresent: present, blocksTotal: total } = fidelity;
  return present >= total ? words.blocks(total) : words.someBlocks(present, total);
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
  const { fidelity } = state;
  const share = fidelity && fidelity.blocksTotal > 0 ? fidelity.blocksPresent / fidelity.blocksTotal : 0;
  const isOpenEnded =
    state.connection.kind !== "open" ? state.connection.kind === "connecting" : fidelity === null;
  progress.classList.toggle("open-ended", isOpenEnded);
  setAttributes(progress, { "aria-valuenow": !isOpenEnded && String(Math.round(100 * share)) });
  bar.style.transform = isOpenEnded ? "" : `scaleX(${share})`;
}

/** Sets the attributes that tests and scripts read. */
function setData(element: HTMLElement, fidelity: Fidelity | null, isEnlargedPicture: boolean): void {
  const { dataset } = element;
  dataset.levelShown = fidelity ? String(fidelity.levelShown ?? "") : "";
  dataset.levelWanted = fidelity ? String(fidelity.levelWanted) : "";
  dataset.blocksPresent = fidelity ? String(fidelity.blocksPresent) : "";
  dataset.blocksTotal = fidelity ? String(fidelity.blocksTotal) : "";
  dataset.state = fidelity?.state ?? "";
  dataset.exact = fidelity ? String(fidelity.exact && !isEnlargedPicture) : "";
}
