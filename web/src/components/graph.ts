/**
 * The causal graph: events on the left in order of time, labels on the right, one lane per edge.
 *
 * An edge runs along a lane of its own and bends only in front of its label, so that no value stands on another and
 * thirty nodes are as readable as three. Events step to the right with time where there is room.
 */

import type { GraphEdge, GraphView } from "../data";
import { el, svg, textWidth, visible, whenSized } from "../dom";
import { signColour } from "./axis";
import { type EventNode, type Layout, LINE, type LabelNode, laneY, layOut } from "./lanes";
import { BY_SCORE, SYMBOL, signed } from "./words";

export interface GraphData {
  view: GraphView;
  /** Called when an event or a label is chosen; without it nodes are no buttons. */
  onEvent?: ((event: string) => void) | undefined;
  onLabel?: ((label: string) => void) | undefined;
}

/** Draw the graph; an empty one says so. */
export function render(container: HTMLElement, data: GraphData): void {
  if (!data.view.edges.length) return container.replaceChildren(el("p", { class: "empty" }, "No event was accepted, so there is no graph to draw."));
  const holder = el("div", { class: "drawing graph" });
  container.replaceChildren(holder);
  whenSized(holder, (width) => holder.replaceChildren(draw(layOut(data.view.edges, width), data)));
}

function draw(layout: Layout, data: GraphData): SVGSVGElement {
  const { width, height, events, labels, edges } = layout;
  const about = `Causal graph: ${events.length} events, ${labels.length} labels, ${edges.length} edges`;
  const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": about });
  for (const item of edges) drawing.append(drawEdge(item.edge, item.lane, item.event, item.label, layout));
  for (const event of events) drawing.append(drawEvent(event, data));
  for (const label of labels) drawing.append(drawLabel(label, layout, data));
  return drawing;
}

function drawEdge(edge: GraphEdge, lane: number, event: EventNode, label: LabelNode, layout: Layout): SVGGElement {
  const { labelLeft, bend, valueWidth, narrow } = layout;
  const from = event.x + event.width;
  const y = laneY(lane);
  const end = labelLeft - 7;
  const path = svg("path", {
    class: `edge ${edge.verdict}${edge.byScore ? " by-score" : ""}`,
    d: `M${from} ${event.y}C${from + 12} ${event.y} ${from + 4} ${y} ${from + 16} ${y}H${bend}C${(bend + end) / 2} ${y} ${(bend + end) / 2} ${label.y} ${end} ${label.y}`,
    "stroke-width": (1.5 + 3 * Math.min(1, Math.abs(edge.strength ?? 0))).toFixed(1),
  });
  const head = svg("path", { class: "head", d: `M${labelLeft - 1} ${label.y}l-8 -4.5v9z` });
  path.style.stroke = head.style.fill = signColour(edge.verdict, edge.strength);
  const value = `${signed(edge.strength)}${edge.sd === null ? "" : ` ± ${edge.sd.toFixed(2)}`}`;
  const words = `${visible(edge.event)} ${edge.verdict === "cause" ? "raises" : "lowers"} ${visible(edge.label)}: ${value}${edge.note ? `, ${edge.note}` : ""}`;
  const texts = written("value", narrow ? value : `${edge.byScore ? BY_SCORE : SYMBOL[edge.verdict]} ${value}`, bend - valueWidth / 2, y, 12, 600);
  if (layout.noteAt !== null && edge.note) texts.push(...written("note", edge.note, layout.noteAt, y, 11, 400));
  return svg("g", { class: "edge-group", role: "img", "aria-label": words }, path, head, ...texts, svg("title", {}, words));
}

/** Text on an edge, with the edge hidden behind it. */
function written(kind: string, text: string, x: number, y: number, size: number, weight: number): SVGElement[] {
  const wide = textWidth(text, size, weight) + 10;
  return [
    svg("rect", { class: "behind", x: x - wide / 2, y: y - 8, width: wide, height: 16 }),
    svg("text", { class: kind, x, y, dy: "0.34em", "text-anchor": "middle" }, text),
  ];
}

function drawEvent(event: EventNode, { onEvent }: GraphData): SVGGElement {
  return node("event", event.name, [event.text], { x: event.x, y: event.y, width: event.width }, onEvent);
}

function drawLabel(label: LabelNode, { labelLeft, labelWidth }: Layout, { onLabel }: GraphData): SVGGElement {
  return node("label", label.name, label.lines, { x: labelLeft, y: label.y, width: labelWidth }, onLabel);
}

function node(kind: string, name: string, lines: string[], place: { x: number; y: number; width: number }, choose?: (name: string) => void): SVGGElement {
  const tall = lines.length * LINE + 6;
  const box = svg("rect", { x: place.x, y: place.y - tall / 2, width: place.width, height: tall, rx: kind === "event" ? 11 : 4 });
  const words = lines.map((line, index) => svg("text", { x: place.x + place.width / 2, y: place.y + (index - (lines.length - 1) / 2) * LINE, dy: "0.34em", "text-anchor": "middle" }, index < lines.length - 1 ? `${line} ` : line));
  const group = svg("g", { class: `node ${kind}`, "aria-label": `${kind} ${visible(name)}`, role: choose ? "button" : "img", tabindex: choose ? 0 : null }, box, ...words, svg("title", {}, visible(name)));
  if (choose) {
    group.addEventListener("click", () => choose(name));
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(name);
    });
  }
  return group;
}
