//! Notes as JSON and as Markdown, for papers and issue trackers. Pure.

import { texts } from "../../texts/texts.ts";
import { textOr } from "../../json.ts";
import type { PinnedNote } from "./content.ts";

export function notesToJson(notes: readonly PinnedNote[]): string {
  const list = notes.map(({ id, author, atMillis, text, place, view }) => ({
    id,
    author: author.name,
    changed: new Date(atMillis).toISOString(),
    text,
    place,
    view,
  }));
  return `${JSON.stringify(list, null, 2)}\n`;
}

export function notesToMarkdown(notes: readonly PinnedNote[], dataset: string): string {
  const sections = notes.map((note) => {
    const { author, atMillis, text, place, view } = note;
    const array = textOr(view.array, "");
    const facts = [
      ...(array === "" ? [] : [texts.notesFile.array(array.replaceAll("`", ""))]),
      texts.notesFile.time(typeof view.time === "number" ? view.time : 0),
      ...(place ? [texts.notesFile.place(place.map((x) => Number(x.toPrecision(6))).join(", "))] : []),
      new Date(atMillis).toISOString(),
    ];
    return `## ${plain(author.name)}: ${plain(firstLine(text))}\n\n${facts.join(", ")}\n\n${text}\n`;
  });
  return [`# ${texts.notesFile.title(plain(dataset))}\n`, ...sections].join("\n");
}

function firstLine(text: string): string {
  const line = text.split("\n", 1)[0] ?? "";
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}

/** Escapes the characters that Markdown interprets in a heading. */
function plain(text: string): string {
  return text.replace(/[\\`*_[\]<>#]/g, "\\$&");
}
