//! Finds literals in source files that are texts for people: for the test beside, not for the page.

import ts from "typescript";

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

/** Members that are no texts: names of classes, drawings, keys of maps. */
const NO_TEXT_MEMBERS = ["class", "className", "d", "key", "transform", "viewBox"];
/** Functions whose arguments are no texts: selectors, media queries, names of classes, parts of what is searched. */
const NO_TEXT_CALLS = [
  ...["closest", "matches", "querySelector", "querySelectorAll", "matchMedia"],
  ...["endsWith", "startsWith", "includes"],
];
const COMPARISONS = [
  ts.SyntaxKind.EqualsEqualsEqualsToken,
  ts.SyntaxKind.ExclamationEqualsEqualsToken,
  ts.SyntaxKind.InKeyword,
];

export interface Found {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

/** Text of a literal, with `…` for variable parts; undefined for other nodes. */
function literalText(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return undefined;
  return [node.head, ...node.templateSpans.map((span) => span.literal)].map((part) => part.text).join("…");
}

const nameOf = (node: ts.Node) => (ts.isIdentifier(node) || ts.isStringLiteral(node) ? node.text : "");
const calledName = ({ expression }: ts.CallExpression) =>
  ts.isPropertyAccessExpression(expression) ? expression.name.text : nameOf(expression);

/** Collects the literals that `visit` reports. */
function scanned(
  file: string,
  source: string,
  visit: (node: ts.Node, report: (node: ts.Node, text: string) => void) => void,
): Found[] {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true);
  const found: Found[] = [];
  visit(tree, (node, text) => {
    found.push({ file, line: tree.getLineAndCharacterOfPosition(node.getStart()).line + 1, text });
  });
  return found;
}

/** Returns the literals with words in places where texts are shown. */
export function shownLiterals(file: string, source: string): Found[] {
  return scanned(file, source, (tree, report) => {
    /** Looks at an expression whose value is shown: literals, and those that it chooses between or joins. */
    const look = (node: ts.Node): void => {
      const text = literalText(node);
      // A word, not a sign, a unit or a name in backticks.
      if (text !== undefined && /\p{L}{2}/u.test(text.replace(/`[^`]*`/g, ""))) report(node, text);
      else if (ts.isConditionalExpression(node)) [node.whenTrue, node.whenFalse].forEach(look);
      else if (ts.isBinaryExpression(node)) [node.left, node.right].forEach(look);
      else if (ts.isParenthesizedExpression(node)) look(node.expression);
    };
    const visit = (node: ts.Node): void => {
      if (ts.isPropertyAssignment(node) && SHOWN.includes(nameOf(node.name))) look(node.initializer);
      if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken) {
        const { left } = node;
        if (ts.isPropertyAccessExpression(left) && SHOWN.includes(left.name.text)) look(node.right);
      }
      if (ts.isCallExpression(node)) {
        const given = node.arguments;
        const name = calledName(node);
        const first = Object.hasOwn(SHOWING, name) ? SHOWING[name] : undefined;
        if (first !== undefined)
          (name === "el" ? given.slice(first) : given.slice(first, first + 1)).forEach(look);
        if (name === "setAttribute" && given[0] && given[1] && SHOWN.includes(nameOf(given[0])))
          look(given[1]);
      }
      ts.forEachChild(node, visit);
    };
    visit(tree);
  });
}

/**
 * True for a text of two words or more, of a word beside a variable part or a number, of a word that continues another text, and of one
 * word with a capital letter.
 */
export function isPhrase(text: string): boolean {
  const plain = text.replace(/`[^`]*`/g, "…");
  if (/^\p{Lu}\p{Ll}+[.:…]?$/u.test(plain)) return true;
  const tokens = plain.split(/\s+/).map((token) => token.replace(/^["'“(]+|[.,:;!?)”"']+$/gu, ""));
  const isWord = (token: string) => /^\p{L}+('\p{L}+)?$/u.test(token);
  const words = tokens.filter(isWord);
  const others = tokens.filter((token) => token === "…" || token === "" || /^#?\d+$/.test(token));
  return words.some((word) => word.length > 1) && words.length + others.length > 1;
}

/** True for an error that only a fault of the page or of the server causes: it says what was expected. */
function isFault(node: ts.Node): boolean {
  return (
    ts.isNewExpression(node) &&
    nameOf(node.expression).endsWith("Error") &&
    literalText(node.arguments?.[0] ?? node)?.startsWith("expected ") === true
  );
}

/** Returns the literals that read as a phrase, except where literals are no texts. */
export function phrases(file: string, source: string): Found[] {
  return scanned(file, source, (tree, report) => {
    const visit = (node: ts.Node): void => {
      if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node) || ts.isTypeNode(node)) return;
      if (isFault(node)) return;
      if (ts.isPropertyAssignment(node) && NO_TEXT_MEMBERS.includes(nameOf(node.name))) return;
      const text = literalText(node);
      if (text !== undefined && isPhrase(text)) report(node, text);
      const isCompared = ts.isBinaryExpression(node) && COMPARISONS.includes(node.operatorToken.kind);
      const isSearch = ts.isCallExpression(node) && NO_TEXT_CALLS.includes(calledName(node));
      const skipsLiterals = isCompared || isSearch || ts.isCaseClause(node);
      ts.forEachChild(node, (child) => {
        if (!skipsLiterals || literalText(child) === undefined) visit(child);
      });
    };
    visit(tree);
  });
}
