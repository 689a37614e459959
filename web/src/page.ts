/** PageData, the JSON embedded in a report, and Page, which decodes views out of it when they are asked for. */

import { type Cause, type Evidence, type GraphEdge, type LabelView, type SequenceView, VERDICTS } from "./data";
import type { PopulationPages, RuleCard } from "./population";

/** One row of the label overview. */
export interface LabelRow {
  label: string;
  explained: number;
  with_causes: number;
  mean_probability: number | null;
  causes_per_sequence: number | null;
  trusted: boolean | null;
  reason: string | null;
  positives: number | null;
  f1: number | null;
  average_precision: number | null;
  ece: number | null;
  /** The rule the dataset publishes. */
  rule: string | null;
}

/** Precision, recall and F1 against one truth. */
export interface ScoreRow {
  truth: string;
  meaning: string;
  /** Averaged over sequences. */
  precision: number;
  recall: number;
  f1: number;
  /** Averaged over labels. */
  macro_f1: number;
}

type Column = (number | null)[];

/** An edge of the fleet graph: in how many sequences it was found, and how sure the fleet is. */
export interface FleetEdge extends GraphEdge {
  found: number;
  of: number;
  low: number | null;
  high: number | null;
  q: number | null;
  /** p-value of the test on observed labels; null = not tested. */
  world: number | null;
}

/** The JSON embedded in a report. Names are indices into `names`; columns of one table have the same length. */
export interface PageData {
  format: 1;
  title: string;
  estimator: string;
  estimand: string;
  /** Sequences the results explain; the page may show fewer. */
  explained: number;
  names: string[];
  /** name → description. */
  told: Record<string, string>;
  sequences: {
    id: string[];
    subject: (string | null)[];
    start: (string | null)[];
    facts: [string, string][][];
    events: number[][] | null;
    times: number[][] | null;
  };
  /** Explained pairs, grouped by sequence; row numbers are what `causes.pair` means. */
  pairs: {
    sequence: number[];
    label: number[];
    observed: Column;
    probability: Column;
    trusted: Column;
    seen: Column;
    contexts: number[];
    flags: number[][];
    forecast_from: Column;
    forecast: (number[] | null)[];
    /** Tested events of each pair: event, verdict (index into VERDICTS), effect, standard error, CMI. */
    tested: { event: number[]; verdict: number[]; effect: Column; se: Column; cmi: Column }[];
  };
  /** Accepted events, grouped by pair, strongest first. */
  causes: {
    pair: number[];
    event: number[];
    inhibits: number[];
    positions: number[][];
    indicator: Column;
    sd: Column;
    low: Column;
    high: Column;
    cmi: Column;
    q: Column;
    alone: Column;
    borderline: number[];
    source: Column;
    agreement: Column;
    /** Numbers of names: "test" or "score". */
    accepted_by: Column;
    share: Column;
    known: Column;
  };
  labels: LabelRow[];
  /**
   * The fleet: one row per (event, label); `pooled`: boundaries of a population, with interval, q-value and the p-value
   * on observed labels, instead of counts over sequences.
   */
  fleet: { event: number[]; label: number[]; inhibits: number[]; found: number[]; of: number[]; mean: Column; sd: Column; low: Column; high: Column; q: Column; world: Column; pooled: boolean };
  rules: RuleCard[];
  /** null = the page was made without a population. */
  population: PopulationPages | null;
  scores: ScoreRow[];
  /** Term and value, for the provenance page. */
  provenance: [string, string][];
  /** What the page does not show or shows differently, and why. */
  missing: string[];
}

const truth = (value: number | null | undefined): boolean | null => (value == null ? null : value !== 0);

/** Reads PageData; nothing is decoded before it is asked for. */
export class Page {
  readonly data: PageData;
  private readonly pairRows: number[][];
  private readonly causeRows: number[][];
  private readonly reasons: Map<string, string | null>;
  private readonly texts: (string | undefined)[] = [];

  constructor(data: PageData) {
    this.data = data;
    this.pairRows = grouped(data.pairs.sequence, data.sequences.id.length);
    this.causeRows = grouped(data.causes.pair, data.pairs.label.length);
    this.reasons = new Map(data.labels.map((row) => [row.label, row.reason]));
  }

  get length(): number {
    return this.data.sequences.id.length;
  }

  name(index: number): string {
    return this.data.names[index] ?? "";
  }

  describe(name: string): string {
    return Object.hasOwn(this.data.told, name) ? (this.data.told[name] ?? "") : "";
  }

