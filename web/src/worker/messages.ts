//! Messages between the page and its worker.

import type { Dataset, DrawnArray, SelectableMeaning } from "../dataset/dataset.ts";
import type { Stats } from "../dataset/stats.ts";
import type { Json, JsonObject } from "../json.ts";
import type {
  FrameInfo,
  Join,
  Note,
  Participant,
  SessionItem,
  Severity,
  Fidelity,
  ValuesNote,
} from "../session/messages.ts";
import type { SharedUpdate } from "../session/together/content.ts";
import type { TogetherItem } from "../session/together/items.ts";
import type { Server } from "../session/servers.ts";
import type { BlockPlace, Range } from "../wire/operations.ts";

export type ToWorker =
  | { readonly kind: "connect"; readonly url: string; readonly token: string; readonly join: Join }
  | { readonly kind: "note"; readonly note: Note }
  /** Further pictures of the page, by number. */
  | { readonly kind: "openPane"; readonly pane: number; readonly join: Join }
  | { readonly kind: "paneNote"; readonly pane: number; readonly note: Note }
  | { readonly kind: "closePane"; readonly pane: number }
  /** Sets the meaning of the file's values for all participants; null: as in the file. */
  | { readonly kind: "interpret"; readonly meaning: SelectableMeaning | null }
  /** A newer request replaces the older one, which is cancelled. */
  | {
      readonly kind: "stats";
      readonly id: number;
      readonly place: BlockPlace;
      readonly bins: number;
      readonly ranges: readonly Range[];
    }
  /** Calls an operation of the node with parameters in JSON; its items are `called`, its end is `callEnded`. */
  | {
      readonly kind: "call";
      readonly id: number;
      readonly name: CalledOperation;
      readonly parameters: JsonObject;
    }
  | { readonly kind: "cancelCall"; readonly id: number };

/** Operations that the page calls by name. */
export type CalledOperation = "pick" | "measure" | "still" | "film" | "open" | "places";

/** Message on a further picture. */
export type PaneItem =
  | Extract<SessionItem, { kind: "joined" | "view" | "fidelity" | "message" }>
  | { readonly kind: "frame"; readonly frame: FrameInfo; readonly bitmap: ImageBitmap }
  /** The picture is not drawn any more; the others are. */
  | { readonly kind: "ended"; readonly reason: string };

export type FromWorker =
  | { readonly kind: "pane"; readonly pane: number; readonly item: PaneItem }
  | {
      readonly kind: "joined";
      readonly you: number;
      readonly role: string;
      readonly view: Json;
      readonly seq: number;
      readonly resume: string;
      readonly edits: number;
    }
  | { readonly kind: "shared"; readonly update: SharedUpdate }
  | Exclude<TogetherItem, { kind: "shared" }>
  | { readonly kind: "dataset"; readonly dataset: Dataset }
  /** Arrays drawn on other axes than those of the data set. */
  | { readonly kind: "drawn"; readonly arrays: readonly DrawnArray[] }
  | { readonly kind: "participants"; readonly list: readonly Participant[] }
  | { readonly kind: "view"; readonly seq: number; readonly view: Json }
  | { readonly kind: "frame"; readonly frame: FrameInfo; readonly bitmap: ImageBitmap }
  | { readonly kind: "fidelity"; readonly fidelity: Fidelity }
  | { readonly kind: "message"; readonly severity: Severity; readonly text: string }
  | { readonly kind: "values"; readonly values: ValuesNote }
  | { readonly kind: "servers"; readonly servers: readonly Server[] }
  | { readonly kind: "stats"; readonly id: number; readonly stats: Stats }
  | {
      readonly kind: "called";
      readonly id: number;
      readonly item: Json;
      readonly bulk: Uint8Array<ArrayBuffer>;
    }
  /** `reason` is null after success. */
  | { readonly kind: "callEnded"; readonly id: number; readonly reason: string | null }
  | { readonly kind: "statsFailed"; readonly id: number; readonly reason: string }
  /** The node refused the connection; a retry will not help. */
  | { readonly kind: "refused"; readonly reason: string; readonly needsToken: boolean }
  /** Nothing has been received for a while, or data arrive again. */
  | { readonly kind: "silent"; readonly isSilent: boolean }
  /** The connection broke or could not be opened; `isBusy`: the server has no place for now. */
  | { readonly kind: "disconnected"; readonly reason: string; readonly isBusy?: boolean };
