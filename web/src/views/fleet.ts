/** The fleet graph: which events were accepted for which labels, over all explained sequences, with filters. */

import { select } from "../components/controls";
import * as graph from "../components/graph";
import * as table from "../components/table";
import { SYMBOL, count, qText, signed } from "../components/words";
import type { FleetEdge, Page } from "../page";
import type { PopulationPages } from "../population";
import { el, nameTag, visible } from "../dom";

const COUNTED = "Events accepted in single sequences, counted over all of them. The value is the mean effect where the event was accepted, ± its spread.";
const POOLED = "Boundaries of the whole fleet. The value is the mean effect over the sequences in which the event was tested, ± its spread; beside it, how many of them accepted it.";

const WORLD = "All other numbers speak about the model's prediction. This test asks the recorded labels of subjects the model has not seen: which of them have the event is drawn anew, with the odds the model gives it, and p is how often that explains the labels as well as what was seen. Small: the label depends on the event, given everything else. Large: this data cannot tell.";
const NO_WORLD = "No pair was tested on recorded labels: oscar population RESULTS --world 20 --out DIR tests the twenty pairs met most often.";

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
    edgeTable(list, kept, page.data.fleet.pooled);
  };
  container.replaceChildren(
    el("header", { class: "page-head" }, el("h2", { tabindex: -1 }, "Fleet graph"), el("p", {}, page.data.fleet.pooled ? POOLED : COUNTED)),
    el("section", { class: "panel" }, controls(edges, filter, update), told, picture),
    el("section", { class: "panel" }, el("h3", {}, "The same as a table"), list),
    ...(page.data.population ? [worldPanel(page.data.population)] : []),
  );
  update();
}

function passes(edge: FleetEdge, filter: Filter): boolean {
  return (!filter.label || edge.label === filter.label) && (filter.sign === "both" || edge.verdict === filter.sign) && edge.found >= filter.least;
}

function controls(edges: FleetEdge[], filter: Filter, update: () => void): HTMLElement {
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

function worldPanel({ world, settings }: PopulationPages): HTMLElement {
  const told = world ? [el("p", { class: "about" }, WORLD), el("p", { class: "lead" }, `${world.held_up} of ${count(world.tested, "tested pair")} hold up (false discoveries over them at most ${settings.alpha ?? "alpha"}): the column “Observed p” above.`)] : [el("p", { class: "empty" }, NO_WORLD)];
  return el("section", { class: "panel" }, el("h3", {}, "Does it hold in recorded labels?"), ...told);
}

function edgeTable(box: HTMLElement, rows: FleetEdge[], pooled: boolean): void {
  const range = (row: FleetEdge): HTMLElement | null => (row.low === null || row.high === null ? null : el("span", { class: "range minor" }, `${signed(row.low)} to ${signed(row.high)}`));
  const sure: table.Column<FleetEdge>[] = [
    { title: "q", numeric: true, minor: true, key: (row) => row.q, cell: (row) => qText(row.q), about: "False discovery rate over all pairs of the fleet" },
    { title: "Observed p", numeric: true, key: (row) => row.world, cell: (row) => row.world?.toFixed(3) ?? "–", about: "p-value on recorded labels of subjects the model has not seen" },
  ];
  table.render(box, {
    caption: "Edges shown in the graph",
    columns: [
      { title: "Event", key: (row: FleetEdge) => row.event, cell: (row) => el("span", { class: "event-cell" }, el("span", { class: `symbol ${row.verdict}`, title: row.verdict }, SYMBOL[row.verdict]), nameTag(row.event, "event")) },
      { title: "Label", key: (row) => row.label, cell: (row) => nameTag(row.label, "label") },
      { title: "Mean effect", numeric: true, key: (row) => row.strength, cell: (row) => el("span", { class: "effect-cell" }, el("span", {}, signed(row.strength), row.sd === null ? null : el("span", { class: "minor" }, ` ± ${row.sd.toFixed(2)}`)), range(row)) },
      { title: "Found in", numeric: true, minor: pooled, key: (row) => row.found, cell: (row) => `${row.found} of ${row.of}` },
      ...(pooled ? sure : []),
    ],
    rows,
  });
}
