//! Form for a film: of time, of a turn, or of the bookmarks.

import { texts } from "../../texts/texts.ts";
import type { State } from "../../app/state.ts";
import type { Size } from "../../camera/camera.ts";
import { timeSteps } from "../../dataset/dataset.ts";
import type { JsonObject } from "../../json.ts";
import { journeyOf } from "../../session/together/path.ts";
import { checkbox, el, setText } from "../dom.ts";
import { choice, field, numberInput, numberOf } from "./fields.ts";
import { allFields } from "./picture-form.ts";
import { filmSizes } from "./sizes.ts";

/** Maximum number of pictures of a film, as the node has it. */
const MAX_PICTURES = 22_500;
/** Pictures of a turn or a path, unless others are requested. */
const MOTION_PICTURES = 150;

export interface FilmForm {
  readonly element: HTMLElement;
  update(state: State): void;
  /** Parameters of `film`; null if a field cannot be read or there is nothing to film. */
  parameters(state: State): JsonObject | null;
  /** Ending of the file's name, and its type. */
  format(): { readonly ending: string; readonly type: string };
}

/** The form; `changed` is called after every change. */
export function filmForm(changed: () => void): FilmForm {
  const of = choice(texts.save.subject, () => {
    show();
    changed();
  });
  const first = numberInput(texts.save.firstTimeStep, 0, 0, 1);
  const last = numberInput(texts.save.lastTimeStep, 0, 0, 1);
  const steps = field(
    texts.save.timeSteps,
    el("span", { class: "save-size" }, first, el("span", {}, texts.save.to), last),
  );
  const degrees = numberInput(texts.save.degrees, -3600, 3600, "any");
  degrees.value = "360";
  const turn = field(texts.save.degrees, degrees);
  const pictures = numberInput(texts.save.numberOfPictures, 1, MAX_PICTURES, 1);
  pictures.value = String(MOTION_PICTURES);
  const count = field(texts.save.pictures, pictures);
  const rate = numberInput(texts.save.picturesPerSecond, 1, 120, "any");
  rate.value = "25";
  const size = choice(texts.save.size, changed);
  const format = choice(texts.save.format, changed);
  format.setOptions([
    { value: "mp4", label: texts.save.mp4H264 },
    { value: "av1", label: texts.save.mp4Av1 },
    { value: "webm", label: texts.save.webmAv1 },
  ]);
  let hasMarks = true;
  const marks = checkbox(texts.save.annotations, (isOn) => {
    hasMarks = isOn;
  });
  marks.set(hasMarks);
  const length = el("p", { class: "save-note", role: "status" });
  let sizes: readonly { readonly id: string; readonly size: Size }[] = [];
  for (const input of [first, last, degrees, pictures, rate])
    input.addEventListener("input", () => {
      tellLength();
      changed();
    });
  const element = el(
    "div",
    { class: "save-form" },
    of.element,
    steps,
    turn,
    count,
    field(texts.save.picturesPerSecond, rate),
    size.element,
    format.element,
    marks.element,
    length,
  );
  const show = () => {
    steps.hidden = of.value() !== "time";
    turn.hidden = of.value() !== "turn";
    count.hidden = of.value() === "time";
    tellLength();
  };
  const pictureCount = (): number | null => {
    if (of.value() !== "time") return numberOf(pictures);
    const [from, to] = [numberOf(first), numberOf(last)];
    return from === null || to === null || to < from ? null : to - from + 1;
  };
  const tellLength = () => {
    const [number, perSecond] = [pictureCount(), numberOf(rate)];
    const isKnown = number !== null && perSecond !== null;
    setText(length, isKnown ? texts.save.filmLength((number / perSecond).toFixed(1), number.toString()) : "");
  };

  return {
    element,
    update({ array, together, screen }) {
      const stepCount = array ? timeSteps(array) : 0;
      const stops = journeyOf(together.content.bookmarks).length;
      of.setOptions([
        { value: "time", label: texts.save.time, isDisabled: stepCount < 2 },
        { value: "path", label: texts.save.bookmarks(stops.toString()), isDisabled: stops < 2 },
        { value: "turn", label: texts.save.turn },
      ]);
      for (const input of [first, last]) input.max = String(Math.max(0, stepCount - 1));
      if (last.value === "" || numberOf(last) === null) {
        first.value = "0";
        last.value = String(Math.max(0, stepCount - 1));
      }
      sizes = filmSizes(screen);
      size.setOptions(filmSizes(screen).map(({ id, label }) => ({ value: id, label })));
      show();
    },
    parameters({ you, view, together }) {
      const [number, fps] = [pictureCount(), numberOf(rate)];
      const chosen = sizes.find(({ id }) => id === size.value())?.size;
      const subject = subjectOf(of.value(), together.content.bookmarks);
      if (number === null || fps === null || !chosen || !subject) return null;
      return {
        participant: you,
        view: allFields(view),
        ...chosen,
        annotations: hasMarks,
        of: subject,
        ...(of.value() === "time" ? {} : { pictures: number }),
        fps,
        format: format.value(),
      };
    },
    format: () =>
      format.value() === "webm"
        ? { ending: "webm", type: "video/webm" }
        : { ending: "mp4", type: "video/mp4" },
  };

  function subjectOf(kind: string, bookmarks: State["together"]["content"]["bookmarks"]): JsonObject | null {
    if (kind === "time") {
      const [from, to] = [numberOf(first), numberOf(last)];
      return from === null || to === null || to <= from ? null : { time: { start: from, stop: to + 1 } };
    }
    if (kind === "turn") {
      const angle = numberOf(degrees);
      return angle === null || angle === 0 ? null : { turn: { degrees: angle } };
    }
    const stops = journeyOf(bookmarks);
    return stops.length < 2 ? null : { path: { stops } };
  }
}
