//! Panel at the right: transfer function, colors, rendering mode, surfaces, slices, clipping, resolution, servers.

import { texts } from "../../texts/texts.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { clipControl } from "../places/clip.ts";
import { el, iconButton } from "../dom.ts";
import type { HandleSettings } from "../handles/settings.ts";
import { layerList } from "../layers/list.ts";
import { levelControl } from "./level.ts";
import { serverList } from "./servers.ts";
import { sliceControl } from "../places/slices.ts";
import { surfaceControl } from "./surfaces.ts";
import { volumeControl } from "./volume.ts";
import { arrowControl } from "../vectors/control.ts";
import { colormapPicker } from "../transfer/colormap-picker.ts";
import { transferEditor } from "../transfer/editor.ts";

export function sidePanel(actions: Actions, handles: HandleSettings): Component {
  const components = [
    transferEditor(actions),
    colormapPicker(actions),
    volumeControl(actions),
    layerList(actions),
    surfaceControl(actions),
    sliceControl(actions, handles),
    arrowControl(actions),
    clipControl(actions, handles),
    levelControl(actions),
    serverList(),
  ];
  const close = iconButton("close", texts.side.hideThePanel, "P", actions.togglePanel);
  close.classList.add("small", "side-close");
  const element = el(
    "aside",
    { class: "panel side", id: "side", "aria-label": texts.side.appearance },
    close,
    ...components.map((component) => component.element),
  );
  const update = (state: State) => {
    element.hidden = !state.isPanelOpen || state.array === null;
    for (const component of components) component.update(state);
  };
  return { element, update };
}
