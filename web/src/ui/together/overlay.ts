//! Pointers of others and pinned notes over the picture, seen by the camera of this page.

import type { Component, State } from "../../app/state.ts";
import type { TogetherActions } from "../../app/together.ts";
import type { Size } from "../../camera/camera.ts";
import type { PinnedNote } from "../../session/together/content.ts";
import type { Pointer } from "../../session/together/items.ts";
import { seenAt } from "../../session/together/space.ts";
import { svg } from "../dom.ts";

/** Longest name beside a pointer, characters. */
const MAX_NAME_CHARS = 24;
const ARROW = "M0 0l5 14 2.6-5.4L13 6z";

interface Mark {
  readonly element: SVGGElement;
  readonly label: SVGElement;
}

export function togetherOverlay(actions: TogetherActions, size: () => Size): Component {
  const notes = svg("g", {});
  const pointers = svg("g", {});
  const element = svg("svg", { class: "together-overlay", "aria-hidden": "true" }, notes, pointers);
  const pointerMarks = new Map<number, Mark>();
  const noteMarks = new Map<string, Mark>();
  const update = (state: State) => {
    const now = size();
    showNotes(state, now, noteMarks, notes, actions);
    const seen = new Set<number>();
    for (const pointer of state.together.pointers) {
      const person = state.participants.find((other) => other.id === pointer.id);
      const at = person && seenAt(pointer.at, state.view, now);
      if (!person || !at) continue;
      seen.add(pointer.id);
      const mark = pointerMarks.get(pointer.id) ?? pointerMark();
      pointerMarks.set(pointer.id, mark);
      if (!mark.element.isConnected) pointers.append(mark.element);
      mark.element.style.transform = `translate(${at.x.toFixed(1)}px, ${at.y.toFixed(1)}px)`;
      mark.element.style.setProperty("--person", person.color);
      mark.element.classList.toggle("laser", isLaser(pointer));
      const name = Array.from(person.name).slice(0, MAX_NAME_CHARS).join("");
      if (mark.label.textContent !== name) mark.label.textContent = name;
    }
    for (const [id, mark] of pointerMarks) {
      if (seen.has(id)) continue;
      mark.element.remove();
      pointerMarks.delete(id);
    }
  };
  return { element: element as unknown as HTMLElement, update };
}

const isLaser = (pointer: Pointer) => pointer.laser;

function pointerMark(): Mark {
  const label = svg("text", { x: 14, y: 24 });
  const element = svg(
    "g",
    { class: "pointer", "aria-hidden": "true" },
    svg("circle", { class: "pointer-spot", r: 7 }),
    svg("path", { class: "pointer-arrow", d: ARROW }),
    label,
  );
  return { element, label };
}

/** Shows the notes on the array of the view as numbered marks. */
function showNotes(
  state: State,
  size: Size,
  marks: Map<string, Mark>,
  parent: SVGGElement,
  actions: TogetherActions,
): void {
  const seen = new Set<string>();
  state.together.content.notes.forEach((note, index) => {
    const at = note.place && isOfView(note, state) && seenAt({ world: note.place }, state.view, size);
    if (!at) return;
    seen.add(note.id);
    const mark = marks.get(note.id) ?? noteMark(note, actions);
    marks.set(note.id, mark);
    if (!mark.element.isConnected) parent.append(mark.element);
    mark.element.style.transform = `translate(${at.x.toFixed(1)}px, ${at.y.toFixed(1)}px)`;
    mark.element.style.setProperty("--person", note.author.color);
    mark.label.textContent = String(index + 1);
    const title = mark.element.querySelector("title");
    if (title && title.textContent !== note.text) title.textContent = note.text;
  });
  for (const [id, mark] of marks) {
    if (seen.has(id)) continue;
    mark.element.remove();
    marks.delete(id);
  }
}

/** Notes of another array or time are elsewhere; the list shows them all. */
function isOfView(note: PinnedNote, { view }: State): boolean {
  return (note.view.array ?? view.array) === view.array && (note.view.time ?? 0) === view.time;
}

function noteMark(note: PinnedNote, actions: TogetherActions): Mark {
  const label = svg("text", { "text-anchor": "middle", y: 4 });
  const element = svg("g", { class: "note-mark" }, svg("title", {}), svg("circle", { r: 9 }), label);
  // The list in the panel does the same by keyboard.
  element.addEventListener("click", () => {
    actions.flyTo(note.view);
  });
  return { element, label };
}
