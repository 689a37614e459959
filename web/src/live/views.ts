/** The service's answers as the views that components draw. */

import type { Cause, Evidence, Forecast, LabelView, SequenceView } from "../data";
import type * as api from "./api";

/** A sequence with its explanation, and its forecasts where there is a prediction. */
export function sequenceView(sequence: api.Sequence, explanation: api.Explanation, prediction: api.Prediction): SequenceView {
  return {
    id: sequence.sequence_id,
    subject: sequence.subject_id,
    start: null,
    facts: [],
    events: sequence.events,
    times: sequence.times ?? sequence.events.map((_, index) => index),
    labels: explanation.boundaries.map((item) => labelView(item, forecast(prediction, item.label))),
  };
}

function labelView(item: api.LabelBoundary, along: Forecast | null): LabelView {
  return {
    label: item.label,
    observed: item.observed,
    probability: item.probability,
    trusted: item.trusted,
    reason: item.trust_reason,
    seen: item.seen_in_training,
    contexts: item.contexts,
    flags: item.flags,
    causes: item.causes.map(cause),
    evidence: (item.evidence ?? []).filter((tested) => tested.effect !== null).map(evidence),
    forecast: along,
  };
}

function cause(item: api.Evidence): Cause {
  return {
    event: item.event,
    verdict: item.verdict === "inhibitor" ? "inhibitor" : "cause",
    positions: item.positions,
    indicator: item.indicator ?? item.effect ?? 0,
    sd: item.indicator_sd,
    low: item.ci_low,
    high: item.ci_high,
    cmi: item.cmi_nats,
    q: item.q_value,
    alone: item.alone,
    known: null,
    borderline: item.borderline,
    acceptedBy: item.accepted_by,
    share: item.share,
  };
}

function evidence(item: api.Evidence): Evidence {
  return { event: item.event, verdict: item.verdict, effect: item.effect ?? 0, se: item.se, cmi: null };
}

/** P(label) from the first event on after which it means something. */
function forecast(prediction: api.Prediction, label: string): Forecast | null {
  const column = prediction.labels.indexOf(label);
  const first = prediction.after.findIndex((count) => count >= prediction.min_context);
  if (column < 0 || first < 0) return null;
  return { from: prediction.after[first] ?? 1, values: prediction.probabilities.slice(first).map((row) => row[column] ?? 0) };
}
