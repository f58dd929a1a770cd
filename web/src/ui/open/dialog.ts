//! Dialog in which other data are opened: by path or URL, from the lists of the node, or as dropped files.

import type { Actions, State } from "../../app/state.ts";
import { batchName, dropProblem, MAX_TRIED_FILES, upload, uploadAddress } from "./uploads.ts";
import { formatBytes } from "../../dataset/labels.ts";
import type { Json, JsonObject } from "../../json.ts";
import { texts } from "../../texts/texts.ts";
import { describeThrown } from "../../wire/error.ts";
import type { CalledOperation } from "../../worker/messages.ts";
import { el, iconButton, setText, textButton } from "../dom.ts";
import { filterPlaces, parseOpened, parsePlaces, type Place, type PlaceList } from "./places.ts";

const words = texts.open;

/** The page around the dialog. */
export interface OpenPage {
  readonly state: () => State;
  /** Calls an operation of the node with one answer; throws an `Error` with its reason. */
  readonly ask: (name: CalledOperation, parameters: JsonObject) => Promise<Json>;
  readonly token: () => string;
  /** Goes to a page of the node, by its path relative to this one. */
  readonly goTo: (path: string) => void;
}

export interface OpenDialog {
  readonly element: HTMLDialogElement;
  readonly show: () => void;
  /** Copies files to the node and opens them. */
  readonly drop: (files: readonly File[]) => Promise<void>;
  /** Shows the dialog with a location filled in. */
  readonly fill: (location: string) => void;
}

export function openDialog(page: OpenPage): OpenDialog {
  const location = el("input", {
    type: "text",
    class: "search",
    id: "open-location",
    placeholder: words.locationHint,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
  });
  const form = el(
    "form",
    { class: "open-form" },
    el("label", { for: "open-location" }, words.location),
    el("div", { class: "open-row" }, location, el("button", { type: "submit", class: "button" }, words.open)),
  );
  const status = el("p", { class: "open-status", role: "status" });
  const progress = el("progress", { max: 1, "aria-label": words.drop, hidden: true });
  const cancel = textButton(words.cancel, () => {
    stop.abort();
  });
  cancel.hidden = true;
  const up = textButton(words.up, () => void list(shown?.parent ?? ""));
  const roots = textButton(words.places, () => void list(""));
  const place = el("span", { class: "open-place" });
  const search = el("input", {
    type: "search",
    class: "search",
    "aria-label": words.filter,
    placeholder: words.filter,
  });
  const entries = el("ul", { class: "open-list", "aria-label": words.places });
  const footnote = el("p", { class: "hint" });
  const picker = el("input", { type: "file", multiple: true, hidden: true });
  const choose = textButton(words.chooseFiles, () => {
    picker.click();
  });
  const dropHint = el("span", { class: "hint" });
  const files = el("div", { class: "open-files", hidden: true }, choose, dropHint, picker);
  const close = iconButton("close", words.close, texts.keyCaps.Escape, () => {
    element.close();
  });
  const element = el(
    "dialog",
    { class: "panel help open-dialog", "aria-labelledby": "open-title" },
    el("div", { class: "help-head" }, el("h2", { id: "open-title" }, words.title), close),
    form,
    el("div", { class: "open-row" }, status, cancel),
    progress,
    el("div", { class: "open-row" }, roots, up, place),
    search,
    entries,
    footnote,
    files,
    el("p", { class: "hint" }, words.openHere),
  );
  let shown: PlaceList | null = null;
  let stop = new AbortController();
  /** Number of the newest list that was requested: answers of older ones are dropped. */
  let newest = 0;

  const tell = (text: string, isBad = false) => {
    setText(status, text);
    status.classList.toggle("bad", isBad);
  };
  const show = () => {
    const all = shown?.entries ?? [];
    const found = filterPlaces(all, search.value);
    entries.replaceChildren(...found.map((entry) => row(entry, choosePlace)));
    setText(place, shown?.place ?? "");
    up.hidden = !shown || shown.place === "";
    roots.hidden = up.hidden;
    search.hidden = all.length < 8;
    const notes = shown
      ? [
          found.length === 0 ? words.empty : "",
          shown.leftOut > 0 ? words.leftOut(shown.leftOut) : "",
          shown.further > 0 ? words.further(shown.further) : "",
        ]
      : [];
    setText(footnote, notes.filter((note) => note !== "").join(" · "));
    const limit = shown?.maxUploadBytes ?? 0;
    files.hidden = limit === 0;
    setText(dropHint, `${words.drop}. ${words.dropHint(formatBytes(limit))}`);
  };
  const list = async (where: string): Promise<void> => {
    const own = ++newest;
    tell(words.loading);
    try {
      const answer = parsePlaces(await page.ask("places", { place: where }));
      if (own !== newest) return;
      shown = answer;
      search.value = "";
      tell("");
    } catch (error) {
      if (own === newest) tell(sentence(describeThrown(error)), true);
    }
    show();
  };
  const open = async (what: string): Promise<void> => {
    tell(words.opening(what));
    page.goTo(parseOpened(await page.ask("open", { location: what })));
  };
  const tryOpen = async (what: string): Promise<void> => {
    try {
      await open(what);
      element.close();
    } catch (error) {
      tell(sentence(describeThrown(error)), true);
    }
  };
  const choosePlace = ({ kind, location: where }: Place) => {
    if (kind === "open") page.goTo(parseOpened({ path: where }));
    else if (kind === "data") void tryOpen(where);
    else void list(where);
  };
  const begin = (): boolean => {
    const { connection, role } = page.state();
    if (!element.open) element.showModal();
    const problem =
      connection.kind !== "open" ? words.notConnected : role !== "own" ? words.ownersOnly : null;
    form.hidden = problem !== null;
    if (problem !== null) tell(problem, true);
    return problem === null;
  };
  const drop = async (dropped: readonly File[]): Promise<void> => {
    if (!begin()) return;
    await list(shown?.place ?? "");
    const problem = dropProblem(dropped, shown?.maxUploadBytes ?? 0);
    if (problem !== null) {
      tell(problem, true);
      return;
    }
    stop = new AbortController();
    progress.hidden = cancel.hidden = false;
    try {
      const paths = await copy(dropped);
      await openOne(paths);
      element.close();
    } catch (error) {
      tell(sentence(describeThrown(error)), true);
    } finally {
      progress.hidden = cancel.hidden = true;
    }
  };
  /** Copies files, one after the other; returns their paths. */
  const copy = async (dropped: readonly File[]): Promise<readonly string[]> => {
    const batch = batchName();
    const paths: string[] = [];
    for (const file of dropped) {
      const onProgress = (share: number) => {
        progress.value = share;
        tell(words.uploading(file.name, Math.floor(100 * share)));
      };
      onProgress(0);
      const address = uploadAddress(document.baseURI, batch, file.name);
      try {
        paths.push(await upload({ address, token: page.token(), file, onProgress, signal: stop.signal }));
      } catch (error) {
        if (stop.signal.aborted) throw error;
        throw new Error(words.uploadFailed(file.name, describeThrown(error)));
      }
    }
    return paths;
  };
  /** Opens the first of the files that can be opened: others may be the parts that it names. */
  const openOne = async (paths: readonly string[]): Promise<void> => {
    let first: unknown = null;
    for (const path of paths.slice(0, MAX_TRIED_FILES)) {
      try {
        await open(path);
        return;
      } catch (error) {
        first ??= error;
      }
    }
    throw first;
  };

  show();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (location.value.trim() !== "") void tryOpen(location.value.trim());
  });
  search.addEventListener("input", show);
  picker.addEventListener("change", () => {
    const chosen = [...(picker.files ?? [])];
    picker.value = "";
    if (chosen.length > 0) void drop(chosen);
  });
  element.addEventListener("click", (event) => {
    if (event.target === element) element.close(); // beside its content
  });
  element.addEventListener("close", () => {
    stop.abort();
    tell("");
  });
  return {
    element,
    show: () => {
      if (begin()) void list(shown?.place ?? "");
    },
    drop,
    fill: (text) => {
      if (!begin()) return;
      location.value = text;
      location.focus();
      void list(shown?.place ?? "");
    },
  };
}

