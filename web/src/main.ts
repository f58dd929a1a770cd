//! The page's entry: assembles the components and starts the viewer.

import "./ui/style/base.css";
import "./ui/style/layout.css";
import "./ui/style/controls.css";
import "./ui/style/components.css";
import "./ui/style/transfer.css";
import "./ui/style/marks.css";

import { pageState, type Component, type State } from "./app/state.ts";
import { Viewer } from "./app/viewer.ts";
import { Gestures } from "./camera/gestures.ts";
import { listenToKeys } from "./camera/keys.ts";
import type { Json } from "./json.ts";
import { parseColormaps } from "./transfer/colormap.ts";
import { axesBar } from "./ui/axes.ts";
import { el } from "./ui/dom.ts";
import { header } from "./ui/header.ts";
import { helpDialog } from "./ui/help.ts";
import { marksMenu, marksOverlay, type Marks } from "./ui/marks/marks.ts";
import { notice } from "./ui/notice.ts";
import { sidePanel } from "./ui/side.ts";
import { toasts } from "./ui/toasts.ts";
import { toolbar } from "./ui/toolbar.ts";
import { fidelityBadge } from "./ui/fidelity.ts";

function start(): void {
  document.querySelector("#not-started")?.remove();
  const canvas = document.querySelector<HTMLCanvasElement>("#picture");
  if (!canvas) throw new Error("expected the page's canvas");
  const help = helpDialog();
  const components: Component[] = [];
  const show = (state: State) => {
    document.body.dataset.state = pageState(state);
    document.body.classList.toggle("panel-open", state.isPanelOpen);
    for (const component of components) component.update(state);
  };
  let marks: Marks | null = null;
  const viewer = new Viewer({
    canvas,
    paintMarks: (context, picture, state) => marks?.paint(context, picture, state),
    openHelp: () => {
      help.showModal();
    },
    onChange: show,
  });
  const [head, tools, side, fidelity] = [header(viewer), toolbar(viewer), sidePanel(viewer), fidelityBadge()];
  const [axes, words, messages] = [axesBar(viewer), notice(viewer), toasts(viewer)];
  const menu = marksMenu(viewer);
  tools.element.lastElementChild?.before(menu.element);
  marks = marksOverlay(viewer, canvas);
  // Last, because the marks avoid the other components.
  components.push(head, tools, side, fidelity, axes, words, messages, menu, marks);
  const right = el("div", { class: "right" }, tools.element, side.element);
  const others = [head.element, right, fidelity.element, axes.element, words.element, messages.element];
  document.body.append(marks.element, el("div", { class: "overlay" }, ...others), help);
  if (window.matchMedia("(max-width: 719px)").matches) viewer.togglePanel();

  const target = {
    actions: viewer,
    camera: () => viewer.camera(),
    diagonal: () => viewer.box()?.diagonal ?? 1,
    size: () => ({ width: canvas.clientWidth, height: canvas.clientHeight }),
    move: (camera: NonNullable<State["view"]["camera"]>) => {
      viewer.change({ camera }, true);
    },
    rest: () => {
      viewer.rest();
    },
  };
  new Gestures(canvas, target);
  listenToKeys(target, viewer.stepTime);
  viewer.start();
  void loadColormaps(viewer);
}

/** Loads the color maps for the swatches; without them the swatches are gray. */
async function loadColormaps(viewer: Viewer): Promise<void> {
  try {
    const response = await fetch(new URL("colormaps.json", document.baseURI));
    if (response.ok) viewer.setColormaps(parseColormaps((await response.json()) as Json));
  } catch {
    // Not available; the names in use are still shown.
  }
}

start();
