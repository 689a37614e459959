/** A pasted or uploaded text as a sequence: JSON as the service takes it, or a table with a column of events. */

import type { Sequence } from "./api";

/** Read a text; what cannot be read is an Error with one clear line. */
export function parseSequence(text: string): Sequence {
  const trimmed = text.trim();
  if (!trimmed) throw new Error("expected a sequence, got an empty text");
  return /^[[{]/.test(trimmed) ? fromJson(trimmed) : fromTable(trimmed);
}

function fromJson(text: string): Sequence {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`expected JSON: ${error instanceof Error ? error.message : "it cannot be read"}`);
  }
  const record = (Array.isArray(value) ? { events: value } : value) as Record<string, unknown>;
  const { events, times, labels, channels } = record;
  if (!isTexts(events) || !events.length) throw new Error("events: expected a list of names");
  if (times != null && !isNumbers(times)) throw new Error("times: expected a list of numbers");
  if (labels != null && !isTexts(labels)) throw new Error("labels: expected a list of names");
  return {
    sequence_id: typeof record["sequence_id"] === "string" ? record["sequence_id"] : "pasted",
    subject_id: typeof record["subject_id"] === "string" ? record["subject_id"] : null,
    events,
    times: times ?? null,
    channels: (channels as Sequence["channels"] | null) ?? {},
    labels: labels ?? null,
  };
}

const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every((item) => typeof item === "string");
const isNumbers = (value: unknown): value is number[] => Array.isArray(value) && value.every((item) => typeof item === "number");

const EVENT_COLUMNS = ["event", "code", "name", "activity"];
const TIME_COLUMNS = ["time", "times", "seconds"];

/** Lines of `event` or `event,seconds`; with a head naming the columns in any order. */
function fromTable(text: string): Sequence {
  const separator = ["\t", ";", ","].find((candidate) => text.includes(candidate)) ?? ",";
  const rows = cells(text, separator).filter((row) => row.some((cell) => cell.trim()));
  const head = rows[0]?.map((cell) => cell.trim().toLowerCase()) ?? [];
  const named = head.findIndex((cell) => EVENT_COLUMNS.includes(cell));
  const at = named >= 0 ? named : 0;
  const timeAt = named >= 0 ? head.findIndex((cell) => TIME_COLUMNS.includes(cell)) : (rows[0]?.length ?? 0) > 1 ? 1 : -1;
  const body = named >= 0 ? rows.slice(1) : rows;
  const events = body.map((row, index) => {
    const name = (row[at] ?? "").trim();
    if (!name) throw new Error(`row ${index + 1}: expected an event`);
    return name;
  });
  if (!events.length) throw new Error("expected at least one row under the head");
  const times = timeAt < 0 ? null : body.map((row, index) => seconds(row[timeAt] ?? "", index));
  const first = times?.[0] ?? 0;
  return { sequence_id: "pasted", subject_id: null, events, times: times?.map((time) => time - first) ?? null, channels: {}, labels: null };
}

function seconds(cell: string, index: number): number {
  const value = Number(cell);
  if (!cell.trim() || !Number.isFinite(value)) throw new Error(`row ${index + 1}: expected a time in seconds, got “${cell.trim()}”`);
  return value;
}

/** Cells of a delimited text; quotes hold separators, line ends and doubled quotes. */
function cells(text: string, separator: string): string[][] {
  const rows: string[][] = [[]];
  let cell = "";
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const letter = text[i];
    if (quoted) {
      if (letter !== '"') cell += letter;
      else if (text[i + 1] === '"') cell += text[++i];
      else quoted = false;
    } else if (letter === '"' && !cell) quoted = true;
    else if (letter === separator || letter === "\n") {
      rows.at(-1)?.push(cell.replace(/\r$/, ""));
      cell = "";
      if (letter === "\n") rows.push([]);
    } else cell += letter;
  }
  rows.at(-1)?.push(cell);
  return rows;
}
