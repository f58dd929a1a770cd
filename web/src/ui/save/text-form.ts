//! The view as text to copy: a link, a command, Python.

import { texts } from "../../texts/texts.ts";
import { copyText } from "../../app/clipboard.ts";
import { checkbox, el, textButton } from "../dom.ts";

export interface TextForm {
  readonly element: HTMLElement;
  /** Shows texts, which are made with or without the access token. */
  show(make: (withToken: boolean) => ViewTexts, hasToken: boolean): void;
}

export interface ViewTexts {
  readonly link: string;
  readonly command: string;
  readonly python: string;
}

const ROWS: readonly (readonly [name: keyof ViewTexts, label: string])[] = [
  ["link", texts.save.linkToThisView],
  ["command", texts.save.command],
  ["python", texts.save.python],
];

/** The texts, each with a button that copies it; `tell` shows a message. */
export function textForm(tell: (isCopied: boolean, label: string) => void): TextForm {
  let withToken = false;
  let make: ((withToken: boolean) => ViewTexts) | null = null;
  const rows = ROWS.map(([name, label]) => {
    const area = el("textarea", {
      readonly: true,
      rows: name === "python" ? 6 : 3,
      spellcheck: "false",
      "aria-label": label,
      "data-text": name,
    });
    area.addEventListener("focus", () => {
      area.select();
    });
    const copy = textButton(texts.save.copy, () => {
      void copyText(area.value).then((isCopied) => {
        tell(isCopied, label);
      });
    });
    copy.setAttribute("aria-label", texts.save.copyOf(label));
    const head = el("div", { class: "save-text-head" }, el("span", {}, label), copy);
    return { name, area, element: el("div", { class: "save-text" }, head, area) };
  });
  const fill = () => {
    const texts = make?.(withToken);
    if (texts) for (const { name, area } of rows) area.value = texts[name];
  };
  const token = checkbox(texts.save.withToken, (isOn) => {
    withToken = isOn;
    fill();
  });
  token.set(false);
  const element = el("div", { class: "save-form" }, ...rows.map((row) => row.element), token.element);
  return {
    element,
    show(makeTexts, hasToken) {
      make = makeTexts;
      token.element.hidden = !hasToken;
      fill();
    },
  };
}
