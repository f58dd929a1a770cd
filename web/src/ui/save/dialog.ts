//! The dialog for saving: a picture of any size, a film, or the view as text. The node makes pictures and films; the dialog
//! may be closed meanwhile.

import { texts } from "../../texts/texts.ts";
import type { Viewer } from "../../app/viewer.ts";
import { fileNameFor, saveFile } from "../../app/save.ts";
import type { Component, State } from "../../app/state.ts";
import type { JsonObject } from "../../json.ts";
import type { ShownPane } from "../../panes/panes.ts";
import { el, iconButton, setText, textButton } from "../dom.ts";
import { dataAddress, isUnsupported } from "../probe/requests.ts";
import { renderCommand, renderPython } from "./code.ts";
import { filmForm } from "./film-form.ts";
import { pictureForm, stillParameters } from "./picture-form.ts";
import { startSaving } from "./saving.ts";
import { textForm } from "./text-form.ts";

const TABS = ["picture", "film", "text"] as const;
type Tab = (typeof TABS)[number];
const LABELS: Readonly<Record<Tab, string>> = texts.save.tabs;
/** Size of the picture of a command if that of the form cannot be read. */
const DEFAULT_SIZE = { width: 1024, height: 800 } as const;

/** Part of the viewer that the dialog uses. */
export type SaveHost = Pick<Viewer, "calls" | "state" | "link" | "token" | "tell" | "screenshot">;

export interface SaveDialog extends Component {
  readonly element: HTMLDialogElement;
  open(): void;
}

