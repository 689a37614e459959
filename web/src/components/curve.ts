/** Two curves along a sequence: the label's probability as events arrive, and the effect of every tested event. */

import { max } from "d3-array";
import { scaleLinear } from "d3-scale";
import { curveStepAfter, line } from "d3-shape";
import type { Evidence, Forecast } from "../data";
import { el, svg, visible, whenSized } from "../dom";
import { type Along, attachCursor, paintDot, positionScale, signColour, valueAxis } from "./axis";
import { probability, signed } from "./words";

const HEIGHT = 120;
const AIR = 10;

/** P(label | first events) as a step line; needs the sequence's events and a forecast. */
export function renderForecast(container: HTMLElement, data: Along): void {
  const { events } = data.sequence;
  const { forecast } = data.label;
  if (!events || !forecast) return container.replaceChildren();
  const holder = el("div", { class: "drawing", role: "img", "aria-label": forecastWords(data, forecast) });
  container.replaceChildren(holder);
  whenSized(holder, (width) => holder.replaceChildren(drawForecast(data, events, forecast, width)));
}

/** The curve in a sentence: where it starts, where it ends, and its largest step. */
export function forecastWords({ sequence, label }: Along, forecast: Forecast): string {
  const { values, from } = forecast;
  let best = 0;
  for (let step = 1; step < values.length; step++) if (Math.abs(rise(values, step)) > Math.abs(rise(values, best))) best = step;
  const start = `The probability of ${visible(label.label)} is ${probability(values[0] ?? null)} after ${from} events and ${probability(values.at(-1) ?? null)} after the last.`;
  if (!best) return start;
  const position = from + best - 1;
  return `${start} The largest step, ${signed(rise(values, best))}, comes with event ${position + 1}, ${visible(sequence.events?.[position] ?? "")}.`;
}

const rise = (values: number[], step: number): number => (step ? (values[step] ?? 0) - (values[step - 1] ?? 0) : 0);

function drawForecast(data: Along, events: string[], forecast: Forecast, width: number): SVGSVGElement {
  const x = positionScale(events.length, width);
  const y = scaleLinear([0, 1], [HEIGHT - AIR, AIR]);
  const drawing = svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" });
  drawing.append(valueAxis([0, 0.5, 1], y, width, (value) => String(value)));
  // After n events the forecast holds from event n - 1 until the next one arrives.
  const path = line<number>((_, step) => x(forecast.from + step - 1), (value) => y(value)).curve(curveStepAfter);
  drawing.append(svg("path", { class: "forecast", d: path(forecast.values) ?? "" }));
  for (const cause of data.label.causes) {
    for (const position of cause.positions) {
      const value = forecast.values[position + 1 - forecast.from];
      if (value === undefined) continue;
      const dot = svg("circle", { class: `dot ${cause.verdict}`, cx: x(position), cy: y(value), r: 4.5 });
      paintDot(dot, cause.verdict, cause.indicator, cause.acceptedBy === "score");
      drawing.append(dot);
    }
  }
  attachCursor(drawing, data.cursor, events.length, width, HEIGHT - AIR);
  return drawing;
}

export type Quantity = "effect" | "cmi";

/** Stems: the effect (or the information gain) of each tested event, at every position where it stands. */
export function renderEffects(container: HTMLElement, data: Along & { quantity: Quantity }): void {
  const { events } = data.sequence;
  if (!events || !data.label.evidence.length) return container.replaceChildren();
  const holder = el("div", { class: "drawing", role: "img", "aria-label": effectWords(data) });
  container.replaceChildren(holder);
  whenSized(holder, (width) => holder.replaceChildren(drawEffects(data, events, width)));
}

function effectWords({ label, quantity }: Along & { quantity: Quantity }): string {
  const what = quantity === "effect" ? "Effect" : "Information gain in nats";
  return `${what} of ${label.evidence.length} tested event types on ${visible(label.label)}; the table below holds the accepted ones.`;
}

function drawEffects(data: Along & { quantity: Quantity }, events: string[], width: number): SVGSVGElement {
  const { label, quantity, cursor } = data;
  const value = (item: Evidence): number => (quantity === "effect" ? item.effect : item.cmi) ?? 0;
  const known = new Map(label.evidence.map((item) => [item.event, item]));
  const at = new Map(label.causes.map((cause) => [cause.event, new Set(cause.positions)]));
  const scored = new Set(label.causes.flatMap((cause) => (cause.acceptedBy === "score" ? [cause.event] : [])));
  const most = Math.max(max(label.evidence, value) ?? 0, 0.02);
  const least = Math.min(0, ...label.evidence.map(value));
  const y = scaleLinear([least, most], [HEIGHT - AIR, AIR]).nice(3);
  const x = positionScale(events.length, width);
  const drawing = svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" });
  drawing.append(valueAxis(y.ticks(3), y, width, quantity === "effect" ? (tick) => signed(tick, most < 0.1 ? 2 : 1) : String));
  const front: SVGElement[] = [];
  events.forEach((event, position) => {
    const item = known.get(event);
    if (!item) return;
    const accepted = at.get(event)?.has(position) ?? false;
    const drawn = stem(item, value(item), accepted && (scored.has(event) ? "score" : "test"), x(position), y);
    if (accepted) front.push(drawn);
    else drawing.append(drawn);
  });
  drawing.append(...front);
  attachCursor(drawing, cursor, events.length, width, HEIGHT - AIR);
  return drawing;
}

function stem(item: Evidence, value: number, accepted: false | "test" | "score", x: number, y: (value: number) => number): SVGGElement {
  const kind = accepted ? item.verdict : item.verdict === "not resolvable" ? "unresolved" : "nothing";
  const dot = svg("circle", { class: `dot ${kind}`, cx: x, cy: y(value), r: accepted ? 4.5 : 2 });
  if (!accepted) return svg("g", {}, dot);
  const bar = svg("line", { class: `stem ${kind}${accepted === "score" ? " by-score" : ""}`, x1: x, x2: x, y1: y(0), y2: y(value) });
  if (item.verdict === "cause" || item.verdict === "inhibitor") {
    bar.style.stroke = signColour(item.verdict, item.effect);
    paintDot(dot, item.verdict, item.effect, accepted === "score");
  }
  return svg("g", {}, bar, dot);
}
