/** What changed with time: effects and rules by window of the sequences' start. */

import * as table from "../components/table";
import { count, qText, signed } from "../components/words";
import type { Page } from "../page";
import type { EffectWindow, RuleWindow } from "../population";
import { el, nameTag, svg, visible } from "../dom";
import { RELATION } from "./rules";

const LEAD = "Sequences are put into windows by their start, and every window is compared with all the others.";
const DATES = "Every part of a rule is looked at before and after the likeliest date of a change. Windows were not asked for: oscar population RESULTS --window 90 --out DIR compares windows of 90 days.";
const UNASKED = "No windows were asked for: oscar population RESULTS --window 90 --out DIR compares windows of 90 days.";
const EFFECTS = "The mean effect of an event on the model's prediction. A model that is not told the date changes its mind only with what comes in the sequence.";
const RULES = "How well one rule for all windows fits in each: of the sequences where it holds, those with the label; of those with the label, those where it holds. A rule that lists an old and a new way as alternatives can fit every window alike; so each part of it is looked at too, where it alone decides, before and after the likeliest date of a change.";

type EffectChange = { label: string; event: string; windows: EffectWindow[] };
type RuleChange = { label: string; rule: string; windows: RuleWindow[] };

/** Draw the page. */
export function render(container: HTMLElement, page: Page): void {
  const pages = page.data.population;
  const days = pages?.settings.window_days ?? null;
  const head = heading(days === null ? DATES : `${LEAD} A window has ${count(days, "day")}.`);
  if (!pages?.changed_effects && !pages?.changed_rules) return container.replaceChildren(heading(LEAD), el("p", { class: "empty" }, UNASKED));
  const limits = `by more than ${pages.settings.delta ?? "delta"}, false discoveries at most ${percent(pages.settings.alpha)}`;
  const parts: HTMLElement[] = [];
  if (pages.changed_rules) {
    const { compared, changed } = pages.changed_rules;
    parts.push(panel("Rules that changed", RULES, `${changed.length} of ${count(compared, "rule")} ${changed.length === 1 ? "fits" : "fit"} differently in some window, or in a part from some date on (${limits}).`, changed.map(ruleChange)));
  }
  if (pages.changed_effects) {
    const { compared, changed } = pages.changed_effects;
    const list = el("div");
    if (changed.length) effectTable(list, changed);
    parts.push(panel("Effects that changed", EFFECTS, `${changed.length} of ${count(compared, "pair")} of label and event with enough subjects ${changed.length === 1 ? "differs" : "differ"} in some window (${limits}).`, [list]));
  }
  container.replaceChildren(head, ...parts);
}

const heading = (lead: string): HTMLElement => el("header", { class: "page-head" }, el("h2", { tabindex: -1 }, "Changes"), el("p", {}, lead));

const percent = (share: number | null): string => (share === null ? "alpha" : `${Number((100 * share).toFixed(2))} %`);

function panel(title: string, about: string, told: string, body: HTMLElement[]): HTMLElement {
  return el("section", { class: "panel" }, el("h3", {}, title), el("p", { class: "about" }, about), el("p", { class: "lead" }, told), ...body);
}

function effectTable(box: HTMLElement, rows: EffectChange[]): void {
  const largest = (row: EffectChange): number => Math.max(...row.windows.filter((item) => item.changed).map((item) => Math.abs((item.effect ?? 0) - (item.effect_elsewhere ?? 0))));
  table.render(box, {
    caption: "Label and event, the mean effect in each window (filled: it differs from the others)",
    columns: [
      { title: "Event", key: (row: EffectChange) => row.event, cell: (row) => nameTag(row.event, "event") },
      { title: "Label", key: (row) => row.label, cell: (row) => nameTag(row.label, "label") },
      { title: "Windows", cell: (row) => windowDots(row.windows) },
      { title: "Where it differs", key: largest, cell: (row) => el("div", {}, ...row.windows.filter((item) => item.changed).map(effectLine)) },
    ],
    rows,
  });
}

function effectLine(item: EffectWindow): HTMLElement {
  return el("div", {}, ...days(item), `: ${signed(item.effect)}, elsewhere ${signed(item.effect_elsewhere)}`, el("span", { class: "range" }, ` q ${qText(item.q_value)}`));
}

/** From when to when; a day is never broken. */
function days({ from, to }: { from: string; to: string }): (HTMLElement | string)[] {
  return [el("span", { class: "day" }, from), " to ", el("span", { class: "day" }, to)];
}

