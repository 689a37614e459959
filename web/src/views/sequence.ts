/** One sequence, explained: its labels, and for the chosen one timeline, curves, graph, table and words. */

import { type Along } from "../components/axis";
import { renderEffects, renderForecast } from "../components/curve";
import * as graph from "../components/graph";
import * as table from "../components/table";
import * as timeline from "../components/timeline";
import { BY_SCORE, type Method, SCORE_WORDS, SYMBOL, closing, marksOf, probability, qText, sentence, signed, symbolOf, verdictLine } from "../components/words";
import { type Cause, type LabelView, type SequenceView, type Verdict, graphOf } from "../data";
import { Cursor, el, nameTag, visible } from "../dom";

export interface SequenceData {
  sequence: SequenceView;
  /** Description of an event or label, or "". */
  describe: (name: string) => string;
  /** How the numbers came about; variants of the sequence by default. */
  method?: Method | undefined;
  /** Label to show first. */
  label?: string | undefined;
  onLabel?: ((label: string) => void) | undefined;
}

/** Draw the whole explanation into the container. */
export function render(container: HTMLElement, data: SequenceData): void {
  const { sequence } = data;
  const chosen = sequence.labels.find((item) => item.label === data.label) ?? sequence.labels[0];
  const body = el("div", { class: "explanation", id: "explanation" });
  container.replaceChildren(heading(sequence));
  if (!chosen) return container.append(el("p", { class: "empty" }, "No label of this sequence was explained."));
  const chips = sequence.labels.map((item) => chip(item));
  const choose = (item: LabelView): void => {
    sequence.labels.forEach((other, index) => chips[index]?.setAttribute("aria-pressed", String(other === item)));
    renderLabel(body, data, item, (label) => {
      const next = sequence.labels.find((other) => other.label === label);
      if (next) choose(next);
    });
    data.onLabel?.(item.label);
  };
  sequence.labels.forEach((item, index) => chips[index]?.addEventListener("click", () => choose(item)));
  if (chips.length > 1) container.append(el("div", { class: "chips", role: "group", "aria-label": "Labels of this sequence" }, ...chips));
  container.append(body);
  choose(chosen);
}

function heading(sequence: SequenceView): HTMLElement {
  const facts: [string, string][] = [];
  if (sequence.subject && sequence.subject !== sequence.id) facts.push(["subject", sequence.subject]);
  if (sequence.start) facts.push(["start", sequence.start.slice(0, 16).replace("T", " ")]);
  if (sequence.events) facts.push(["events", String(sequence.events.length)]);
  facts.push(...sequence.facts);
  const list = facts.map(([term, value]) => el("div", {}, el("dt", {}, visible(term)), el("dd", {}, visible(value))));
  return el("header", { class: "subject" }, el("h2", { tabindex: -1 }, nameTag(sequence.id)), el("dl", {}, ...list));
}

function chip(item: LabelView): HTMLButtonElement {
  return el(
    "button",
    { type: "button", class: "chip", "aria-pressed": "false" },
    nameTag(item.label, "label"),
    el("span", { class: "chip-value" }, `P ${probability(item.probability)}`),
    marksOf(item).some((mark) => mark.kind === "warn") ? el("span", { class: "warn", title: "read the marks first" }, "!") : null,
  );
}

function renderLabel(body: HTMLElement, data: SequenceData, label: LabelView, choose: (label: string) => void): void {
  const along: Along = { sequence: data.sequence, label, cursor: new Cursor() };
  const told = data.describe(label.label);
  body.replaceChildren(
    el("section", { class: "verdict" }, el("h3", {}, nameTag(label.label, "label")), told ? el("p", { class: "told" }, visible(told)) : null, el("p", { class: "lead" }, verdictLine(label, data.method)), marks(label, data.method)),
    ...curves(along, data.method),
    panel("Causal graph", `${data.sequence.events ? "Time runs to the right. " : ""}Width and colour show strength; a dashed violet edge speaks against the label${scored(data.sequence) ? ", a dotted one (△) was accepted by score" : ""}.`, (box) => graph.render(box, { view: graphOf(data.sequence), onLabel: choose })),
    panel("Accepted events", "", (box) => causeTable(box, label, data.describe)),
    words(label, data),
  );
}

const scored = (sequence: SequenceView): boolean => sequence.labels.some((item) => item.causes.some((cause) => cause.acceptedBy === "score"));

function marks(label: LabelView, method?: Method): HTMLElement {
  const items = marksOf(label, method).map((mark) => el("li", { class: `mark ${mark.kind}`, title: mark.why }, visible(mark.text), el("span", { class: "quiet" }, ` ${visible(mark.why)}`)));
  return el("ul", { class: "marks", "aria-label": "What to know before believing it" }, ...items);
}

function curves(along: Along, method?: Method): HTMLElement[] {
  if (!along.sequence.events) return [el("p", { class: "empty" }, "No timeline and no curves: the events of this sequence were not at hand when the page was made.")];
  const effects = along.label.evidence.length > 0 && method !== "dataset";
  const gains = along.label.evidence.some((item) => item.cmi !== null);
  return [
    el(
      "section",
      { class: "panel along" },
      el("h4", {}, "Along the sequence"),
      part("", (box) => timeline.render(box, along)),
      along.label.forecast ? part("Probability as events arrive", (box) => renderForecast(box, along)) : method === "dataset" ? null : el("p", { class: "empty" }, "No probabilities along the sequence: the model was not at hand when the page was made."),
      effects ? part("Effect of each tested event", (box) => renderEffects(box, { ...along, quantity: "effect" })) : null,
      gains ? part("Information gain of each tested event, nats", (box) => renderEffects(box, { ...along, quantity: "cmi" })) : null,
      effects ? legend(along.label) : null,
    ),
  ];
}

