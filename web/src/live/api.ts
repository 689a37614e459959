/** The service: typed questions and answers, the token, and server-sent events read with fetch. */

import type { Verdict } from "../data";

/** A sequence as it is sent. */
export interface Sequence {
  sequence_id: string;
  subject_id: string | null;
  events: string[];
  times: number[] | null;
  channels: Record<string, (number | null)[]>;
  labels: string[] | null;
}

export type Edit =
  | { op: "remove"; positions: number[] }
  | { op: "insert"; position: number; event: string }
  | { op: "replace"; position: number; event: string }
  | { op: "swap"; first: number; second: number };

export interface Evidence {
  event: string;
  positions: number[];
  verdict: Verdict;
  effect: number | null;
  se: number | null;
  q_value: number | null;
  indicator: number | null;
  indicator_sd: number | null;
  ci_low: number | null;
  ci_high: number | null;
  cmi_nats: number | null;
  alone: number | null;
  borderline: boolean;
  accepted_by: "test" | "score" | null;
  share: number | null;
}

export interface LabelBoundary {
  label: string;
  observed: boolean | null;
  probability: number | null;
  trusted: boolean | null;
  trust_reason: string | null;
  seen_in_training: boolean | null;
  contexts: number;
  flags: string[];
  causes: Evidence[];
  evidence: Evidence[] | null;
}

export interface Explanation {
  sequence_id: string;
  boundaries: LabelBoundary[];
  notes: string[];
}

export interface Prediction {
  labels: string[];
  after: number[];
  probabilities: number[][];
  min_context: number;
  seen_in_training: boolean;
  flags: string[];
  names: Record<string, string>;
}

export interface Change {
  label: string;
  before: number;
  after: number;
  trusted: boolean;
}

export interface WhatIf {
  sequence: Sequence;
  changes: Change[];
  sentences: string[];
  flags: string[];
  boundary: { before: LabelBoundary[]; after: LabelBoundary[] } | null;
}

export interface LabelInfo {
  label: string;
  description: string | null;
  trusted: boolean;
  reason: string | null;
}

export interface ModelInfo {
  version: string;
  events: number;
  labels: LabelInfo[];
  channels: string[];
  min_context: number;
  dataset: boolean;
}

export interface JobStatus {
  job_id: string;
  state: "waiting" | "running" | "done" | "cancelled" | "failed";
  contexts_done: number;
  contexts: number;
  error: string | null;
}

export interface SequenceRow {
  sequence_id: string;
  subject_id: string;
  events: number;
  labels: string[] | null;
  seen_in_training: boolean;
}

/** What the service refused, in its own line. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

let token = "";

/** The token to send from now on; it lives as long as the page. */
export function useToken(text: string): void {
  token = text;
}

async function send(path: string, body?: unknown, options: RequestInit = {}): Promise<Response> {
  const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers["content-type"] = "application/json";
  const request: RequestInit = { method: body === undefined ? "GET" : "POST", headers, cache: "no-store", ...options };
  if (body !== undefined) request.body = JSON.stringify(body);
  const answer = await fetch(path, request);
  if (!answer.ok) throw new Refused(answer.status, await reason(answer));
  return answer;
}

async function reason(answer: Response): Promise<string> {
  try {
    const told = (await answer.json()) as { error?: unknown };
    return typeof told.error === "string" ? told.error : `the service answered ${answer.status}`;
  } catch {
    return `the service answered ${answer.status}`;
  }
}

const json = async <T>(path: string, body?: unknown, options?: RequestInit): Promise<T> => (await send(path, body, options)).json() as Promise<T>;

export const model = (): Promise<ModelInfo> => json("model");
export const predict = (sequence: Sequence): Promise<Prediction> => json("predict", { sequence, after: "each event" });
export const whatIf = (sequence: Sequence, edits: Edit[], boundary: boolean): Promise<WhatIf> => json("what-if", { sequence, edits, boundary });
export const searchEvents = (text: string): Promise<{ events: { event: string; description: string | null }[] }> => json(`events?limit=12&search=${encodeURIComponent(text)}`);
export const searchSequences = (text: string, unseen: boolean, offset: number): Promise<{ total: number; sequences: SequenceRow[] }> =>
  json(`sequences?limit=50&unseen=${unseen}&offset=${offset}&search=${encodeURIComponent(text)}`);
export const pick = (id: string): Promise<Sequence> => json(`sequences/one?id=${encodeURIComponent(id)}`);

/** Explain a sequence as a job; `stop` ends it here and there. */
export function explain(sequence: Sequence, onProgress: (status: JobStatus) => void): { answer: Promise<Explanation>; stop: () => void } {
  const control = new AbortController();
  let job: string | null = null;
  const run = async (): Promise<Explanation> => {
    const begun = await json<JobStatus>("explain/batch", { sequences: [sequence], evidence: true }, { signal: control.signal });
    job = begun.job_id;
    let found: Explanation | null = null;
    for await (const [kind, data] of events(`jobs/${job}/events`, control.signal)) {
      if (kind === "explanation") found = data as Explanation;
      else onProgress(data as JobStatus);
      if (kind === "end" && !found) throw new Refused(0, (data as JobStatus).error ?? "the explanation was stopped");
    }
    if (!found) throw new Refused(0, "the explanation broke off");
    return found;
  };
  const stop = (): void => {
    control.abort();
    if (job) void send(`jobs/${job}`, undefined, { method: "DELETE" }).catch(() => undefined);
  };
  return { answer: run(), stop };
}

/** Server-sent events as (kind, data) pairs. */
async function* events(path: string, signal: AbortSignal): AsyncGenerator<[string, unknown]> {
  const answer = await send(path, undefined, { signal });
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (reader) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (text + value).split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = new Map(block.split("\n").map((line): [string, string] => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
      const data = fields.get("data");
      if (data !== undefined) yield [fields.get("event") ?? "message", JSON.parse(data)];
    }
  }
}
