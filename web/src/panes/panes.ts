//! The pictures of a page: the first one, which shows the view of the session, and further ones beside it.

import { texts } from "../texts/texts.ts";
import type { Actions, Component, State } from "../app/state.ts";
import { orbitTarget } from "./targets.ts";
import type { Size } from "../camera/camera.ts";
import { Gestures } from "../camera/gestures.ts";
import { findArray, type ArrayInfo, type Dataset } from "../dataset/dataset.ts";
import { crosshairOf, movedIn, withCrosshair } from "../layout/crosshair.ts";
import { ImageGestures, type ImageTarget } from "../layout/image-gestures.ts";
import type { Layouts } from "../layout/layouts.ts";
import { indexText, placeAxis, placeText } from "../layout/place.ts";
import {
  fitPlane,
  pixelsPerVoxel,
  SQUARES_FROM_PIXELS,
  voxelAt,
  zoomPlane,
  type ScreenPoint,
} from "../layout/plane-camera.ts";
import { planeName, type AxisNumber } from "../layout/space.ts";
import { el } from "../ui/dom.ts";
import type { Place } from "../ui/save/sizes.ts";
import type { PaneCameras } from "../view/fragment.ts";
import type { Camera, Vec3, View } from "../view/schema.ts";
import type { FromWorker, ToWorker } from "../worker/messages.ts";
import { cellBar, type CellBar } from "./cell-bar.ts";
import { CrosshairLayer, PLANE_COLORS } from "./crosshair-layer.ts";
import { mainBar, type MainBar } from "./main-bar.ts";
import {
  cellOf,
  cellView,
  isSameSpace,
  paneKey,
  panesOf,
  planeView,
  withCell,
  type PaneSpec,
} from "./pane-views.ts";
import { Pane } from "./pane.ts";

export interface PanesPage {
  readonly actions: Actions;
  readonly state: () => State;
  readonly send: (message: ToWorker) => void;
  readonly layouts: Layouts;
  /** Called when the person has moved the camera of a further picture. */
  readonly onCameras: (cameras: PaneCameras) => void;
}

interface OpenPane {
  readonly spec: PaneSpec;
  readonly pane: Pane;
  readonly layer: CrosshairLayer | null;
  readonly bar: CellBar | null;
  /** Array that its camera was made for. */
  cameraOf: string;
  /** Its camera was moved by the person, or comes from a link. */
  isMoved: boolean;
  /** Size that its own camera was chosen for; null if there was none yet. */
  fittedSize: Size | null;
  /** It has joined the session, or tried to. */
  hasJoined: boolean;
}

/** A picture that is seen. */
export interface ShownPane {
  readonly name: string;
  /** Its view; null for that of the page. */
  readonly view: View | null;
  readonly place: Place;
}

function shownPane(pane: Pane): ShownPane {
  const label = pane.title.textContent;
  const name = label === "" ? (pane.element.getAttribute("aria-label") ?? "") : label;
  return { name, view: pane.view, place: pane.element.getBoundingClientRect() };
}

/** Name of the first picture among the panes. */
const MAIN = "main";

export class Panes implements Component {
  readonly element: HTMLElement;
  readonly #page: PanesPage;
  readonly #main: HTMLElement;
  readonly #mainBar: MainBar;
  readonly #open = new Map<string, OpenPane>();
  #nextNumber = 1;
  #enlarged: string | null = null;
  /** The axis of the plane that the pointer was over, or the focus in, last. */
  #activeAxis: AxisNumber = 2;

  /** Cameras of a link, for pictures that are not open yet. */
  #restored: PaneCameras;

