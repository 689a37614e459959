/** The fleet by label: what was explained, how well the model judges it, and the score where the truth is known. */

import * as table from "../components/table";
import { count, probability } from "../components/words";
import type { LabelRow, Page, RuleCard, ScoreRow } from "../page";
import { el, nameTag, visible } from "../dom";

/** Draw the label overview. */
export function render(container: HTMLElement, page: Page, onLabel: (label: string) => void): void {
  const { labels, scores, rules } = page.data;
  const overview = el("div");
  table.render(overview, { caption: `${count(labels.length, "label")}, most explained first`, columns: columns(onLabel), rows: labels });
  const doubtful = labels.filter((row) => row.trusted === false);
  container.replaceChildren(
    el("header", { class: "page-head" }, el("h2", { tabindex: -1 }, "Labels"), el("p", {}, lead(labels, doubtful))),
    el("section", { class: "panel" }, overview),
    ...(scores.length ? [scorePanel(scores)] : []),
    ...(rules.length ? [rulePanel(rules)] : []),
  );
}

function lead(labels: LabelRow[], doubtful: LabelRow[]): string {
  const judged = labels.filter((row) => row.trusted !== null).length;
  if (!judged) return "How well the model judges each label is not known: see what is missing under About.";
  if (!doubtful.length) return `The model judges all ${count(judged, "label")} well enough on sequences it has not seen.`;
  return `${count(doubtful.length, "label")} of ${judged} ${doubtful.length === 1 ? "is" : "are"} not to be trusted: the verdicts are shown and marked.`;
}

function columns(onLabel: (label: string) => void): table.Column<LabelRow>[] {
  const figure = (value: number | null, digits = 2): string => (value === null ? "–" : value.toFixed(digits));
  return [
    { title: "Label", key: (row) => row.label, cell: (row) => labelCell(row, onLabel) },
    { title: "Explained", numeric: true, key: (row) => row.explained, cell: (row) => row.explained.toLocaleString("en"), about: "Sequences in which this label was explained" },
    { title: "With causes", numeric: true, key: (row) => row.with_causes, minor: true, cell: (row) => row.with_causes.toLocaleString("en"), about: "Sequences in which at least one event was accepted" },
    { title: "Events each", numeric: true, key: (row) => row.causes_per_sequence, minor: true, cell: (row) => figure(row.causes_per_sequence, 1), about: "Accepted events per explained sequence" },
    { title: "Mean P", numeric: true, minor: true, key: (row) => row.mean_probability, cell: (row) => probability(row.mean_probability), about: "Mean probability the model gives the label in these sequences" },
    { title: "F1", numeric: true, key: (row) => row.f1, cell: (row) => figure(row.f1), about: "Of the label model, on sequences it has not seen" },
    { title: "Held-out positives", numeric: true, minor: true, key: (row) => row.positives, cell: (row) => row.positives?.toLocaleString("en") ?? "–" },
    { title: "Calibration error", numeric: true, minor: true, key: (row) => row.ece, cell: (row) => figure(row.ece, 3), about: "Expected calibration error of the label's probability" },
  ];
}

function labelCell(row: LabelRow, onLabel: (label: string) => void): HTMLElement {
  const button = el("button", { type: "button", class: "link" }, nameTag(row.label, "label"));
  button.addEventListener("click", () => onLabel(row.label));
  const doubt = row.trusted === false ? el("span", { class: "mark warn" }, "not to be trusted", el("span", { class: "quiet" }, ` ${visible(row.reason ?? "")}`)) : null;
  return el("div", {}, button, row.rule ? el("code", { class: "rule", title: "The rule the dataset publishes" }, visible(row.rule)) : null, doubt);
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

function rulePanel(rules: RuleCard[]): HTMLElement {
  return el("section", { class: "panel" }, el("h3", {}, "Proposed rules"), el("p", { class: "about" }, "Read out of many sequences together; where the dataset publishes a rule it stands below."), el("div", { class: "cards" }, ...rules.map(ruleCard)));
}

function ruleCard(card: RuleCard): HTMLElement {
  const figures = card.figures.map(([term, value]) => el("div", {}, el("dt", {}, visible(term)), el("dd", {}, shown(value))));
  return el(
    "article",
    { class: "card" },
    el("h4", {}, nameTag(card.label, "label")),
    el("code", { class: "rule proposed" }, card.rule === null ? "no rule could be proposed" : visible(card.rule)),
    card.published === null ? null : el("code", { class: "rule" }, `published: ${visible(card.published)}`),
    el("dl", {}, ...figures),
    ...card.reasons.map((reason) => el("p", { class: "told" }, visible(reason))),
  );
}

const shown = (value: number | string | null): string => (value === null ? "–" : typeof value === "number" ? Number(value.toFixed(3)).toLocaleString("en") : visible(value));