  /** Labels of a sequence with the number of accepted events, for the list. */
  summary(index: number): { id: string; subject: string | null; labels: { label: string; causes: number; marked: boolean }[] } {
    const { pairs, sequences } = this.data;
    const labels = (this.pairRows[index] ?? []).map((row) => ({
      label: this.name(pairs.label[row] ?? -1),
      causes: this.causeRows[row]?.length ?? 0,
      marked: pairs.trusted[row] === 0 || pairs.seen[row] === 1,
    }));
    return { id: sequences.id[index] ?? "", subject: sequences.subject[index] ?? null, labels };
  }

  /** What a search looks through: id, subject, explained labels, accepted events; lower case. */
  searchText(index: number): string {
    return (this.texts[index] ??= this.textOf(index).toLowerCase());
  }

  sequence(index: number): SequenceView {
    const { sequences } = this.data;
    return {
      id: sequences.id[index] ?? "",
      subject: sequences.subject[index] ?? null,
      start: sequences.start[index] ?? null,
      facts: sequences.facts[index] ?? [],
      events: sequences.events?.[index]?.map((event) => this.name(event)) ?? null,
      times: sequences.times?.[index] ?? null,
      labels: (this.pairRows[index] ?? []).map((row) => this.label(row)),
    };
  }

  /** Edges of the fleet graph, strongest support first. */
  fleet(): FleetEdge[] {
    const { fleet } = this.data;
    return fleet.event.map((event, row) => ({
      event: this.name(event),
      label: this.name(fleet.label[row] ?? -1),
      verdict: fleet.inhibits[row] ? "inhibitor" : "cause",
      strength: fleet.mean[row] ?? null,
      sd: fleet.sd[row] ?? null,
      when: null,
      found: fleet.found[row] ?? 0,
      of: fleet.of[row] ?? 0,
      low: fleet.low[row] ?? null,
      high: fleet.high[row] ?? null,
      q: fleet.q[row] ?? null,
      world: fleet.world[row] ?? null,
      note: `${fleet.found[row] ?? 0} of ${fleet.of[row] ?? 0}`,
    }));
  }

  private textOf(index: number): string {
    const { sequences, pairs, causes } = this.data;
    const rows = this.pairRows[index] ?? [];
    const labels = rows.map((row) => this.name(pairs.label[row] ?? -1));
    const events = rows.flatMap((row) => (this.causeRows[row] ?? []).map((cause) => this.name(causes.event[cause] ?? -1)));
    return [sequences.id[index], sequences.subject[index], ...labels, ...events].join("\n");
  }

  private label(row: number): LabelView {
    const { pairs } = this.data;
    const label = this.name(pairs.label[row] ?? -1);
    const values = pairs.forecast[row] ?? null;
    return {
      label,
      observed: truth(pairs.observed[row]),
      probability: pairs.probability[row] ?? null,
      trusted: truth(pairs.trusted[row]),
      reason: this.reasons.get(label) ?? null,
      seen: truth(pairs.seen[row]),
      contexts: pairs.contexts[row] ?? 0,
      flags: (pairs.flags[row] ?? []).map((flag) => this.name(flag)),
      causes: (this.causeRows[row] ?? []).map((cause) => this.cause(cause)),
      evidence: this.evidence(row),
      forecast: values && { from: pairs.forecast_from[row] ?? 0, values },
    };
  }

  private cause(row: number): Cause {
    const { causes } = this.data;
    return {
      event: this.name(causes.event[row] ?? -1),
      verdict: causes.inhibits[row] ? "inhibitor" : "cause",
      positions: causes.positions[row] ?? [],
      indicator: causes.indicator[row] ?? null,
      sd: causes.sd[row] ?? null,
      low: causes.low[row] ?? null,
      high: causes.high[row] ?? null,
      cmi: causes.cmi[row] ?? null,
      q: causes.q[row] ?? null,
      alone: causes.alone[row] ?? null,
      borderline: causes.borderline[row] === 1,
      source: causes.source[row] == null ? null : this.name(causes.source[row]),
      agreement: causes.agreement[row] ?? null,
      acceptedBy: this.acceptedBy(causes.accepted_by[row]),
      share: causes.share[row] ?? null,
      known: truth(causes.known[row]),
    };
  }

  private acceptedBy(index: number | null | undefined): Cause["acceptedBy"] {
    const name = index == null ? "" : this.name(index);
    return name === "test" || name === "score" ? name : null;
  }

  private evidence(row: number): Evidence[] {
    const tested = this.data.pairs.tested[row];
    if (!tested) return [];
    return tested.event.map((event, k) => ({
      event: this.name(event),
      verdict: VERDICTS[tested.verdict[k] ?? 3] ?? "not resolvable",
      effect: tested.effect[k] ?? null,
      se: tested.se[k] ?? null,
      cmi: tested.cmi[k] ?? null,
    }));
  }
}

function grouped(keys: number[], size: number): number[][] {
  const rows: number[][] = Array.from({ length: size }, () => []);
  keys.forEach((key, row) => rows[key]?.push(row));
  return rows;
}
