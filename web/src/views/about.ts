/** How to read the page, where its numbers come from, and what it does not show. */

import { methodOf, reading } from "../components/words";
import type { Page } from "../page";
import { el, visible } from "../dom";

/** Draw the last page. */
export function render(container: HTMLElement, page: Page, notices: string): void {
  const { missing, provenance, estimand } = page.data;
  container.replaceChildren(
    el("header", { class: "page-head" }, el("h2", { tabindex: -1 }, "About this page"), el("p", {}, visible(estimand))),
    ...(missing.length ? [el("section", { class: "panel notice" }, el("h3", {}, "What is missing or different"), el("ul", {}, ...missing.map((line) => el("li", {}, visible(line)))))] : []),
    el("section", { class: "panel" }, el("h3", {}, "How to read it"), el("dl", { class: "reading" }, ...reading(methodOf(page.data.estimator)).map(([question, answer]) => el("div", {}, el("dt", {}, question), el("dd", {}, answer))))),
    el("section", { class: "panel" }, el("h3", {}, "Where the numbers come from"), el("dl", { class: "provenance" }, ...provenance.map(([term, value]) => el("div", {}, el("dt", {}, visible(term)), el("dd", {}, visible(value)))))),
    el("details", { class: "panel" }, el("summary", {}, "Licences of what this page carries"), el("pre", {}, notices)),
  );
}
