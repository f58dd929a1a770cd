//! Header at the top left: the data set, and a menu of its arrays.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { isDrawable, type ArrayInfo } from "../../dataset/dataset.ts";
import { formatElements, formatShape, formatUnits } from "../../dataset/labels.ts";
import { el, setOptions, setText } from "../dom.ts";
import { avatars } from "../together/avatars.ts";

/** Maximum number of notes of an array that are shown; the tooltip has all of them. */
const MAX_NOTES = 2;

export function header(actions: Actions): Component {
  const name = el("h1", { class: "header-name" }, texts.app.name);
  const format = el("span", { class: "tag" });
  const select = el("select", { "aria-label": texts.header.array, id: "array" });
  const chooser = el("label", { class: "select" }, select);
  const facts = el("p", { class: "header-facts" });
  const notes = el("p", { class: "header-facts", id: "array-notes" });
  const people = avatars();
  select.addEventListener("change", () => {
    actions.showArray(select.value);
  });
  const element = el(
    "header",
    { class: "panel header" },
    el("div", { class: "header-line" }, name, format),
    chooser,
    facts,
    notes,
    people.element,
  );
  const update = (state: State) => {
    const { dataset, array } = state;
    setText(name, dataset?.name ?? texts.app.name);
    name.title = dataset?.name ?? "";
    setText(format, dataset?.format ?? "");
    format.hidden = !dataset?.format;
    // If the array of the view does not exist, another one can be chosen, even the only one.
    chooser.hidden = !dataset || (dataset.arrays.length < 2 && array !== null);
    setOptions(select, (dataset?.arrays ?? []).map(option), array?.name ?? "");
    setText(facts, array ? factsOf(array, chooser.hidden) : "");
    setText(notes, (array?.notes ?? []).slice(0, MAX_NOTES).join("; "));
    notes.title = array?.notes.join("\n") ?? "";
    people.update(state);
  };
  return { element, update };
}

function option(array: ArrayInfo): { value: string; label: string; isDisabled: boolean } {
  const shape = formatShape(array.fileLevels[0]?.shape ?? []);
  const units = array.units === "" ? "" : `, ${formatUnits(array.units)}`;
  return { value: array.name, label: `${array.name} (${shape}${units})`, isDisabled: !isDrawable(array) };
}

/** Facts of the array that the chooser does not show already. */
function factsOf(array: ArrayInfo, isAlone: boolean): string {
  const shape = formatShape(array.fileLevels[0]?.shape ?? []);
  const alone = isAlone ? [shape, formatUnits(array.units)] : [];
  return [array.title, ...alone, formatElements(array)].filter((part) => part !== "").join(" · ");
}
