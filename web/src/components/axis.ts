/** What the drawings along a sequence share: margins, the x axis by position, and the cursor line. */

import { scaleLinear } from "d3-scale";
import type { LabelView, SequenceView } from "../data";
import { type Cursor, svg } from "../dom";

/** One label of one sequence, with the cursor its drawings share. */
export interface Along {
  sequence: SequenceView;
  label: LabelView;
  cursor: Cursor;
}

export const LEFT = 44;
export const RIGHT = 14;

/** Pixel of each position; half a step of air on both sides. */
export function positionScale(length: number, width: number): (position: number) => number {
  return scaleLinear([-0.5, Math.max(length, 1) - 0.5], [LEFT, width - RIGHT]);
}

/** The position nearest to a pixel. */
export function positionAt(pixel: number, length: number, width: number): number {
  const share = (pixel - LEFT) / Math.max(1, width - LEFT - RIGHT);
  return Math.min(length - 1, Math.max(0, Math.floor(share * length)));
}

/** A vertical line that follows the cursor; the drawing's pointer moves the cursor. */
export function attachCursor(drawing: SVGSVGElement, cursor: Cursor, length: number, width: number, height: number): void {
  const x = positionScale(length, width);
  const line = svg("line", { class: "cursor", y1: 0, y2: height });
  drawing.append(line);
  cursor.onMove((position) => {
    line.setAttribute("visibility", position === null ? "hidden" : "visible");
    if (position !== null) {
      line.setAttribute("x1", String(x(position)));
      line.setAttribute("x2", String(x(position)));
    }
  });
  drawing.addEventListener("pointermove", (event) => cursor.move(positionAt(event.clientX - drawing.getBoundingClientRect().left, length, width)));
}

/** Horizontal rules with their numbers on the left. */
export function valueAxis(ticks: number[], y: (value: number) => number, width: number, format: (value: number) => string): SVGGElement {
  const axis = svg("g", { class: "axis" });
  for (const tick of ticks) {
    axis.append(
      svg("line", { class: tick === 0 ? "zero" : "rule", x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick) }),
      svg("text", { x: LEFT - 8, y: y(tick), dy: "0.32em", "text-anchor": "end" }, format(tick)),
    );
  }
  return axis;
}

/** Strength in a colour between orange and red, or violet; set as CSS so that it follows the theme. */
export function signColour(verdict: "cause" | "inhibitor", strength: number | null): string {
  if (verdict === "inhibitor") return "var(--inhibitor)";
  const share = Math.round(Math.min(1, Math.abs(strength ?? 0)) * 100);
  return `color-mix(in oklab, var(--cause-strong) ${share}%, var(--cause-weak))`;
}

/** Colour a dot: filled for a cause that a test has shown, hollow for an inhibitor and for what was accepted by score. */
export function paintDot(dot: SVGCircleElement, verdict: "cause" | "inhibitor", strength: number | null, byScore: boolean): void {
  dot.style.stroke = signColour(verdict, strength);
  dot.style.fill = verdict === "cause" && !byScore ? dot.style.stroke : "var(--surface)";
}
