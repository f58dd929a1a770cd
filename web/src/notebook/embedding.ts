//! The page inside a frame of a program that has the connection to the node, such as the widget of a notebook: settings come
//! from that program, and changes of the view and clicks are reported to it. Nothing of this runs in a page of its own.

import type { State } from "../app/state.ts";
import { basis, heightAtTarget, type Size } from "../camera/camera.ts";
import { add, normalize, scale, sub } from "../camera/vec.ts";
import { isObject, textOr, type Json, type JsonObject } from "../json.ts";
import { parseView, viewToJson } from "../view/parse.ts";
import type { Camera, Vec3, View, ViewPatch } from "../view/schema.ts";
import type { PickedPlace } from "../ui/probe/place.ts";
import { relayTransport, type Transport } from "../worker/transport.ts";

/** Shortest interval between two reports of a changing view. */
const REPORT_MILLIS = 100;
/** Largest movement of a pointer that still clicks, CSS pixels. */
const CLICK_PIXELS = 4;
/** Longest wait for the settings. */
const SETTINGS_LIMIT_MILLIS = 20_000;

/** Settings from the surrounding program. */
export interface EmbeddingSettings {
  readonly token: string;
  /** Link of the page without the surrounding program; empty if there is none. */
  readonly link: string;
  readonly colormaps: Json;
  readonly view: ViewPatch;
}

/** Ray of a click, in world space. */
export interface PickRay {
  readonly origin: Vec3;
  /** Unit vector. */
  readonly direction: Vec3;
}

/** Messages to the surrounding program. */
type Report =
  | { readonly kind: "ready" | "connect" }
  | { readonly kind: "view"; readonly view: JsonObject }
  | {
      readonly kind: "pick";
      readonly ray: PickRay;
      /** Place of the click, from 0 at the left and at the top to 1. */
      readonly at: readonly [number, number];
      readonly view: JsonObject;
      /** Answer for that place; null if it could not be read. */
      readonly place: JsonObject | null;
    };

/** Requests what a place of the picture shows, CSS pixels from its left and top. */
export type PickRequest = (
  at: { readonly x: number; readonly y: number },
  done: (place: PickedPlace | null) => void,
) => void;

/** Returns the embedding of this page; null for a page of its own. */
export async function embeddingOfPage(): Promise<Embedding | null> {
  // Set by the program that puts the page into a frame.
  if (document.documentElement.dataset.embedded === undefined || window.parent === window) return null;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error("expected settings from the surrounding page within 20 s"));
    }, SETTINGS_LIMIT_MILLIS);
    const listen = (event: MessageEvent<Json>) => {
      if (event.source !== window.parent || !isObject(event.data) || event.data.kind !== "configure") return;
      clearTimeout(timer);
      window.removeEventListener("message", listen);
      resolve(new Embedding(parseSettings(event.data)));
    };
    window.addEventListener("message", listen);
    report({ kind: "ready" });
  });
}

export function parseSettings(message: JsonObject): EmbeddingSettings {
  return {
    token: textOr(message.token, ""),
    link: textOr(message.link, ""),
    colormaps: message.colormaps ?? {},
    view: parseView(message.view ?? {}).patch,
  };
}

export class Embedding {
  readonly settings: EmbeddingSettings;
  readonly transport: Transport = relayTransport(() => {
    const { port1, port2 } = new MessageChannel();
    report({ kind: "connect" }, [port2]);
    return port1;
  });
  /** View reported or received last, as text. */
  #known = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #latest: View | null = null;

  constructor(settings: EmbeddingSettings) {
    this.settings = settings;
  }

  /** Calls `change` with views that the surrounding program sets. */
  listen(change: (patch: ViewPatch) => void): void {
    window.addEventListener("message", (event: MessageEvent<Json>) => {
      const { data, source } = event;
      if (source !== window.parent || !isObject(data) || data.kind !== "view") return;
      // A change that waits for its report is older.
      this.#latest = null;
      change(parseView(data.view ?? {}).patch);
    });
  }

  /** Reports the view of a connected page, at most ten times a second; the newest one always. */
  update({ connection, view }: State): void {
    if (connection.kind !== "open" || view.camera === null) return;
    this.#latest = view;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#reportView();
    }, REPORT_MILLIS);
  }

  #reportView(): void {
    if (!this.#latest) return;
    const view = viewToJson(this.#latest);
    const text = JSON.stringify(view);
    if (text === this.#known) return;
    this.#known = text;
    report({ kind: "view", view });
  }

  /** Reports clicks on the picture: a press and a release in one place. */
  watchClicks(canvas: HTMLElement, view: () => View, pick: PickRequest): void {
    let down: PointerEvent | null = null;
    canvas.addEventListener("pointerdown", (event) => {
      down = event.isPrimary && event.button === 0 && !event.shiftKey ? event : null;
    });
    canvas.addEventListener("pointerup", (event) => {
      const start = down;
      down = null;
      const camera = view().camera;
      if (start?.pointerId !== event.pointerId || !camera) return;
      const moved = Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY);
      if (moved > CLICK_PIXELS) return;
      const box = canvas.getBoundingClientRect();
      const at = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height] as const;
      const clicked = { ray: rayAt(camera, box, at), at, view: viewToJson(view()) };
      pick({ x: event.clientX - box.left, y: event.clientY - box.top }, (place) => {
        report({ kind: "pick", ...clicked, place: place && placeToJson(place) });
      });
    });
  }
}

/** Returns what the surrounding program learns of a place: the first element there, and its coordinates. */
export function placeToJson({ hit, world, value }: PickedPlace): JsonObject {
  const [element] = value?.elements ?? [];
  const along = [...(value?.axes ?? []), ...(value?.coordinates ?? [])];
  const coordinates = along.map(({ name, coordinate }): [string, Json] => [name, finite(coordinate)]);
  return {
    hit,
    position: world,
    index: element ? element.index : null,
    stored: element ? element.stored : null,
    value: finite(element?.decoded ?? null),
    units: value?.units ?? "",
    coordinates: Object.fromEntries(coordinates),
  };
}

/** Messages of notebooks are JSON, which has no other numbers. */
function finite(number: number | null): number | null {
  return number !== null && Number.isFinite(number) ? number : null;
}

/** Returns the ray through a place of a picture, from 0 at the left and at the top to 1. */
export function rayAt(camera: Camera, size: Size, at: readonly [number, number]): PickRay {
  const { forward, right, up } = basis(camera);
  const height = heightAtTarget(camera);
  const width = (height * size.width) / Math.max(1, size.height);
  const across = add(scale(right, (at[0] - 0.5) * width), scale(up, (0.5 - at[1]) * height));
  if ("orthographic" in camera.projection) return { origin: add(camera.eye, across), direction: forward };
  const place = add(camera.target, across);
  return { origin: camera.eye, direction: normalize(sub(place, camera.eye)) };
}

function report(message: Report, transfer: Transferable[] = []): void {
  // The frame has an origin of its own, so the parent's cannot be named; nothing secret is sent.
  window.parent.postMessage(message, "*", transfer);
}
