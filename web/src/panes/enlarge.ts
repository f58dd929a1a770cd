//! Button in the bar of a picture that shows it alone, or all pictures again.

import { texts } from "../texts/texts.ts";
import { iconButton } from "../ui/dom.ts";

export function enlargeButton(run: () => void): HTMLButtonElement {
  const button = iconButton("fullscreen", texts.panes.enlarge, "", run);
  button.classList.add("small", "pane-enlarge");
  return button;
}
