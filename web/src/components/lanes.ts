/** Where the graph puts its nodes: a lane for every edge, labels pushed apart, for a given width. */

import type { GraphEdge } from "../data";
import { fitted, textWidth, visible, wrapped } from "../dom";

export const LINE = 16;
const LANE = 26;
const SIZE = 13;
const PAD = 10;
/** Wider than this the eye loses the line. */
const WIDEST_UNTIMED = 960;

export interface EventNode {
  name: string;
  text: string;
  width: number;
  x: number;
  y: number;
  lanes: number[];
}

export interface LabelNode {
  name: string;
  lines: string[];
  y: number;
}

export interface Layout {
  events: EventNode[];
  labels: LabelNode[];
  edges: { edge: GraphEdge; lane: number; event: EventNode; label: LabelNode }[];
  narrow: boolean;
  labelLeft: number;
  labelWidth: number;
  /** Where edges leave their lane; values stand left of it. */
  bend: number;
  valueWidth: number;
  /** Centre of the edges' remarks; null = no room for them. */
  noteAt: number | null;
  width: number;
  height: number;
}

export const laneY = (lane: number): number => lane * LANE + LANE / 2 + 4;

/** Places for the edges in a container of this width. */
export function layOut(edges: GraphEdge[], available: number): Layout {
  const narrow = available < 560;
  const timed = !narrow && edges.every((edge) => edge.when !== null);
  const width = timed || narrow ? available : Math.min(available, WIDEST_UNTIMED);
  const labelWidth = narrow ? Math.round(width * 0.34) : Math.min(250, width * 0.32);
  const labelLeft = width - labelWidth - 1;
  const bend = labelLeft - (narrow ? 28 : 56);
  const valueWidth = narrow ? 88 : 108;
  const events = placeEvents(edges, bend - valueWidth - 24, timed);
  const labels = orderLabels(edges, events).map((name): LabelNode => ({ name, lines: wrapped(visible(name), labelWidth - PAD, SIZE, 3, 600), y: 0 }));
  const placed = assignLanes(edges, events, labels);
  for (const event of events) event.y = centre(event.lanes);
  for (const label of labels) label.y = centre(placed.filter((item) => item.label === label).map((item) => item.lane));
  const height = Math.max(placed.length * LANE + 10, spread(labels));
  const noteAt = timed || narrow ? null : Math.max(...events.map((event) => event.x + event.width)) + 60;
  return { events, labels, edges: placed, noteAt: noteAt !== null && noteAt + 130 < bend - valueWidth / 2 ? noteAt : null, narrow, labelLeft, labelWidth, bend, valueWidth, width, height };
}

function assignLanes(edges: GraphEdge[], events: EventNode[], labels: LabelNode[]): Layout["edges"] {
  const place = new Map(labels.map((label, index) => [label.name, { label, index }]));
  const placed: Layout["edges"] = [];
  for (const event of events) {
    const own = edges.filter((edge) => edge.event === event.name).sort((a, b) => (place.get(a.label)?.index ?? 0) - (place.get(b.label)?.index ?? 0));
    for (const edge of own) {
      const found = place.get(edge.label);
      if (!found) continue;
      event.lanes.push(placed.length);
      placed.push({ edge, lane: placed.length, event, label: found.label });
    }
  }
  return placed;
}

const centre = (lanes: number[]): number => laneY(lanes.reduce((sum, lane) => sum + lane, 0) / Math.max(1, lanes.length));

/** Push labels apart downwards, keeping their order; returns the lowest edge. */
function spread(labels: LabelNode[]): number {
  let free = 2;
  for (const label of labels) {
    const half = (label.lines.length * LINE + 6) / 2;
    label.y = Math.max(label.y, free + half);
    free = label.y + half + 6;
  }
  return free;
}

function placeEvents(edges: GraphEdge[], room: number, timed: boolean): EventNode[] {
  const when = new Map<string, number>();
  for (const edge of edges) when.set(edge.event, Math.min(when.get(edge.event) ?? 1, edge.when ?? 0));
  const ordered = edges.every((edge) => edge.when !== null);
  const names = ordered ? [...when.keys()].sort((a, b) => (when.get(a) ?? 0) - (when.get(b) ?? 0)) : byLabel(edges);
  return names.map((name) => {
    const text = fitted(visible(name), Math.min(200, room - 2 * PAD), SIZE);
    const width = textWidth(text, SIZE) + 2 * PAD;
    const x = timed ? (when.get(name) ?? 0) * Math.max(0, room - width) : 0;
    return { name, text, width, x: x + 1, y: 0, lanes: [] };
  });
}

/** Without times: events of one label stand together, strongest first. */
function byLabel(edges: GraphEdge[]): string[] {
  const order = [...edges].sort((a, b) => a.label.localeCompare(b.label) || (b.strength ?? 0) - (a.strength ?? 0));
  return [...new Set(order.map((edge) => edge.event))];
}

/** Labels from top to bottom by the mean rank of their events: few crossings. */
function orderLabels(edges: GraphEdge[], events: EventNode[]): string[] {
  const rank = new Map(events.map((event, index) => [event.name, index]));
  const sums = new Map<string, [number, number]>();
  for (const edge of edges) {
    const [sum, number] = sums.get(edge.label) ?? [0, 0];
    sums.set(edge.label, [sum + (rank.get(edge.event) ?? 0), number + 1]);
  }
  const mean = (name: string): number => (sums.get(name)?.[0] ?? 0) / (sums.get(name)?.[1] ?? 1);
  return [...sums.keys()].sort((a, b) => mean(a) - mean(b) || a.localeCompare(b));
}
