/** One sequence under study: its probabilities, what if, and its explanation as it arrives. */

import { methodOf } from "../components/words";
import { el, nameTag, visible } from "../dom";
import * as explanationView from "../views/sequence";
import { type Change, type Edit, type Explanation, type Prediction, Refused, type Sequence, type WhatIf, explain, predict, whatIf } from "./api";
import * as bars from "./bars";
import * as compare from "./compare";
import * as strip from "./strip";
import { sequenceView } from "./views";

const PAUSE = 900;

export interface StudyData {
  sequence: Sequence;
  /** Description of an event or label, or "". */
  describe: (name: string) => string;
  trusted: (label: string) => boolean;
  onError: (line: string) => void;
}

/** Shows the sequence in the container; `close` ends what is still under way. */
export class Study {
  private readonly edits: Edit[] = [];
  private readonly words = el("p", { class: "sentences", role: "status", id: "sentences" });
  private readonly labels = el("div");
  private readonly boundaries = el("div", { class: "cards", id: "boundaries" });
  private readonly explanation = el("div", { id: "explained" });
  private readonly progress = el("progress", { max: 1, value: 0, "aria-label": "Explaining" });
  private readonly undo = button("Undo", () => this.back());
  private readonly compareNow = button("Compare boundaries", () => void this.ask(true));
  private readonly always = el("input", { type: "checkbox", id: "always" });
  private readonly names: Record<string, string> = {};
  private readonly strip: strip.Strip;
  private prediction: Prediction | null = null;
  private stop: () => void = () => undefined;
  private timer = 0;
  private waiting = false;
  private closed = false;

  constructor(
    container: HTMLElement,
    private readonly data: StudyData,
  ) {
    const { sequence } = data;
    this.strip = strip.build({ events: sequence.events, times: sequence.times, describe: (name) => this.describe(name), onEdit: (edit) => this.edit(edit) });
    this.always.addEventListener("change", () => this.always.checked && this.edits.length && void this.ask(true));
    this.undo.disabled = this.compareNow.disabled = true;
    container.replaceChildren(this.heading(), this.panel(), this.explanation);
    void this.start();
  }

  close(): void {
    this.closed = true;
    this.stop();
    clearTimeout(this.timer);
  }

  /** Take the last edit back. */
  back(): void {
    if (this.waiting || !this.edits.pop()) return;
    if (this.edits.length) void this.ask(false);
    else this.original();
  }

  private heading(): HTMLElement {
    const { sequence } = this.data;
    const recorded = sequence.labels === null ? "labels not known" : sequence.labels.length ? "" : "no label recorded";
    const labels = (sequence.labels ?? []).map((label) => el("li", {}, nameTag(label, "label")));
    return el("header", { class: "subject" }, el("h2", { tabindex: -1 }, nameTag(sequence.sequence_id)), labels.length ? el("ul", { class: "recorded", "aria-label": "Recorded labels" }, ...labels) : el("p", { class: "about" }, recorded));
  }

  private panel(): HTMLElement {
    const auto = el("label", { class: "check" }, this.always, " Compare boundaries after each change");
    return el(
      "section",
      { class: "panel what-if" },
      el("h3", {}, "What if?"),
      this.words,
      el("div", { class: "what-if-parts" }, el("div", {}, el("div", { class: "tool-row first" }, this.undo, this.compareNow, auto), this.strip.element), el("div", {}, this.labels)),
      this.boundaries,
    );
  }

  private async start(): Promise<void> {
    const { sequence } = this.data;
    this.words.textContent = "Take an event out, put one in or exchange two: every label's probability follows.";
    try {
      this.prediction = await predict(sequence);
      if (this.closed) return;
      Object.assign(this.names, this.prediction.names);
      this.strip.mark(new Map());
      this.original();
      await this.explain();
    } catch (error) {
      this.fail(error);
    }
  }

