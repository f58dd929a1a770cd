//! Field with the position on an axis, in which another one can be typed: a date of the axis's calendar, a coordinate, the name of a
//! channel, or the number of a step as `#12`.

import { texts } from "../../texts/texts.ts";
import type { Axis } from "../../dataset/dataset.ts";
import { positionLabel, positionTitle } from "../../dataset/labels.ts";
import { nearestIndex, type Typed } from "../../dataset/position.ts";
import { el } from "../dom.ts";

/** Widest field, characters: a date with a time of day to a thousandth of a second. */
const MAX_CHARS = 24;

export interface JumpField {
  readonly element: HTMLElement;
  /** Shows the position of an index, unless somebody is typing. */
  show(index: number): void;
}

export function jumpField(
  axis: Axis,
  size: number,
  calendar: string,
  channels: readonly string[],
  go: (index: number) => void,
): JumpField {
  const title = jumpTitle(axis);
  const input = el("input", {
    type: "text",
    class: "jump",
    "aria-label": texts.time.positionOn(axis.name),
    title,
    spellcheck: "false",
    autocomplete: "off",
  });
  const problem = el("span", { class: "jump-problem", role: "alert", hidden: true });
  let shown = 0;
  const label = () => {
    const position = positionLabel(axis, shown, calendar, channels);
    return position === "" ? `#${shown + 1}` : position;
  };
  const show = (index: number) => {
    shown = index;
    if (document.activeElement === input && input.dataset.typed === "true") return;
    const text = label();
    if (input.value !== text) input.value = text;
    input.size = Math.min(Math.max(5, text.length), MAX_CHARS);
    const whole = positionTitle(axis, shown, calendar, channels);
    input.title =
      whole !== text || text.length > MAX_CHARS ? `${whole === "" ? text : whole}. ${title}` : title;
  };
  const complain = (text: string) => {
    problem.textContent = text;
    problem.hidden = text === "";
    input.setAttribute("aria-invalid", String(text !== ""));
  };
  const done = () => {
    delete input.dataset.typed;
    complain("");
    show(shown);
  };
  input.addEventListener("focus", () => {
    input.select();
  });
  input.addEventListener("input", () => {
    input.dataset.typed = "true";
    complain("");
  });
  input.addEventListener("change", () => {
    if (input.dataset.typed !== "true") return;
    const typed = typedIndex(input.value, axis, size, calendar, channels);
    if ("problem" in typed) {
      complain(typed.problem);
      return;
    }
    shown = typed.place;
    done();
    go(typed.place);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    done();
    input.blur();
  });
  input.addEventListener("blur", done);
  return { element: el("span", { class: "jump-field" }, input, problem), show };
}

function jumpTitle({ name, coordinates, units }: Axis): string {
  if (coordinates.kind === "index") return texts.time.typeStep(name);
  return / since /.test(units) ? texts.time.typeDate : texts.time.typeValue(units);
}

/** Returns the index that a text means. */
export function typedIndex(
  text: string,
  axis: Axis,
  size: number,
  calendar: string,
  channels: readonly string[],
): Typed<number> {
  const typed = text.trim();
  const hasCoordinates = axis.coordinates.kind !== "index";
  const number =
    /^#\s*(\d{1,9})$/.exec(typed)?.[1] ?? (hasCoordinates ? undefined : /^\d{1,9}$/.exec(typed)?.[0]);
  if (number !== undefined) {
    const index = Number(number) - 1;
    return index >= 0 && index < size ? { place: index } : { problem: texts.typed.notAStep(size) };
  }
  const plain = (name: string) => name.trim().toLowerCase();
  const own = plain(typed.replace(new RegExp(`^${escaped(axis.name)}\\s+`, "i"), ""));
  const channel = channels.findIndex((name) => plain(name) === own);
  if (axis.kind === "channel" && channel >= 0) return { place: channel };
  if (!hasCoordinates) return { problem: texts.typed.onlySteps(axis.name) };
  return nearestIndex(typed, axis, size, calendar);
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
