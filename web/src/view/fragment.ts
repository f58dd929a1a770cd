//! The part of a link after `#`: `token=...&view=...&panes=...`, in any order, each may be missing. The view is its JSON
//! in base64url (nothing in it breaks when pasted into a message); plain and percent-encoded JSON are read too. `panes` has the cameras
//! of further pictures, which belong to the page, not to the view.

import { texts } from "../texts/texts.ts";
import { isObject, parseJson } from "../json.ts";
import { parseView, readCamera, viewToJson, type ParsedView } from "./parse.ts";
import { EMPTY_VIEW, type Camera, type View, type ViewPatch } from "./schema.ts";

/** Longest fragment that is looked at, characters. */
export const MAX_FRAGMENT_CHARS = 65_536;

/** Cameras of further pictures by the names of these, such as `plane-x` or `cell-2`. */
export type PaneCameras = Readonly<Record<string, Camera>>;

/** Most cameras of a link: those of three planes and of the cells of the largest grid. */
const MAX_PANES = 11;
const PANE_NAME = /^(plane-[xyz]|cell-\d)$/;

export interface Fragment {
  readonly token: string | null;
  readonly view: ParsedView | null;
  /** Switches of the marks, as `ui/marks/settings.ts` writes them. */
  readonly marks: string | null;
  readonly panes: PaneCameras;
}

/** Reads `location.hash`, with or without its `#`. */
export function parseFragment(hash: string): Fragment {
  const parts = new Map<string, string>();
  for (const part of hash.replace(/^#/, "").slice(0, MAX_FRAGMENT_CHARS).split("&")) {
    const cut = part.indexOf("=");
    if (cut > 0) parts.set(part.slice(0, cut), part.slice(cut + 1));
  }
  const token = parts.get("token");
  const view = parts.get("view");
  return {
    token: token === undefined ? null : percentDecoded(token),
    view: view === undefined ? null : parseViewText(view),
    marks: parts.get("marks") ?? null,
    panes: parsePanes(parts.get("panes") ?? ""),
  };
}

/** The fragment of a link, with its `#`. */
export function formatFragment(
  view: View,
  token: string | null,
  marks: string | null = null,
  panes: PaneCameras = {},
): string {
  const parts = token === null ? [] : [`token=${encodeURIComponent(token)}`];
  const last = marks === null ? [] : [`marks=${marks}`];
  const cameras = Object.keys(panes).length === 0 ? [] : [`panes=${toBase64Url(JSON.stringify(panes))}`];
  return `#${parts.concat(`view=${formatView(view)}`, last, cameras).join("&")}`;
}

/**
 * The view as base64url of compact JSON, defaults left out. Numbers keep all their digits: a camera half a millimetre from a
 * northing of 5,412,345 m needs eleven of them.
 */
export function formatView(view: View): string {
  return toBase64Url(JSON.stringify(viewToJson(withoutDefaults(view))));
}

function toBase64Url(json: string): string {
  const bytes = new TextEncoder().encode(json);
  const base64 = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function withoutDefaults(view: View): ViewPatch {
  const isKept = ([name, value]: [string, unknown]) =>
    JSON.stringify(value) !== JSON.stringify(EMPTY_VIEW[name as keyof View]);
  return Object.fromEntries(Object.entries(view).filter(isKept));
}

function parseViewText(text: string): ParsedView {
  try {
    return parseView(parseJson(/^(\{|%7b)/i.test(text) ? percentDecoded(text) : fromBase64Url(text)));
  } catch {
    return { patch: {}, warnings: [texts.viewWarnings.unreadable] };
  }
}

/** Reads the cameras of further pictures; those that do not fit are left out. */
function parsePanes(text: string): PaneCameras {
  if (text === "") return {};
  try {
    const value = parseJson(fromBase64Url(text));
    const entries = isObject(value) ? Object.entries(value).slice(0, MAX_PANES) : [];
    const cameras = entries.flatMap(([name, json]): [string, Camera][] => {
      const camera = PANE_NAME.test(name) ? readCamera(json) : undefined;
      return camera ? [[name, camera]] : [];
    });
    return Object.fromEntries(cameras);
  } catch {
    return {};
  }
}

function fromBase64Url(text: string): string {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(binary, (c) => c.charCodeAt(0)));
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
