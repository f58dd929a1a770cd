//! Handles over the three-dimensional picture: slices and ends of the clip box are dragged along an axis, oblique planes along their
//! normal and turned. Each is a slider for keyboards and screen readers, too.

import { texts } from "../../texts/texts.ts";
import type { Actions, State } from "../../app/state.ts";
import type { Size } from "../../camera/camera.ts";
import { PLANE_COLORS } from "../../panes/crosshair-layer.ts";
import { project, type ScreenPoint } from "../../session/together/space.ts";
import { axisNumber, thickAxes } from "../../layout/space.ts";
import type { View } from "../../view/schema.ts";
import { setAttributes, svg } from "../dom.ts";
import { draggedValue, handlesOf, moveHandle, outlineOf, type Handle } from "./geometry.ts";
import type { HandleSettings } from "./settings.ts";

/** Radius of a handle, and of the place that takes the pointer: fingers need more. */
const RADIUS = 6;
const HIT_RADIUS = { fine: 12, coarse: 24 } as const;
/** Arrow keys with Shift, and page keys, move so many steps. */
const LARGE_STEP = 10;
const OBLIQUE_COLOR = "#c9a6ff";
const CLIP_COLOR = "#f2f2f2";

export interface HandlesPage {
  readonly actions: Actions;
  readonly state: () => State;
  /** Size of the picture, CSS pixels. */
  readonly size: () => Size;
  /** False while the picture is not three-dimensional. */
  readonly isSpace: () => boolean;
  readonly settings: HandleSettings;
}

interface Drag {
  readonly handle: Handle;
  readonly pointer: number;
  readonly from: ScreenPoint;
  /** The view at its beginning. */
  readonly view: View;
  hasMoved: boolean;
}

interface Drawn {
  readonly group: SVGGElement;
  readonly shaft: SVGLineElement;
  readonly hit: SVGCircleElement;
  readonly knob: SVGElement;
  handle: Handle;
}

export class Handles {
  readonly element = svg("svg", { class: "handles", "aria-label": texts.handles.label });
  readonly #page: HandlesPage;
  readonly #outline = svg("path", { class: "handle-outline" });
  readonly #box = svg("path", { class: "handle-box" });
  readonly #label = svg("text", { class: "handle-label" });
  readonly #drawn = new Map<string, Drawn>();
  readonly #isCoarse = window.matchMedia("(pointer: coarse)");
  #drag: Drag | null = null;
  #hovered: string | null = null;

