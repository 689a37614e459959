/** Two boundaries of the same labels: which events stayed, came or went. */

import { signed, symbolOf } from "../components/words";
import { el, nameTag } from "../dom";
import type { Evidence, LabelBoundary } from "./api";

/** Draw one line per label and event, what changed first. */
export function render(container: HTMLElement, before: LabelBoundary[], after: LabelBoundary[]): void {
  if (!before.length) return container.replaceChildren(el("p", { class: "empty" }, "No label is recorded or likely, before or after: there is nothing to explain."));
  container.replaceChildren(...before.map((item, index) => card(item, after[index])));
}

function card(before: LabelBoundary, after: LabelBoundary | undefined): HTMLElement {
  const old = new Map(before.causes.map((cause) => [cause.event, cause]));
  const now = new Map((after?.causes ?? []).map((cause) => [cause.event, cause]));
  const names = [...new Set([...old.keys(), ...now.keys()])].sort((a, b) => Number(old.has(a) && now.has(a)) - Number(old.has(b) && now.has(b)));
  const lines = names.map((name) => line(name, old.get(name), now.get(name)));
  const nothing = el("li", { class: "quiet" }, "no event with an effect that could be told from none, before or after");
  return el("div", { class: "card", "data-label": before.label }, el("h5", {}, nameTag(before.label, "label")), el("ul", { class: "boundary" }, ...(lines.length ? lines : [nothing])));
}

function line(name: string, old: Evidence | undefined, now: Evidence | undefined): HTMLElement {
  const state = old && now ? "stays" : now ? "comes in" : "drops out";
  const effect = (item: Evidence | undefined): string => (item ? `${signed(item.indicator ?? item.effect ?? 0)}${item.accepted_by === "score" ? " (by score)" : ""}` : "none");
  const verdict = (now ?? old)?.verdict ?? "cause";
  const symbol = symbolOf({ verdict: verdict === "inhibitor" ? "inhibitor" : "cause", acceptedBy: (now ?? old)?.accepted_by ?? null });
  return el(
    "li",
    { "data-event": name, "data-state": state },
    el("span", { class: `symbol ${verdict}`, title: verdict }, symbol),
    nameTag(name, "event"),
    el("span", { class: state === "stays" ? "quiet" : "state" }, ` ${state}: ${effect(old)} → ${effect(now)}`),
  );
}
