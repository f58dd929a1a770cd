//! Dialog with the link for a phone as controller.

import type { State } from "../../app/state.ts";
import { copyText } from "../../app/clipboard.ts";
import { isLoopback } from "../../app/connection-manager.ts";
import { ControlledPage, controllerLink } from "../../session/controller.ts";
import { texts } from "../../texts/texts.ts";
import { el, iconButton, setText, svg, textButton } from "../dom.ts";
import { qrPath } from "./qr.ts";

const words = texts.controller;

export interface InvitePage {
  readonly state: () => State;
  readonly token: () => string;
  readonly follow: (leader: number) => void;
  readonly tell: (text: string) => void;
}

export interface InviteDialog {
  readonly element: HTMLDialogElement;
  readonly show: () => void;
  readonly update: (state: State) => void;
}

export function inviteDialog(page: InvitePage): InviteDialog {
  let code = "";
  let controlled: ControlledPage | null = null;
  const link = el("input", { type: "text", class: "search", readonly: true, "aria-label": words.link });
  const picture = el("div", { class: "qr" });
  const status = el("p", { class: "open-status", role: "status" });
  const where = el("p", { class: "hint" });
  const secret = el("p", { class: "hint" });
  const close = iconButton("close", words.close, texts.keyCaps.Escape, () => {
    element.close();
  });
  const copy = textButton(
    words.copy,
    () => {
      void copyText(link.value).then((isCopied) => {
        if (isCopied) page.tell(words.copied);
        else link.select();
      });
    },
    "button",
  );
  const element = el(
    "dialog",
    { class: "panel help invite-dialog", "aria-labelledby": "invite-title" },
    el("div", { class: "help-head" }, el("h2", { id: "invite-title" }, words.title), close),
    el("p", {}, words.how),
    picture,
    el("div", { class: "open-row" }, link, copy),
    status,
    where,
    secret,
  );
  element.addEventListener("click", (event) => {
    if (event.target === element) element.close(); // beside its content
  });
  const update = (state: State) => {
    if (!controlled || state.connection.kind !== "open") return;
    const leader = controlled.next(state.you, state.participants);
    if (leader !== null) page.follow(leader);
    const isThere = controlled.controller(state.participants) !== null;
    setText(status, isThere ? words.connected : words.waiting);
  };
  const show = () => {
    if (code === "") {
      code = Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => (byte % 36).toString(36)).join(
        "",
      );
      controlled = new ControlledPage(words.participant(code));
    }
    const state = page.state();
    link.value = controllerLink(window.location.href, { code, owner: state.you }, page.token());
    const qr = qrPath(link.value);
    picture.replaceChildren(
      ...(qr
        ? [
            svg(
              "svg",
              { viewBox: `0 0 ${qr.size} ${qr.size}`, role: "img", "aria-label": words.link },
              svg("rect", { width: qr.size, height: qr.size, fill: "#fff" }),
              svg("path", { d: qr.path, fill: "#000" }),
            ),
          ]
        : []),
    );
    setText(where, isLoopback(window.location.hostname) ? words.local : "");
    setText(secret, page.token() === "" ? words.noToken : words.token);
    update(state);
    element.showModal();
  };
  return { element, show, update };
}
