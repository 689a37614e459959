/** Plain words: what a number says, and what it does not. Everything here returns text, never markup. */

import type { Cause, LabelView, Verdict } from "../data";
import { visible } from "../dom";

/** +0.46, −0.08, 0.00: a signed effect with a real minus; – when there is none. */
export function signed(value: number | null, digits = 2): string {
  if (value === null) return "–";
  const text = Math.abs(value).toFixed(digits);
  if (Number(text) === 0) return text;
  return (value < 0 ? "−" : "+") + text;
}

/** A probability; what is neither 0 nor 1 is never written as 0 or 1. */
export function probability(value: number | null): string {
  if (value === null) return "–";
  if (value > 0.995 && value < 1) return "> 0.99";
  if (value < 0.005 && value > 0) return "< 0.01";
  return value.toFixed(2);
}

/** A q-value with the digits that matter. */
export function qText(q: number | null): string {
  if (q === null) return "–";
  return q < 0.001 ? "< 0.001" : q.toFixed(3);
}

/** 3 d 4 h, 12 min, 40 s. */
export function duration(seconds: number): string {
  const units: [number, string][] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = units.findIndex(([size]) => seconds >= size);
  if (first < 0) return seconds === 0 ? "0 s" : `${seconds.toPrecision(2)} s`;
  const parts: string[] = [];
  let rest = seconds;
  for (const [size, unit] of units.slice(first, first + 2)) {
    const count = Math.floor(rest / size);
    if (count) parts.push(`${count.toLocaleString("en")} ${unit}`);
    rest -= count * size;
  }
  return parts.join(" ");
}

export const count = (value: number, one: string, many = `${one}s`): string =>
  `${value.toLocaleString("en")} ${value === 1 ? one : many}`;

export const SYMBOL: Record<Verdict, string> = { cause: "▲", inhibitor: "▽", "no effect": "·", "not resolvable": "?" };

/** Stands for a cause that was accepted by score: no test has shown it. */
export const BY_SCORE = "△";

/** The symbol of an accepted event. */
export const symbolOf = (cause: Pick<Cause, "verdict" | "acceptedBy">): string => (cause.acceptedBy === "score" ? BY_SCORE : SYMBOL[cause.verdict]);

/** What acceptance by score is, in one sentence. */
export const SCORE_WORDS = "No test has shown it: the model's slopes put it among the strongest events, and the odds of the label fall without it. No error rate goes with it.";

/**
 * How the numbers came about, which decides what may be said about them: variants of the sequence (`variants`), the
 * forecast as events arrive (`forecast`), or a boundary learnt from the whole dataset (`dataset`).
 */
export type Method = "variants" | "forecast" | "dataset";

/** The kind of method behind an estimator's name. */
export function methodOf(estimator: string): Method {
  if (estimator === "prefix") return "forecast";
  return estimator === "intervention" || estimator === "fused" ? "variants" : "dataset";
}

/** What an accepted event does, by method. */
const DOES: Record<Method, Record<"cause" | "inhibitor", string>> = {
  variants: { cause: "raises the model's probability of", inhibitor: "lowers the model's probability of" },
  forecast: { cause: "raises the forecast of", inhibitor: "lowers the forecast of" },
  dataset: { cause: "speaks for", inhibitor: "speaks against" },
};

/** One accepted event, with what it is called, in a sentence. */
export function sentence(cause: Cause, label: string, method: Method = "variants", told = ""): string {
  const name = visible(cause.event) + (told ? ` (${visible(told)})` : "");
  const does = DOES[method][cause.verdict];
  const range = cause.low !== null && cause.high !== null ? ` (${signed(cause.low)} to ${signed(cause.high)})` : "";
  const size = cause.indicator === null ? "" : sizeWords(cause.indicator, method) + range;
  const against = cause.indicator !== null && cause.indicator > 0 !== (cause.verdict === "cause");
  const parts = [
    against
      ? `The ${cause.acceptedBy === "score" ? "score" : "test"} finds that ${name} ${does} “${visible(label)}”, although its plain mean is ${signed(cause.indicator)}${range}: read it with care.`
      : `${name} ${does} “${visible(label)}”${size}.`,
  ];
  if (cause.acceptedBy === "score") parts.push(`Accepted by score${shareWords(cause)}: no test has shown it.`);
  if (cause.source) parts.push(`In the boundary by ${cause.source === "both" ? "its evidence and by background knowledge" : visible(cause.source)}.`);
  if (cause.alone !== null) parts.push(aloneWords(cause.alone));
  if (cause.agreement != null) parts.push(`${Math.round(cause.agreement * 100)} % of the models accept it with the same sign.`);
  if (cause.borderline) parts.push("Borderline: near a threshold, another seed may decide otherwise.");
  return parts.join(" ");
}

