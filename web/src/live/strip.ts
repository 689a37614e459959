/** The events as a strip that can be edited: with the mouse, by touch and by keyboard alike. */

import { duration } from "../components/words";
import { el, nameTag, visible } from "../dom";
import { type Edit, searchEvents } from "./api";

export interface StripData {
  events: string[];
  times: number[] | null;
  describe: (name: string) => string;
  onEdit: (edit: Edit) => void;
}

export interface Strip {
  element: HTMLElement;
  /** Show these events; the chosen one stays where it was. */
  show: (events: string[], times: number[] | null) => void;
  /** Colour the accepted events of a label: event → cause or inhibitor; the first is chosen if nothing was yet. */
  mark: (marks: Map<string, string>) => void;
  busy: (waiting: boolean) => void;
}

const HELP = "Arrow keys choose an event. Delete removes it, Alt and an arrow key exchange it with its neighbour, Enter goes to the box for another event. With the mouse: drag an event out of the strip to remove it, onto another to exchange the two.";

/** Build the strip with its tools. */
export function build(data: StripData): Strip {
  const list = el("ol", { class: "strip", "aria-label": "Events in order of time", "aria-describedby": "strip-help" });
  const tools = toolbox((make) => data.onEdit(make(chosen, events)));
  let { events, times } = data;
  let chosen = 0;
  let marks = new Map<string, string>();
  let dragged: number | null = null;
  let untouched = true;

  const choose = (index: number, focus: boolean): void => {
    chosen = Math.max(0, Math.min(index, events.length - 1));
    list.querySelectorAll("button").forEach((button, at) => {
      button.setAttribute("aria-pressed", String(at === chosen));
      button.tabIndex = at === chosen ? 0 : -1;
    });
    if (focus) list.querySelectorAll("button")[chosen]?.focus();
    tools.tell(where(chosen, events, times), data.describe(events[chosen] ?? ""), events.length > 1, chosen, events.length);
  };
  const draw = (): void => {
    const held = list.contains(document.activeElement);
    list.replaceChildren(...events.map((event, index) => chip(event, index)));
    choose(chosen, held);
  };
  const chip = (event: string, index: number): HTMLElement => {
    const verdict = marks.get(event) ?? null;
    const told = data.describe(event);
    const button = el("button", { type: "button", class: `event-chip ${verdict ?? ""}`, draggable: "true", title: told ? visible(told) : null }, nameTag(event), verdict ? el("span", { class: "hidden" }, ` (${verdict})`) : null);
    button.addEventListener("click", () => {
      untouched = false;
      choose(index, true);
    });
    button.addEventListener("dragstart", (drag) => {
      dragged = index;
      drag.dataTransfer?.setData("text/plain", visible(event));
      document.body.classList.add("dragging");
      document.addEventListener("dragover", allowDrop);
      document.addEventListener("drop", dropOutside);
    });
    button.addEventListener("drop", (drop) => {
      drop.preventDefault();
      drop.stopPropagation();
      if (dragged !== null && dragged !== index) data.onEdit({ op: "swap", first: dragged, second: index });
    });
    return el("li", {}, button);
  };
  const allowDrop = (over: DragEvent): void => over.preventDefault();
  const dropOutside = (drop: DragEvent): void => {
    drop.preventDefault();
    if (dragged !== null && !list.contains(drop.target as Node) && events.length > 1) data.onEdit({ op: "remove", positions: [dragged] });
  };
  list.addEventListener("dragend", () => {
    dragged = null;
    document.body.classList.remove("dragging");
    document.removeEventListener("dragover", allowDrop);
    document.removeEventListener("drop", dropOutside);
  });
  list.addEventListener("keydown", (key) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[key.key];
    const ends: Record<string, number> = { Home: 0, End: events.length - 1 };
    if (step && key.altKey) exchange(chosen, chosen + step);
    else if (step) choose(chosen + step, true);
    else if (key.key in ends) choose(ends[key.key] ?? 0, true);
    else if (key.key === "Delete" || key.key === "Backspace") tools.remove();
    else if (key.key === "Enter") tools.focus();
    else return;
    untouched = false;
    key.preventDefault();
  });
  const exchange = (first: number, second: number): void => {
    if (second < 0 || second >= events.length) return;
    chosen = second;
    data.onEdit({ op: "swap", first, second });
  };
  draw();
  const element = el("div", { class: "strip-box" }, list, tools.element, el("details", { class: "help" }, el("summary", {}, "Keys and mouse"), el("p", { class: "about", id: "strip-help" }, HELP)));
  return {
    element,
    show: (nextEvents, nextTimes) => {
      [events, times] = [nextEvents, nextTimes];
      draw();
    },
    mark: (next) => {
      marks = next;
      draw();
      const first = events.findIndex((event) => marks.has(event));
      if (untouched && first >= 0) {
        choose(first, false);
        const button = list.querySelectorAll("button")[first];
        if (button) list.scrollTop = button.offsetTop - list.offsetTop - list.clientHeight / 2;
      }
    },
    busy: (waiting) => list.setAttribute("aria-busy", String(waiting)),
  };
}

