//! The picture of the page as text: a command line of `corridor render`, and Python. Pure.

import type { Json, JsonObject } from "../../json.ts";
import { viewToJson } from "../../view/parse.ts";
import { EMPTY_VIEW, type View } from "../../view/schema.ts";

/** Fields that arrange pictures on the page; pictures of `corridor render` do not depend on them. */
const PAGE_FIELDS: readonly string[] = ["layout", "grid"];

/** A picture to write as text. */
export interface PictureCode {
  /** Address of the data for `corridor`. */
  readonly location: string;
  readonly view: View;
  readonly width: number;
  readonly height: number;
  readonly hasMarks: boolean;
  readonly isTransparent: boolean;
  /** Name of the file. */
  readonly file: string;
}

/** The view in JSON, with the fields that differ from their defaults. */
export function viewJson(view: View): JsonObject {
  const isKept = ([name, value]: [string, unknown]) =>
    !PAGE_FIELDS.includes(name) && JSON.stringify(value) !== JSON.stringify(EMPTY_VIEW[name as keyof View]);
  return viewToJson(Object.fromEntries(Object.entries(view).filter(isKept)));
}

/** The command that draws the same picture. */
export function renderCommand(picture: PictureCode): string {
  const words = [
    "corridor",
    "render",
    picture.location,
    "-o",
    picture.file,
    "--size",
    `${picture.width}x${picture.height}`,
    ...(picture.hasMarks ? ["--annotate"] : []),
    ...(picture.isTransparent ? ["--background", "transparent"] : []),
    "--view",
    JSON.stringify(viewJson(picture.view)),
  ];
  return words.map(shellWord).join(" ");
}

/** Python that draws the same picture, as an array. Marks are not drawn there. */
export function renderPython(picture: PictureCode): string {
  return [
    "import corridor",
    "",
    "picture = corridor.render(",
    `    ${pythonText(picture.location)},`,
    `    size=(${picture.width}, ${picture.height}),`,
    ...(picture.isTransparent ? ['    pixels="rgba",'] : []),
    `    view=${pythonLiteral(viewJson(picture.view))},`,
    ")",
  ].join("\n");
}

/** A word for a POSIX shell: as it is if it has no special letters, otherwise in single quotes. */
export function shellWord(text: string): string {
  if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A value of JSON as a literal of Python. */
export function pythonLiteral(value: Json): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return JSON.stringify(value);
  if (typeof value === "string") return pythonText(value);
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(pythonLiteral).join(", ")}]`;
  const members = Object.entries(value).map(([name, own]) => `${pythonText(name)}: ${pythonLiteral(own)}`);
  return `{${members.join(", ")}}`;
}

/** A text of Python. The escapes of JSON mean the same in Python, except for letters beyond 16 bits, which stay as they are. */
function pythonText(text: string): string {
  return JSON.stringify(text);
}
