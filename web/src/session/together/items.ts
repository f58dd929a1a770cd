//! Messages about the other participants: whom one follows, pointers, and the history of the own view.

import { isArray, isCount, isFinite, isObject, textOr, type Json, type JsonObject } from "../../json.ts";
import type { Vec3 } from "../../view/schema.ts";
import { parsePlace, type SharedEdit } from "./content.ts";

/** Place of a pointer: a point in world space, or fractions of the picture from the left and the top. */
export type PointerPlace = { readonly world: Vec3 } | { readonly picture: readonly [x: number, y: number] };

export interface Pointer {
  readonly id: number;
  readonly at: PointerPlace;
  readonly laser: boolean;
}

export type TogetherItem =
  /** The update itself is in the bulk. */
  | { readonly kind: "shared"; readonly numbers: JsonObject }
  | { readonly kind: "pointers"; readonly list: readonly Pointer[] }
  | { readonly kind: "following"; readonly leader: number | null; readonly text: string }
  | { readonly kind: "history"; readonly undo: number; readonly redo: number }
  /** An owner removed this participant; nothing follows. */
  | { readonly kind: "removed"; readonly by: string };

export type TogetherNote =
  | { readonly kind: "rename"; readonly name: string }
  | { readonly kind: "follow"; readonly leader: number | null }
  | { readonly kind: "present"; readonly presenter: number | null }
  | { readonly kind: "role"; readonly who: number; readonly role: string }
  | { readonly kind: "remove"; readonly who: number }
  | { readonly kind: "pointer"; readonly at: PointerPlace | null; readonly laser: boolean }
  | { readonly kind: "edit"; readonly seq: number; readonly edit: SharedEdit }
  | { readonly kind: "resend" }
  | { readonly kind: "undo" }
  | { readonly kind: "redo" };

/** Most pointers that are shown: the node's limit of participants. */
const MAX_POINTERS = 64;

/** Reads an item; null if it is of another kind. */
export function parseTogether(value: JsonObject): TogetherItem | null {
  switch (value.kind) {
    case "shared":
      return { kind: "shared", numbers: value };
    case "pointers":
      return { kind: "pointers", list: parsePointers(value.list) };
    case "following":
      return {
        kind: "following",
        leader: isCount(value.leader) ? value.leader : null,
        text: textOr(value.text, ""),
      };
    case "history":
      return {
        kind: "history",
        undo: isCount(value.undo) ? value.undo : 0,
        redo: isCount(value.redo) ? value.redo : 0,
      };
    case "removed":
      return { kind: "removed", by: textOr(value.by, "") };
    default:
      return null;
  }
}

function parsePointers(value: Json | undefined): Pointer[] {
  const list = isArray(value) ? value.slice(0, MAX_POINTERS).filter(isObject) : [];
  return list.flatMap((one) => {
    const at = isObject(one.at) ? parsePointerPlace(one.at) : null;
    return at && isCount(one.id) ? [{ id: one.id, at, laser: one.laser === true }] : [];
  });
}

function parsePointerPlace(value: JsonObject): PointerPlace | null {
  const world = parsePlace(value.world);
  if (world) return { world };
  const [x, y] = isArray(value.picture) ? value.picture : [];
  return isFinite(x) && isFinite(y) ? { picture: [x, y] } : null;
}
