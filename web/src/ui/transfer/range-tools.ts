//! Buttons below the range: percentiles of the values shown, symmetric about zero, reset, and whether the range follows
//! the time step.

import { texts } from "../../texts/texts.ts";
import { outsideNote, shownQuantiles } from "../../app/distribution.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { timeSteps } from "../../dataset/dataset.ts";
import { positionKey } from "../../dataset/stats.ts";
import {
  PERCENTILE_RANGES,
  rangeBetween,
  symmetricRange,
  type Quantiles,
} from "../../transfer/distribution.ts";
import { spreadOver } from "../../transfer/edit.ts";
import { checkbox, el, setText, textButton } from "../dom.ts";

type RangeChoice = (pairs: Quantiles) => readonly [number, number] | null;

export function rangeTools(actions: Actions): Component {
  let state: State | null = null;
  /** Choice that the range follows. */
  let choice: RangeChoice = (pairs) => rangeBetween(pairs, [0.001, 0.999]);
  let follows = false;
  let followed = "";
  const apply = (how: RangeChoice, automatic = false) => {
    const range = state && how(shownQuantiles(state));
    if (range) actions.edit((now) => spreadOver(now, range), false, automatic);
  };
  const choose = (how: RangeChoice) => () => {
    choice = how;
    apply(how);
  };
  const buttons = PERCENTILE_RANGES.map(({ name, shares }) => {
    const button = textButton(
      name,
      choose((pairs) => rangeBetween(pairs, shares)),
      "chip-button",
    );
    button.title = texts.transferPanel.percentileHint(100 * shares[0], 100 * shares[1]);
    return button;
  });
  const symmetric = textButton(
    "± 0",
    choose((pairs) => symmetricRange(pairs)),
    "chip-button",
  );
  symmetric.title = texts.transferPanel.symmetric;
  const reset = textButton(texts.transferPanel.reset, () => {
    // The node fills in a transfer function that suits the values.
    actions.change({ transfer: null });
  });
  reset.title = texts.transferPanel.resetHint;
  const follow = checkbox(texts.transferPanel.rangeFollowsTime, (isOn) => {
    follows = isOn;
    followed = "";
    if (state) update(state);
  });
  const outside = el("p", { class: "hint" });
  const element = el(
    "div",
    { class: "range-tools" },
    el(
      "div",
      { class: "presets", role: "group", "aria-label": texts.transferPanel.rangeLabel },
      ...buttons,
      symmetric,
      reset,
    ),
    follow.element,
    outside,
  );
  const update = (next: State) => {
    state = next;
    const pairs = shownQuantiles(next);
    for (const button of [...buttons, symmetric]) button.disabled = pairs.length === 0;
    follow.element.hidden = next.array === null || timeSteps(next.array) < 2;
    follow.set(follows);
    setText(outside, outsideNote(next));
    outside.hidden = outside.textContent === "";
    if (!follows || !next.array || pairs.length === 0 || next.view.transfer === null) return;
    const step = `${next.array.name} ${positionKey(next.array, next.view)}`;
    if (step === followed) return;
    followed = step;
    apply(choice, true);
  };
  return { element, update };
}