  constructor(page: HandlesPage) {
    this.#page = page;
    this.element.append(this.#box, this.#outline, this.#label);
    page.settings.onChange(() => {
      this.update(page.state());
    });
  }

  update(state: State): void {
    const { array, dataset, view } = state;
    const { settings, size } = this.#page;
    const { camera } = view;
    const isShown =
      array !== null &&
      dataset !== null &&
      camera !== null &&
      settings.isOn &&
      view.stereo === null &&
      this.#page.isSpace() &&
      thickAxes(array) > 1 &&
      state.role !== "watch";
    this.element.style.display = isShown ? "" : "none";
    const now = size();
    const handles = isShown ? handlesOf(dataset, array, view, settings.hasBox || view.clip !== null) : [];
    this.#remove(new Set(handles.map(({ key }) => key)));
    if (!isShown) return;
    for (const handle of handles) this.#show(handle, state, now);
    this.#order();
    this.#showBox(handles, state, now);
    this.#showActive(state, now);
  }

  #remove(keys: ReadonlySet<string>): void {
    for (const [key, { group }] of this.#drawn) {
      if (keys.has(key)) continue;
      group.remove();
      this.#drawn.delete(key);
      if (this.#hovered === key) this.#hovered = null;
    }
  }

  #show(handle: Handle, { view }: State, size: Size): void {
    const { camera } = view;
    if (!camera) return;
    const drawn = this.#drawn.get(handle.key) ?? this.#create(handle);
    drawn.handle = handle;
    const at = project(camera, size, handle.place);
    const isVisible =
      at !== null &&
      at.x > -RADIUS &&
      at.y > -RADIUS &&
      at.x < size.width + RADIUS &&
      at.y < size.height + RADIUS;
    drawn.group.style.display = isVisible ? "" : "none";
    if (!at) return;
    setAttributes(drawn.group, {
      transform: `translate(${at.x.toFixed(1)} ${at.y.toFixed(1)})`,
      "aria-label": handle.name,
      "aria-valuemin": rounded(handle.low),
      "aria-valuemax": rounded(handle.high),
      "aria-valuenow": rounded(handle.value),
      "aria-valuetext": handle.text,
    });
    drawn.group.style.color = this.#colorOf(handle, view);
    const ahead = pixelsAlong(handle, view, size, at);
    setAttributes(drawn.shaft, { x1: -ahead.x, y1: -ahead.y, x2: ahead.x, y2: ahead.y });
    setAttributes(drawn.hit, { r: this.#isCoarse.matches ? HIT_RADIUS.coarse : HIT_RADIUS.fine });
  }

  /** Keeps handles of slices above those of the clip box, which may end at a slice. */
  #order(): void {
    const first = [...this.#drawn.values()].find(({ handle }) => handle.target.kind !== "clip");
    if (!first) return;
    for (const { group, handle } of this.#drawn.values()) {
      const isBelow = group.compareDocumentPosition(first.group) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (handle.target.kind === "clip" && !isBelow) first.group.before(group);
    }
  }

  #colorOf({ target }: Handle, view: View): string {
    if (target.kind === "clip") return CLIP_COLOR;
    const slice = view.slices[target.index];
    if (target.kind !== "slice" || !slice) return OBLIQUE_COLOR;
    return PLANE_COLORS[axisNumber(slice.axis)] ?? CLIP_COLOR;
  }

  #create(handle: Handle): Drawn {
    const { kind } = handle.target;
    const shaft = svg("line", { class: "handle-shaft" });
    const hit = svg("circle", { class: "handle-hit", r: HIT_RADIUS.fine });
    const knob =
      kind === "turn"
        ? svg("rect", {
            class: "handle-knob",
            x: -RADIUS,
            y: -RADIUS,
            width: 2 * RADIUS,
            height: 2 * RADIUS,
            rx: 2,
            transform: "rotate(45)",
          })
        : svg("circle", { class: "handle-knob", r: RADIUS });
    const group = svg(
      "g",
      { class: "handle", role: "slider", tabindex: 0, "data-handle": handle.key },
      shaft,
      hit,
      knob,
    );
    const drawn: Drawn = { group, shaft, hit, knob, handle };
    group.addEventListener("pointerdown", (event) => {
      this.#down(event, drawn);
    });
    group.addEventListener("pointermove", (event) => {
      this.#move(event);
    });
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"] as const)
      group.addEventListener(name, (event) => {
        this.#up(event);
      });
    group.addEventListener("keydown", (event) => {
      this.#key(event, drawn);
    });
    const hover = (is: boolean) => () => {
      this.#hovered = is ? handle.key : this.#hovered === handle.key ? null : this.#hovered;
      this.#showActive(this.#page.state(), this.#page.size());
    };
    group.addEventListener("pointerenter", hover(true));
    group.addEventListener("pointerleave", hover(false));
    group.addEventListener("focus", hover(true));
    group.addEventListener("blur", hover(false));
    this.#drawn.set(handle.key, drawn);
    this.element.append(group);
    return drawn;
  }

