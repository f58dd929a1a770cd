//! The part of a link after `#`: `token=...&view=...`, in any order, either may be missing. The view is its JSON
//! in base64url (nothing in it breaks when pasted into a message); plain and percent-encoded JSON are read too.

import { parseJson } from "../json.ts";
import { parseView, viewToJson, type ParsedView } from "./parse.ts";
import { EMPTY_VIEW, type View, type ViewPatch } from "./schema.ts";

/** Longest fragment that is looked at, characters. */
export const MAX_FRAGMENT_CHARS = 65_536;

export interface Fragment {
  readonly token: string | null;
  readonly view: ParsedView | null;
  /** Switches of the marks, as `ui/marks/settings.ts` writes them. */
  readonly marks: string | null;
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
  };
}

/** The fragment of a link, with its `#`. */
export function formatFragment(view: View, token: string | null, marks: string | null = null): string {
  const parts = token === null ? [] : [`token=${encodeURIComponent(token)}`];
  const last = marks === null ? [] : [`marks=${marks}`];
  return `#${parts.concat(`view=${formatView(view)}`, last).join("&")}`;
}

/**
 * The view as base64url of compact JSON, defaults left out. Numbers keep all their digits: a camera half a millimetre from a
 * northing of 5,412,345 m needs eleven of them.
 */
export function formatView(view: View): string {
  const json = JSON.stringify(viewToJson(withoutDefaults(view)));
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
    return { patch: {}, warnings: ["the link's view cannot be read; showing the default one"] };
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
