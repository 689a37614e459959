/** The fleet by label: what was explained, how well the model judges it, and the score where the truth is known. */

import * as table from "../components/table";
import { count, probability } from "../components/words";
import type { LabelRow, Page, ScoreRow } from "../page";
import type { Relation } from "../population";
import { el, nameTag, visible } from "../dom";

/** Draw the label overview. */
export function render(container: HTMLElement, page: Page, onLabel: (label: string) => void): void {
  const { labels, scores } = page.data;
  const overview = el("div");
  table.render(overview, { caption: `${count(labels.length, "label")}, most explained first`, columns: columns(page, onLabel), rows: labels });
  const doubtful = labels.filter((row) => row.trusted === false);
  container.replaceChildren(
    el("header", { class: "page-head" }, el("h2", { tabindex: -1 }, "Labels"), el("p", {}, lead(labels, doubtful))),
    el("section", { class: "panel" }, overview),
    ...(scores.length ? [scorePanel(scores)] : []),
  );
}

function lead(labels: LabelRow[], doubtful: LabelRow[]): string {
  const judged = labels.filter((row) => row.trusted !== null).length;
  if (!judged) return "How well the model judges each label is not known: see what is missing under About.";
  if (!doubtful.length) return `The model judges all ${count(judged, "label")} well enough on sequences it has not seen.`;
  return `${count(doubtful.length, "label")} of ${judged} ${doubtful.length === 1 ? "is" : "are"} not to be trusted: the verdicts are shown and marked.`;
}

function columns(page: Page, onLabel: (label: string) => void): table.Column<LabelRow>[] {
  const relations = new Map(page.data.rules.map((card) => [card.label, card.expert?.relation ?? null]));
  const file = page.data.population?.expert ?? "the expert's rules";
  const proposed = (label: string): HTMLElement | null => (relations.has(label) ? proposalLink(label, relations.get(label) ?? null, file) : null);
  const figure = (value: number | null, digits = 2): string => (value === null ? "–" : value.toFixed(digits));
  return [
    { title: "Label", key: (row) => row.label, cell: (row) => labelCell(row, proposed(row.label), onLabel) },
    { title: "Explained", numeric: true, key: (row) => row.explained, cell: (row) => row.explained.toLocaleString("en"), about: "Sequences in which this label was explained" },
    { title: "With causes", numeric: true, key: (row) => row.with_causes, minor: true, cell: (row) => row.with_causes.toLocaleString("en"), about: "Sequences in which at least one event was accepted" },
    { title: "Events each", numeric: true, key: (row) => row.causes_per_sequence, minor: true, cell: (row) => figure(row.causes_per_sequence, 1), about: "Accepted events per explained sequence" },
    { title: "Mean P", numeric: true, minor: true, key: (row) => row.mean_probability, cell: (row) => probability(row.mean_probability), about: "Mean probability the model gives the label in these sequences" },
    { title: "F1", numeric: true, key: (row) => row.f1, cell: (row) => figure(row.f1), about: "Of the label model, on sequences it has not seen" },
    { title: "Held-out positives", numeric: true, minor: true, key: (row) => row.positives, cell: (row) => row.positives?.toLocaleString("en") ?? "–" },
    { title: "Calibration error", numeric: true, minor: true, key: (row) => row.ece, cell: (row) => figure(row.ece, 3), about: "Expected calibration error of the label's probability" },
  ];
}

function labelCell(row: LabelRow, proposed: HTMLElement | null, onLabel: (label: string) => void): HTMLElement {
  const button = el("button", { type: "button", class: "link" }, nameTag(row.label, "label"));
  button.addEventListener("click", () => onLabel(row.label));
  const doubt = row.trusted === false ? el("span", { class: "mark warn" }, "not to be trusted", el("span", { class: "quiet" }, ` ${visible(row.reason ?? "")}`)) : null;
  const rule = row.rule ? el("code", { class: "rule", title: "The rule the dataset publishes" }, visible(row.rule)) : null;
  return el("div", {}, button, rule, proposed, doubt);
}

const BESIDE: Record<Relation, string> = {
  same: "the same as in",
  stricter: "stricter than in",
  looser: "looser than in",
  contradicting: "contradicts",
  unknown: "logic alone does not settle it beside",
};

/** To the label's rule card, with what the proposal is beside the expert's rule in `file`. */
function proposalLink(label: string, relation: Relation | null, file: string): HTMLElement {
  const words = relation === null ? "proposed rule" : `proposed rule: ${BESIDE[relation]} ${visible(file)}`;
  return el("div", { class: "proposal" }, el("a", { href: `#/rules/${encodeURIComponent(label)}` }, words));
}

const TRUTHS: Record<string, string> = {
  why: "Known reasons",
  why_necessary: "Necessary reasons",
  rule_present: "Rule, as far as present",
  rule_all: "Whole rule",
};

function scorePanel(scores: ScoreRow[]): HTMLElement {
  const box = el("div");
  const percent = (value: number): string => `${(value * 100).toFixed(1)} %`;
  const number = (title: string, key: "precision" | "recall" | "f1" | "macro_f1", about: string): table.Column<ScoreRow> => ({ title, about, minor: key === "macro_f1", numeric: true, key: (row) => row[key], cell: (row) => percent(row[key]) });
  table.render(box, {
    caption: "Found events against known ones",
    columns: [
      { title: "Truth", cell: (row: ScoreRow) => el("div", {}, el("b", {}, TRUTHS[row.truth] ?? visible(row.truth)), el("div", { class: "told" }, row.meaning)) },
      number("Precision", "precision", "Of the events found, the share that is true; mean over sequences"),
      number("Recall", "recall", "Of the true events, the share that was found; mean over sequences"),
      number("F1", "f1", "Mean over sequences"),
      number("F1 by label", "macro_f1", "Mean over labels"),
    ],
    rows: scores,
  });
  return el("section", { class: "panel" }, el("h3", {}, "Score against the truth"), el("p", { class: "about" }, "This dataset knows the reasons of its labels, so the boundaries can be marked right or wrong."), box);
}
