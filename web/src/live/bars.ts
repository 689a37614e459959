/** Every label's probability, before and after what was changed. */

import { probability, signed } from "../components/words";
import { el, nameTag } from "../dom";
import type { Change } from "./api";

const FEW = 8;

/** Draw the labels, the likeliest and the most changed first. */
export function render(container: HTMLElement, changes: Change[], edited: boolean, describe: (name: string) => string): void {
  const weight = (row: Change): number => Math.max(row.before, row.after) + 2 * Math.abs(row.after - row.before);
  const rows = [...changes].sort((a, b) => weight(b) - weight(a));
  const body = el("tbody", {}, ...rows.map((row, index) => line(row, edited, index >= FEW, describe(row.label))));
  const heads = ["Label", edited ? "Before" : "", edited ? "Now" : "Probability", edited ? "Change" : ""];
  const head = el("thead", {}, el("tr", {}, ...heads.map((text, column) => el("th", { scope: "col", class: column ? "number" : null }, text))));
  const more = el("button", { type: "button", class: "tool" }, `All ${rows.length} labels`);
  more.addEventListener("click", () => {
    for (const row of body.querySelectorAll("tr")) row.hidden = false;
    more.remove();
  });
  container.replaceChildren(el("table", { class: "bars", id: "probabilities" }, el("caption", { class: "hidden" }, "Probability of every label"), head, body), rows.length > FEW ? more : "");
}

function line(row: Change, edited: boolean, later: boolean, told: string): HTMLTableRowElement {
  const change = row.after - row.before;
  const moved = Math.abs(change) >= 0.005;
  const bar = el("span", { class: "bar" }, el("span", { class: "bar-before" }), el("span", { class: "bar-now" }));
  const [before, now] = bar.children as unknown as [HTMLElement, HTMLElement];
  before.style.width = `${100 * row.before}%`;
  now.style.width = `${100 * row.after}%`;
  const trust = row.trusted ? null : el("span", { class: "warn", title: "The model cannot judge this label" }, " !");
  return el(
    "tr",
    { "data-label": row.label, "data-before": row.before, "data-after": row.after, hidden: later },
    el("td", { title: told || null }, el("span", { class: "bar-name" }, nameTag(row.label, "label"), trust), bar),
    el("td", { class: "number quiet" }, edited ? probability(row.before) : ""),
    el("td", { class: "number" }, el("b", {}, probability(row.after))),
    el("td", { class: `number ${moved ? (change > 0 ? "rises" : "falls") : "quiet"}` }, !edited ? "" : moved ? `${change > 0 ? "▲" : "▽"} ${signed(change)}` : "="),
  );
}
