//! Resolution: chosen by the viewer, or forced to one level.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { isDrawn, type ArrayInfo, type Level } from "../../dataset/dataset.ts";
import { formatShape } from "../../dataset/labels.ts";
import { el, setOptions, setText } from "../dom.ts";

const AUTOMATIC = "auto";

export function levelControl(actions: Actions): Component {
  const select = el("select", { "aria-label": texts.level.resolution, id: "level" });
  const hint = el("p", { class: "hint" });
  select.addEventListener("change", () => {
    actions.change({ level: select.value === AUTOMATIC ? null : Number(select.value) });
  });
  const element = el(
    "section",
    { class: "group" },
    el("h2", {}, texts.level.resolution),
    el("label", { class: "select" }, select),
    hint,
  );
  const update = (state: State) => {
    const { array, view } = state;
    const levels = (array?.levels ?? []).map((level, number) => ({
      value: String(number),
      label: array ? labelOf(array, level, number) : "",
    }));
    const forced = view.level === null ? AUTOMATIC : String(view.level);
    setOptions(select, [{ value: AUTOMATIC, label: texts.level.automatic }, ...levels], forced);
    // A level that does not exist, from a link, can be replaced.
    select.disabled = levels.length < 2 && view.level === null;
    setText(hint, hintOf(levels.length, view.level));
  };
  return { element, update };
}

function hintOf(levels: number, forced: number | null): string {
  if (forced !== null) return texts.level.forced;
  if (levels < 2) return texts.level.onlyOne;
  return texts.level.asNeeded;
}

function labelOf(array: ArrayInfo, level: Level, number: number): string {
  const shape = level.shape.filter((_, i) => isDrawn(array, i));
  return `${number} · ${formatShape(shape)} · ${level.origin}`;
}
