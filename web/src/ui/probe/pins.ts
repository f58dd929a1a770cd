//! Pinned places: their list, and the measurements between them.

import { texts } from "../../texts/texts.ts";
import type { State } from "../../app/state.ts";
import { formatNumber, formatUnits } from "../../dataset/labels.ts";
import type { Vec3 } from "../../view/schema.ts";
import { length, sub } from "../../camera/vec.ts";
import { el, iconButton, setOptions, setText, textButton } from "../dom.ts";
import { pinMarks } from "./pin-marks.ts";
import { presenceOf } from "./presence.ts";
import { layerAxis } from "./requests.ts";
import { resultList, type ResultsHost } from "./results.ts";
import { pinPython, pinsCsv, placeLines, type NumberedPlace } from "./text.ts";
import type { PickedPlace } from "./place.ts";

/** Maximum number of pins; the oldest is removed for a new one. */
export const MAX_PINS = 32;

export interface PinPanel {
  readonly element: HTMLElement;
  /** Crosses and lines over the picture. */
  readonly marks: SVGSVGElement;
  add(place: PickedPlace): NumberedPlace;
  update(state: State): void;
}

/** Distance of two places, with units; empty if either has no place. */
export function distanceText(a: PickedPlace, b: PickedPlace): string {
  if (!a.world || !b.world) return "";
  return `${formatNumber(length(sub(a.world, b.world)))} ${formatUnits(a.worldUnits)}`.trim();
}

