//! Controls of fields of the view that are made from the generated list: boxes to tick and sliders.

import type { Actions, State } from "../../app/state.ts";
import { isShadedByDefault } from "../../dataset/dataset.ts";
import { CONTROLS, type FieldControl } from "../../view/schema.ts";
import { checkbox, el } from "../dom.ts";

/** A control and the field that it sets. */
export interface Control {
  readonly field: FieldControl["field"];
  readonly element: HTMLElement;
  readonly show: (state: State) => void;
}

export function fieldControls(actions: Actions): readonly Control[] {
  return CONTROLS.map((control) => {
    switch (control.kind) {
      case "switch":
        return switchOf(control, actions);
      case "slider":
        return sliderOf(control, actions);
    }
  });
}

function switchOf(control: FieldControl & { kind: "switch" }, actions: Actions): Control {
  const { field, label, title } = control;
  const { element, set } = checkbox(label, (isOn) => {
    actions.change({ [field]: isOn });
  });
  element.title = title;
  const show = ({ view, array }: State) => {
    set(view[field] ?? (array !== null && isShadedByDefault(array)));
  };
  return { field, element, show };
}

function sliderOf(control: FieldControl & { kind: "slider" }, actions: Actions): Control {
  const { field, label, title, low, high, step } = control;
  const input = el("input", { type: "range", min: low, max: high, step, "aria-label": label });
  input.addEventListener("input", () => {
    actions.change({ [field]: Number(input.value) }, true);
  });
  input.addEventListener("change", actions.rest);
  const element = el("label", { class: "slider", title }, label, input);
  const show = ({ view }: State) => {
    // A control that the user is moving is not changed.
    if (document.activeElement !== input || !input.matches(":active")) input.value = String(view[field]);
  };
  return { field, element, show };
}
