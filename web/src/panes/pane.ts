//! One further picture of a page: a canvas with its own participation in the session.

import { texts } from "../texts/texts.ts";
import { Picture, pictureSize, screenSize, type PixelSize } from "../draw/picture.ts";
import type { Size } from "../camera/camera.ts";
import type { Fidelity, Note } from "../session/messages.ts";
import { ViewSync } from "../session/view-sync.ts";
import { el, setText } from "../ui/dom.ts";
import type { Camera, View, ViewPatch } from "../view/schema.ts";
import type { PaneItem, ToWorker } from "../worker/messages.ts";
import { enlargeButton } from "./enlarge.ts";
import { difference } from "./pane-views.ts";

/** Time without changes after which a picture is drawn at full quality. */
const REST_MILLIS = 180;
/** Delay after which a new size is sent. */
const RESIZE_MILLIS = 120;

export interface PanePage {
  readonly send: (message: ToWorker) => void;
  /** The size, or what the node chose, has changed. */
  readonly onChange: () => void;
  readonly onEnlarge: (pane: Pane) => void;
}

export class Pane {
  readonly key: string;
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  readonly title: HTMLElement;
  /** Row of controls beside the title. */
  readonly bar: HTMLElement;
  /** Its own camera; null if it has none yet. */
  camera: Camera | null = null;
  readonly number: number;
  readonly #page: PanePage;
  readonly #picture: Picture;
  readonly #sync = new ViewSync();
  readonly #observer: ResizeObserver;
  readonly #name = el("b", {});
  readonly #place = el("span", { class: "pane-where" });
  readonly #badge = el("span", { class: "pane-badge" });
  readonly #failure = el("p", { class: "pane-failure", role: "status" });
  #state: "closed" | "joining" | "open" = "closed";
  #resizeTimer: ReturnType<typeof setTimeout> | undefined;
  #restTimer: ReturnType<typeof setTimeout> | undefined;
  #sentSize: PixelSize = { width: 0, height: 0 };
  #settledSize: Size | null = null;
  #fidelity: Fidelity | null = null;
  #seq = -1;
  #hasReported = false;