function legend(label: LabelView): HTMLElement {
  const every: [Verdict, string, string][] = [
    ["cause", SYMBOL.cause, "cause: speaks for the label"],
    ["inhibitor", SYMBOL.inhibitor, "inhibitor: speaks against it"],
    ["no effect", "•", "tested, no effect"],
    ["not resolvable", "◦", "not resolvable: too few variants to tell"],
  ];
  const items = every.filter(([verdict]) => label.evidence.some((item) => item.verdict === verdict));
  const entries = items.map(([, symbol, text]) => [symbol, text] as const);
  if (label.causes.some((cause) => cause.acceptedBy === "score")) entries.splice(1, 0, [BY_SCORE, "cause accepted by score: no test has shown it"]);
  return el("p", { class: "legend" }, ...entries.map(([symbol, text]) => el("span", {}, el("b", { "aria-hidden": "true" }, symbol), ` ${text}`)));
}

function part(title: string, draw: (box: HTMLElement) => void): HTMLElement {
  const box = el("div");
  draw(box);
  return el("div", { class: "part" }, title ? el("h5", {}, title) : null, box);
}

function panel(title: string, about: string, draw: (box: HTMLElement) => void): HTMLElement {
  const box = el("div");
  draw(box);
  return el("section", { class: "panel" }, el("h4", {}, title), about ? el("p", { class: "about" }, about) : null, box);
}

function causeTable(box: HTMLElement, label: LabelView, describe: (name: string) => string): void {
  const rows = label.causes;
  if (!rows.length) return box.replaceChildren(el("p", { class: "empty" }, "None. That is a result: nothing could be told from no effect with this effort."));
  const has = (key: keyof Cause): boolean => rows.some((row) => row[key] !== null);
  const number = (title: string, key: "alone" | "cmi" | "q" | "sd", text: (value: number) => string, about: string): table.Column<Cause> => ({
    title, about, numeric: true, minor: key === "cmi" || key === "sd", key: (row) => row[key], cell: (row) => (row[key] === null ? "–" : text(row[key])),
  });
  const columns: table.Column<Cause>[] = [
    { title: "Event", key: (row) => row.event, cell: (row) => eventCell(row, describe(row.event)) },
    { title: "At", key: (row) => row.positions[0] ?? null, cell: (row) => row.positions.map((position) => position + 1).join(", "), numeric: true, minor: true, about: "Which events of the sequence, counted from 1" },
    { title: "Effect", key: (row) => row.indicator, numeric: true, cell: effectCell, about: "Signed; what it is the change of stands under About" },
    ...(has("sd") ? [number("± sd", "sd", (value) => value.toFixed(2), "Spread over the variants")] : []),
    ...(has("alone") ? [number("Alone", "alone", (value) => signed(value), "Fall of the probability when this event alone is replaced")] : []),
    ...(has("q") ? [number("q", "q", qText, "Expected share of events without an effect among those accepted at this level")] : []),
    ...(has("acceptedBy") ? [{ title: "Accepted by", minor: true, key: (row: Cause) => row.acceptedBy, cell: acceptedCell, about: "A test (q is small enough), or a score: no test has shown it" }] : []),
    ...(has("cmi") ? [number("CMI, nats", "cmi", (value) => value.toFixed(3), "Conditional mutual information")] : []),
    ...(has("known") ? [{ title: "Known reason", key: (row: Cause) => Number(row.known ?? false), minor: true, cell: (row: Cause) => (row.known === null ? "–" : row.known ? "yes" : "no"), about: "Does the dataset itself name this event as a reason?" }] : []),
  ];
  table.render(box, { caption: `Accepted for ${visible(label.label)}`, columns, rows });
}

function eventCell(row: Cause, told: string): HTMLElement {
  return el("span", { class: "event-cell" }, el("span", { class: `symbol ${row.verdict}`, title: row.acceptedBy === "score" ? `${row.verdict}, accepted by score` : row.verdict }, symbolOf(row)), nameTag(row.event, "event"), row.acceptedBy === "score" ? el("span", { class: "quiet narrow-only", title: SCORE_WORDS }, "by score") : null, row.borderline ? el("span", { class: "warn", title: "near a threshold: another seed may decide otherwise" }, "borderline") : null, row.source ? el("span", { class: "quiet" }, visible(row.source)) : null, told ? el("span", { class: "told" }, visible(told)) : null);
}

function acceptedCell(row: Cause): HTMLElement | string {
  if (row.acceptedBy !== "score") return row.acceptedBy ?? "–";
  const share = row.share === null ? null : el("span", { class: "range", title: "Pull on the label by the model's slopes, as a share of the strongest event's" }, ` share\u00a0${row.share.toFixed(2)}`);
  return el("span", { title: SCORE_WORDS }, "score", share);
}

function effectCell(row: Cause): HTMLElement {
  const range = row.low !== null && row.high !== null ? el("span", { class: "range" }, `${signed(row.low)} to ${signed(row.high)}`) : null;
  return el("span", { class: "effect-cell" }, el("b", {}, signed(row.indicator)), range);
}

function words(label: LabelView, { method, describe }: SequenceData): HTMLElement | string {
  if (!label.causes.length) return "";
  const lines = label.causes.map((cause) => el("li", {}, sentence(cause, label.label, method, describe(cause.event))));
  return el("section", { class: "panel words" }, el("h4", {}, "In words"), el("ul", {}, ...lines), el("p", { class: "about" }, closing(label, method)));
}