/** The dialog; `shown` returns the pictures on the page. */
export function saveDialog(host: SaveHost, shown: () => readonly ShownPane[]): SaveDialog {
  let tab: Tab = "picture";
  let cancel: (() => void) | null = null;
  const picture = pictureForm(() => {
    refresh();
  });
  const film = filmForm(() => {
    refresh();
  });
  const text = textForm((isCopied, label) => {
    if (isCopied) host.tell("info", texts.save.copied(label));
    else host.tell("warning", texts.save.copyingNotAllowed);
  });
  const panels: Readonly<Record<Tab, HTMLElement>> = {
    picture: picture.element,
    film: film.element,
    text: text.element,
  };
  const tabs = TABS.map((name) => {
    const button = el(
      "button",
      {
        type: "button",
        role: "tab",
        class: "save-tab",
        id: `save-tab-${name}`,
        "aria-controls": `save-panel-${name}`,
      },
      LABELS[name],
    );
    button.addEventListener("click", () => {
      choose(name);
    });
    const panel = panels[name];
    panel.id = `save-panel-${name}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", button.id);
    return button;
  });
  const list = el(
    "div",
    { class: "save-tabs", role: "tablist", "aria-label": texts.save.whatToSave },
    ...tabs,
  );
  list.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined) return;
    const next = TABS[(TABS.indexOf(tab) + by + TABS.length) % TABS.length];
    if (next) choose(next);
    tabs[TABS.indexOf(tab)]?.focus();
    event.preventDefault();
  });
  const problem = el("p", { class: "save-problem", role: "alert" });
  const bar = el("progress", { max: 1, "aria-label": texts.save.progress });
  const status = el("span", { role: "status" });
  const stop = textButton(texts.save.cancel, () => {
    cancel?.();
    ended();
    host.tell("info", texts.save.cancelled);
  });
  const progress = el("div", { class: "save-progress" }, bar, el("div", {}, status, stop));
  progress.hidden = true;
  const start = textButton(
    texts.save.save,
    () => {
      save();
    },
    "button",
  );
  const asShown = textButton(texts.save.saveNow, () => {
    dialog.close();
    host.screenshot();
  });
  const actions = el("div", { class: "save-actions" }, asShown, start);
  const close = iconButton("close", texts.save.close, texts.keyCaps.Escape, () => {
    dialog.close();
  });
  const dialog = el(
    "dialog",
    { class: "panel help save", "aria-labelledby": "save-title" },
    el("div", { class: "help-head" }, el("h2", { id: "save-title" }, texts.save.save), close),
    list,
    ...TABS.map((name) => panels[name]),
    problem,
    progress,
    actions,
  );
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside its content
  });

  function choose(name: Tab): void {
    tab = name;
    setText(problem, "");
    refresh();
  }

  /** Shows the chosen tab, and whether it can be saved. */
  function refresh(): void {
    const { connection } = host.state;
    for (const [number, name] of TABS.entries()) {
      const isChosen = name === tab;
      panels[name].hidden = !isChosen;
      tabs[number]?.setAttribute("aria-selected", String(isChosen));
      if (tabs[number]) tabs[number].tabIndex = isChosen ? 0 : -1;
    }
    actions.hidden = tab === "text";
    asShown.hidden = tab !== "picture";
    const isReady =
      tab === "picture" ? picture.wish(host.state) !== null : film.parameters(host.state) !== null;
    start.disabled = cancel !== null || !isReady || connection.kind !== "open";
    start.title = connection.kind === "open" ? "" : texts.save.noConnection;
    if (tab === "text") text.show(codes, host.token !== "");
  }

  function codes(withToken: boolean): { link: string; command: string; python: string } {
    const { state } = host;
    const wish = picture.wish(state);
    const address = dataAddress(window.location.host, state.dataset?.name ?? "");
    const code = {
      location: withToken ? `${address}#token=${encodeURIComponent(host.token)}` : address,
      view: wish?.view ?? state.view,
      ...(wish?.size ?? DEFAULT_SIZE),
      hasMarks: wish?.hasMarks ?? false,
      isTransparent: wish?.isTransparent ?? false,
      file: fileNameFor(state),
    };
    return { link: host.link(withToken), command: renderCommand(code), python: renderPython(code) };
  }

  function save(): void {
    const { state } = host;
    setText(problem, "");
    if (tab === "picture") {
      const wish = picture.wish(state);
      if (wish) run("still", stillParameters(wish, state.you), "image/png", fileNameFor(state));
      return;
    }
    const parameters = film.parameters(state);
    const { ending, type } = film.format();
    if (parameters) run("film", parameters, type, fileNameFor(state).replace(/png$/, ending));
  }

  function run(name: "still" | "film", parameters: JsonObject, type: string, file: string): void {
    progress.hidden = false;
    bar.removeAttribute("value");
    setText(status, texts.save.beginning);
    // If the call is refused at once, `ended` is called before this function returns.
    cancel = () => undefined;
    const stopSaving = startSaving(host.calls, name, parameters, type, {
      progress: (said, share) => {
        setText(status, said);
        if (share === null) bar.removeAttribute("value");
        else bar.value = share;
      },
      saved: (blob, said) => {
        saveFile(blob, file);
        ended();
        host.tell("info", texts.save.saved(file, said));
        dialog.close();
      },
      failed: (reason) => {
        ended();
        const advice = isUnsupported(reason) ? texts.save.olderServer : texts.save.notSaved(reason);
        setText(problem, advice);
        if (!dialog.open) host.tell("warning", advice);
      },
    });
    if (isSaving()) cancel = stopSaving;
    refresh();
  }

  function isSaving(): boolean {
    return cancel !== null;
  }

  function ended(): void {
    cancel = null;
    progress.hidden = true;
    refresh();
  }

  return {
    element: dialog,
    open() {
      if (dialog.open) return;
      setText(problem, "");
      picture.update(host.state, shown());
      film.update(host.state);
      refresh();
      dialog.showModal();
    },
    update(state: State) {
      // The forms follow the state when the dialog is opened; while it is open, only the connection matters.
      if (dialog.open) start.disabled = start.disabled || state.connection.kind !== "open";
      dialog.classList.toggle("is-saving", cancel !== null);
    },
  };
}