  constructor(key: string, number: number, page: PanePage, label: string) {
    this.key = key;
    this.number = number;
    this.#page = page;
    this.canvas = el("canvas", {
      class: "pane-canvas",
      tabindex: "0",
      role: "application",
      "aria-label": label,
    });
    this.title = el("span", { class: "pane-name", hidden: true }, this.#name, this.#place);
    const enlarge = enlargeButton(() => {
      page.onEnlarge(this);
    });
    this.bar = el(
      "div",
      { class: "pane-bar", title: texts.panes.enlargeHint },
      this.title,
      this.#badge,
      enlarge,
    );
    this.element = el(
      "section",
      { class: "pane", "data-pane": key, "aria-label": label },
      this.canvas,
      this.bar,
      this.#failure,
    );
    this.#failure.hidden = true;
    this.#picture = new Picture(this.canvas, (frame) => {
      this.#seq = frame.seq;
      this.#fidelity = frame.fidelity;
      this.#note({ kind: "shown", frame: frame.id });
      this.#report();
    });
    this.bar.addEventListener("dblclick", (event) => {
      if (!(event.target instanceof Element) || !event.target.closest("select, input, button"))
        page.onEnlarge(this);
    });
    this.#observer = new ResizeObserver(() => {
      this.#resized();
    });
    this.#observer.observe(this.canvas);
  }

  /** Size in CSS pixels; zero while it is hidden. */
  size(): Size {
    return { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
  }

  /** The newest size that has lasted a moment, for which cameras are chosen: not each one while a window is dragged. */
  get settledSize(): Size {
    return this.#settledSize ?? this.size();
  }

  /** Shows the name of what the picture shows, and where it lies, as its title. */
  showTitle(name: string, place: string): void {
    setText(this.#name, name);
    setText(this.#place, place === "" ? "" : ` · ${place}`);
    const whole = this.title.textContent;
    if (this.title.title !== whole) this.title.title = whole;
    this.title.hidden = whole === "";
  }

  get isVisible(): boolean {
    return this.canvas.clientWidth > 0;
  }

  get view(): View {
    return this.#sync.view;
  }

  /** True once the node has told its view. */
  get isOpen(): boolean {
    return this.#state === "open";
  }

  /** Joins the session, also again after a new connection. */
  open(): void {
    this.#state = "joining";
    this.#seq = -1;
    const size = this.#pixels();
    this.#sentSize = size;
    this.#page.send({
      kind: "openPane",
      pane: this.number,
      join: { session: "main", name: "", resume: "", ...size },
    });
  }

  close(): void {
    this.#state = "closed";
    clearTimeout(this.#restTimer);
    clearTimeout(this.#resizeTimer);
    this.#observer.disconnect();
    this.#page.send({ kind: "closePane", pane: this.number });
    this.element.remove();
  }

  /** Shows a view: sends the fields that differ. */
  show(wanted: ViewPatch): void {
    if (this.#state !== "open") return;
    const patch = difference(wanted, this.#sync.view);
    if (Object.keys(patch).length === 0) return;
    this.#picture.setBackground(wanted.background ?? this.#sync.view.background);
    this.#sync.change(patch, true);
    this.#picture.follow(this.#sync.view.camera);
    this.#sendView();
    clearTimeout(this.#restTimer);
    this.#restTimer = setTimeout(() => {
      this.#sync.rest();
      this.#sendView();
    }, REST_MILLIS);
    this.#report();
  }

  receive(item: PaneItem): void {
    switch (item.kind) {
      case "joined":
        this.#state = "open";
        this.#failure.hidden = true;
        this.#sync.joined(item.view, {});
        this.#picture.follow(this.#sync.view.camera);
        this.#sendSize();
        this.#page.onChange();
        return;
      case "view":
        this.#sync.incoming(item.seq, item.view);
        this.#picture.follow(this.#sync.view.camera);
        this.#page.onChange();
        return;
      case "frame":
        this.#picture.show(item.frame, item.bitmap, this.#sync.cameraAt(item.frame.seq));
        return;
      case "fidelity":
        this.#fidelity = item.fidelity;
        this.#report();
        return;
      case "message":
        this.#fail(item.text);
        return;
      case "ended":
        this.#state = "closed";
        this.#fail(item.reason);
        return;
    }
  }

  #fail(reason: string): void {
    setText(this.#failure, reason);
    this.#failure.hidden = false;
  }

  /** Tells scripts and tests whether the picture is final, and which slices it shows. */
  #report(): void {
    const isComplete =
      this.#sync.isCurrent(this.#seq) && this.#fidelity?.state === "complete" && this.#state === "open";
    this.#showFidelity(isComplete);
    this.element.dataset.state = isComplete ? "complete" : "loading";
    this.element.dataset.slices = this.#sync.view.slices.map(({ axis, at }) => `${axis}=${at}`).join(" ");
    this.element.dataset.time = String(this.#sync.view.time);
    if (isComplete && !this.#hasReported) this.#failure.hidden = true;
    this.#hasReported = isComplete;
  }

  /** Shows how complete and how fine the picture is, as the badge of the first picture does. */
  #showFidelity(isComplete: boolean): void {
    const { levelShown = null, text = "", exact = false } = this.#fidelity ?? {};
    const level =
      levelShown === null ? texts.panes.loading : levelShown === 0 ? "" : texts.fidelity.level(levelShown);
    this.#badge.dataset.tone = isComplete ? (exact ? "exact" : "complete") : "loading";
    this.#badge.title = text;
    setText(this.#badge, level);
  }

  #sendView(): void {
    const note = this.#sync.takeNote();
    if (note) this.#note(note);
  }

  #note(note: Note): void {
    if (this.#state === "open") this.#page.send({ kind: "paneNote", pane: this.number, note });
  }

  #pixels(): PixelSize {
    const { width, height } = this.size();
    return pictureSize(screenSize(width, height, window.devicePixelRatio));
  }

  /** Sends the size if the node does not know it; before the picture has joined, it waits. */
  #sendSize(): void {
    const size = this.#pixels();
    const isSent = size.width === this.#sentSize.width && size.height === this.#sentSize.height;
    if (isSent || !this.isVisible || this.#state !== "open") return;
    this.#sentSize = size;
    this.#note({ kind: "resize", ...size });
  }

  #resized(): void {
    const { width, height } = this.size();
    if (width === 0 || height === 0) return;
    this.#picture.resize(screenSize(width, height, window.devicePixelRatio));
    this.#page.onChange();
    clearTimeout(this.#resizeTimer);
    this.#resizeTimer = setTimeout(() => {
      this.#sendSize();
      if (!this.isVisible) return;
      this.#settledSize = this.size();
      this.#page.onChange();
    }, RESIZE_MILLIS);
  }
}
