//! Literals in places where texts are shown stand in `texts` only: a scan of the other files. It does not see sentences that functions
//! return or lists hold, such as the reasons why an input is refused; new ones belong into `texts` as well.

import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const SOURCES = join(import.meta.dirname, "..");

/** Made from the tables of the view, which have their texts in the same language as the command line. */
const GENERATED: readonly string[] = ["view/fields.ts", "transfer/presets.ts"];

/** Attributes and properties whose text is shown or read aloud. */
const SHOWN = [
  "aria-label",
  "aria-valuetext",
  "aria-description",
  "alt",
  "label",
  "placeholder",
  "title",
  "textContent",
];
/** Functions that show a text, with the first argument that is one. */
const SHOWING: Readonly<Record<string, number>> = {
  el: 2,
  textButton: 0,
  iconButton: 1,
  checkbox: 0,
  setText: 1,
  notify: 0,
  show: 1,
  tell: 1,
};

interface Found {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

/** Returns the literals with words in places where texts are shown. */
export function shownLiterals(file: string, source: string): Found[] {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true);
  const found: Found[] = [];
  /** Looks at an expression whose value is shown: literals, and those that it chooses between or joins. */
  const look = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node)) report(node, node.text);
    else if (ts.isTemplateExpression(node))
      report(
        node,
        [node.head, ...node.templateSpans.map((span) => span.literal)].map((part) => part.text).join(" "),
      );
    else if (ts.isConditionalExpression(node)) [node.whenTrue, node.whenFalse].forEach(look);
    else if (ts.isBinaryExpression(node)) [node.left, node.right].forEach(look);
    else if (ts.isParenthesizedExpression(node)) look(node.expression);
  };
  const report = (node: ts.Node, text: string) => {
    // A word, not a sign, a unit or a name in backticks.
    if (!/\p{L}{2}/u.test(text.replace(/`[^`]*`/g, ""))) return;
    found.push({ file, line: tree.getLineAndCharacterOfPosition(node.getStart()).line + 1, text });
  };
  const nameOf = (node: ts.Node) => (ts.isIdentifier(node) || ts.isStringLiteral(node) ? node.text : "");
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAssignment(node) && SHOWN.includes(nameOf(node.name))) look(node.initializer);
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken) {
      const { left } = node;
      if (ts.isPropertyAccessExpression(left) && SHOWN.includes(left.name.text)) look(node.right);
    }
    if (ts.isCallExpression(node)) {
      const { expression, arguments: given } = node;
      const name = ts.isPropertyAccessExpression(expression) ? expression.name.text : nameOf(expression);
      const first = Object.hasOwn(SHOWING, name) ? SHOWING[name] : undefined;
      if (first !== undefined)
        (name === "el" ? given.slice(first) : given.slice(first, first + 1)).forEach(look);
      if (name === "setAttribute" && given[0] && given[1] && SHOWN.includes(nameOf(given[0]))) look(given[1]);
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

function sources(): string[] {
  const all = readdirSync(SOURCES, { recursive: true, withFileTypes: true });
  return all
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && !entry.name.endsWith(".test.ts"))
    .map((entry) => relative(SOURCES, join(entry.parentPath, entry.name)))
    .filter((file) => !file.startsWith("texts/") && !GENERATED.includes(file));
}

describe("texts", () => {
  it("are found where they are shown", () => {
    const found = (source: string) => shownLiterals("a.ts", source).map((one) => one.text);
    expect(found('el("h2", { class: "big" }, "Slices", x)')).toEqual(["Slices"]);
    expect(found('el("button", { "aria-label": "Close" })')).toEqual(["Close"]);
    expect(found('a.title = isOn ? "End it" : words.begin;')).toEqual(["End it"]);
    expect(found("setText(a, `${count} more`); b.setAttribute('title', 'Stop')")).toEqual(["  more", "Stop"]);
    expect(found('el("dt", {}, "×"); setText(a, ""); f("not shown"); a.className = "panel"')).toEqual([]);
  });

  // All sources are parsed, which takes seconds on a busy machine.
  it("stand in `texts` only", { timeout: 60_000 }, () => {
    const found = sources().flatMap((file) => shownLiterals(file, readFileSync(join(SOURCES, file), "utf8")));
    expect(found.map(({ file, line, text }) => `${file}:${line}: ${text}`)).toEqual([]);
  });
});
