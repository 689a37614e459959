/** Every event of a sequence as a tick, the accepted ones as named pins; a slider for the keyboard. */

import type { Cause } from "../data";
import { el, fitted, svg, textWidth, visible, whenSized } from "../dom";
import { type Along, LEFT, RIGHT, attachCursor, paintDot, positionScale, signColour } from "./axis";
import { duration, probability, qText, signed, symbolOf } from "./words";

const ROW = 20;
const TICKS = 26;
const SIZE = 12;

/** More rows of names than this hide more than they tell. */
const MOST_ROWS = 4;

/** The name of an accepted event over its first place. */
interface Pin {
  cause: Cause;
  text: string;
  x: number;
  left: number;
  right: number;
  row: number;
}

/** Draw the timeline of one label; without events nothing is drawn. */
export function render(container: HTMLElement, data: Along): void {
  const events = data.sequence.events;
  if (!events) return container.replaceChildren();
  const holder = el("div", { class: "drawing" });
  const slider = sliderOf(data, events);
  const readout = el("p", { class: "readout" });
  container.replaceChildren(slider, readout);
  slider.append(holder);
  whenSized(holder, (width) => holder.replaceChildren(draw(data, events, width)));
  data.cursor.onMove((position) => {
    const text = position === null ? hint(events.length) : tell(data, position);
    readout.textContent = text;
    slider.setAttribute("aria-valuetext", position === null ? "no event chosen" : text);
    slider.setAttribute("aria-valuenow", String(position === null ? 0 : position + 1));
  });
}

const hint = (length: number): string => `${length} events, first to last. Point at one, or use the arrow keys.`;

/** What is known about the event at a position, in one line. */
export function tell({ sequence, label }: Along, position: number): string {
  const name = sequence.events?.[position] ?? "";
  const time = sequence.times?.[position];
  const parts = [`${position + 1} · ${visible(name)}`];
  if (time !== undefined) parts.push(`after ${duration(time)}`);
  const { forecast } = label;
  const step = forecast ? position + 1 - forecast.from : -1;
  if (forecast && step >= 0) parts.push(`P = ${probability(forecast.values[step] ?? null)} from here`);
  const cause = label.causes.find((item) => item.event === name);
  const tested = label.evidence.find((item) => item.event === name);
  if (cause) parts.push(`${cause.verdict} ${signed(cause.indicator)}${cause.q === null ? "" : `, q = ${qText(cause.q)}`}${cause.acceptedBy === null ? "" : `, accepted by ${cause.acceptedBy}`}`);
  else if (tested) parts.push(`${tested.verdict} (${signed(tested.effect)}${tested.se === null ? "" : ` ± ${tested.se.toFixed(2)}`})`);
  else parts.push("not tested");
  return parts.join(" · ");
}

function sliderOf({ label, cursor }: Along, events: string[]): HTMLElement {
  const slider = el("div", {
    class: "timeline",
    role: "slider",
    tabindex: 0,
    "aria-label": "Events in order of time",
    "aria-valuemin": 1,
    "aria-valuemax": events.length,
  });
  const accepted = [...new Set(label.causes.flatMap((cause) => cause.positions))].sort((a, b) => a - b);
  slider.addEventListener("keydown", (event) => {
    const now = cursor.position ?? -1;
    const last = events.length - 1;
    const target: Record<string, number | undefined> = {
      ArrowRight: Math.min(last, now + 1),
      ArrowLeft: Math.max(0, now - 1),
      Home: 0,
      End: last,
      PageDown: accepted.find((position) => position > now),
      PageUp: accepted.findLast((position) => position < now),
    };
    if (event.key === "Escape") cursor.move(null);
    else if (event.key in target) cursor.move(target[event.key] ?? cursor.position);
    else return;
    event.preventDefault();
  });
  slider.addEventListener("pointerleave", () => cursor.move(null));
  return slider;
}

function draw(data: Along, events: string[], width: number): SVGSVGElement {
  const x = positionScale(events.length, width);
  const pins = placePins(data.label.causes, x, width);
  const rows = Math.max(0, ...pins.map((pin) => pin.row + 1));
  const base = rows * ROW + 6;
  const height = base + TICKS + 20;
  const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const middle = base + TICKS / 2;
  drawing.append(svg("line", { class: "track", x1: LEFT, x2: width - RIGHT, y1: middle, y2: middle }));
  drawing.append(svg("path", { class: "ticks", d: events.map((_, i) => `M${x(i).toFixed(1)} ${middle - 5}v10`).join("") }));
  for (const pin of pins.toSorted((a, b) => b.row - a.row)) drawing.append(...drawPin(pin, base));  // stems behind names
  for (const cause of data.label.causes) drawing.append(...cause.positions.map((position) => drawDot(cause, x(position), middle)));
  drawing.append(...timeMarks(data, events.length, x, height - 4));
  attachCursor(drawing, data.cursor, events.length, width, base + TICKS);
  return drawing;
}

/** Names side by side in a few rows, none over another, strongest first; who finds no room stays a dot. */
function placePins(causes: Cause[], x: (position: number) => number, width: number): Pin[] {
  const rows: Pin[][] = Array.from({ length: MOST_ROWS }, () => []);
  for (const cause of causes) {
    const [position] = cause.positions;
    if (position === undefined) continue;
    const text = fitted(`${symbolOf(cause)} ${visible(cause.event)}`, 180, SIZE, 600);
    const wide = textWidth(text, SIZE, 600) + 10;
    const left = Math.min(Math.max(0, x(position) - wide / 2), width - wide);
    const row = rows.findIndex((pins) => pins.every((pin) => pin.right + 4 <= left || left + wide + 4 <= pin.left));
    if (row >= 0) rows[row]?.push({ cause, text, x: x(position), left, right: left + wide, row });
  }
  return rows.flat();
}

function drawPin(pin: Pin, base: number): SVGElement[] {
  const top = base - (pin.row + 1) * ROW;
  const stem = svg("line", { class: `stem ${pin.cause.verdict}${pin.cause.acceptedBy === "score" ? " by-score" : ""}`, x1: pin.x, x2: pin.x, y1: top + ROW - 3, y2: base + TICKS / 2 });
  stem.style.stroke = signColour(pin.cause.verdict, pin.cause.indicator);
  const behind = svg("rect", { class: "behind", x: pin.left, y: top, width: pin.right - pin.left, height: ROW - 3 });
  const name = svg("text", { class: "pin", x: (pin.left + pin.right) / 2, y: top + 13, "text-anchor": "middle" }, pin.text);
  return [stem, behind, name];
}

function drawDot(cause: Cause, x: number, y: number): SVGCircleElement {
  const dot = svg("circle", { class: `dot ${cause.verdict}`, cx: x, cy: y, r: 5 });
  paintDot(dot, cause.verdict, cause.indicator, cause.acceptedBy === "score");
  return dot;
}

/** Time elapsed at a few events, as far as they do not touch. */
function timeMarks({ sequence }: Along, length: number, x: (position: number) => number, y: number): SVGElement[] {
  const times = sequence.times;
  if (!times) return [];
  const marks: SVGElement[] = [];
  let free = 0;
  for (let step = 0; step < 5; step++) {
    const position = Math.round((step / 4) * (length - 1));
    const text = duration(times[position] ?? 0);
    const half = textWidth(text, 11) / 2;
    const centre = Math.min(Math.max(x(position), LEFT + half - 8), x(length - 1) + RIGHT - half);
    if (centre - half < free) continue;
    free = centre + half + 16;
    marks.push(svg("text", { class: "time", x: centre, y, "text-anchor": "middle" }, text));
  }
  return marks;
}
