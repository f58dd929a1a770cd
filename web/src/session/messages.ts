//! Messages of the viewing node during a `join`, read from JSON, and the notes that go back.

import {
  isArray,
  isCount,
  isFinite,
  isObject,
  parseJson,
  textOr,
  type Json,
  type JsonObject,
} from "../json.ts";
import { parseColor } from "./together/content.ts";
import { parseTogether, type TogetherItem, type TogetherNote } from "./together/items.ts";

export type FidelityState = "complete" | "loading" | "moving" | "failed";

/** Facts of the fidelity badge; on the wire they are called `truth`. */
export interface Fidelity {
  /** Finest level that covers everything visible; null while none does. */
  readonly levelShown: number | null;
  readonly levelWanted: number;
  /** Origin of the level shown: stored, mean, mode, sampled, corners. */
  readonly origin: string;
  /** Reason that the wanted level is not finer: finest, screen, memory. */
  readonly limit: string;
  readonly blocksPresent: number;
  readonly blocksTotal: number;
  readonly state: FidelityState;
  readonly exact: boolean;
  readonly levelsMade: readonly [done: number, total: number] | null;
  /** True if values are drawn on an even grid that the file does not have. */
  readonly isResampled: boolean;
  /** Message for users, one sentence. */
  readonly text: string;
}

export interface FrameInfo {
  readonly id: number;
  /** Sequence number of the view shown. */
  readonly seq: number;
  readonly width: number;
  readonly height: number;
  readonly codec: "jpeg" | "png";
  readonly fidelity: Fidelity;
}

export interface Participant {
  readonly id: number;
  readonly name: string;
  readonly role: string;
  /** `#rrggbb`. */
  readonly color: string;
  /** Participant whose view they follow; null for their own. */
  readonly follows: number | null;
  readonly presents: boolean;
  /** The connection broke; they may come back. */
  readonly isAway: boolean;
}

/** Note on the values shown of an array, at a time and at positions along other axes. */
export interface ValuesNote {
  readonly array: string;
  readonly time: number;
  readonly at: Readonly<Record<string, number>>;
  /** One sentence; empty if nothing is unusual. */
  readonly note: string;
  /** Kind of data, such as `ct`; empty if unknown. */
  readonly kind: string;
  /** Shares with the values below which they lie, ascending; empty if unknown. */
  readonly quantiles: readonly (readonly [share: number, value: number])[];
}

export type Severity = "info" | "warning" | "error";

export type SessionItem =
  | {
      readonly kind: "joined";
      readonly you: number;
      readonly role: string;
      readonly dataset: string;
      readonly view: Json;
      /** Number of the view; above 0 for a participant who was here before. */
      readonly seq: number;
      /** Secret by which the page can come back as the same participant. */
      readonly resume: string;
      /** Number of the newest own edit that the node has. */
      readonly edits: number;
    }
  | TogetherItem
  | { readonly kind: "participants"; readonly list: readonly Participant[] }
  | { readonly kind: "view"; readonly seq: number; readonly view: Json }
  | { readonly kind: "frame"; readonly frame: FrameInfo }
  | { readonly kind: "fidelity"; readonly fidelity: Fidelity }
  /** Arrays drawn on other axes than those described; the list is in the bulk. */
  | { readonly kind: "drawn" }
  | { readonly kind: "message"; readonly severity: Severity; readonly text: string }
  | { readonly kind: "values"; readonly values: ValuesNote }
  /** The description has changed and is to be requested again. */
  | { readonly kind: "changed" }
  /** Message of a newer node; ignored. */
  | { readonly kind: "unknown" };

export type Note =
  | {
      readonly kind: "view";
      readonly seq: number;
      readonly view: JsonObject;
      readonly moving: boolean;
      /** Not by the person: cannot be undone and does not end following. */
      readonly automatic?: boolean;
    }
  | TogetherNote
  | { readonly kind: "resize"; readonly width: number; readonly height: number }
  | { readonly kind: "shown"; readonly frame: number }
  | { readonly kind: "still" }
  /** The participant is a further picture of a page. */
  | { readonly kind: "pane" };

/** Parameters of `join`. */
export interface Join {
  readonly session: string;
  readonly name: string;
  readonly width: number;
  readonly height: number;
  /** Secret of an earlier `joined`; empty for a new participant. */
  readonly resume: string;
}

const MAX_PARTICIPANTS = 1024;
const STATES: readonly string[] = ["complete", "loading", "moving", "failed"];

