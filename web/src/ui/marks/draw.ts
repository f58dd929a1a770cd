//! Draws shapes: as SVG on the page, and with a canvas into saved pictures. Both look alike.

import { svg } from "../dom.ts";
import { FONT_SIZE, height, width, type Anchor, type Point, type Shape } from "./shapes.ts";

const FONT_FAMILY = "Inter, ui-sans-serif, system-ui, sans-serif";
/** Width of the rim of text and lines, in the color of the ground. */
const RIM = 3;

export interface MarkColors {
  readonly ink: string;
  /** Rim around text, for places where it lies over data. */
  readonly rim: string;
  readonly plate: string;
}

/** Colors that are legible on a background, and on data of any color by their rim. */
export function markColors(background: readonly [number, number, number]): MarkColors {
  return isLight(background)
    ? { ink: "#14161a", rim: "rgb(255 255 255 / 75%)", plate: "rgb(255 255 255 / 62%)" }
    : { ink: "#f2f4f7", rim: "rgb(0 0 0 / 70%)", plate: "rgb(10 11 14 / 62%)" };
}

/** True for a background on which black text has more contrast than white text. */
export function isLight([r, g, b]: readonly [number, number, number]): boolean {
  // Relative luminance with a gamma of 2.
  return (0.2126 * r * r + 0.7152 * g * g + 0.0722 * b * b) / 255 ** 2 > 0.2;
}

export function font(isBold: boolean): string {
  return `${isBold ? "600 " : ""}${FONT_SIZE}px ${FONT_FAMILY}`;
}

/** Replaces the content of an SVG element. `look` is called when an arm of the cross is clicked. */
export function drawSvg(
  root: SVGSVGElement,
  shapes: readonly Shape[],
  colors: MarkColors,
  look: (axisView: number) => void,
): void {
  const defs = svg("defs");
  const nodes = shapes.flatMap((shape, number) => elements(shape, number, colors, defs, look));
  root.replaceChildren(defs, ...nodes);
}

function elements(
  shape: Shape,
  number: number,
  colors: MarkColors,
  defs: SVGElement,
  look: (axisView: number) => void,
): SVGElement[] {
  switch (shape.kind) {
    case "line": {
      const { from, to } = shape;
      const wide = shape.width ?? 1.2;
      const ends = { x1: from.x, y1: from.y, x2: to.x, y2: to.y, "stroke-linecap": "round" };
      return [
        svg("line", { ...ends, stroke: colors.rim, "stroke-width": wide + 2 }),
        svg("line", { ...ends, stroke: shape.color ?? colors.ink, "stroke-width": wide }),
      ];
    }
    case "segments": {
      const place = ({ x, y }: Point) => `${x.toFixed(1)} ${y.toFixed(1)}`;
      const path = shape.segments.map(([from, to]) => `M${place(from)}L${place(to)}`).join("");
      const line = { d: path, fill: "none", "stroke-linecap": "round" };
      return [
        svg("path", { ...line, stroke: colors.rim, "stroke-width": 3.2 }),
        svg("path", { ...line, stroke: colors.ink, "stroke-width": 1.3 }),
      ];
    }
    case "text":
      return [
        svg(
          "text",
          {
            x: shape.at.x,
            y: shape.at.y,
            "text-anchor": shape.anchor,
            "dominant-baseline": "central",
            "font-size": FONT_SIZE,
            "font-family": FONT_FAMILY,
            "font-weight": shape.isBold === true ? 600 : 400,
            fill: shape.color ?? colors.ink,
            stroke: colors.rim,
            "stroke-width": RIM,
            "stroke-linejoin": "round",
            "paint-order": "stroke",
          },
          shape.text,
        ),
      ];
    case "swatch":
    case "plate": {
      const fill = shape.kind === "plate" ? colors.plate : shape.color;
      const grow = shape.kind === "plate" ? 5 : 0;
      return [rect(shape.box, fill, grow, shape.kind === "plate" ? "none" : colors.ink)];
    }
    case "ramp": {
      const id = `mark-ramp-${number}`;
      const ends = shape.isUpright ? { x1: 0, y1: 1, x2: 0, y2: 0 } : { x1: 0, y1: 0, x2: 1, y2: 0 };
      const stops = shape.colors.map((color, i) =>
        svg("stop", { offset: i / Math.max(1, shape.colors.length - 1), "stop-color": color }),
      );
      defs.append(svg("linearGradient", { id, ...ends }, ...stops));
      return [rect(shape.box, `url(#${id})`, 0, colors.ink)];
    }
    case "disk": {
      const { at, radius, color } = shape;
      const button = svg(
        "g",
        { class: "mark-arm", role: "button", "aria-label": shape.title, tabindex: 0 },
        svg("title", {}, shape.title),
        svg("circle", { cx: at.x, cy: at.y, r: radius, fill: color }),
        svg(
          "text",
          {
            x: at.x,
            y: at.y,
            "text-anchor": "middle",
            "dominant-baseline": "central",
            "font-size": FONT_SIZE - 1,
            "font-family": FONT_FAMILY,
            "font-weight": 600,
            fill: "#fff",
          },
          shape.text,
        ),
      );
      const run = () => {
        look(shape.axisView);
      };
      button.addEventListener("click", run);
      button.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        run();
      });
      return [button];
    }
  }
}

