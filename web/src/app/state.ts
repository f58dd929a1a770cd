//! State that the page shows, and actions that its components may ask for. Components read a state and call actions; only
//! the viewer changes the state.

import type { ArrayInfo, Dataset, SelectableMeaning } from "../dataset/dataset.ts";
import { positionKey, statsKey, type Stats } from "../dataset/stats.ts";
import type { PixelSize } from "../draw/picture.ts";
import type { FrameInfo, Participant, Severity, Fidelity, ValuesNote } from "../session/messages.ts";
import { DEFAULT_PLAYBACK, type Playback } from "../session/playback.ts";
import type { Server } from "../session/servers.ts";
import type { Colormap } from "../transfer/colormap.ts";
import { DEFAULT_MARKS, type MarkSettings } from "../ui/marks/settings.ts";
import { NO_ARROWS, type ArrowState } from "../ui/vectors/field.ts";
import { NO_DEVICES, type DeviceState } from "../camera/devices/state.ts";
import type { Theme } from "./theme.ts";
import { INITIAL_TOGETHER, type TogetherActions, type TogetherState } from "./together.ts";
import { EMPTY_VIEW, type Transfer, type View, type ViewPatch } from "../view/schema.ts";

/** State of the connection. */
export type ConnectionState =
  | { readonly kind: "connecting" }
  /** `isSilent`: nothing has been received for some seconds. */
  | { readonly kind: "open"; readonly isSilent: boolean }
  /** Broken; the next attempt comes at `untilMillis` (of `performance.now`). `isBusy`: the server had no place. */
  | {
      readonly kind: "waiting";
      readonly reason: string;
      readonly isBusy: boolean;
      readonly untilMillis: number;
    }
  | { readonly kind: "refused"; readonly reason: string; readonly needsToken: boolean }
  | { readonly kind: "unsupported"; readonly reason: string };

export interface Toast {
  readonly id: number;
  readonly severity: Severity;
  readonly text: string;
  readonly action: { readonly label: string; readonly run: () => void } | null;
}

/** Data that statistics describe. */
export interface StatsTarget {
  readonly array: string;
  readonly level: number;
  /** Index of time and of the other axes that are not spatial, with the clip box, as returned by `statsKey`. */
  readonly position: string;
}

/** Values of one array at one level and place. */
export interface ArrayStats extends StatsTarget {
  readonly stats: Stats;
}

export interface State {
  readonly connection: ConnectionState;
  readonly dataset: Dataset | null;
  /** The array of the view. */
  readonly array: ArrayInfo | null;
  readonly view: View;
  readonly fidelity: Fidelity | null;
  /** The frame on the screen. */
  readonly frame: FrameInfo | null;
  /** True if that frame shows the present view. */
  readonly isCurrent: boolean;
  /** True while the node decides what else changes with another array. */
  readonly isSettling: boolean;
  /** True if the camera was chosen for the data and the size of the picture, and nobody has moved it. */
  readonly isCameraAutomatic: boolean;
  /** Statistics of the array shown, possibly of the previous step or channel; null while unknown. */
  readonly stats: ArrayStats | null;
  /** The node's latest note on the values shown. */
  readonly values: ValuesNote | null;
  /** Size of the canvas, device pixels. */
  readonly screen: PixelSize;
  readonly colormaps: ReadonlyMap<string, Colormap>;
  readonly participants: readonly Participant[];
  /** Servers that the node reads from, if there are several. */
  readonly servers: readonly Server[];
  readonly you: number;
  readonly role: string;
  /** Other participants, and what is shared with them. */
  readonly together: TogetherState;
  readonly isPlaying: boolean;
  /** How time is played, on this page. */
  readonly playback: Playback;
  /** Runs of time steps that were complete when they were shown. */
  readonly completeSteps: readonly (readonly [first: number, last: number])[];
  readonly isPanelOpen: boolean;
  readonly marks: MarkSettings;
  readonly arrows: ArrowState;
  readonly theme: Theme;
  /** True if the page can open other data: not in the frame of another program. */
  readonly mayOpen: boolean;
  readonly devices: DeviceState;
  readonly toasts: readonly Toast[];
}

export const INITIAL_STATE: State = {
  connection: { kind: "connecting" },
  dataset: null,
  array: null,
  view: EMPTY_VIEW,
  fidelity: null,
  frame: null,
  isCurrent: false,
  isSettling: false,
  isCameraAutomatic: false,
  stats: null,
  values: null,
  screen: { width: 1, height: 1 },
  colormaps: new Map(),
  participants: [],
  servers: [],
  you: 0,
  role: "own",
  together: INITIAL_TOGETHER,
  isPlaying: false,
  playback: DEFAULT_PLAYBACK,
  completeSteps: [],
  isPanelOpen: true,
  arrows: NO_ARROWS,
  marks: DEFAULT_MARKS,
  theme: "system",
  mayOpen: false,
  devices: NO_DEVICES,
  toasts: [],
};

