/** The live page: choose a sequence on the left, ask what if on the right. */

import "./live.css";
import { count } from "../components/words";
import { el, visible } from "../dom";
import { themeButton } from "../theme";
import { type ModelInfo, Refused, type Sequence, model, useToken } from "./api";
import * as choose from "./choose";
import { Study } from "./study";

const main = el("main", { id: "main", "data-view": "sequences" });
const trouble = el("p", { class: "trouble", role: "alert", hidden: true });
const about = el("p", { class: "about-model" });

function start(): void {
  document.body.replaceChildren(
    el("a", { class: "skip", href: "#main" }, "Skip to the content"),
    el("header", { class: "top" }, el("h1", {}, "OSCAR: what if?"), about, themeButton()),
    trouble,
    main,
  );
  void enter();
}

/** Ask for the model; where a token is needed, ask for that first. */
async function enter(tried = false): Promise<void> {
  try {
    open(await model());
  } catch (error) {
    if (error instanceof Refused && error.status === 401) askToken(tried);
    else complain(error instanceof Error ? error.message : String(error));
  }
}

function askToken(wrong: boolean): void {
  complain(wrong ? "This is not the service's token; try again." : "");
  const input = el("input", { type: "password", id: "token", autocomplete: "off" });
  const form = el("form", { class: "panel token" }, el("label", { for: "token" }, "This service asks for a token"), input, el("button", { type: "submit", class: "tool" }, "Enter"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    useToken(input.value);
    void enter(true);
  });
  main.replaceChildren(form);
  input.focus();
}

function open(info: ModelInfo): void {
  complain("");
  const told = new Map(info.labels.map((label) => [label.label, label.description ?? ""]));
  const trusted = new Set(info.labels.filter((label) => label.trusted).map((label) => label.label));
  about.textContent = `${count(info.events, "event type")}, ${trusted.size} of ${count(info.labels.length, "label")} can be judged`;
  const detail = el("article", { class: "detail", "aria-label": "What if" });
  const body = el("div", {}, welcome(info.dataset));
  const back = el("button", { type: "button", class: "back tool" }, "← another sequence");
  back.addEventListener("click", () => main.classList.remove("chosen"));
  detail.append(back, body);
  let study: Study | null = null;
  const show = (sequence: Sequence): void => {
    complain("");
    study?.close();
    main.classList.add("chosen");
    study = new Study(body, { sequence, describe: (name) => told.get(name) ?? "", trusted: (label) => trusted.has(label), onError: complain });
    body.querySelector<HTMLElement>("h2")?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  };
  document.addEventListener("keydown", (key) => {
    const typing = key.target instanceof HTMLInputElement || key.target instanceof HTMLTextAreaElement;
    if (key.key !== "z" || !(key.ctrlKey || key.metaKey) || typing) return;
    key.preventDefault();
    study?.back();
  });
  main.replaceChildren(choose.build({ dataset: info.dataset, onChoose: show, onError: complain }), detail);
}

function welcome(dataset: boolean): HTMLElement {
  return el(
    "div",
    { class: "welcome" },
    el("h2", {}, dataset ? "Choose a sequence" : "Paste or upload a sequence"),
    el("p", {}, "You will see how likely the model finds every label, and which events its prediction hangs on."),
    el("p", {}, "Then take events out, put others in or exchange them, and watch the probabilities follow. It is the model's answer to a changed sequence; it speaks about the world as far as the model is right."),
  );
}

/** One line over the page; an empty one takes it away. */
function complain(line: string): void {
  trouble.hidden = !line;
  trouble.textContent = visible(line);
}

start();
