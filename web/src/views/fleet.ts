/** The fleet graph: which events were accepted for which labels, over all explained sequences, with filters. */

import * as graph from "../components/graph";
import * as table from "../components/table";
import { SYMBOL, count, signed } from "../components/words";
import type { Page } from "../page";
import { el, nameTag, visible } from "../dom";

const COUNTED = "Events accepted in single sequences, counted over all of them. The value is the mean effect where the event was accepted, ± its spread.";
const POOLED = "Boundaries of the whole fleet. The value is the mean effect over the sequences in which the event was tested, ± its spread; beside it, how many of them accepted it.";

type Edge = ReturnType<Page["fleet"]>[number];

interface Filter {
  label: string;
  sign: "both" | "cause" | "inhibitor";
  most: number;
  least: number;
}

/** Draw the fleet graph; `label` chooses one label at the start. */
export function render(container: HTMLElement, page: Page, label: string, onSearch: (text: string) => void): void {
  const edges = page.fleet();
  const filter: Filter = { label, sign: "both", most: 30, least: 1 };
  const [picture, list] = [el("div"), el("div")];
  const told = el("p", { class: "about", role: "status" });
  const update = (): void => {
    const passing = edges.filter((edge) => passes(edge, filter));
    const kept = passing.slice(0, filter.most);
    told.textContent = kept.length < passing.length ? `The ${kept.length} edges found most often, of ${passing.length.toLocaleString("en")} that pass.` : `${count(passing.length, "edge")}.`;
    graph.render(picture, { view: { edges: kept }, onEvent: onSearch });
    edgeTable(list, kept);
  };
  container.replaceChildren(
    el("header", { class: "page-head" }, el("h2", { tabindex: -1 }, "Fleet graph"), el("p", {}, page.data.fleet.pooled ? POOLED : COUNTED)),
    el("section", { class: "panel" }, controls(edges, filter, update), told, picture),
    el("section", { class: "panel" }, el("h3", {}, "The same as a table"), list),
  );
  update();
}

function passes(edge: Edge, filter: Filter): boolean {
  return (!filter.label || edge.label === filter.label) && (filter.sign === "both" || edge.verdict === filter.sign) && edge.found >= filter.least;
}

function controls(edges: Edge[], filter: Filter, update: () => void): HTMLElement {
  const labels = [...new Set(edges.map((edge) => edge.label))].sort((a, b) => a.localeCompare(b));
  const pick = select("Label", [["", "all labels"], ...labels.map((label): [string, string] => [label, visible(label)])], filter.label, (value) => {
    filter.label = value;
    update();
  });
  const sign = select("Sign", [["both", "both"], ["cause", `${SYMBOL.cause} causes`], ["inhibitor", `${SYMBOL.inhibitor} inhibitors`]], filter.sign, (value) => {
    filter.sign = value as Filter["sign"];
    update();
  });
  const most = select("Edges", ["10", "30", "60", "120", "300"].map((text): [string, string] => [text, `at most ${text}`]), String(filter.most), (value) => {
    filter.most = Number(value);
    update();
  });
  const least = select("Found in", ["1", "2", "5", "10", "30"].map((text): [string, string] => [text, `at least ${count(Number(text), "sequence")}`]), String(filter.least), (value) => {
    filter.least = Number(value);
    update();
  });
  return el("div", { class: "controls" }, pick, sign, most, least);
}

function select(title: string, options: [string, string][], value: string, onChange: (value: string) => void): HTMLElement {
  const menu = el("select", {}, ...options.map(([key, text]) => el("option", { value: key, selected: key === value }, text)));
  menu.addEventListener("change", () => onChange(menu.value));
  return el("label", { class: "control" }, el("span", {}, title), menu);
}

function edgeTable(box: HTMLElement, rows: Edge[]): void {
  table.render(box, {
    caption: "Edges shown in the graph",
    columns: [
      { title: "Event", key: (row: Edge) => row.event, cell: (row) => el("span", { class: "event-cell" }, el("span", { class: `symbol ${row.verdict}`, title: row.verdict }, SYMBOL[row.verdict]), nameTag(row.event, "event")) },
      { title: "Label", key: (row) => row.label, cell: (row) => nameTag(row.label, "label") },
      { title: "Mean effect", numeric: true, key: (row) => row.strength, cell: (row) => el("span", {}, signed(row.strength), row.sd === null ? null : el("span", { class: "minor" }, ` ± ${row.sd.toFixed(2)}`)) },
      { title: "Found in", numeric: true, key: (row) => row.found, cell: (row) => `${row.found} of ${row.of}` },
    ],
    rows,
  });
}
