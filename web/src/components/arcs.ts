/** Labels in a column, an arc for every pair: which labels go together. Line style and colour tell why. */

import type { Interplay } from "../population";
import { el, fitted, svg, visible, whenSized } from "../dom";
import { count, signed } from "./words";

const ROW = 30;
const SIZE = 13;
const PAD = 10;

export interface ArcsData {
  pairs: Interplay[];
  onLabel: (label: string) => void;
}

/** Class of the arc of a verdict. */
export const arcClass = (verdict: string): string => `arc ${verdict.replaceAll(" ", "-")}`;

/** Draw the label graph; an empty one says so. */
export function render(container: HTMLElement, data: ArcsData): void {
  if (!data.pairs.length) return container.replaceChildren(el("p", { class: "empty" }, "No pair to draw."));
  const holder = el("div", { class: "drawing arcs" });
  container.replaceChildren(holder);
  whenSized(holder, (width) => holder.replaceChildren(draw(data, width)));
}

function draw({ pairs, onLabel }: ArcsData, available: number): SVGSVGElement {
  const labels = order(pairs);
  const row = new Map(labels.map((label, index) => [label, index * ROW + ROW / 2 + 2]));
  const wide = Math.min(330, Math.round(available * 0.6));
  const width = Math.min(available, wide + 240);
  const longest = Math.max(...pairs.map((pair) => Math.abs((row.get(pair.a) ?? 0) - (row.get(pair.b) ?? 0))));
  const reach = (tall: number): number => (width - wide - 10) * (0.2 + 0.8 * (tall / longest));
  const height = labels.length * ROW + 4;
  const about = `Label graph: ${count(labels.length, "label")}, ${count(pairs.length, "pair")}`;
  const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": about });
  for (const pair of pairs) drawing.append(arc(pair, row.get(pair.a) ?? 0, row.get(pair.b) ?? 0, wide + 1, reach));
  for (const label of labels) drawing.append(node(label, row.get(label) ?? 0, wide, onLabel));
  return drawing;
}

function arc(pair: Interplay, top: number, bottom: number, x: number, reach: (tall: number) => number): SVGGElement {
  const tall = Math.abs(bottom - top);
  const path = svg("path", {
    class: arcClass(pair.verdict),
    d: `M${x} ${Math.min(top, bottom)}A${reach(tall).toFixed(1)} ${tall / 2} 0 0 1 ${x} ${Math.max(top, bottom)}`,
    "stroke-width": (1.5 + 3 * Math.min(1, Math.abs(pair.dependence_before ?? 0))).toFixed(1),
  });
  const words = `${visible(pair.a)} and ${visible(pair.b)}: ${pair.verdict}, correlation ${signed(pair.dependence_before)}, ${signed(pair.dependence_after)} with their boundaries held`;
  return svg("g", { class: "edge-group", role: "img", "aria-label": words }, path, svg("title", {}, words));
}

function node(label: string, y: number, width: number, onLabel: (label: string) => void): SVGGElement {
  const text = svg("text", { x: PAD, y, dy: "0.34em" }, fitted(visible(label), width - 2 * PAD, SIZE, 600));
  const box = svg("rect", { x: 1, y: y - 11, width: width - 1, height: 22, rx: 4 });
  const group = svg("g", { class: "node label", role: "button", tabindex: 0, "aria-label": `Only pairs of ${visible(label)}` }, box, text, svg("title", {}, visible(label)));
  group.addEventListener("click", () => onLabel(label));
  group.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onLabel(label);
  });
  return group;
}

/** Neighbours near each other: from the label with most pairs outwards, group by group. */
export function order(pairs: Interplay[]): string[] {
  const near = new Map<string, string[]>();
  for (const { a, b } of pairs) {
    near.set(a, [...(near.get(a) ?? []), b]);
    near.set(b, [...(near.get(b) ?? []), a]);
  }
  const byDegree = (x: string, y: string): number => (near.get(y)?.length ?? 0) - (near.get(x)?.length ?? 0) || x.localeCompare(y);
  const found = new Set<string>();
  for (const first of [...near.keys()].sort(byDegree)) {
    const queue = [first];
    for (let label = queue.shift(); label !== undefined; label = queue.shift()) {
      if (found.has(label)) continue;
      found.add(label);
      queue.push(...(near.get(label) ?? []).filter((other) => !found.has(other)).sort(byDegree));
    }
  }
  return [...found];
}
