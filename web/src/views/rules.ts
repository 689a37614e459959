/** Rule cards: what is proposed for each label, what an expert says, what speaks against it. */

import { select } from "../components/controls";
import { begun, count } from "../components/words";
import type { Page } from "../page";
import type { Expert, RuleCard, Relation } from "../population";
import { el, nameTag, visible } from "../dom";

const LEAD = "Read out of many sequences together, and judged on sequences that had no say in it. A rule is stated only where the data tell it from others; the best guess is shown where they do not.";
const NONE = "No rules were recovered: the population was made with --no-rules, without a model, or without recorded labels.";

/** What a proposal is beside the expert's rule. */
export const RELATION: Record<Relation, string> = {
  same: "the same as the expert's",
  stricter: "stricter than the expert's: it holds in fewer sequences",
  looser: "looser than the expert's: it holds in more sequences",
  contradicting: "contradicts the expert's: each holds where the other does not",
  unknown: "not settled by logic alone",
};

type Choice = "all" | "stated" | "guess" | "differ";
const CHOICES: [Choice, string, (card: RuleCard) => boolean][] = [
  ["all", "all labels", () => true],
  ["stated", "stated rules", stated],
  ["guess", "not stated", (card) => !stated(card)],
  ["differ", "not the expert's", (card) => card.expert !== null && card.expert.relation !== "same"],
];

/** Draw the cards; `label` chooses one at the start. */
export function render(container: HTMLElement, page: Page, label: string): void {
  const { rules, population } = page.data;
  let [choice, chosen] = ["all" as Choice, rules.some((card) => card.label === label) ? label : ""];
  const [cards, told] = [el("div", { class: "cards" }), el("p", { class: "about", role: "status" })];
  const update = (): void => {
    const test = CHOICES.find(([key]) => key === choice)?.[2] ?? (() => true);
    const kept = rules.filter((card) => test(card) && (!chosen || card.label === chosen));
    told.textContent = `${count(kept.length, "label")} of ${rules.length}.`;
    cards.replaceChildren(...kept.map((card) => ruleCard(card, page)));
  };
  const menus = [
    select("Show", CHOICES.map(([key, text]) => [key, text]), choice, (value) => ((choice = value as Choice), update())),
    select("Label", [["", "all labels"], ...rules.map((card): [string, string] => [card.label, visible(card.label)])], chosen, (value) => ((chosen = value), update())),
  ];
  const compared = population?.expert ? `Compared with ${visible(population.expert)}.` : "";
  container.replaceChildren(
    el("header", { class: "page-head" }, el("h2", { tabindex: -1 }, "Rules"), el("p", {}, `${LEAD} ${compared}`)),
    rules.length ? el("section", { class: "panel" }, el("div", { class: "controls" }, ...menus), told, cards) : el("p", { class: "empty" }, NONE),
  );
  if (rules.length) update();
}

function stated(card: RuleCard): boolean {
  return card.rule !== null && (card.status === null || card.status === "proposed");
}

function ruleCard(card: RuleCard, page: Page): HTMLElement {
  const figures = card.figures.map(([term, value]) => el("div", {}, el("dt", {}, visible(term)), el("dd", {}, shown(value))));
  return el(
    "article",
    { class: "card" },
    el("h3", {}, nameTag(card.label, "label")),
    el("code", { class: "rule proposed" }, card.rule === null ? "no rule could be proposed" : visible(card.rule)),
    el("ul", { class: "marks" }, status(card), card.expert ? relation(card.expert) : null),
    ...expertRule(card),
    el("dl", {}, ...figures),
    ...twins(card),
    ...card.reasons.map((reason) => el("p", { class: "told" }, visible(reason))),
    ...examples(card, page),
  );
}

function status(card: RuleCard): HTMLElement | null {
  const sure = card.figures.find(([term]) => term === "confidence")?.[1];
  if (stated(card)) return typeof sure === "number" && sure < 0.5 ? el("li", { class: "mark warn" }, "stated with little confidence") : el("li", { class: "mark good" }, "stated");
  return el("li", { class: "mark warn" }, card.rule === null ? visible(card.status ?? "no rule") : `not stated, a best guess: ${visible(card.status ?? "")}`);
}

function relation({ relation: kind }: Expert): HTMLElement {
  return el("li", { class: `mark ${kind === "same" ? "good" : "warn"}`, "data-relation": kind }, RELATION[kind] ?? visible(kind));
}

function expertRule(card: RuleCard): HTMLElement[] {
  if (card.expert === null) return card.published === null ? [] : [el("code", { class: "rule" }, `published: ${visible(card.published)}`)];
  const { from, to } = card.expert;
  const force = [from ? `from ${visible(from.slice(0, 10))}` : "", to ? `until ${visible(to.slice(0, 10))}` : ""].filter(Boolean).join(" ");
  const rule = el("code", { class: "rule" }, `expert${force ? ` (${force})` : ""}: ${visible(card.expert.rule)}`);
  return card.expert.relation === "same" ? [rule] : [rule, el("p", { class: "sentence" }, `${begun(visible(card.expert.sentence))}.`)];
}

function twins({ twins: found }: RuleCard): HTMLElement[] {
  if (!found.length) return [];
  const lines = found.map(([part, other, forPart, forOther]) =>
    el("li", {}, el("code", {}, visible(part)), " or ", el("code", {}, visible(other)), forPart + forOther ? `: ${forPart} against ${count(forOther, "sequence")}` : ": no sequence tells"),
  );
  return [el("h4", {}, "Could as well be"), el("ul", { class: "plain-list" }, ...lines)];
}

function examples(card: RuleCard, page: Page): HTMLElement[] {
  const groups: [string, string[]][] = [
    ["Rule holds, label did not come", card.rule_without_label],
    ["Label came, rule does not hold", card.label_without_rule],
    ["Only the proposal holds", card.expert?.only_proposed ?? []],
    ["Only the expert's rule holds", card.expert?.only_expert ?? []],
  ];
  const told = groups.filter(([, ids]) => ids.length);
  if (!told.length) return [];
  const lists = told.map(([title, ids]) => el("div", {}, el("dt", {}, title), el("dd", {}, ...ids.flatMap((id, index) => [index ? ", " : "", sequenceLink(id, page)]))));
  return [el("details", {}, el("summary", {}, "Sequences that speak against it, or tell the two apart"), el("dl", { class: "examples" }, ...lists))];
}

/** A link where the page shows the sequence, else its name. */
function sequenceLink(id: string, page: Page): HTMLElement {
  if (!page.data.sequences.id.includes(id)) return nameTag(id);
  return el("a", { href: `#/sequences/${encodeURIComponent(id)}` }, nameTag(id));
}

const shown = (value: number | string): string => (typeof value === "number" ? Number(value.toFixed(3)).toLocaleString("en") : visible(value));
