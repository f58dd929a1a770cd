//! Opacity points as numbers: a row for each, with value, opacity in percent and a button that removes it.

import { texts } from "../../texts/texts.ts";
import type { Actions } from "../../app/state.ts";
import { formatPlace } from "../../dataset/labels.ts";
import { addBeside, removePoint, setPoint } from "../../transfer/edit.ts";
import type { Transfer } from "../../view/schema.ts";
import { el, iconButton, textButton } from "../dom.ts";

export interface PointTable {
  readonly element: HTMLElement;
  update(transfer: Transfer, selected: number): void;
}

export function pointTable(actions: Actions, select: (index: number) => void): PointTable {
  const rows = el("div", { class: "tf-points" });
  let shown: Transfer | null = null;
  const add = textButton(texts.transferPanel.addPoint, () => {
    const last = (shown?.opacity.length ?? 1) - 1;
    actions.edit((now) => {
      const added = addBeside(now, Math.min(last, now.opacity.length - 1));
      if (added.index >= 0) select(added.index);
      return added.transfer;
    });
  });
  const element = el(
    "details",
    { class: "tf-table" },
    el("summary", {}, texts.transferPanel.pointsAsNumbers),
    rows,
    add,
  );
  const update = (transfer: Transfer, selected: number) => {
    shown = transfer;
    while (rows.children.length > transfer.opacity.length) rows.lastElementChild?.remove();
    transfer.opacity.forEach(([value, alpha], index) => {
      const row = rows.children[index] ?? rows.appendChild(newRow(index));
      row.classList.toggle("selected", index === selected);
      const [valueInput, alphaInput] = row.querySelectorAll("input");
      show(valueInput, formatPlace(value), value);
      show(alphaInput, (100 * alpha).toPrecision(3), 100 * alpha);
      const remove = row.querySelector("button");
      if (remove) remove.disabled = transfer.opacity.length <= 2;
    });
  };
  const newRow = (index: number): HTMLElement => {
    const name = texts.transferPanel.point(index + 1);
    const value = field(texts.transferPanel.valueOf(name));
    const alpha = field(texts.transferPanel.opacityPercentOf(name));
    const commit = (part: "value" | "alpha") => () => {
      const point = shown?.opacity[index];
      const number = Number((part === "value" ? value : alpha).value);
      const text = (part === "value" ? value : alpha).value.trim();
      const isValid =
        text !== "" && Number.isFinite(number) && (part === "value" || (number >= 0 && number <= 100));
      (part === "value" ? value : alpha).setAttribute("aria-invalid", String(!isValid));
      if (!isValid || !point) return;
      actions.edit((now) => {
        const [at, opacity] = now.opacity[index] ?? point;
        const set = setPoint(
          now,
          index,
          part === "value" ? number : at,
          part === "alpha" ? number / 100 : opacity,
        );
        select(set.index);
        return set.transfer;
      });
    };
    value.addEventListener("change", commit("value"));
    alpha.addEventListener("change", commit("alpha"));
    for (const input of [value, alpha]) {
      input.addEventListener("focus", () => {
        select(index);
      });
    }
    const remove = iconButton("close", texts.transferPanel.remove(name), "", () => {
      select(-1);
      actions.edit((now) => removePoint(now, index));
    });
    return el("div", { class: "tf-row" }, value, alpha, el("span", { class: "unit" }, "%"), remove);
  };
  return { element, update };
}

function field(label: string): HTMLInputElement {
  const attributes = { type: "text", inputmode: "decimal", class: "number", spellcheck: "false" } as const;
  return el("input", { ...attributes, "aria-label": label });
}

/** Shows a number, unless its input has the focus. */
function show(input: HTMLInputElement | undefined, text: string, value: number): void {
  if (!input || document.activeElement === input) return;
  if (input.value !== text) input.value = text;
  input.title = String(value);
  input.setAttribute("aria-invalid", "false");
}