const shareWords = (cause: Cause): string => (cause.share === null ? "" : ` (${cause.share.toFixed(2)} of the strongest event's pull)`);

/** By how much; frequencies of the dataset are no probabilities of a model. */
function sizeWords(value: number, method: Method): string {
  const size = Math.abs(value).toFixed(2);
  return method === "dataset" ? `: the label is ${value < 0 ? "less" : "more"} frequent with it, by ${size}` : ` by ${size} on average`;
}

/** What happens when this event alone is replaced. */
export function aloneWords(alone: number): string {
  if (Math.abs(alone) < 0.005) return "Replaced alone it changes nothing: other events stand in for it.";
  return `Replaced alone, with everything else as it is, the probability ${alone > 0 ? "falls" : "rises"} by ${Math.abs(alone).toFixed(2)}.`;
}

/** What a q-value promises. */
export function qWords(q: number): string {
  const percent = q * 100;
  const share = percent < 0.1 ? "fewer than 0.1 %" : `at most ${percent < 1 ? percent.toFixed(1) : percent.toFixed(0)} %`;
  return `q = ${qText(q)}: of the events accepted at this level, ${share} are expected to have no effect.`;
}

/** The headline of one label of a sequence. */
export function verdictLine(view: LabelView, method: Method = "variants"): string {
  const causes = view.causes.filter((cause) => cause.verdict === "cause").length;
  const inhibitors = view.causes.length - causes;
  const given = view.probability === null ? "" : `The model gives it probability ${probability(view.probability)}. `;
  const tested = view.evidence.length && method !== "dataset" ? `Of ${count(view.evidence.length, "event type")} tested, ` : "";
  if (!view.causes.length) return `${given}${begun(`${tested}none has an effect that could be told from no effect.`)}`;
  const [up, down] = method === "dataset" ? ["speak for it", "speak against it"] : ["raise it", "lower it"];
  const noun = tested ? "" : " event";
  const parts = [causes ? verb(causes, noun, up) : "", inhibitors ? verb(inhibitors, noun, down) : ""].filter(Boolean);
  const scored = view.causes.filter((cause) => cause.acceptedBy === "score").length;
  const unproven = scored ? `; ${scored === view.causes.length ? "accepted by score" : `${scored} of them by score`}, no test has shown ${scored === 1 ? "it" : "them"}` : "";
  return `${given}${begun(`${tested}${parts.join(" and ")}${unproven}.`)}`;
}

/** With a capital at the beginning. */
export const begun = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

const verb = (number: number, noun: string, does: string): string =>
  number === 1 ? `1${noun} ${does.replace(" ", "s ")}` : `${number}${noun && `${noun}s`} ${does}`;

/** What was said about every event of a label at once. */
export function closing(view: LabelView, method: Method = "variants"): string {
  const qs = view.causes.flatMap((cause) => (cause.q === null || cause.acceptedBy === "score" ? [] : [cause.q]));
  const sure = qs.length && method === "variants" ? `${qWords(Math.max(...qs))} ` : "";
  const unsure = view.causes.some((cause) => cause.acceptedBy === "score") ? `${sure ? "It says nothing about" : "No error rate is promised for"} what was accepted by score. ` : "";
  return `${sure}${unsure}${LIMITS[method]}`;
}

