/**
 * What components draw: small views of sequences, labels, events and graphs.
 *
 * A report decodes them out of its PageData (`page.ts`), one sequence at a time, when it is looked at; the live page
 * builds the same views from what the service answers.
 */

export type Verdict = "cause" | "inhibitor" | "no effect" | "not resolvable";
export const VERDICTS: readonly Verdict[] = ["cause", "inhibitor", "no effect", "not resolvable"];

/** One accepted event. null = the estimator does not define it. */
export interface Cause {
  event: string;
  verdict: "cause" | "inhibitor";
  /** 0-based positions in the sequence. */
  positions: number[];
  indicator: number | null;
  sd: number | null;
  low: number | null;
  high: number | null;
  cmi: number | null;
  q: number | null;
  alone: number | null;
  /** What put it into the boundary besides its evidence; none = evidence alone. */
  source?: string | null;
  /** Share of several models that accept it with the same sign; none = one model judged. */
  agreement?: number | null;
  /** What the acceptance rests on: a test, or slopes and a measured fall where no test has shown it; null = not told. */
  acceptedBy: "test" | "score" | null;
  /** Pull on the label by the model's slopes, as a share of the strongest event's. */
  share: number | null;
  /** Is the verdict so near a threshold that another seed may turn it? */
  borderline: boolean;
  /** Does the dataset itself name this event as a reason? null = the truth is not known. */
  known: boolean | null;
}

/** One tested event type, accepted or not. */
export interface Evidence {
  event: string;
  verdict: Verdict;
  /** null = not measured. */
  effect: number | null;
  se: number | null;
  /** Information gain in nats, where the estimator has one for every tested event. */
  cmi: number | null;
}

/** P(label | the first n events) for n = from, from + 1, ..., length. */
export interface Forecast {
  from: number;
  values: number[];
}

/** One explained label of a sequence. */
export interface LabelView {
  label: string;
  observed: boolean | null;
  probability: number | null;
  trusted: boolean | null;
  /** Why the label is not to be trusted. */
  reason: string | null;
  seen: boolean | null;
  contexts: number;
  flags: string[];
  /** Strongest first. */
  causes: Cause[];
  evidence: Evidence[];
  forecast: Forecast | null;
}

/** One sequence with everything known about it. events = null: the page was made without the dataset. */
export interface SequenceView {
  id: string;
  subject: string | null;
  /** ISO 8601. */
  start: string | null;
  facts: [string, string][];
  events: string[] | null;
  /** Seconds from the start; as long as `events`. */
  times: number[] | null;
  labels: LabelView[];
}

/** A graph to draw: events on the left in order of time, labels on the right. */
export interface GraphView {
  edges: GraphEdge[];
}

export interface GraphEdge {
  event: string;
  label: string;
  verdict: "cause" | "inhibitor";
  strength: number | null;
  sd: number | null;
  /** Where the event stands in time, 0 (start) to 1 (end); null = not known. */
  when: number | null;
  /** A short remark for people, such as "31 of 34". */
  note: string;
  /** Accepted although no test has shown it. */
  byScore?: boolean;
}

/** The graph of one sequence: every accepted event of every explained label. */
export function graphOf(sequence: SequenceView): GraphView {
  const last = Math.max(1, (sequence.events?.length ?? 1) - 1);
  const edges = sequence.labels.flatMap((item) =>
    item.causes.map((cause) => ({
      event: cause.event,
      label: item.label,
      verdict: cause.verdict,
      strength: cause.indicator,
      sd: cause.sd,
      when: cause.positions.length && sequence.events ? (cause.positions[0] ?? 0) / last : null,
      note: cause.acceptedBy === "score" ? "by score" : "",
      byScore: cause.acceptedBy === "score",
    })),
  );
  return { edges };
}