  private async explain(): Promise<void> {
    this.explanation.replaceChildren(el("p", { class: "working" }, "Explaining… ", this.progress, " ", button("Stop", () => this.stop())));
    const job = explain(this.data.sequence, (status) => (this.progress.value = status.contexts ? status.contexts_done / status.contexts : 0));
    this.stop = job.stop;
    try {
      const found = await job.answer;
      if (!this.closed) this.showExplanation(found);
    } catch (error) {
      if (this.closed) return;
      this.explanation.replaceChildren(el("p", { class: "working" }, "Not explained. ", button("Explain", () => void this.explain())));
      if (!(error instanceof DOMException && error.name === "AbortError")) this.fail(error);
    } finally {
      this.stop = () => undefined;
    }
  }

  private showExplanation(found: Explanation): void {
    if (!this.prediction) return;
    const notes = found.notes.map((note) => el("p", { class: "about" }, visible(note)));
    const flags = this.prediction.flags.map((flag) => el("p", { class: "warn" }, visible(flag)));
    const body = el("div");
    this.explanation.replaceChildren(...flags, ...notes, body);
    explanationView.render(body, {
      sequence: sequenceView(this.data.sequence, found, this.prediction),
      describe: (name) => this.describe(name),
      method: methodOf("intervention"),
      onLabel: (label) => {
        const causes = found.boundaries.find((item) => item.label === label)?.causes ?? [];
        this.strip.mark(new Map(causes.map((cause) => [cause.event, cause.verdict])));
      },
    });
  }

  /** The sequence as it is. */
  private original(): void {
    const { sequence } = this.data;
    const last = this.prediction?.probabilities.at(-1) ?? [];
    const rows: Change[] = (this.prediction?.labels ?? []).map((label, index) => ({ label, before: last[index] ?? 0, after: last[index] ?? 0, trusted: this.data.trusted(label) }));
    bars.render(this.labels, rows, false, (name) => this.describe(name));
    this.strip.show(sequence.events, sequence.times);
    this.boundaries.replaceChildren();
    this.words.textContent = "Take an event out, put one in or exchange two: every label's probability follows.";
    this.undo.disabled = this.compareNow.disabled = true;
  }

  private edit(edit: Edit): void {
    if (this.waiting) return;
    this.edits.push(edit);
    void this.ask(false).then((answered) => {
      if (!answered) this.edits.pop();
    });
  }

  /** Ask the service; false when it refused. */
  private async ask(boundary: boolean): Promise<boolean> {
    clearTimeout(this.timer);
    this.busy(true);
    if (boundary) this.boundaries.replaceChildren(el("p", { class: "working" }, "Comparing… ", el("progress", { "aria-label": "Comparing boundaries" })));
    try {
      const answer = await whatIf(this.data.sequence, this.edits, boundary);
      if (!this.closed) this.show(answer);
      return true;
    } catch (error) {
      if (boundary) this.boundaries.replaceChildren();
      this.fail(error);
      return false;
    } finally {
      this.busy(false);
    }
  }

  private show(answer: WhatIf): void {
    bars.render(this.labels, answer.changes, true, (name) => this.describe(name));
    this.strip.show(answer.sequence.events, answer.sequence.times);
    this.words.replaceChildren(...answer.sentences.map((line) => el("span", {}, visible(line.charAt(0).toUpperCase() + line.slice(1)), ". ")), ...answer.flags.map((flag) => el("span", { class: "warn" }, visible(flag), ". ")));
    if (answer.boundary) compare.render(this.boundaries, answer.boundary.before, answer.boundary.after);
    else {
      this.boundaries.replaceChildren();
      if (this.always.checked) this.timer = window.setTimeout(() => void this.ask(true), PAUSE);
    }
  }

  private busy(waiting: boolean): void {
    this.waiting = waiting;
    this.strip.busy(waiting);
    this.undo.disabled = this.compareNow.disabled = waiting || !this.edits.length;
  }

  private fail(error: unknown): void {
    if (this.closed) return;
    this.data.onError(error instanceof Refused || error instanceof Error ? error.message : String(error));
  }

  private describe(name: string): string {
    return Object.hasOwn(this.names, name) ? (this.names[name] ?? "") : this.data.describe(name);
  }
}

function button(text: string, act: () => void): HTMLButtonElement {
  const made = el("button", { type: "button", class: "tool" }, text);
  made.addEventListener("click", act);
  return made;
}