/** A dot for every window, high = large effect; those that differ are filled. */
function windowDots(windows: EffectWindow[]): HTMLElement {
  const [step, tall] = [14, 34];
  const values = windows.map((item) => item.effect ?? 0);
  const [low, high] = [Math.min(0, ...values), Math.max(0.2, ...values)];
  const y = (value: number): number => 5 + ((high - value) / (high - low)) * (tall - 10);
  const width = windows.length * step;
  const words = windows.map((item) => `${item.from}: ${signed(item.effect)}${item.changed ? ", differs" : ""}`).join("; ");
  const dots = windows.map((item, index) => svg("circle", { class: `window-dot${item.changed ? " changed" : ""}`, cx: index * step + step / 2, cy: y(item.effect ?? 0), r: 4 }));
  const drawing = svg("svg", { width, height: tall, role: "img", "aria-label": words }, svg("line", { class: "zero", x1: 0, x2: width, y1: y(0), y2: y(0) }), ...dots, svg("title", {}, words));
  return el("div", { class: "windows" }, drawing);
}

function ruleChange(change: RuleChange): HTMLElement {
  const share = (here: number | null, elsewhere: number | null): HTMLElement => el("span", { class: "effect-cell" }, el("b", {}, here === null ? "–" : here.toFixed(2)), el("span", { class: "range" }, `elsewhere ${elsewhere === null ? "–" : elsewhere.toFixed(2)}`));
  const box = el("div");
  const windows = change.windows.filter((row) => (row.part ?? null) === null);
  if (windows.length) table.render(box, {
    caption: "How well it fits, window by window",
    columns: [
      { title: "Window", key: (row: RuleWindow) => row.from, cell: (row) => el("div", {}, ...days(row), row.changed ? el("div", { class: "mark warn" }, "differs") : null, ...ruleHere(row)) },
      { title: "With the label", numeric: true, minor: true, key: (row) => row.positives, cell: (row) => row.positives?.toLocaleString("en") ?? "–" },
      { title: "Label where it holds", numeric: true, key: (row) => row.precision, cell: (row) => share(row.precision, row.precision_elsewhere) },
      { title: "Holds where label", numeric: true, key: (row) => row.recall, cell: (row) => share(row.recall, row.recall_elsewhere) },
      { title: "q", numeric: true, minor: true, key: (row) => row.q_value, cell: (row) => qText(row.q_value) },
    ],
    rows: windows,
  });
  return el("article", { class: "part" }, el("h4", {}, nameTag(change.label, "label")), el("code", { class: "rule proposed" }, visible(change.rule)), ...partLines(change.windows), box);
}

/** The parts that changed, each with its date and the rule before and after. */
function partLines(rows: RuleWindow[]): HTMLElement[] {
  const share = (came: number | null | undefined, of: number | null | undefined): string => `${came ?? "–"} of ${of ?? "–"}`;
  return rows.flatMap((row) => {
    if (!row.changed || (row.part ?? null) === null) return [];
    const [until, since] = [el("span", { class: "day" }, row.until ?? "–"), el("span", { class: "day" }, row.from)];
    const where = el("b", {}, visible(row.part ?? ""));
    const told = el("p", {}, "Where ", where, ` alone ${row.says ? "decides" : "is missing"}, the label came in ${share(row.came_elsewhere, row.decided_elsewhere)} sequences until `, until, ` and in ${share(row.came, row.decided)} from `, since, " on", el("span", { class: "range" }, ` q ${qText(row.q_value)}`));
    const rule = (when: string, text: string | null | undefined): HTMLElement[] => (text ? [el("code", { class: "rule" }, `${when}: ${visible(text)}`)] : []);
    return [told, ...rule("before", row.rule_elsewhere), ...rule("after", row.rule_here)];
  });
}

function ruleHere(row: RuleWindow): HTMLElement[] {
  if (!row.changed) return [];
  if (row.rule_here === null) return [el("div", { class: "remark" }, "no rule could be read out of this window alone")];
  const beside = row.relation === null ? "" : ` (${row.relation === "same" ? "the same" : RELATION[row.relation].replace("the expert's", "that of all windows")})`;
  return [el("code", { class: "rule" }, `here: ${visible(row.rule_here)}`), el("div", { class: "remark" }, beside.trim())];
}
