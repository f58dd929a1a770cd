//! Buttons that save the transfer function to a JSON file and load it from one.

import { texts } from "../../texts/texts.ts";
import { saveFile } from "../../app/save.ts";
import type { Actions, Component, State } from "../../app/state.ts";
import { fileName, fromFile, MAX_FILE_BYTES, toFile } from "../../transfer/file.ts";
import { el, setText, textButton } from "../dom.ts";

export function transferFiles(actions: Actions): Component {
  let state: State | null = null;
  const problem = el("p", { class: "hint", role: "alert", hidden: true });
  const say = (text: string) => {
    setText(problem, text);
    problem.hidden = text === "";
  };
  const save = textButton(texts.transferPanel.save, () => {
    const transfer = state?.view.transfer;
    if (!transfer) return;
    const name = fileName(state?.array?.name ?? "");
    saveFile(new Blob([toFile(transfer)], { type: "application/json" }), name);
  });
  save.title = texts.transferPanel.saveHint;
  const input = el("input", { type: "file", accept: ".json,application/json", hidden: true });
  input.addEventListener("change", () => {
    const file = input.files?.[0];
    input.value = "";
    if (!file) return;
    if (file.size > MAX_FILE_BYTES) {
      say(texts.transferFile.tooLarge);
      return;
    }
    file.text().then(
      (text) => {
        try {
          actions.change({ transfer: fromFile(text) });
          say("");
        } catch (error) {
          say(error instanceof Error ? error.message : String(error));
        }
      },
      () => {
        say(texts.transferFile.unreadable);
      },
    );
  });
  const load = textButton(texts.transferPanel.load, () => {
    input.click();
  });
  load.title = texts.transferPanel.loadHint;
  const element = el(
    "div",
    { class: "tf-files" },
    el("div", { class: "presets" }, save, load),
    input,
    problem,
  );
  const update = (next: State) => {
    state = next;
    save.disabled = next.view.transfer === null;
  };
  return { element, update };
}