  /** Draws the clip box as lines where its handles are shown. */
  #showBox(handles: readonly Handle[], { view, array }: State, size: Size): void {
    const { camera } = view;
    const faces = handles.filter(({ target }) => target.kind === "clip");
    const lines = faces.map((face) =>
      array && camera ? pathOf(outlineOf(face, array, view).map((p) => project(camera, size, p))) : "",
    );
    this.#box.setAttribute("d", lines.join(""));
  }

  /** Shows the outline and the position of the handle under the pointer, or with the focus. */
  #showActive({ view, array }: State, size: Size): void {
    const { camera } = view;
    const drawn = this.#drawn.get(this.#drag?.handle.key ?? this.#hovered ?? "");
    const at = drawn && camera ? project(camera, size, drawn.handle.place) : null;
    if (!drawn || !array || !camera || !at) {
      this.#outline.setAttribute("d", "");
      this.#label.textContent = "";
      return;
    }
    const corners = outlineOf(drawn.handle, array, view).map((place) => project(camera, size, place));
    this.#outline.setAttribute("d", pathOf(corners));
    this.#outline.style.color = this.#colorOf(drawn.handle, view);
    this.#label.textContent = `${drawn.handle.name}: ${drawn.handle.text}`;
    const isRight = at.x > size.width * 0.6;
    setAttributes(this.#label, {
      x: at.x + (isRight ? -1 : 1) * (RADIUS + 10),
      y: at.y - RADIUS - 6,
      "text-anchor": isRight ? "end" : "start",
    });
  }

  #place(event: PointerEvent): ScreenPoint {
    const box = this.element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  #down(event: PointerEvent, { group, handle }: Drawn): void {
    if (this.#drag || event.button !== 0) return;
    event.preventDefault();
    event.stopPropagation();
    group.setPointerCapture(event.pointerId);
    group.focus({ preventScroll: true });
    const { view } = this.#page.state();
    this.#drag = { handle, pointer: event.pointerId, from: this.#place(event), view, hasMoved: false };
    group.classList.add("dragged");
  }

  #move(event: PointerEvent): void {
    const drag = this.#drag;
    if (drag?.pointer !== event.pointerId) return;
    const { array, view } = this.#page.state();
    const { camera } = drag.view;
    if (!array || !camera) return;
    const value = draggedValue(drag.handle, camera, this.#page.size(), drag.from, this.#place(event));
    if (!Number.isFinite(value)) return;
    drag.hasMoved = true;
    const patch = moveHandle(drag.handle, value, array, drag.view);
    if (isChange(patch, view)) this.#page.actions.change(patch, true);
  }

  #up(event: PointerEvent): void {
    const drag = this.#drag;
    if (drag?.pointer !== event.pointerId) return;
    this.#drag = null;
    this.#drawn.get(drag.handle.key)?.group.classList.remove("dragged");
    if (drag.hasMoved) this.#page.actions.rest();
    this.#showActive(this.#page.state(), this.#page.size());
  }

  #key(event: KeyboardEvent, { handle }: Drawn): void {
    const drag = this.#drag;
    if (event.key === "Escape" && drag) {
      // The slice or the box returns to where it was.
      this.#drag = null;
      this.#page.actions.change({ slices: drag.view.slices, clip: drag.view.clip });
      event.preventDefault();
      return;
    }
    const value = keyValue(event, handle);
    const { array, view } = this.#page.state();
    if (value === null || !array || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.#page.actions.change(moveHandle(handle, value, array, view));
  }
}

/** Returns the value that a key moves a handle to; null for other keys. */
export function keyValue(
  { key, shiftKey }: { readonly key: string; readonly shiftKey: boolean },
  { value, step, low, high, target }: Handle,
): number | null {
  const by = step * (shiftKey ? LARGE_STEP : 1);
  switch (key) {
    case "ArrowRight":
    case "ArrowUp":
      return value + by;
    case "ArrowLeft":
    case "ArrowDown":
      return value - by;
    case "PageUp":
      return value + step * LARGE_STEP;
    case "PageDown":
      return value - step * LARGE_STEP;
    case "Home":
      return target.kind === "turn" ? null : low;
    case "End":
      return target.kind === "turn" ? null : high;
    default:
      return null;
  }
}

/** Length of the line that shows the direction of a drag, pixels. */
const SHAFT_PIXELS = 26;

/** Offset on the screen along the direction in which a handle moves. */
function pixelsAlong(handle: Handle, { camera }: View, size: Size, at: ScreenPoint): ScreenPoint {
  if (!camera) return { x: 0, y: 0 };
  const unit = Math.hypot(...camera.eye.map((e, i) => e - (camera.target[i] ?? 0))) * 0.01;
  const [x, y, z] = handle.place;
  const [dx, dy, dz] = handle.direction;
  const ahead = project(camera, size, [x + dx * unit, y + dy * unit, z + dz * unit]);
  if (!ahead) return { x: 0, y: 0 };
  const [px, py] = [ahead.x - at.x, ahead.y - at.y];
  const long = Math.hypot(px, py);
  // Seen along its direction, a line would have no length.
  const share = Math.min(1, long / 2) * (SHAFT_PIXELS / Math.max(long, 1e-9));
  return { x: px * share, y: py * share };
}

function pathOf(points: readonly (ScreenPoint | null)[]): string {
  const known = points.filter((point) => point !== null);
  if (known.length < points.length || known.length < 3) return "";
  return `M${known.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}Z`;
}

const rounded = (value: number) => Number(value.toPrecision(6));

/** True if a change differs from the view in any of its fields. */
function isChange(patch: Partial<View>, view: View): boolean {
  return Object.entries(patch).some(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(view[name as keyof View]),
  );
}
