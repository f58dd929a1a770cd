//! Texts of opening other data from within the page.

export const openTexts = {
  title: "Open other data",
  close: "Close",
  location: "Path or URL",
  locationHint: "/data/run42.h5, corridor://host/name, synthetic:waves?shape=64,64,64",
  open: "Open",
  opening: (name: string) => `Opening ${name}…`,
  openHere: "Opens in this page; the view shown now stays open for others and in the history of the browser.",
  places: "Places",
  up: "Up",
  filter: "Find in this list",
  loading: "Reading the list…",
  empty: "No data here.",
  kinds: { open: "open", folder: "folder", server: "server", data: "" },
  leftOut: (count: number) => `${count} ${count === 1 ? "file is" : "files are"} no data that can be read`,
  further: (count: number) => `${count} more are not listed; enter the path`,
  ownersOnly:
    "Only owners of the session can open other data. Ask one of them, or start `corridor view` yourself.",
  notConnected: "Not connected to the server; wait for the connection.",
  drop: "Drop files here",
  dropHint: (limit: string) =>
    `They are copied to the viewer on this machine, ${limit} at most, and removed when it ends.`,
  dropElsewhere:
    "Files cannot be dropped here: the viewer does not run on this machine. Open data by path or URL.",
  dropFolder: "Folders cannot be dropped; open a folder by its path.",
  dropTooLarge: (limit: string) =>
    `The files are larger than ${limit} together. Open them by their path instead.`,
  dropTooMany: (count: number) =>
    `More than ${count} files cannot be dropped together. Open them by their path.`,
  chooseFiles: "Choose files…",
  uploading: (name: string, percent: number) => `Copying ${name}: ${percent} %`,
  cancel: "Cancel",
  uploadFailed: (name: string, reason: string) => `${name} could not be copied: ${reason}`,
  uploadCancelled: "copying was cancelled",
  uploadBroke: "the connection broke; drop the file again",
};