/** Reads an item's body. Throws an `Error` that names what is wrong. */
export function parseItem(body: Uint8Array): SessionItem {
  const value = parseJson(new TextDecoder("utf-8", { fatal: true }).decode(body));
  if (!isObject(value)) throw new Error("expected an item of the session, found something else");
  switch (value.kind) {
    case "joined":
      return {
        kind: "joined",
        you: count(value, "you"),
        role: textOr(value.role, "watch"),
        dataset: textOr(value.dataset, ""),
        view: value.view ?? {},
        seq: isCount(value.seq) ? value.seq : 0,
        resume: textOr(value.resume, ""),
        edits: isCount(value.edits) ? value.edits : 0,
      };
    case "participants":
      return { kind: "participants", list: parseParticipants(value.list) };
    case "view":
      return { kind: "view", seq: count(value, "seq"), view: value.view ?? {} };
    case "frame":
      return { kind: "frame", frame: parseFrame(value) };
    case "truth":
      return { kind: "fidelity", fidelity: parseFidelity(value.truth) };
    case "drawn":
      return { kind: "drawn" };
    case "message": {
      const severity = value.severity === "error" || value.severity === "warning" ? value.severity : "info";
      return { kind: "message", severity, text: textOr(value.text, "") };
    }
    case "values":
      return { kind: "values", values: parseValues(value) };
    case "changed":
      return { kind: "changed" };
    default:
      return parseTogether(value) ?? { kind: "unknown" };
  }
}

function parseFrame(value: JsonObject): FrameInfo {
  if (value.codec !== "jpeg" && value.codec !== "png") {
    throw new Error(`expected a frame as jpeg or png, found \`${textOr(value.codec, "nothing")}\``);
  }
  return {
    id: count(value, "id"),
    seq: count(value, "seq"),
    width: count(value, "width"),
    height: count(value, "height"),
    codec: value.codec,
    fidelity: parseFidelity(value.truth),
  };
}

function parseValues(value: JsonObject): ValuesNote {
  const at = isObject(value.at) ? value.at : {};
  const indices = Object.entries(at).filter((entry): entry is [string, number] => isCount(entry[1]));
  return {
    array: textOr(value.array, ""),
    time: count(value, "time"),
    at: Object.fromEntries(indices),
    note: isObject(value.values) ? textOr(value.values.note, "") : "",
    kind: isObject(value.values) ? textOr(value.values.kind, "") : "",
    quantiles: parseQuantiles(isObject(value.values) ? value.values.quantiles : undefined),
  };
}

/** Most pairs that are read: a node sends fewer than a hundred. */
const MAX_QUANTILES = 1024;

function parseQuantiles(value: Json | undefined): readonly (readonly [number, number])[] {
  if (!isArray(value) || value.length > MAX_QUANTILES) return [];
  const pairs = value.flatMap((pair): [number, number][] => {
    const [share, at] = isArray(pair) ? pair : [];
    return isFinite(share) && isFinite(at) ? [[share, at]] : [];
  });
  const isAscending = pairs.every((pair, i) => {
    const before = pairs[i - 1] ?? pair;
    return before[0] <= pair[0] && before[1] <= pair[1];
  });
  return isAscending && pairs.length === value.length ? pairs : [];
}

function parseFidelity(value: Json | undefined): Fidelity {
  if (!isObject(value)) throw new Error("expected the fidelity of a frame, found none");
  const made = isArray(value.levels_made) ? value.levels_made : [];
  const [done, total] = made;
  const state = textOr(value.state, "");
  if (!STATES.includes(state)) throw new Error(`expected a known state of the picture, found \`${state}\``);
  return {
    levelShown: value.level_shown === null ? null : count(value, "level_shown"),
    levelWanted: count(value, "level_wanted"),
    origin: textOr(value.origin, "stored"),
    limit: textOr(value.limit, "finest"),
    blocksPresent: count(value, "blocks_present"),
    blocksTotal: count(value, "blocks_total"),
    state: state as FidelityState,
    exact: value.exact === true,
    levelsMade: isCount(done) && isCount(total) ? [done, total] : null,
    isResampled: value.resampled === true,
    text: textOr(value.text, ""),
  };
}

function parseParticipants(value: Json | undefined): Participant[] {
  const list = isArray(value) ? value.slice(0, MAX_PARTICIPANTS) : [];
  return list.filter(isObject).map((person) => ({
    id: isCount(person.id) ? person.id : 0,
    name: textOr(person.name, ""),
    role: textOr(person.role, "watch"),
    color: parseColor(person.color),
    follows: isCount(person.follows) ? person.follows : null,
    presents: person.presents === true,
    isAway: person.away === true,
  }));
}

function count(value: JsonObject, name: string): number {
  const found = value[name];
  if (!isCount(found)) throw new Error(`expected \`${name}\` to be a whole number of at least 0`);
  return found;
}