function rect(box: Parameters<typeof width>[0], fill: string, grow: number, stroke: string): SVGElement {
  return svg("rect", {
    x: box.left - grow,
    y: box.top - grow,
    width: width(box) + 2 * grow,
    height: height(box) + 2 * grow,
    rx: grow > 0 ? 6 : 1,
    fill,
    stroke,
    "stroke-width": 0.75,
    "stroke-opacity": 0.6,
  });
}

type Canvas = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

const ALIGN: Readonly<Record<Anchor, CanvasTextAlign>> = { start: "left", middle: "center", end: "right" };

/** Paints shapes over a picture, `scale` of its pixels for each pixel of the page. */
export function paintMarks(
  context: Canvas,
  shapes: readonly Shape[],
  colors: MarkColors,
  scale: number,
): void {
  context.save();
  context.scale(scale, scale);
  context.lineCap = "round";
  context.lineJoin = "round";
  context.textBaseline = "middle";
  for (const shape of shapes) paint(context, shape, colors);
  context.restore();
}

function paint(context: Canvas, shape: Shape, colors: MarkColors): void {
  switch (shape.kind) {
    case "line": {
      const wide = shape.width ?? 1.2;
      for (const [color, stroke] of [
        [colors.rim, wide + 2],
        [shape.color ?? colors.ink, wide],
      ] as const) {
        context.strokeStyle = color;
        context.lineWidth = stroke;
        context.beginPath();
        context.moveTo(shape.from.x, shape.from.y);
        context.lineTo(shape.to.x, shape.to.y);
        context.stroke();
      }
      return;
    }
    case "segments":
      for (const [color, stroke] of [
        [colors.rim, 3.2],
        [colors.ink, 1.3],
      ] as const) {
        context.strokeStyle = color;
        context.lineWidth = stroke;
        context.beginPath();
        for (const [from, to] of shape.segments) {
          context.moveTo(from.x, from.y);
          context.lineTo(to.x, to.y);
        }
        context.stroke();
      }
      return;
    case "text":
      write(
        context,
        shape.text,
        shape.at,
        shape.anchor,
        shape.color ?? colors.ink,
        colors.rim,
        shape.isBold === true,
      );
      return;
    case "swatch":
    case "plate": {
      const grow = shape.kind === "plate" ? 5 : 0;
      const { left, top } = shape.box;
      context.fillStyle = shape.kind === "plate" ? colors.plate : shape.color;
      context.fillRect(left - grow, top - grow, width(shape.box) + 2 * grow, height(shape.box) + 2 * grow);
      return;
    }
    case "ramp": {
      const { left, right, top, bottom } = shape.box;
      const gradient = shape.isUpright
        ? context.createLinearGradient(0, bottom, 0, top)
        : context.createLinearGradient(left, 0, right, 0);
      shape.colors.forEach((color, i) => {
        gradient.addColorStop(i / Math.max(1, shape.colors.length - 1), color);
      });
      context.fillStyle = gradient;
      context.fillRect(left, top, right - left, bottom - top);
      context.strokeStyle = colors.ink;
      context.lineWidth = 0.5;
      context.strokeRect(left, top, right - left, bottom - top);
      return;
    }
    case "disk":
      context.fillStyle = shape.color;
      context.beginPath();
      context.arc(shape.at.x, shape.at.y, shape.radius, 0, 2 * Math.PI);
      context.fill();
      write(context, shape.text, shape.at, "middle", "#fff", null, true);
      return;
  }
}

function write(
  context: Canvas,
  text: string,
  at: { readonly x: number; readonly y: number },
  anchor: Anchor,
  ink: string,
  rim: string | null,
  isBold: boolean,
): void {
  context.font = font(isBold);
  context.textAlign = ALIGN[anchor];
  if (rim !== null) {
    context.strokeStyle = rim;
    context.lineWidth = RIM;
    context.strokeText(text, at.x, at.y);
  }
  context.fillStyle = ink;
  context.fillText(text, at.x, at.y);
}