type Make = (chosen: number, events: string[]) => Edit;

interface Toolbox {
  element: HTMLElement;
  tell: (text: string, told: string, removable: boolean, chosen: number, length: number) => void;
  remove: () => void;
  focus: () => void;
}

/** What can be done with the chosen event. */
function toolbox(act: (make: Make) => void): Toolbox {
  const name = el("p", { class: "chosen-event", role: "status" });
  const input = el("input", { id: "other-event", list: "known-events", placeholder: "Another event", "aria-label": "Another event", autocomplete: "off", spellcheck: "false", maxlength: 256 });
  const known = el("datalist", { id: "known-events" });
  const tool = (text: string, make: Make): HTMLButtonElement => {
    const button = el("button", { type: "button", class: "tool" }, text);
    button.addEventListener("click", () => act(make));
    return button;
  };
  const other = (): string => input.value.trim();
  const remove = tool("Remove", (at) => ({ op: "remove", positions: [at] }));
  const earlier = tool("← Earlier", (at) => ({ op: "swap", first: at, second: at - 1 }));
  const later = tool("Later →", (at) => ({ op: "swap", first: at, second: at + 1 }));
  const withOther = [
    tool("Put in its place", (at) => ({ op: "replace", position: at, event: other() })),
    tool("Insert before", (at) => ({ op: "insert", position: at, event: other() })),
    tool("Insert after", (at) => ({ op: "insert", position: at + 1, event: other() })),
  ];
  const allow = (): void => withOther.forEach((button) => (button.disabled = !other()));
  let asked = 0;
  input.addEventListener("input", () => {
    allow();
    const mine = ++asked;
    void searchEvents(input.value).then(
      ({ events }) => mine === asked && known.replaceChildren(...events.map((item) => el("option", { value: item.event }, item.description ?? ""))),
      () => known.replaceChildren(), // suggestions are a help, not an answer
    );
  });
  input.addEventListener("keydown", (key) => {
    if (key.key !== "Enter" || !other()) return;
    key.preventDefault();
    withOther[0]?.click();
  });
  allow();
  const element = el("div", { class: "tools" }, name, el("div", { class: "tool-row" }, remove, earlier, later), el("div", { class: "tool-row" }, input, known, ...withOther));
  return {
    element,
    tell: (text, told, removable, chosen, length) => {
      name.replaceChildren(visible(text), told ? el("span", { class: "told" }, ` ${visible(told)}`) : "");
      remove.disabled = !removable;
      earlier.disabled = chosen === 0;
      later.disabled = chosen >= length - 1;
    },
    remove: () => remove.click(),
    focus: () => input.focus(),
  };
}

function where(index: number, events: string[], times: number[] | null): string {
  const time = times?.[index];
  return `${events[index] ?? ""} · event ${index + 1} of ${events.length}${time === undefined ? "" : ` · after ${duration(time)}`}`;
}
