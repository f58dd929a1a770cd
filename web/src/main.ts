//! The page's entry: assembles the components and starts the viewer.

import "./ui/style/base.css";
import "./ui/style/layout.css";
import "./ui/style/controls.css";
import "./ui/style/components.css";
import "./ui/style/transfer.css";
import "./ui/style/marks.css";
import "./ui/style/panes.css";
import "./ui/style/together.css";
import "./ui/style/time.css";
import "./ui/style/handles.css";
import "./ui/style/plots.css";
import "./ui/probe/probe.css";
import "./ui/layers/layers.css";
import "./ui/save/save.css";
import "./ui/style/themes.css";
import "./ui/style/comfort.css";

import { pageActions } from "./app/page-actions.ts";
import { PageTheme } from "./app/theme.ts";
import { pageState, type Actions, type Component, type State } from "./app/state.ts";
import { Viewer } from "./app/viewer.ts";
import { Gestures } from "./camera/gestures.ts";
import { Devices, type DeviceBrowser } from "./camera/devices/devices.ts";
import type { Json } from "./json.ts";
import { keyHandlers } from "./keys/handlers.ts";
import { listenToKeys } from "./keys/listen.ts";
import { embeddingOfPage } from "./notebook/embedding.ts";
import { parseController } from "./session/controller.ts";
import { texts } from "./texts/texts.ts";
import { parseColormaps } from "./transfer/colormap.ts";
import { ImageGestures } from "./layout/image-gestures.ts";
import { Layouts } from "./layout/layouts.ts";
import { Panes } from "./panes/panes.ts";
import { axesBar } from "./ui/time/axes.ts";
import { el } from "./ui/dom.ts";
import { freeSpace } from "./ui/layout/free-space.ts";
import { header } from "./ui/status/header.ts";
import { Cutaway } from "./ui/handles/cutaway.ts";
import { Handles } from "./ui/handles/handles.ts";
import { HandleSettings } from "./ui/handles/settings.ts";
import { helpDialog } from "./ui/page/help.ts";
import { isLight } from "./ui/marks/draw.ts";
import { marksMenu, marksOverlay, type Marks } from "./ui/marks/marks.ts";
import { layoutBar } from "./ui/layout/bar.ts";
import { inviteDialog } from "./ui/controller/invite.ts";
import { startController } from "./ui/controller/start.ts";
import { listenToDrops, openDialog } from "./ui/open/dialog.ts";
import { notice } from "./ui/status/notice/notice.ts";
import { plots } from "./ui/plots/plots.ts";
import { probe } from "./ui/probe/probe.ts";
import { saveDialog } from "./ui/save/dialog.ts";
import { sidePanel } from "./ui/panel/side.ts";
import { toasts } from "./ui/status/toasts.ts";
import { toolbar } from "./ui/page/toolbar.ts";
import { fidelityBadge } from "./ui/status/fidelity.ts";
import { togetherOverlay } from "./ui/together/overlay.ts";
import { togetherPanel } from "./ui/together/panel.ts";
import { arrowReader } from "./ui/vectors/reader.ts";
import { followBar, listenToPointer, nameQuestion } from "./ui/together/tools.ts";