/** State of the whole page, for scripts and tests: `document.body.dataset.state`. */
export type PageState = "connecting" | "loading" | "complete" | "failed";

export function pageState(state: State): PageState {
  if (state.connection.kind === "refused" || state.connection.kind === "unsupported") return "failed";
  if (state.connection.kind !== "open") return "connecting";
  if (state.fidelity?.state === "failed") return "failed";
  return isFinished(state) ? "complete" : "loading";
}

/** True if the picture on the screen is the final one of this view, not one drawn while the view moved. */
export function isFinished(state: State): boolean {
  const { frame, fidelity, isCurrent } = state;
  return frame !== null && isCurrent && fidelity?.state === "complete" && frame.fidelity.state !== "moving";
}

/** Returns the statistics, if they belong to the step and channel that the view shows. */
export function statsShown(state: State): ArrayStats | null {
  const { stats, array, view } = state;
  return stats && array && stats.array === array.name && stats.position === statsKey(array, view)
    ? stats
    : null;
}

/** Range of packed colors. */
const COLOR_RANGE = [0, 255] as const;

/** Returns the range of the values shown; null if it is unknown or all are equal. */
export function fullRange(state: State): readonly [number, number] | null {
  if (state.array?.meaning === "colors") return COLOR_RANGE;
  const stats = statsShown(state)?.stats;
  return stats && stats.min < stats.max ? [stats.min, stats.max] : null;
}

/** Returns a note on unusual values in the view; empty if there are none or they are unknown. */
export function valuesNote({ values, array, view }: State): string {
  if (!values || values.array !== array?.name) return "";
  return positionKey(array, values) === positionKey(array, view) ? values.note : "";
}

/** Actions on the page around the picture. */
export interface PageActions {
  /** The next background of the picture: dark, light, white. */
  readonly nextBackground: () => void;
  /** Sets the colors of the page and keeps them for the next visit. */
  readonly setTheme: (theme: Theme) => void;
  readonly toggleFullscreen: () => void;
  /** Shows the dialog in which other data are opened. */
  readonly openData: () => void;
  /** Asks the browser for a 3-D mouse; only after a click. */
  readonly connectSpaceMouse: () => void;
  /** Shows the link for a phone as controller. */
  readonly inviteController: () => void;
}

/** Actions that components of the page may ask for. */
export interface Actions extends PageActions {
  /** Chooses the array of lengths whose vectors are drawn as arrows; empty for none. */
  readonly chooseVectors: (array: string) => void;
  /**
   * Changes the view; `moving` while more changes follow at once, then `rest`; `automatic` if the page does it by itself: that neither
   * ends following nor can be undone.
   */
  readonly change: (patch: ViewPatch, moving?: boolean, automatic?: boolean) => void;
  readonly rest: () => void;
  /** Changes the newest transfer function, which may be newer than the state shown last. */
  readonly edit: (how: (transfer: Transfer) => Transfer, moving?: boolean, automatic?: boolean) => void;
  /** Shows another array; the node chooses what else changes with it. */
  readonly showArray: (name: string) => void;
  /** Sets the meaning of the values of all arrays of the file, for all participants; null: as in the file. */
  readonly interpret: (meaning: SelectableMeaning | null) => void;
  readonly togglePlay: () => void;
  readonly setPlayback: (playback: Partial<Playback>) => void;
  /** Shows the next or a previous time step, around the ends. */
  readonly stepTime: (by: number) => void;
  readonly resetCamera: () => void;
  /** One of the six views along the axes, from 0. */
  readonly axisView: (index: number) => void;
  readonly toggleProjection: () => void;
  /** Opens the dialog for saving. */
  readonly openSave: () => void;
  /** Saves the picture on the screen. */
  readonly screenshot: () => void;
  readonly copyLink: (withToken: boolean) => void;
  readonly togglePanel: () => void;
  /** Switches the marks over the picture, and keeps the choice for the next visit. */
  readonly setMarks: (marks: MarkSettings) => void;
  readonly together: TogetherActions;
  readonly openHelp: () => void;
  /** Reads the value in the middle of the picture. */
  readonly readCenter: () => void;
  readonly connectNow: () => void;
  readonly useToken: (token: string) => void;
  readonly dismiss: (toast: number) => void;
}

/** A component of the page: owns an element and shows states. */
export interface Component {
  readonly element: HTMLElement;
  update(state: State): void;
}
