//! Starts the page of a phone as controller: the viewer with the picture as a touch pad, and no panels.

import { pageState, type State } from "../../app/state.ts";
import { Viewer } from "../../app/viewer.ts";
import { Gestures } from "../../camera/gestures.ts";
import { ImageGestures } from "../../layout/image-gestures.ts";
import { Layouts } from "../../layout/layouts.ts";
import type { ControllerCode } from "../../session/controller.ts";
import { texts } from "../../texts/texts.ts";
import type { Camera } from "../../view/schema.ts";
import { notice } from "../status/notice/notice.ts";
import { toasts } from "../status/toasts.ts";
import { controllerBar } from "./page.ts";

const NOTHING = () => undefined;

export function startController(canvas: HTMLCanvasElement, controller: ControllerCode): void {
  canvas.setAttribute("aria-label", texts.controller.pad);
  document.body.classList.add("is-controller");
  const update = (state: State) => {
    document.body.dataset.state = pageState(state);
    for (const component of components) component.update(state);
  };
  const viewer = new Viewer({
    canvas,
    openHelp: NOTHING,
    openSave: NOTHING,
    readCenter: NOTHING,
    page: {
      nextBackground: NOTHING,
      setTheme: NOTHING,
      toggleFullscreen: NOTHING,
      openData: NOTHING,
      connectSpaceMouse: NOTHING,
      inviteController: NOTHING,
    },
    name: texts.controller.participant(controller.code),
    onChange: update,
    paintMarks: NOTHING,
    onPane: NOTHING,
    onPaneCameras: NOTHING,
    embedding: null,
  });
  const size = () => ({ width: canvas.clientWidth, height: canvas.clientHeight });
  const state = () => viewer.state;
  const diagonal = () => viewer.box()?.diagonal ?? 1;
  const layouts = new Layouts({ actions: viewer, state, size });
  const bar = controllerBar(
    { actions: viewer, state, size, diagonal, stepTime: viewer.stepTime },
    controller,
  );
  // Not the layouts: they would change the view, which ends following.
  const components = [notice(viewer), toasts(viewer), bar];
  document.body.append(...components.map((component) => component.element));
  const target = {
    camera: () => (layouts.isImage ? null : viewer.camera()),
    diagonal,
    move: (camera: Camera) => {
      viewer.change({ camera }, true);
    },
    rest: () => {
      viewer.rest();
    },
  };
  new Gestures(canvas, target);
  new ImageGestures(canvas, {
    ...target,
    camera: () => viewer.camera(),
    isEnabled: () => layouts.isImage,
    zoomed: layouts.zoomed,
    fit: layouts.fit,
    step: layouts.step,
    window: layouts.window,
  });
  viewer.start();
}
