//! Values in the picture: a readout that follows the pointer, pins, and measurements. Listens to the picture beside the
//! gestures of the camera, and changes nothing for them.

import { texts } from "../../texts/texts.ts";
import { copyText } from "../../app/clipboard.ts";
import type { Calls } from "../../app/calls.ts";
import type { Component, State } from "../../app/state.ts";
import { el, setText } from "../dom.ts";
import type { PickedPlace } from "./place.ts";
import { pinPanel } from "./pins.ts";
import { dataAddress, isUnsupported, pickedSize, requestPick } from "./requests.ts";
import { ClickDetector, PointerRest, type Position } from "./rest.ts";
import { placeLines, spokenText } from "./text.ts";

/** Distance of the readout from the pointer, CSS pixels. */
const OFFSET_PIXELS = 16;

export interface ProbeHost {
  readonly calls: Calls;
  readonly state: State;
  /** Learns what the picture shows under a resting pointer. */
  readonly together: { pickedAt(at: Position, world: PickedPlace["world"]): void };
}

export interface ProbeComponent extends Component {
  /** Panel of pinned places. */
  readonly panel: HTMLElement;
  /** Pins the value in the middle of the picture. */
  readCenter(): void;
}

/** Time after a click in which another one makes it a double click. */
const DOUBLE_CLICK_MILLIS = 300;

export function probe(host: ProbeHost, canvas: HTMLCanvasElement): ProbeComponent {
  const readout = el("div", { class: "panel probe-readout", hidden: true });
  const spoken = el("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  const message = el("p", { class: "panel probe-message", hidden: true });
  let isKnown = true;
  let messageTimer: ReturnType<typeof setTimeout> | undefined;
  const say = (text: string) => {
    setText(spoken, text);
  };
  const notify = (text: string) => {
    setText(message, text);
    message.hidden = false;
    say(text);
    clearTimeout(messageTimer);
    messageTimer = setTimeout(() => {
      message.hidden = true;
    }, 4000);
  };
  const pins = pinPanel(
    {
      calls: host.calls,
      state: () => host.state,
      say,
      listed: () => {
        pins.update(host.state);
      },
      url: () => dataAddress(window.location.host, host.state.dataset?.name ?? ""),
      copy: (text, what) => {
        void copyText(text).then((isCopied) => {
          notify(isCopied ? texts.probe.copied(what) : texts.probe.noCopying);
        });
      },
    },
    () => {
      pins.update(host.state);
    },
  );
  const element = el("div", { class: "probe" }, readout, message, spoken, pins.element);
  canvas.after(pins.marks);

  /** Position in the picture, in its pixels, of one in the canvas. */
  const inPicture = ({ x, y }: Position): Position => {
    const { width, height } = pickedSize(host.state);
    const [w, h] = [Math.max(1, canvas.clientWidth), Math.max(1, canvas.clientHeight)];
    return { x: (x / w) * width, y: (y / h) * height };
  };
  const isReady = () => host.state.frame !== null && host.state.connection.kind === "open";

  const show = (place: PickedPlace, { x, y }: Position) => {
    const [first = "", ...rest] = placeLines(place);
    readout.replaceChildren(
      el("p", { class: "probe-value" }, first),
      ...rest.map((line) => el("p", { class: "hint" }, line)),
    );
    readout.hidden = false;
    const box = canvas.getBoundingClientRect();
    const { offsetWidth, offsetHeight } = readout;
    const left =
      x + OFFSET_PIXELS + offsetWidth > box.width ? x - OFFSET_PIXELS - offsetWidth : x + OFFSET_PIXELS;
    const top =
      y + OFFSET_PIXELS + offsetHeight > box.height ? y - OFFSET_PIXELS - offsetHeight : y + OFFSET_PIXELS;
    readout.style.translate = `${box.left + Math.max(0, left)}px ${box.top + Math.max(0, top)}px`;
  };
  const rest = new PointerRest({
    request: (position, done) => {
      if (!isReady() || !isKnown) {
        done();
        return;
      }
      requestPick(host.calls, host.state, inPicture(position), (place, reason) => {
        if (isUnsupported(reason)) isKnown = false;
        const now = rest.position;
        const isHere = now !== null && now.x === position.x && now.y === position.y;
        if (place) host.together.pickedAt(position, place.world);
        if (place && isHere) {
          if (place.hit === "nothing") readout.hidden = true;
          else show(place, position);
        }
        done();
      });
    },
    hide: () => {
      readout.hidden = true;
    },
  });
  // The number of the newest click, and that of the newest one that was part of a double click, which pins nothing.
  let [clickCount, doubled] = [0, 0];
  const pin = (position: Position, waitMillis = 0) => {
    if (!isReady()) return;
    const number = ++clickCount;
    const mayPinAt = performance.now() + waitMillis;
    requestPick(host.calls, host.state, inPicture(position), (place, reason) => {
      if (isUnsupported(reason)) notify(texts.probe.nodeTooOld);
      else if (!place) notify(reason ?? texts.probe.noValue);
      else if (place.hit === "nothing") notify(texts.probe.nothingHere);
      else
        setTimeout(() => {
          if (number > doubled) say(spokenText(pins.add(place)));
        }, mayPinAt - performance.now());
    });
  };

  const clicks = new ClickDetector();
  const at = (event: PointerEvent): Position => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  canvas.addEventListener("pointerdown", (event) => {
    rest.left();
    clicks.down(event.pointerId, at(event), event.button === 0 && !event.shiftKey, event.timeStamp);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (clicks.up(event.pointerId, at(event), event.pointerType === "touch", event.timeStamp))
      pin(at(event), DOUBLE_CLICK_MILLIS);
  });
  canvas.addEventListener("dblclick", () => {
    doubled = clickCount;
  });
  canvas.addEventListener("pointercancel", (event) => {
    clicks.cancel(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    clicks.moved(event.pointerId, at(event), event.pointerType === "touch");
    if (event.buttons === 0 && event.pointerType !== "touch") rest.moved(at(event));
  });
  canvas.addEventListener("pointerleave", () => {
    rest.left();
  });

  let shown: State["frame"] = null;
  const update = (state: State) => {
    pins.update(state);
    if (state.connection.kind !== "open") isKnown = true;
    if (state.frame === shown) return;
    shown = state.frame;
    rest.changed();
  };
  const readCenter = () => {
    pin({ x: canvas.clientWidth / 2, y: canvas.clientHeight / 2 });
  };
  return { element, panel: pins.element, update, readCenter };
}
