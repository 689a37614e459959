/** How labels hang together: a graph of pairs, the same as a table, and what each verdict means. */

import * as arcs from "../components/arcs";
import { select } from "../components/controls";
import * as table from "../components/table";
import { count, probability, signed } from "../components/words";
import type { Page } from "../page";
import type { Interplay, PairVerdict } from "../population";
import { el, nameTag, svg, visible } from "../dom";

const LEAD = "Labels that come together, and why. The number is the correlation of the recorded labels: first as it is, then only among sequences that show the same events of both boundaries. What is left then, the known causes do not explain.";
const NOBODY = "Nobody looked: oscar population does so when it recovers rules, which needs the model and recorded labels.";
const NO_PAIRS = "No two labels share a cause or depend on each other.";
const MOST = 60;

const MEANING: Record<PairVerdict, string> = {
  "still dependent": "They depend on each other with both boundaries held: a missing cause, order or count that is not held, a hidden driver, or one brings the other.",
  "explained by shared causes": "They depend, and no longer with the boundaries held; without the events they share the model's probability of both falls.",
  "explained by their boundaries": "They depend, and no longer with the boundaries held, without an event that moves both: their causes come together.",
  "not resolvable": "They depend; with the boundaries held most sequences have no peers to be compared with.",
  independent: "They share a cause and still do not depend on each other. Not drawn.",
};

/** Draw the label graph; `label` chooses one at the start. */
export function render(container: HTMLElement, page: Page, label: string): void {
  const pairs = page.data.population?.interplay ?? null;
  const head = el("header", { class: "page-head" }, el("h2", { tabindex: -1 }, "Label graph"), el("p", {}, LEAD));
  if (!pairs?.length) return container.replaceChildren(head, el("p", { class: "empty" }, pairs ? NO_PAIRS : NOBODY));
  const [picture, list, menus] = [el("div"), el("div"), el("div", { class: "controls" })];
  const told = el("p", { class: "about", role: "status" });
  const filter = { label, verdict: "" };
  const update = (): void => {
    const kept = pairs.filter((pair) => (!filter.verdict || pair.verdict === filter.verdict) && (!filter.label || pair.a === filter.label || pair.b === filter.label));
    const drawn = kept.filter((pair) => pair.verdict !== "independent").slice(0, MOST);
    told.textContent = `${count(kept.length, "pair")} of labels; ${drawn.length} drawn.`;
    menus.replaceChildren(...controls(pairs, filter, update));
    arcs.render(picture, { pairs: drawn, onLabel: (chosen) => ((filter.label = filter.label === chosen ? "" : chosen), update()) });
    pairTable(list, kept);
  };
  container.replaceChildren(head, el("section", { class: "panel" }, menus, told, picture, legend(pairs)), el("section", { class: "panel" }, el("h3", {}, "The same as a table"), list), meanings(pairs));
  update();
}

function controls(pairs: Interplay[], filter: { label: string; verdict: string }, update: () => void): HTMLElement[] {
  const labels = [...new Set(pairs.flatMap((pair) => [pair.a, pair.b]))].sort((a, b) => a.localeCompare(b));
  const set = (name: "label" | "verdict") => (value: string): void => {
    filter[name] = value;
    update();
    document.querySelectorAll<HTMLElement>(".controls select")[name === "label" ? 0 : 1]?.focus();
  };
  return [
    select("Label", [["", "all labels"], ...labels.map((name): [string, string] => [name, visible(name)])], filter.label, set("label")),
    select("Verdict", [["", "all verdicts"], ...there(pairs).map((name): [string, string] => [name, name])], filter.verdict, set("verdict")),
  ];
}

/** The verdicts that occur, most telling first. */
function there(pairs: Interplay[]): PairVerdict[] {
  return (Object.keys(MEANING) as PairVerdict[]).filter((name) => pairs.some((pair) => pair.verdict === name));
}

function legend(pairs: Interplay[]): HTMLElement {
  const entries = there(pairs).filter((name) => name !== "independent");
  return el("div", { class: "legend" }, ...entries.map((name) => el("span", {}, lineSample(name), ` ${name}`)));
}

function lineSample(verdict: string): HTMLElement {
  const line = svg("svg", { width: 34, height: 8, "aria-hidden": "true" }, svg("path", { class: arcs.arcClass(verdict), d: "M1 4H33", "stroke-width": 2.5 }));
  return el("span", { class: "sample" }, line);
}

function meanings(pairs: Interplay[]): HTMLElement {
  const rows = there(pairs).map((name) => el("div", {}, el("dt", {}, name), el("dd", {}, MEANING[name])));
  return el("section", { class: "panel" }, el("h3", {}, "What the verdicts mean"), el("dl", { class: "reading" }, ...rows));
}

function pairTable(box: HTMLElement, rows: Interplay[]): void {
  table.render(box, {
    caption: "Pairs of labels, those that depend most once their boundaries are held first",
    columns: [
      { title: "Labels", key: (row: Interplay) => row.a, cell: (row) => el("div", {}, nameTag(row.a, "label"), el("br"), nameTag(row.b, "label"), el("div", { class: "narrow-only" }, row.verdict), shared(row)) },
      { title: "Verdict", minor: true, key: (row) => row.verdict, cell: (row) => row.verdict },
      { title: "Together", numeric: true, minor: true, key: (row) => row.together, cell: (row) => row.together?.toLocaleString("en") ?? "–", about: "Sequences with both labels" },
      { title: "As it is", numeric: true, key: (row) => row.dependence_before, cell: (row) => strength(row.dependence_before, row.p_before), about: "Correlation of the recorded labels" },
      { title: "Held", numeric: true, key: (row) => row.dependence_after, cell: (row) => strength(row.dependence_after, row.p_after), about: "The same among sequences that show the same of both boundaries" },
    ],
    rows,
  });
}

function strength(value: number | null, p: number | null): HTMLElement {
  return el("span", { class: "effect-cell" }, el("b", {}, signed(value)), p === null ? null : el("span", { class: "range" }, `p ${p > 0 && p < 0.001 ? "< 0.001" : `= ${p.toFixed(3)}`}`));
}

function shared(row: Interplay): HTMLElement | null {
  if (!row.shared.length) return null;
  const names = row.shared.flatMap((event, index) => [index ? ", " : "", nameTag(event, "event")]);
  const falls = row.fall_a === null || row.fall_b === null ? "" : `: without, the probabilities fall by ${probability(row.fall_a)} and ${probability(row.fall_b)}`;
  return el("div", { class: "remark" }, "share ", ...names, falls);
}
