//! Texts stand in `texts` only: a scan of the other files for literals in places where texts are shown, and for literals anywhere that read
//! as a phrase. A single word in small letters is seen only where it is shown directly.

import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { isPhrase, phrases, shownLiterals, type Found } from "./literals.ts";

const SOURCES = join(import.meta.dirname, "..");

/** Files that are not scanned. */
const LEFT_OUT: readonly string[] = [
  // Made from the tables of the view, which have their texts in the same language as the command line.
  "view/fields.ts",
  "transfer/presets.ts",
  // Errors of the protocol, in the words of the node's side.
  "wire/",
  // Data of tests.
  "dataset/sample.ts",
];

/** Phrases that are no texts. The test fails for one that no longer occurs. */
const NO_TEXTS: readonly { readonly file: RegExp; readonly phrase: RegExp; readonly why: string }[] = [
  { file: /^keys\/table/, phrase: /^(Shift|Control)$/, why: "values of `KeyboardEvent.key`" },
  { file: /^keys\/listen/, phrase: /^(select, textarea|button, a)/, why: "CSS selectors" },
  { file: /^(transfer\/colormap|ui\/time\/axes)/, phrase: /^(transparent …|linear-gradient)/, why: "CSS" },
  { file: /^ui\/save\/code/, phrase: /^(import corridor|None|True|False)$/, why: "Python" },
  { file: /^ui\/probe\/text/, phrase: /np\.nanmean/, why: "Python" },
  {
    file: /^ui\/(probe|plots)\//,
    phrase: /^([xyz] world|… (index|date|least|largest))$/,
    why: "columns of CSV",
  },
  {
    file: /^ui\/marks\/color-bar/,
    phrase: /^ \(color\)$/,
    why: "end of names of arrays that the node makes",
  },
  { file: /^ui\/marks\/scale-bar/, phrase: /^Angstrom$/, why: "units as they stand in files" },
  { file: /^ui\/open\//, phrase: /^Bearer …$/, why: "HTTP" },
  { file: /^ui\/open\//, phrase: /^Files$/, why: "type of dragged data" },
];

function sources(): string[] {
  const all = readdirSync(SOURCES, { recursive: true, withFileTypes: true });
  return all
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && !entry.name.endsWith(".test.ts"))
    .map((entry) => relative(SOURCES, join(entry.parentPath, entry.name)))
    .filter((file) => !["texts/", ...LEFT_OUT].some((path) => file.startsWith(path)));
}

const textsOf = (found: readonly Found[]) => found.map((one) => one.text);

describe("texts", () => {
  it("are found where they are shown", () => {
    const found = (source: string) => textsOf(shownLiterals("a.ts", source));
    expect(found('el("h2", { class: "big" }, "Slices", x)')).toEqual(["Slices"]);
    expect(found('el("button", { "aria-label": "Close" })')).toEqual(["Close"]);
    expect(found('a.title = isOn ? "End it" : words.begin;')).toEqual(["End it"]);
    expect(found("setText(a, `${count} more`); b.setAttribute('title', 'Stop')")).toEqual(["… more", "Stop"]);
    expect(found('el("dt", {}, "×"); setText(a, ""); f("not shown"); a.className = "panel"')).toEqual([]);
  });

  it.each([
    "Enter a position",
    "Loop",
    "Reading…",
    "level …",
    "… more",
    " to ",
    ": no value",
    "std. deviation",
    "Axis … has no dates; enter a number…",
  ])("are phrases: %s", (text) => {
    expect(isPhrase(text)).toBe(true);
  });

  it.each([
    "linear",
    "ArrowUp",
    "UTF-8",
    "kind",
    "…px …px",
    "text-button small",
    "M… 0V…",
    "np.nanmean(v)",
    "…",
  ])("are not phrases: %s", (text) => {
    expect(isPhrase(text)).toBe(false);
  });

  it("are found anywhere, except where literals are no texts", () => {
    const found = (source: string) => textsOf(phrases("a.ts", source));
    expect(found('return { problem: x === "Some thing" ? "Not this" : `Axis ${a}` };')).toEqual([
      "Not this",
      "Axis …",
    ]);
    expect(found('switch (a) { case "Escape": return "Given up"; }')).toEqual(["Given up"]);
    expect(found('import a from "a b"; let b: "One two"; el("p", { class: "hint big" })')).toEqual([]);
    expect(found('a.closest("input, select"); throw new Error("expected a frame, found none");')).toEqual([]);
    expect(found('throw new Error("Enter a name");')).toEqual(["Enter a name"]);
  });

  // All sources are parsed, which takes seconds on a busy machine.
  it("stand in `texts` only", { timeout: 60_000 }, () => {
    const unused = new Set(NO_TEXTS);
    const isNoText = ({ file, text }: Found) => {
      const known = NO_TEXTS.find((one) => one.file.test(file) && one.phrase.test(text));
      if (known) unused.delete(known);
      return known !== undefined;
    };
    const found = sources().flatMap((file) => {
      const source = readFileSync(join(SOURCES, file), "utf8");
      return [...shownLiterals(file, source), ...phrases(file, source).filter((one) => !isNoText(one))];
    });
    const lines = new Set(found.map(({ file, line, text }) => `${file}:${line}: ${text}`));
    expect([...lines]).toEqual([]);
    expect([...unused].map(({ why }) => why)).toEqual([]);
  });
});
