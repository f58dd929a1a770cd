//! Lists of what the node can open: the answer of the operation `places`. Pure.

import { isArray, isCount, isObject, textOr, type Json } from "../../json.ts";

export type PlaceKind = "open" | "folder" | "server" | "data";
const KINDS: readonly PlaceKind[] = ["open", "folder", "server", "data"];

export interface Place {
  readonly name: string;
  readonly kind: PlaceKind;
  /** Location to open, or place to list; of an open data set the path of its page. */
  readonly location: string;
  readonly about: string;
}

export interface PlaceList {
  readonly place: string;
  /** Place above it; empty for the list of all places. */
  readonly parent: string;
  readonly entries: readonly Place[];
  readonly further: number;
  readonly leftOut: number;
  readonly mayOpenFiles: boolean;
  readonly maxUploadBytes: number;
}

/** Maximum number of entries that are shown; the node sends no more. */
const MAX_ENTRIES = 2100;

/** Reads a list. Throws an `Error` that names what is wrong. */
export function parsePlaces(value: Json): PlaceList {
  if (!isObject(value) || !isArray(value.entries)) throw new Error("expected a list of places");
  const entries = value.entries.slice(0, MAX_ENTRIES).flatMap((entry): Place[] => {
    if (!isObject(entry)) return [];
    const kind = KINDS.find((one) => one === entry.kind);
    const location = textOr(entry.location, "");
    if (!kind || location === "") return [];
    return [{ kind, location, name: textOr(entry.name, location), about: textOr(entry.about, "") }];
  });
  return {
    place: textOr(value.place, ""),
    parent: textOr(value.parent, ""),
    entries,
    further: isCount(value.further) ? value.further : 0,
    leftOut: isCount(value.left_out) ? value.left_out : 0,
    mayOpenFiles: value.may_open_files === true,
    maxUploadBytes: isCount(value.max_upload_bytes) ? value.max_upload_bytes : 0,
  };
}

/** Reads the answer of `open`: the path of a page, relative to this one. Throws an `Error` for another one. */
export function parseOpened(value: Json): string {
  const path = isObject(value) ? textOr(value.path, "") : "";
  // Never another host, whatever the answer says.
  if (!/^(\.\.\/)*(\.\/)?(room\/\d+\/)?$/.test(path) || path === "")
    throw new Error("expected the path of a page");
  return path;
}

/** Returns the entries whose name has all words of a search. */
export function filterPlaces(entries: readonly Place[], search: string): readonly Place[] {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  return entries.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
}