function row(place: Place, choose: (place: Place) => void): HTMLElement {
  const about = [words.kinds[place.kind], place.about].filter((text) => text !== "").join(" · ");
  const button = el(
    "button",
    { type: "button", class: "open-entry", title: place.location },
    el("span", { class: "open-name" }, place.kind === "folder" ? `${place.name}/` : place.name),
    el("span", { class: "open-about" }, about),
  );
  button.addEventListener("click", () => {
    choose(place);
  });
  return el("li", {}, button);
}

function sentence(message: string): string {
  const text = message.trim();
  return text.charAt(0).toUpperCase() + text.slice(1) + (text === "" || /[.!?…]$/.test(text) ? "" : ".");
}

/** Listens to files and addresses that are dropped on the page; returns the sign that is shown meanwhile. */
export function listenToDrops(
  dialog: OpenDialog,
  actions: Pick<Actions, "openData">,
  isAllowed: () => boolean,
): HTMLElement {
  const sign = el("div", { class: "drop-sign", "aria-hidden": "true", hidden: true }, words.drop);
  let inside = 0;
  const has = (event: DragEvent, type: string) => event.dataTransfer?.types.includes(type) === true;
  const isUsable = (event: DragEvent) => isAllowed() && (has(event, "Files") || has(event, "text/uri-list"));
  const leave = () => {
    inside = 0;
    sign.hidden = true;
  };
  document.addEventListener("dragenter", (event) => {
    if (!isUsable(event)) return;
    inside += 1;
    sign.hidden = false;
  });
  document.addEventListener("dragleave", (event) => {
    if (isUsable(event) && --inside <= 0) leave();
  });
  document.addEventListener("dragover", (event) => {
    if (isUsable(event)) event.preventDefault();
  });
  document.addEventListener("drop", (event) => {
    if (!isUsable(event)) return;
    event.preventDefault();
    leave();
    const { dataTransfer } = event;
    const items = [...(dataTransfer?.items ?? [])].filter((item) => item.kind === "file");
    const plain = items.filter((item) => item.webkitGetAsEntry()?.isDirectory !== true);
    const files = plain.flatMap((item) => item.getAsFile() ?? []);
    const address = dataTransfer?.getData("text/uri-list") ?? "";
    if (items.length > 0) void dialog.drop(files);
    else if (address !== "") dialog.fill(address);
    else actions.openData();
  });
  return sign;
}