export function pinPanel(host: ResultsHost, changed: () => void): PinPanel {
  let pins: NumberedPlace[] = [];
  let nextId = 1;
  const marks = pinMarks();
  /** Line of each pin that says what of it the picture does not show. */
  const notes = new Map<NumberedPlace, HTMLElement>();
  const list = el("ul", { class: "probe-pins" });
  const results = resultList(host);
  const [from, to] = [select(texts.probe.fromPin), select(texts.probe.toPin)];
  const apart = el("p", { class: "probe-distance" });
  const worldOf = (id: string): Vec3 | null => pins.find((pin) => String(pin.id) === id)?.place.world ?? null;
  const both = (run: (a: Vec3, b: Vec3) => void) => () => {
    const [a, b] = [worldOf(from.value), worldOf(to.value)];
    if (a && b) run(a, b);
  };
  const profile = textButton(
    texts.probe.profile,
    both((a, b) => {
      results.start(texts.probe.profileOf(from.value, to.value), { kind: "profile", from: a, to: b });
    }),
  );
  const box = textButton(
    texts.probe.box,
    both((a, b) => {
      results.start(texts.probe.boxOf(from.value, to.value), { kind: "box", corners: [a, b] });
    }),
  );
  const series = textButton(texts.probe.overTime, () => {
    const at = worldOf(to.value);
    if (at) results.start(texts.probe.overTimeAt(to.value), { kind: "series", at });
  });
  const polygon = textButton(texts.probe.polygon, () => {
    const places = pins.map(({ place }) => place);
    const corners = places.flatMap(({ world }) => (world ? [world] : []));
    const axis = layerAxis(host.state().view, places);
    results.start(texts.probe.polygonOf(corners.length), { kind: "polygon", corners, axis });
  });
  const clip = textButton(texts.probe.statistics, () => {
    const title = host.state().view.clip ? texts.probe.statisticsOfBox : texts.probe.statisticsOfVolume;
    results.start(title, { kind: "clip" });
  });
  const between = el(
    "div",
    { class: "probe-between" },
    el("label", {}, texts.probe.from, from),
    el("label", {}, texts.probe.to, to),
    apart,
  );
  const pinButtons = el(
    "div",
    { class: "probe-buttons" },
    textButton(texts.probe.copyCsv, () => {
      host.copy(pinsCsv(pins), texts.probe.table);
    }),
    textButton(texts.probe.removeAll, () => {
      pins = [];
      redraw();
    }),
  );
  const hint = el("p", { class: "hint" }, texts.probe.howToPin);
  const body = el(
    "div",
    { class: "probe-body" },
    list,
    pinButtons,
    between,
    hint,
    el("div", { class: "probe-buttons" }, profile, box, series, polygon, clip),
    results.element,
  );
  const element = el(
    "details",
    { class: "panel probe-panel" },
    el("summary", {}, texts.probe.valuesAndMeasurements),
    body,
  );
  // Lines of measurements are drawn while they can be read.
  element.addEventListener("toggle", changed);
  for (const own of [from, to])
    own.addEventListener("change", () => {
      showDistance();
      changed();
    });

  function select(label: string): HTMLSelectElement {
    return el("select", { "aria-label": label });
  }

  function showDistance(): void {
    const [a, b] = [from, to].map((own) => pins.find((pin) => String(pin.id) === own.value));
    const text = a && b && a !== b ? distanceText(a.place, b.place) : "";
    apart.textContent = text === "" ? "" : texts.probe.distance(text);
  }

  function redraw(): void {
    notes.clear();
    list.replaceChildren(
      ...pins.map((pin) => {
        const remove = iconButton("close", texts.probe.removePin(pin.id), "", () => {
          pins = pins.filter((other) => other !== pin);
          redraw();
        });
        remove.classList.add("small");
        const [first = "", ...rest] = placeLines(pin.place);
        const [whole = "", ...wholeRest] = placeLines(pin.place, "whole");
        const value = el("span", { title: whole }, first);
        const note = el("p", { class: "hint probe-elsewhere", hidden: true });
        notes.set(pin, note);
        return el(
          "li",
          {},
          el("div", { class: "probe-pin-head" }, el("b", {}, String(pin.id)), value, remove),
          ...rest.map((line, i) => el("p", { class: "hint", title: wholeRest[i] ?? line }, line)),
          note,
          textButton(
            texts.probe.copyPython,
            () => {
              host.copy(pinPython(host.url(), pin.place), texts.probe.pythonLine);
            },
            "text-button small",
          ),
        );
      }),
    );
    const options = pins.map(({ id }) => ({ value: String(id), label: String(id) }));
    const [first = "", last = ""] = [options.at(-2)?.value ?? options[0]?.value, options.at(-1)?.value];
    setOptions(from, options, first);
    setOptions(to, options, last);
    showDistance();
    changed();
  }

  const add = (place: PickedPlace): NumberedPlace => {
    const pin = { id: nextId++, place };
    pins = [...pins, pin].slice(-MAX_PINS);
    element.open = true;
    redraw();
    return pin;
  };
  const update = (state: State) => {
    const { array, view } = state;
    element.hidden = array === null;
    pinButtons.hidden = pins.length === 0;
    between.hidden = pins.length < 2;
    hint.hidden = pins.length > 1;
    series.hidden = !(array?.axes.some(({ kind }) => kind === "time") ?? false);
    const placed = pins.filter(({ place }) => place.world !== null).length;
    const needsTwo = placed < 2 ? texts.probe.needsTwoPins : "";
    const needsOther = from.value === to.value ? texts.probe.needsOtherPin : "";
    enable(profile, needsTwo || needsOther);
    enable(box, needsTwo || needsOther);
    enable(series, placed < 1 ? texts.probe.needsPin : "");
    enable(polygon, placed < 3 ? texts.probe.needsThreePins : "");
    for (const [{ place }, line] of notes) {
      const { note } = array ? presenceOf(place, array, view) : { note: "" };
      setText(line, note);
      line.hidden = note === "";
    }
    marks.draw(state, pins, element.open ? results.listed() : []);
  };

  return { element, marks: marks.element, add, update };
}

/** Enables a button, or disables it for a reason that its tooltip says. */
function enable(button: HTMLButtonElement, reason: string): void {
  button.disabled = reason !== "";
  button.title = reason;
}
