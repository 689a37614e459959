/** The report: reads the embedded PageData and shows one of its pages, chosen by the address after #. */

import { methodOf } from "./components/words";
import { el, visible } from "./dom";
import { Page, type PageData } from "./page";
import { themeButton } from "./theme";
import * as about from "./views/about";
import * as changes from "./views/changes";
import * as fleet from "./views/fleet";
import * as interplay from "./views/interplay";
import * as labels from "./views/labels";
import * as list from "./views/list";
import * as rules from "./views/rules";
import * as sequence from "./views/sequence";

const PAGES: readonly [string, string][] = [
  ["sequences", "Sequences"],
  ["labels", "Labels"],
  ["fleet", "Fleet graph"],
  ["rules", "Rules"],
  ["interplay", "Label graph"],
  ["changes", "Changes"],
  ["about", "About"],
];
/** Pages that only a population fills. */
const OF_POPULATION = new Set(["rules", "interplay", "changes"]);

function start(): void {
  const page = new Page(JSON.parse(document.getElementById("data")?.textContent ?? "") as PageData);
  const notices = document.getElementById("notices")?.textContent ?? "";
  const main = el("main", { id: "main" });
  const pages = PAGES.filter(([key]) => page.data.population !== null || !OF_POPULATION.has(key));
  const links = pages.map(([key, title]) => el("a", { href: `#/${key}`, "data-page": key }, title));
  const notice = page.data.missing.length ? el("a", { class: "missing", href: "#/about" }, "What is missing") : null;
  document.body.replaceChildren(
    el("a", { class: "skip", href: "#main" }, "Skip to the content"),
    el("header", { class: "top" }, el("h1", {}, visible(page.data.title)), el("nav", { class: "pages", "aria-label": "Pages" }, ...links, notice), themeButton()),
    main,
  );
  document.querySelector(".skip")?.addEventListener("click", (event) => {
    event.preventDefault();
    main.querySelector<HTMLElement>("h2")?.focus();
  });
  const sequences = sequencesPage(page);
  const show = (): void => {
    const [key, argument] = address(location.hash);
    for (const link of links) link.ariaCurrent = link.dataset["page"] === key ? "page" : null;
    main.dataset["view"] = key;
    if (key === "labels") labels.render(main, page, (label) => go("fleet", label));
    else if (key === "fleet") fleet.render(main, page, argument, sequences.searchFor);
    else if (key === "rules") rules.render(main, page, argument);
    else if (key === "interplay") interplay.render(main, page, argument);
    else if (key === "changes") changes.render(main, page);
    else if (key === "about") about.render(main, page, notices);
    else sequences.show(main, argument);
    links.find((link) => link.ariaCurrent)?.scrollIntoView({ inline: "nearest", block: "nearest" });
    window.scrollTo(0, 0);
  };
  addEventListener("hashchange", show);
  show();
}

/** List and detail side by side; on a phone one after the other. */
function sequencesPage(page: Page): { show: (main: HTMLElement, id: string) => void; searchFor: (text: string) => void } {
  const detail = el("article", { class: "detail", "aria-label": "Explanation" });
  const rows = list.build({ page, onChoose: (index) => go("sequences", page.data.sequences.id[index] ?? "") });
  const back = el("a", { class: "back", href: "#/sequences" }, "← all sequences");
  const body = el("div");
  detail.append(back, body);
  const show = (main: HTMLElement, id: string): void => {
    const found = id ? page.data.sequences.id.indexOf(id) : -1;
    main.classList.toggle("chosen", found >= 0);
    if (!main.contains(rows.element)) main.replaceChildren(rows.element, detail);
    if (id && found < 0) return body.replaceChildren(el("p", { class: "empty" }, `No sequence is called ${visible(id)}.`));
    const index = Math.max(0, found);
    rows.choose(index);
    if (!page.length) return body.replaceChildren(el("p", { class: "empty" }, "The results explain no sequence."));
    sequence.render(body, { sequence: page.sequence(index), describe: (name) => page.describe(name), method: methodOf(page.data.estimator) });
    if (found >= 0 && document.activeElement?.closest(".rows")) body.querySelector<HTMLElement>("h2")?.focus({ preventScroll: true });
  };
  const searchFor = (text: string): void => {
    rows.search.value = text;
    rows.search.dispatchEvent(new Event("input"));
    go("sequences", "");
  };
  return { show, searchFor };
}

function go(page: string, argument: string): void {
  location.hash = argument ? `#/${page}/${encodeURIComponent(argument)}` : `#/${page}`;
}

/** The two parts of an address: `#/page/argument`; names may hold anything. */
function address(hash: string): [string, string] {
  const [, page = "sequences", argument = ""] = hash.split("/");
  try {
    return [page, decodeURIComponent(argument)];
  } catch {
    return [page, argument];
  }
}

start();