  constructor(canvas: HTMLElement, page: PanesPage, cameras: PaneCameras) {
    this.#page = page;
    this.#restored = cameras;
    this.#mainBar = mainBar(page.actions, page.layouts, () => {
      this.enlarge(MAIN);
    });
    this.#main = el("section", { class: "pane", "data-pane": MAIN }, this.#mainBar.element);
    this.element = el("div", { class: "panes" }, this.#main);
    canvas.replaceWith(this.element);
    this.#main.prepend(canvas);
    this.#mainBar.element.addEventListener("dblclick", (event) => {
      if (!(event.target instanceof Element) || !event.target.closest("select, input, button, label"))
        this.enlarge(MAIN);
    });
  }

  /** The axis whose plane PageUp and PageDown move. */
  get activeAxis(): AxisNumber {
    const { layouts } = this.#page;
    return layouts.layout === "planes" ? this.#activeAxis : layouts.axis;
  }

  /** Returns the pictures that are seen, with their places on the page; the first one has no view of its own. */
  shown(): readonly ShownPane[] {
    const ofMain: ShownPane = {
      name: texts.panes.first,
      view: null,
      place: this.#main.getBoundingClientRect(),
    };
    const others = [...this.#open.values()].filter(({ pane }) => pane.isOpen);
    const all = [ofMain, ...others.map(({ pane }) => shownPane(pane))];
    return all.filter(({ place }) => place.width > 0 && place.height > 0);
  }

  /** Shows the further pictures with the cameras of a link; the others are fitted again. */
  restore(cameras: PaneCameras): void {
    this.#restored = cameras;
    for (const [key, open] of this.#open) {
      open.pane.camera = cameras[key] ?? null;
      open.isMoved = open.pane.camera !== null;
    }
    this.update(this.#page.state());
  }

  receive(message: Extract<FromWorker, { kind: "pane" }>): void {
    const open = [...this.#open.values()].find(({ pane }) => pane.number === message.pane);
    if (open) open.pane.receive(message.item);
    else if (message.item.kind === "frame") message.item.bitmap.close();
  }

  /** Shows one picture alone, or all of them again. */
  enlarge(key: string): void {
    this.#enlarged = this.#enlarged === key ? null : key;
    this.update(this.#page.state());
  }

  update(state: State): void {
    this.#mainBar.update(state);
    const isConnected = state.connection.kind === "open";
    // After a new connection all pictures join again.
    if (!isConnected) for (const open of this.#open.values()) open.hasJoined = false;
    const { layout } = this.#page.layouts;
    const isReady = state.array !== null && state.view.camera !== null;
    if (isReady) this.#arrange(panesOf(state.view, layout));
    this.#place(state);
    for (const open of this.#open.values()) {
      if (isConnected && isReady && !open.hasJoined) open.pane.open();
      open.hasJoined ||= isConnected && isReady;
      this.#show(open, state);
    }
  }

  /** Opens and closes pictures. */
  #arrange(specs: readonly PaneSpec[]): void {
    const keys = new Set(specs.map(paneKey));
    for (const [key, open] of this.#open) {
      const { pane } = open;
      if (keys.has(key)) continue;
      pane.close();
      this.#open.delete(key);
      if (open.isMoved) this.#remember(open, false);
    }
    for (const spec of specs) {
      const key = paneKey(spec);
      if (this.#open.has(key)) continue;
      this.#open.set(key, this.#create(spec, key));
    }
    if (this.#enlarged !== null && this.#enlarged !== MAIN && !this.#open.has(this.#enlarged))
      this.#enlarged = null;
    if (this.#open.size === 0) this.#enlarged = null;
  }

  #create(spec: PaneSpec, key: string): OpenPane {
    const label = spec.kind === "plane" ? texts.panes.plane : texts.panes.picture(spec.index + 1);
    const pane = new Pane(
      key,
      this.#nextNumber++,
      {
        send: this.#page.send,
        onChange: () => {
          this.update(this.#page.state());
        },
        onEnlarge: () => {
          this.enlarge(key);
        },
      },
      label,
    );
    const layer = spec.kind === "plane" ? new CrosshairLayer() : null;
    const bar =
      spec.kind === "cell"
        ? cellBar((part, isMoving) => {
            this.#changeCell(spec.index, part, isMoving);
          })
        : null;
    if (layer) pane.canvas.after(layer.element);
    if (bar) pane.bar.lastElementChild?.before(bar.element);
    pane.camera = this.#restored[key] ?? null;
    const isMoved = pane.camera !== null;
    // A picture that is opened again later is fitted.
    this.#restored = Object.fromEntries(Object.entries(this.#restored).filter(([name]) => name !== key));
    const open: OpenPane = {
      spec,
      pane,
      layer,
      bar,
      cameraOf: "",
      isMoved,
      fittedSize: null,
      hasJoined: false,
    };
    this.element.append(pane.element);
    new ImageGestures(pane.canvas, this.#imageTarget(open));
    if (spec.kind === "cell")
      new Gestures(
        pane.canvas,
        orbitTarget(
          () => (this.#page.layouts.isImage ? null : this.#cameraOf(open)),
          () => this.#page.state().array,
          (camera) => {
            this.#move(open, camera);
          },
          this.#page.actions.rest,
        ),
      );
    for (const event of ["pointerenter", "focusin"])
      pane.element.addEventListener(event, () => {
        if (spec.kind === "plane") this.#activeAxis = spec.axis;
      });
    return open;
  }

  /** Puts the pictures into rows and columns. */
  #place({ view }: State): void {
    const { layout } = this.#page.layouts;
    const isPlanes = layout === "planes";
    const grid = isPlanes ? { rows: 2, columns: 2 } : (view.grid ?? { rows: 1, columns: 1 });
    const isAlone = this.#enlarged !== null;
    this.element.style.setProperty("--rows", String(isAlone ? 1 : grid.rows));
    this.element.style.setProperty("--columns", String(isAlone ? 1 : grid.columns));
    document.body.classList.toggle("paned", this.#open.size > 0);
    document.body.dataset.layout = layout;
    // The badge of the page describes the first picture.
    document.body.classList.toggle("first-hidden", isAlone && this.#enlarged !== MAIN);
    const order = ["plane-z", MAIN, "plane-y", "plane-x"];
    this.#main.style.order = isPlanes ? "1" : "0";
    this.#main.hidden = isAlone && this.#enlarged !== MAIN;
    for (const [key, { pane, spec }] of this.#open) {
      pane.element.style.order = String(spec.kind === "cell" ? spec.index : order.indexOf(key));
      pane.element.hidden = isAlone && this.#enlarged !== key;
    }
  }

  #show(open: OpenPane, state: State): void {
    const { dataset, array, view } = state;
    if (!dataset || !array) return;
    const { spec, pane } = open;
    if (spec.kind === "plane") this.#showPlane(open, spec.axis, state, dataset, array);
    else if (pane.isVisible) {
      const isFree = view.grid?.tied === false || !this.#isAlike(open, dataset, array);
      if (!isFree) {
        pane.camera = null;
        if (open.isMoved) this.#remember(open, false);
      }
      if (isFree && this.#isAlike(open, dataset, array)) pane.camera ??= view.camera;
      // Without a camera, the node chooses one: of another space again for another size.
      const chosen = isFree && !(pane.isOpen && this.#isResized(open)) ? pane.view.camera : null;
      pane.show(cellView(view, dataset, cellOf(view.grid, spec.index), pane.camera ?? chosen));
      open.bar?.show(state, pane.view);
    }
  }

  #showPlane(open: OpenPane, axis: AxisNumber, { view }: State, dataset: Dataset, array: ArrayInfo): void {
    const { pane, layer } = open;
    if (!pane.isVisible) return;
    const key = `${dataset.id} ${array.name}`;
    // The first array is that of the link, with its camera.
    const isOther = open.cameraOf !== "" && open.cameraOf !== key;
    const isResized = this.#isResized(open) && !open.isMoved;
    if (!pane.camera || isOther || isResized) {
      pane.camera = fitPlane(dataset, array, axis, pane.settledSize);
      if (open.isMoved) this.#remember(open, false);
    }
    open.cameraOf = key;
    const size = pane.size();
    const isLarge = pixelsPerVoxel(pane.camera, array, axis, size) >= SQUARES_FROM_PIXELS;
    pane.show(planeView(view, array, axis, pane.camera, isLarge));
    const position = crosshairOf(view.slices, array);
    layer?.draw(pane.camera, size, array, axis, position);
    const [name, place] = planeLabel(dataset, array, axis, position);
    pane.showTitle(name, place);
    pane.title.style.setProperty("--plane", PLANE_COLORS[axis] ?? "");
  }

  /** Returns true once after the size of a picture has changed since its camera was chosen. */
  #isResized(open: OpenPane): boolean {
    const { fittedSize: before, pane } = open;
    const now = pane.settledSize;
    if (before?.width === now.width && before.height === now.height) return false;
    open.fittedSize = now;
    return before !== null;
  }

  /** True if a cell's array lies in the space of the view's. */
  #isAlike({ spec }: OpenPane, dataset: Dataset, array: ArrayInfo): boolean {
    const { grid } = this.#page.state().view;
    const name = spec.kind === "cell" ? cellOf(grid, spec.index).array : undefined;
    const own = name === undefined ? array : findArray(dataset, name);
    return own !== null && isSameSpace(own, array);
  }

  #cameraOf({ spec, pane }: OpenPane): Camera | null {
    if (spec.kind === "plane") return pane.camera;
    return pane.camera ?? (pane.isOpen ? pane.view.camera : null) ?? this.#page.state().view.camera;
  }

  #move(open: OpenPane, camera: Camera): void {
    const { dataset, array, view } = this.#page.state();
    const isTied =
      open.spec.kind === "cell" &&
      view.grid?.tied !== false &&
      dataset &&
      array &&
      this.#isAlike(open, dataset, array);
    if (isTied) this.#page.actions.change({ camera }, true);
    else {
      open.pane.camera = camera;
      this.#remember(open, true);
      this.update(this.#page.state());
    }
  }

  /** Notes whether the camera of a picture belongs into links. */
  #remember(open: OpenPane, isMoved: boolean): void {
    open.isMoved = isMoved;
    const moved = [...this.#open].flatMap(([key, { pane, isMoved: is }]) =>
      is && pane.camera ? [[key, pane.camera] as const] : [],
    );
    this.#page.onCameras(Object.fromEntries(moved));
  }

  #imageTarget(open: OpenPane): ImageTarget {
    const { spec, pane } = open;
    const { layouts, actions, state } = this.#page;
    const axis = () => (spec.kind === "plane" ? spec.axis : layouts.axis);
    const target: ImageTarget = {
      isEnabled: () => spec.kind === "plane" || layouts.isImage,
      camera: () => this.#cameraOf(open),
      zoomed: (camera, factor, x, y) => {
        const { array } = state();
        return array ? zoomPlane(camera, factor, array, axis(), pane.size(), x, y) : camera;
      },
      move: (camera) => {
        this.#move(open, camera);
      },
      rest: actions.rest,
      fit: () => {
        const { array, dataset } = state();
        if (array && dataset) this.#move(open, fitPlane(dataset, array, axis(), pane.size()));
      },
      step: (by) => {
        layouts.step(by, axis());
      },
      window: layouts.window,
    };
    if (spec.kind !== "plane") return target;
    return {
      ...target,
      isGrabbed: (at) => open.layer?.isNear(at) ?? false,
      moveCrosshair: (at, isMoving) => {
        this.#moveCrosshair(open, spec.axis, at, isMoving);
      },
    };
  }

  #moveCrosshair({ pane }: OpenPane, axis: AxisNumber, at: ScreenPoint, isMoving: boolean): void {
    const { array, view } = this.#page.state();
    if (!array || !pane.camera) return;
    const position = crosshairOf(view.slices, array);
    const to = voxelAt(pane.camera, pane.size(), at, array, axis, position[axis]);
    if (to)
      this.#page.actions.change(
        { slices: withCrosshair(view.slices, movedIn(axis, position, to), array) },
        isMoving,
      );
  }

  /** Changes a cell; of another array its own camera and positions are chosen anew. */
  #changeCell(
    index: number,
    part: { array?: string; time?: number; at?: Readonly<Record<string, number>> },
    isMoving: boolean,
  ): void {
    const { view } = this.#page.state();
    if (!view.grid) return;
    const cell = part.array === undefined ? { ...cellOf(view.grid, index), ...part } : part;
    const open = this.#open.get(paneKey({ kind: "cell", index }));
    if (open && part.array !== undefined) open.pane.camera = null;
    this.#page.actions.change({ grid: withCell(view.grid, index, cell) }, isMoving);
  }
}

/** Returns the name of a plane, and its index with its position where it has coordinates. */
function planeLabel(
  dataset: Dataset,
  array: ArrayInfo,
  axis: AxisNumber,
  position: Vec3,
): readonly [name: string, place: string] {
  const at = position[axis];
  const place = placeText(placeAxis(dataset, array, axis), at);
  const parts = [indexText(array, axis, at), place];
  return [planeName(array, axis), parts.filter((part) => part !== "").join(" · ")];
}
