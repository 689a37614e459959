/** The list of sequences with search; rows are made when they are scrolled to. */

import { count } from "../components/words";
import type { Page } from "../page";
import { el, nameTag, visible } from "../dom";

const CHUNK = 60;

export interface ListData {
  page: Page;
  onChoose: (index: number) => void;
}

/** A list that knows which row is chosen. */
export interface List {
  element: HTMLElement;
  choose: (index: number) => void;
  search: HTMLInputElement;
}

export function build({ page, onChoose }: ListData): List {
  const search = el("input", { type: "search", id: "search", placeholder: "Search id, label or event", "aria-describedby": "found", autocomplete: "off", spellcheck: "false" });
  const found = el("p", { id: "found", class: "found", role: "status" });
  const rows = el("ol", { class: "rows" });
  const foot = el("li", { class: "more", "aria-hidden": "true" });
  const whole = page.length < page.data.explained ? `${page.length.toLocaleString("en")} of ${count(page.data.explained, "explained sequence")}` : count(page.length, "sequence");
  let hits: number[] = [];
  let shown = 0;
  let chosen = -1;
  const row = (index: number): HTMLElement => {
    const item = page.summary(index);
    const labels = item.labels.map((label) => el("span", { class: "row-label" }, nameTag(label.label, "label"), el("span", { class: "row-count" }, label.causes ? count(label.causes, "event") : "none"), label.marked ? el("span", { class: "warn", title: "marked: read it with care" }, "!") : null));
    const button = el("button", { type: "button", "data-index": index, "aria-current": index === chosen ? "true" : null }, el("span", { class: "row-id" }, visible(item.id)), ...labels);
    button.addEventListener("click", () => onChoose(index));
    return el("li", {}, button);
  };
  const more = (): void => {
    const next = hits.slice(shown, shown + CHUNK);
    shown += next.length;
    foot.before(...next.map(row));
    foot.hidden = shown >= hits.length;
  };
  const update = (): void => {
    hits = find(page, search.value);
    shown = 0;
    rows.replaceChildren(foot);
    found.textContent = search.value.trim() ? `${hits.length.toLocaleString("en")} of ${count(page.length, "sequence")}` : whole;
    more();
  };
  new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && shown < hits.length && more(), { rootMargin: "600px" }).observe(foot);
  search.addEventListener("input", update);
  rows.addEventListener("keydown", (event) => step(rows, event));
  search.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    rows.querySelector("button")?.focus();
  });
  update();
  const element = el("nav", { class: "list", "aria-label": "Sequences" }, el("label", { for: "search", class: "hidden" }, "Search sequences"), search, found, rows);
  const choose = (index: number): void => {
    chosen = index;
    for (const old of rows.querySelectorAll("[aria-current]")) old.removeAttribute("aria-current");
    rows.querySelector(`[data-index="${index}"]`)?.setAttribute("aria-current", "true");
  };
  return { element, choose, search };
}

/** Sequences whose id, subject, explained labels or accepted events hold the text; failing that, every word of it. */
export function find(page: Page, text: string): number[] {
  const wanted = text.trim().toLowerCase();
  const every = Array.from({ length: page.length }, (_, index) => index);
  const whole = every.filter((index) => page.searchText(index).includes(wanted));
  if (whole.length) return whole;
  const words = wanted.split(/\s+/);
  return every.filter((index) => words.every((word) => page.searchText(index).includes(word)));
}

function step(rows: HTMLElement, event: KeyboardEvent): void {
  const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!move) return;
  const buttons = [...rows.querySelectorAll("button")];
  const now = buttons.findIndex((button) => button === document.activeElement);
  const next = buttons[now + move];
  event.preventDefault();
  next?.focus();
}
