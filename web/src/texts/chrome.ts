//! Texts around the picture: toolbar, menus, help, people's devices.

import { gestures, keyGroups } from "./keys.ts";

export const chrome = {
  app: {
    name: "Corridor",
    title: (dataset: string) => `${dataset} · Corridor`,
    picture: "Picture of the volume. Drag or use the arrow keys to turn it; question mark for all keys.",
  },
  toolbar: {
    label: "Picture",
    more: "More tools",
    resetCamera: "Reset the camera",
    projection: "Orthographic projection",
    save: "Save a picture or film",
    link: "Copy a link to this view",
    help: "Keys and gestures",
    panel: "Appearance panel",
    open: "Open other data",
    fullscreen: "Full screen",
    display: "Display: background, colors of the page, controllers",
  },
  display: {
    label: "Display",
    background: "Background of the picture",
    backgrounds: { dark: "Dark", black: "Black", gray: "Gray", light: "Light", white: "White" },
    theme: "Colors of the page",
    themes: { system: "As the system", light: "Light", dark: "Dark" },
    noFullscreen: "The browser does not allow full screen here; open the viewer in a tab of its own",
    controllers: "Controllers",
    gamepadOff: "Gamepad: press a button on it",
    gamepadOn: (name: string) => `Gamepad: ${name}`,
    spaceMouse: "Connect a 3-D mouse…",
    spaceMouseOn: (name: string) => `3-D mouse: ${name}`,
    spaceMouseOff: "This browser cannot use a 3-D mouse; Chrome and Edge can, over https and on this machine",
    spaceMouseFailed: (reason: string) => `The 3-D mouse cannot be used: ${reason}`,
    phone: "Use a phone as controller…",
  },
  help: {
    title: "Keys and gestures",
    close: "Close",
    filter: "Find a key or gesture",
    none: "Nothing found; try another word, such as “camera” or “slice”",
    groups: keyGroups,
    gestures,
    devices: [
      ["Left stick", "Turn the volume"],
      ["Right stick", "Move the picture"],
      ["Triggers", "Nearer, farther"],
      ["Cross, left and right", "Time step back, forward"],
      ["Cross, up and down", "Next, previous slice"],
      ["First button (A, ✕)", "Play or pause time"],
      ["Second button (B, ○)", "Reset the camera"],
      ["3-D mouse: turn, push its cap", "Turn and move the volume"],
      ["3-D mouse: first button", "Reset the camera"],
    ] as readonly (readonly [gesture: string, does: string])[],
  },
};
