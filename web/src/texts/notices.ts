//! Texts of the notice over the picture: why there is no picture, or none of the data, and what to do.

export const notices = {
  connecting: { title: "Connecting", text: "Connecting to the server…" },
  lost: "Connection lost",
  unreachable: "The server cannot be reached",
  busy: "There is no place for now",
  tryingAgain: (seconds: number) => (seconds > 0 ? `Trying again in ${seconds} s.` : "Trying again now."),
  silent: {
    title: "The server does not respond",
    text: "The server has sent nothing for some seconds: it is busy or down, or the network is interrupted. The page keeps trying.",
  },
  refused: "The server cannot show this",
  token: {
    title: "Access needs a token",
    how: "Open the link that the server printed, or enter its token.",
    label: "Token",
    connect: "Connect",
  },
  removed: {
    title: "You are no longer in the session",
    text: (by: string) => `${by} removed you. To come back, ask for a new link, or enter its token.`,
  },
  unsupported: "The viewer cannot run here",
  opening: (dataset: string) => `Opening ${dataset}`,
  connected: "Connected",
  firstPicture: "Waiting for the first picture…",
  description: "Reading the description…",
  noPicture: "No picture",
  nothingToDraw: {
    title: "Nothing to draw in this data set",
    text: "None of its arrays has a spatial axis with more than one element.",
  },
  noArray: {
    title: "The data set has no array of this name",
    text: (name: string) =>
      `There is no array \`${name}\`. Choose one of the others in the list at the top left.`,
  },
  noValues: {
    title: "No values here",
    text: (isClipped: boolean) =>
      `All elements ${isClipped ? "in the clip box" : "of this array"} are missing at this step. Choose another step or array${isClipped ? ", or clear the clip box" : ""}.`,
  },
  transparent: {
    title: "Nothing visible with this transfer function",
    text: "Every value that occurs is fully transparent. Raise a point of the opacity curve.",
  },
  clip: {
    title: "The clip box leaves nothing",
    text: "The clip box excludes the whole volume, or lies outside of the picture. Clear it, or make it larger.",
  },
  outside: {
    title: "The data are outside of the picture",
    text: (resetKey: string) => `The camera looks past the volume. Reset it (${resetKey}), or move back.`,
  },
  nothingChosen: {
    title: "Nothing is chosen to be drawn",
    text: "Only isosurfaces and slices are drawn, and there are none. Draw the volume, or add a slice or an isosurface in the panel.",
  },
  sliceOutside: {
    title: "The slices lie outside of the data",
    text: "Only slices are drawn, and all lie outside of the volume. Move one to an index that exists, or draw the volume.",
  },
  surfaceOutside: {
    title: "No isosurface at these values",
    text: (low: string, high: string) =>
      `The values shown are between ${low} and ${high}; no isosurface lies there. Choose a value between them.`,
  },
  actions: {
    retry: "Connect now",
    ramp: "Use a simple ramp",
    opaque: "Show every value",
    clip: "Clear the clip box",
    camera: "Reset the camera",
    volume: "Draw the volume",
    open: "Open other data",
  },
  noBrowserSupport:
    "This browser does not support WebSocket, workers or image bitmaps. Use a current browser.",
  noWorker:
    "The page's network worker could not be started. Reload the page; if that does not help, a proxy or an extension of the browser blocks a file in `assets/`.",
  workerFailed: (reason: string) => `the network worker failed: ${reason}`,
  unencrypted:
    "This page was loaded over an unencrypted connection, so its access token is not sent: others could read it. " +
    "Open it over HTTPS or through an ssh tunnel; see docs/deploy.md.",
};