const LIMITS: Record<Method, string> = {
  variants: "A direct effect on the model's prediction: it speaks about the world as far as the model is right and nothing relevant is unrecorded.",
  forecast: "A change of the model's forecast when the event arrives. An event that merely announces a cause moves the forecast too.",
  dataset: "A boundary of the whole dataset, read where its events are present. Nothing was tested in this very sequence.",
};

export interface Mark {
  kind: "good" | "warn" | "plain";
  text: string;
  why: string;
}

/** Trust marks of one label: what the reader has to know before believing it. */
export function marksOf(view: LabelView, method: Method = "variants"): Mark[] {
  const marks: Mark[] = [];
  if (view.trusted === false) marks.push({ kind: "warn", text: "not to be trusted", why: `The model cannot judge this label${view.reason ? `: ${view.reason}` : ""}.` });
  if (view.trusted === true) marks.push({ kind: "good", text: "label can be judged", why: "The model predicts this label well enough on sequences it has not seen." });
  if (view.seen === true) marks.push({ kind: "warn", text: "seen in training", why: method === "dataset" ? "The boundary was learnt from sequences with this one among them." : "The model was trained on this subject, so its judgement here may be flattered." });
  if (view.observed === true) marks.push({ kind: "plain", text: "recorded", why: "The label is recorded for this sequence." });
  if (view.observed === false) marks.push({ kind: "plain", text: "not recorded", why: "The data does not carry this label for this sequence." });
  for (const flag of view.flags) marks.push({ kind: "warn", text: flag, why: "A remark of the run about this sequence." });
  return marks;
}

const VALUE: Record<Method, string> = {
  variants:
    "In variants of this very sequence that keep the event, the model's probability of the label is 0.46 higher on average than in variants that replace it by what could have stood there instead. The variants replace other candidates too. The range is an interval for that number.",
  forecast:
    "When the event arrives, the model's forecast of the label rises by 0.46, on average over sampled beginnings of the sequence. ± is the spread over them.",
  dataset:
    "Among sequences of the whole dataset that agree in the rest of the boundary, those with the event carry the label more often, by 0.46. The range is an interval for that number.",
};

/** How to read the page: question and answer. */
export const reading = (method: Method): readonly [string, string][] => [
  ["What does +0.46 (+0.31 to +0.58) mean?", VALUE[method]],
  ...(method === "variants" ? VARIANTS : []),
  ...READING,
];

const VARIANTS: readonly [string, string][] = [
  ["What is “alone”?", "How far the probability falls when only this event is replaced and everything else stays. Near zero for events that can stand in for each other, although each of them matters."],
  [
    "What does q = 0.003 promise?",
    "Among the events accepted for this label in this sequence at that level, at most 0.3 % are expected to have no effect. It speaks about the model's prediction, not about the world, and it is not the probability that the event is a cause.",
  ],
  [
    "What does “accepted by score” mean?",
    "No test has shown the event (its q is above the level), but the model's slopes give it at least 0.4 of the strongest event's pull on the label, and the odds of the label were measured to fall without it by at least 35 %. So causes of a label that the model doubts are found too. A score promises no error rate; such events are marked △ and “by score”.",
  ],
  ["Why can the range hold zero while q is small?", "The range is made to be right in every case and is wide for it; the test behind q is sharper. Then there is an effect, but its size is not well known."],
  ["What is “not resolvable”?", "This many variants cannot tell an effect from none. More of them may. It does not mean that there is no effect."],
];

const READING: readonly [string, string][] = [
  ["What does the sign mean?", "Plus: the event speaks for the label (orange to red, solid line, ▲; accepted by score: dotted line, △). Minus: it speaks against it, an inhibitor (violet, dashed line, ▽)."],
  [
    "Is a cause here a cause in the world?",
    "Only as far as the model or the data is right about it, nothing relevant is unrecorded, and time runs forward. An event that acts only through another listed event gets no credit.",
  ],
  ["What do the marks mean?", "“Not to be trusted”: the model predicts this label badly, or too few held-out sequences carry it. “Seen in training”: the model knew this subject. Marked verdicts are shown, never dropped."],
];