async function start(): Promise<void> {
  document.querySelector("#not-started")?.remove();
  const canvas = document.querySelector<HTMLCanvasElement>("#picture");
  if (!canvas) throw new Error("expected the page's canvas");
  canvas.setAttribute("aria-label", texts.app.picture);
  const theme = new PageTheme();
  const controller = parseController(window.location.search);
  if (controller) {
    startController(canvas, controller);
    return;
  }
  const help = helpDialog();
  const embedding = await embeddingOfPage();
  const components: Pick<Component, "update">[] = [];
  const show = (state: State) => {
    embedding?.update(state);
    document.body.dataset.state = pageState(state);
    // For measurements: whether the frame on the screen shows the newest change.
    document.body.dataset.current = String(state.isCurrent);
    document.body.dataset.background = isLight(state.view.background) ? "light" : "dark";
    document.body.classList.toggle("panel-open", state.isPanelOpen);
    for (const component of components) component.update(state);
  };
  let marks: Marks | null = null;
  const viewer: Viewer = new Viewer({
    canvas,
    paintMarks: (context, picture, state) => marks?.paint(context, picture, state),
    openHelp: () => {
      help.showModal();
    },
    openSave: () => {
      saving.open();
    },
    readCenter: () => {
      values.readCenter();
    },
    page: pageActions({
      viewer: () => viewer,
      theme,
      openData: () => {
        opening.show();
      },
      inviteController: () => {
        invitation.show();
      },
      connectSpaceMouse: () => devices.connectSpaceMouse(),
    }),
    onChange: show,
    onPane: (message) => {
      panes.receive(message);
    },
    onPaneCameras: (cameras) => {
      panes.restore(cameras);
    },
    wholeCamera: () => layouts.wholeCamera,
    embedding,
  });
  const size = () => ({ width: canvas.clientWidth, height: canvas.clientHeight });
  const state = () => viewer.state;
  const layouts = new Layouts({ actions: viewer, state, size });
  const panes = new Panes(
    canvas,
    {
      ...{ actions: viewer, state, send: viewer.send, layouts },
      onCameras: (cameras) => {
        viewer.rememberPanes(cameras);
      },
    },
    viewer.paneCameras,
  );
  const arrangement = layoutBar(viewer, layouts);
  const tell = (text: string) => {
    viewer.tell("info", text);
  };
  // An image is seen head on, by parallel rays.
  const actions: Actions = Object.assign(Object.create(viewer) as Actions, {
    axisView: (index: number) => {
      if (layouts.isImage) tell(texts.layout.imageOnly);
      else viewer.axisView(index);
    },
    toggleProjection: () => {
      if (layouts.isImage) tell(texts.layout.imageOnly);
      else viewer.toggleProjection();
    },
  });
  const handleSettings = new HandleSettings();
  const isSpace = () => layouts.layout === "space" || layouts.layout === "planes";
  const handles = new Handles({ actions: viewer, state, size, isSpace, settings: handleSettings });
  const cutaway = new Cutaway(viewer, handleSettings, state);
  const lines = plots({ calls: viewer.calls, state, isPlot: () => layouts.layout === "plot" });
  const [head, tools, side, fidelity] = [
    header(viewer),
    toolbar(actions),
    sidePanel(viewer, handleSettings),
    fidelityBadge(),
  ];
  const [axes, words, messages] = [axesBar(viewer), notice(viewer), toasts(viewer)];
  const values = probe(viewer, canvas);
  const arrows = arrowReader(viewer, size);
  const menu = marksMenu(viewer);
  const saving = saveDialog(viewer, () => panes.shown());
  tools.element.lastElementChild?.before(menu.element);
  tools.element.prepend(arrangement.element);
  marks = marksOverlay(viewer, canvas);
  const { together } = viewer;
  const opening = openDialog({
    state,
    ask: viewer.ask,
    token: () => viewer.token,
    goTo: (path) => {
      goTo(path, viewer.token);
    },
  });
  const invitation = inviteDialog({
    state,
    token: () => viewer.token,
    follow: together.follow,
    tell,
  });
  const sign = listenToDrops(opening, viewer, () => state().mayOpen);
  const [pointers, people] = [togetherOverlay(together, size), togetherPanel(viewer)];
  const [led, question] = [followBar(together), nameQuestion(together)];
  components.push(layouts, panes, arrangement, head, tools, side, fidelity, axes, words, messages);
  // The marks last, because they avoid the other components.
  const space = freeSpace({
    left: [people.element, values.panel],
    bottom: [axes.element],
    top: [head.element, tools.element],
    corner: [fidelity.element],
  });
  components.push(
    menu,
    values,
    arrows,
    pointers,
    people,
    led,
    question,
    saving,
    invitation,
    space,
    lines,
    cutaway,
    handles,
    marks,
  );
  const right = el("div", { class: "right" }, tools.element, side.element);
  const others = [head.element, right, fidelity.element, axes.element, words.element, messages.element];
  others.push(values.element, people.element, led.element, question.element);
  // What is drawn over the picture lies in its pane.
  canvas.after(marks.element, pointers.element, handles.element, lines.element);
  document.body.append(el("div", { class: "overlay" }, ...others), help, saving.element);
  document.body.append(opening.element, invitation.element, sign);
  // A cell of a notebook is small, too.
  if (embedding || window.matchMedia("(max-width: 719px)").matches) viewer.togglePanel();

  const target = {
    actions,
    camera: () => viewer.camera(),
    diagonal: () => viewer.box()?.diagonal ?? 1,
    size,
    move: (camera: NonNullable<State["view"]["camera"]>) => {
      together.stopPath();
      viewer.change({ camera }, true);
    },
    rest: () => {
      viewer.rest();
    },
  };
  listenToPointer(canvas, together);
  new Gestures(canvas, { ...target, camera: () => (layouts.isImage ? null : viewer.camera()) });
  new ImageGestures(canvas, {
    ...target,
    isEnabled: () => layouts.isImage,
    zoomed: layouts.zoomed,
    fit: actions.resetCamera,
    step: layouts.step,
    window: layouts.window,
  });
  const activeAxis = () => panes.activeAxis;
  // The first picture is fitted to the place that the panel leaves.
  document.body.classList.toggle("panel-open", viewer.state.isPanelOpen);
  listenToKeys(keyHandlers({ ...target, layouts, state, stepTime: viewer.stepTime, tell, activeAxis }));
  const devices = new Devices(
    {
      ...target,
      isFlat: () => layouts.isImage,
      command: (command) => {
        const axis = activeAxis();
        const run = {
          play: actions.togglePlay,
          reset: actions.resetCamera,
          timeBack: () => {
            viewer.stepTime(-1);
          },
          timeForward: () => {
            viewer.stepTime(1);
          },
          nextSlice: () => {
            layouts.step(1, axis, false);
          },
          previousSlice: () => {
            layouts.step(-1, axis, false);
          },
        };
        run[command]();
      },
      show: (shown) => {
        viewer.show({ devices: shown });
      },
    },
    pageBrowser(),
  );
  viewer.show({ theme: theme.theme });
  viewer.start();
  if (embedding) {
    embedding.listen(viewer.change);
    embedding.watchClicks(canvas, () => viewer.state.view, viewer.pick);
    viewer.setColormaps(parseColormaps(embedding.settings.colormaps));
  } else void loadColormaps(viewer);
}

/** The browser's interfaces to devices. */
function pageBrowser(): DeviceBrowser {
  return {
    gamepads: () => ("getGamepads" in navigator ? navigator.getGamepads() : []),
    requestFrame: (run) => void requestAnimationFrame(run),
    events: window,
    navigator,
  };
}

/** Goes to a page of the node, with the token after the hash, as in the links that the node prints. */
function goTo(path: string, token: string): void {
  const url = new URL(path, document.baseURI);
  url.search = "";
  url.hash = token === "" ? "" : `token=${encodeURIComponent(token)}`;
  window.location.assign(url);
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

void start();
