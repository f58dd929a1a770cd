//! Actions on the page around the picture: background, colors, full screen, and the dialogs.

import { texts } from "../texts/texts.ts";
import { describeThrown } from "../wire/error.ts";
import type { PageActions } from "./state.ts";
import { nextBackground, type PageTheme } from "./theme.ts";
import type { Viewer } from "./viewer.ts";

/** Parts of the page that are made after the viewer. */
export interface PageParts {
  readonly viewer: () => Viewer;
  readonly theme: PageTheme;
  readonly openData: () => void;
  readonly inviteController: () => void;
  readonly connectSpaceMouse: () => Promise<void>;
}

export function pageActions(parts: PageParts): PageActions {
  const { viewer, theme } = parts;
  return {
    nextBackground: () => {
      viewer().change({ background: nextBackground(viewer().state.view.background) });
    },
    setTheme: (chosen) => {
      theme.set(chosen);
      viewer().show({ theme: chosen });
    },
    toggleFullscreen: () => {
      void toggleFullscreen().then((isDone) => {
        if (!isDone) viewer().tell("info", texts.display.noFullscreen);
      });
    },
    openData: () => {
      if (viewer().state.mayOpen) parts.openData();
    },
    inviteController: parts.inviteController,
    connectSpaceMouse: () => {
      parts.connectSpaceMouse().catch((error: unknown) => {
        viewer().tell("warning", texts.display.spaceMouseFailed(describeThrown(error)));
      });
    },
  };
}

/** Returns false if the browser does not allow it, as in frames of other programs and on iPhones. */
async function toggleFullscreen(): Promise<boolean> {
  try {
    if (document.fullscreenElement) await document.exitFullscreen();
    else await document.documentElement.requestFullscreen();
    return true;
  } catch {
    return false;
  }
}
