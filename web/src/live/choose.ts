/** Choose a sequence: pick one of the dataset, paste one, or upload a file. */

import { count } from "../components/words";
import { el, nameTag, visible } from "../dom";
import { type Sequence, type SequenceRow, pick, searchSequences } from "./api";
import { parseSequence } from "./parse";

const EXAMPLE = 'event,time\nC0051,0\nU0126,40\n\nor JSON: {"events": ["C0051", "U0126"], "times": [0, 40]}';
const LARGEST_FILE = 8 * 2 ** 20;

export interface ChooseData {
  dataset: boolean;
  onChoose: (sequence: Sequence) => void;
  onError: (line: string) => void;
}

/** The column with everything that can be chosen. */
export function build(data: ChooseData): HTMLElement {
  const own = ownSequence(data);
  if (!data.dataset) {
    own.open = true;
    return el("nav", { class: "list", "aria-label": "Choose a sequence" }, own);
  }
  return el("nav", { class: "list", "aria-label": "Choose a sequence" }, own, ...picker(data));
}

/** Search and rows of the dataset; more rows come when the last ones are reached. */
function picker(data: ChooseData): HTMLElement[] {
  const search = el("input", { type: "search", id: "search", placeholder: "Search id, subject or label", "aria-describedby": "found", autocomplete: "off", spellcheck: "false" });
  const unseen = el("input", { type: "checkbox", id: "unseen" });
  const found = el("p", { id: "found", class: "found", role: "status" });
  const rows = el("ol", { class: "rows" });
  const foot = el("li", { class: "more", "aria-hidden": "true" });
  let asked = 0;
  let shown = 0;
  let total = 0;
  let loading = false;
  const load = async (fresh: boolean): Promise<void> => {
    const mine = fresh ? ++asked : asked;
    loading = true;
    try {
      const answer = await searchSequences(search.value.trim(), unseen.checked, fresh ? 0 : shown);
      if (mine !== asked) return;
      if (fresh) rows.replaceChildren(foot);
      foot.before(...answer.sequences.map((row) => el("li", {}, rowButton(row, rows, data))));
      shown = (fresh ? 0 : shown) + answer.sequences.length;
      total = answer.total;
      found.textContent = count(total, "sequence");
      foot.hidden = shown >= total;
    } catch (error) {
      data.onError(error instanceof Error ? error.message : String(error));
    } finally {
      if (mine === asked) loading = false;
    }
  };
  new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && !loading && shown < total && void load(false), { rootMargin: "400px" }).observe(foot);
  search.addEventListener("input", () => void load(true));
  unseen.addEventListener("change", () => void load(true));
  rows.append(foot);
  void load(true);
  return [el("label", { for: "search", class: "hidden" }, "Search sequences"), search, el("label", { class: "check" }, unseen, " not seen in training"), found, rows];
}

function rowButton(row: SequenceRow, rows: HTMLElement, data: ChooseData): HTMLElement {
  const labels = (row.labels ?? []).map((label) => el("span", { class: "row-label" }, nameTag(label, "label")));
  const facts = el("span", { class: "row-label" }, el("span", { class: "row-count" }, `${count(row.events, "event")}${row.seen_in_training ? ", seen in training" : ""}`));
  const button = el("button", { type: "button", "data-id": row.sequence_id }, el("span", { class: "row-id" }, visible(row.sequence_id)), ...labels, facts);
  button.addEventListener("click", () => {
    for (const old of rows.querySelectorAll("[aria-current]")) old.removeAttribute("aria-current");
    button.setAttribute("aria-current", "true");
    pick(row.sequence_id).then(data.onChoose, (error: unknown) => data.onError(error instanceof Error ? error.message : String(error)));
  });
  return button;
}

/** A box to paste into and a file to read. */
function ownSequence(data: ChooseData): HTMLDetailsElement {
  const text = el("textarea", { id: "pasted", rows: 6, placeholder: EXAMPLE, "aria-label": "A sequence as JSON or as lines of event and seconds", spellcheck: "false" });
  const file = el("input", { type: "file", id: "file", accept: ".json,.csv,.tsv,.txt", "aria-label": "A file with a sequence" });
  const use = el("button", { type: "button", class: "tool" }, "Use this sequence");
  const read = (content: string): void => {
    try {
      data.onChoose(parseSequence(content));
    } catch (error) {
      data.onError(error instanceof Error ? error.message : String(error));
    }
  };
  use.addEventListener("click", () => read(text.value));
  file.addEventListener("change", () => {
    const chosen = file.files?.[0];
    if (!chosen) return;
    if (chosen.size > LARGEST_FILE) return data.onError(`${chosen.name}: expected at most ${LARGEST_FILE.toLocaleString("en")} bytes`);
    void chosen.text().then((content) => {
      text.value = content;
      read(content);
    });
  });
  return el("details", { class: "own" }, el("summary", {}, "Paste or upload a sequence"), text, file, use);
}
