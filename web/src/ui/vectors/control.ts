//! Choice of the vectors that are drawn as arrows on slices and maps.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { isOneLayer } from "../../dataset/dataset.ts";
import { el, setText } from "../dom.ts";
import { vectorArrays } from "./field.ts";

export function arrowControl(actions: Actions): Component {
  const select = el("select", { "aria-label": texts.vectors.arrowsHint });
  select.addEventListener("change", () => {
    actions.chooseVectors(select.value);
  });
  const hint = el("p", { class: "hint" });
  const element = el(
    "section",
    { class: "group", hidden: true },
    el("h2", {}, texts.vectors.arrows),
    select,
    hint,
  );
  let known = "";
  const update = ({ dataset, array, arrows, view }: State) => {
    const names = dataset && array ? vectorArrays(dataset, array).map(({ name }) => name) : [];
    element.hidden = names.length === 0;
    const key = JSON.stringify(names);
    if (key !== known) {
      known = key;
      const option = (name: string) => el("option", { value: name }, name === "" ? texts.vectors.none : name);
      select.replaceChildren(option(""), ...names.map(option));
    }
    const chosen = arrows.choice ?? array?.name ?? "";
    select.value = names.includes(chosen) ? chosen : "";
    const needsSlice = array !== null && !isOneLayer(array) && view.slices.every((slice) => slice.hidden);
    setText(hint, select.value !== "" && needsSlice ? texts.vectors.needsSlice : "");
  };
  return { element, update };
}
