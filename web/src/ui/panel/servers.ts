//! List of the servers that the picture is read from, if there are several: bytes received, or unavailable.

import { texts } from "../../texts/texts.ts";
import type { Component, State } from "../../app/state.ts";
import { formatBytes } from "../../dataset/labels.ts";
import type { Server } from "../../session/servers.ts";
import { el, setText } from "../dom.ts";

export function serverList(): Component {
  const summary = el("span", { class: "tf-readout" });
  const list = el("ul", { class: "servers" });
  const element = el(
    "section",
    { class: "group", id: "servers" },
    el("div", { class: "group-head" }, el("h2", {}, texts.servers.servers), summary),
    list,
  );
  let shown: readonly Server[] | null = null;
  const update = ({ servers }: State) => {
    if (servers === shown) return;
    shown = servers;
    element.hidden = servers.length < 2;
    const away = servers.filter((server) => server.unavailableReason !== null).length;
    setText(
      summary,
      away === 0 ? texts.servers.allAvailable : texts.servers.ofUnavailable(away, servers.length),
    );
    list.replaceChildren(...servers.map(row));
  };
  return { element, update };
}

function row(server: Server): HTMLElement {
  const { name, dataset, unavailableReason, deliveredBytes } = server;
  const label = dataset === null ? hostOf(name) : `${hostOf(name)} · ${dataset}`;
  const state = unavailableReason === null ? "used" : "away";
  return el(
    "li",
    { "data-state": state, title: unavailableReason ?? name },
    el("span", { class: "dot" }),
    el("span", { class: "server-name" }, label),
    el(
      "span",
      { class: "server-facts" },
      unavailableReason === null ? formatBytes(deliveredBytes) : texts.servers.unavailable,
    ),
  );
}

/** Returns the host and port of `corridor://host:port/dataset`. */
function hostOf(name: string): string {
  return name.replace(/^corridor:\/\//, "").replace(/\/.*$/, "");
}
