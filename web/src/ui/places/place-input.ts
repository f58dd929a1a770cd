//! Field in which a place is typed: shows it, and says what is wrong with what was typed.

import { texts } from "../../texts/texts.ts";
import type { Typed } from "../../dataset/position.ts";
import { el } from "../dom.ts";

export interface PlaceInput {
  readonly element: HTMLInputElement;
  /** Shows a place, unless somebody is typing another one. */
  set(text: string): void;
}

/** `parse` reads what was typed, `go` gets the place. */
export function placeInput(
  label: string,
  parse: (text: string) => Typed<number>,
  go: (place: number) => void,
): PlaceInput {
  const element = el("input", {
    type: "text",
    class: "number place",
    "aria-label": label,
    spellcheck: "false",
    autocomplete: "off",
  });
  let shown = "";
  let isTyping = false;
  const complain = (problem: string) => {
    element.setCustomValidity(problem);
    element.setAttribute("aria-invalid", String(problem !== ""));
    element.title = problem === "" ? label : problem;
    if (problem !== "") element.reportValidity();
  };
  const restore = () => {
    isTyping = false;
    complain("");
    element.value = shown;
  };
  element.addEventListener("input", () => {
    isTyping = true;
    complain("");
  });
  element.addEventListener("change", () => {
    const typed = parse(element.value);
    if ("problem" in typed) {
      complain(typed.problem);
      return;
    }
    restore();
    go(typed.place);
  });
  element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") restore();
  });
  complain("");
  const set = (text: string) => {
    shown = text;
    if (!isTyping && element.value !== text) element.value = text;
  };
  return { element, set };
}

/** Reads an index, counted from 0. */
export function parseIndex(text: string, size: number): Typed<number> {
  const typed = text.trim();
  const index = Number(typed);
  return typed !== "" && Number.isFinite(index) && index >= 0 && index <= size - 1
    ? { place: index }
    : { problem: texts.typed.notAnIndexTo(size - 1) };
}
