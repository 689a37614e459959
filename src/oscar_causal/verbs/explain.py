"""`oscar explain`: one sequence, as a table and a timeline in the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from oscar_causal.verbs.output import Json, print_json, print_lines, print_note, print_table

OPTIONAL = {
    "by": "test = shown by a test, q at most alpha; score = by slopes and a measured fall, no error rate goes with it",
    "CMI": "conditional mutual information of label and event, in nats",
    "mattered": "which occurrence of a repeated event alone keeps most of the effect",
    "stand-in": "another event that takes its place when it is gone",
    "jointly": "how far P(label) falls when both are replaced",
    "posterior": "probability that the event is a cause here, by its own evidence and the fleet's",
    "prior": "how often the fleet finds it a cause where label and event are present",
    "agree": "share of the models that accept the event with this sign",
    "source": "what put the event here: its evidence, background knowledge, or both",
}
"""Columns that are shown where they say something."""


def run(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    sequence: Annotated[
        str,
        typer.Argument(help='A sequence id (with --dataset), a JSON file with {"events", "times"}, or - for stdin.'),
    ],
    dataset: Annotated[Path | None, typer.Option(help="Dataset folder to take the sequence from.")] = None,
    contexts: Annotated[int, typer.Option(help="Most contexts (N).")] = 128,
    alpha: Annotated[float, typer.Option(help="False discovery rate within one label.")] = 0.05,
    delta: Annotated[float, typer.Option(help="Smallest effect on P(label) that counts.")] = 0.05,
    tested_only: Annotated[
        bool, typer.Option("--tested-only", help="Accept what a test has shown, nothing by its score.")
    ] = False,
    label: Annotated[list[str] | None, typer.Option(help="Label to explain; may be repeated.")] = None,
    population: Annotated[
        Path | None, typer.Option(help="Population folder (`oscar population`): the fleet as prior, estimator fused.")
    ] = None,
    knowledge: Annotated[
        Path | None, typer.Option(help="JSON file: events excluded, forbidden or required, for all labels or for one.")
    ] = None,
    also: Annotated[
        list[Path] | None, typer.Option(help="Another model whose agreement is shown; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides masks and draws.")] = 0,
    json: Json = False,
) -> None:
    """Explain one sequence: its recorded labels, or those the model predicts when none is recorded."""
    from oscar_causal.discovery.fused import FusedConfig
    from oscar_causal.discovery.intervention import InterventionConfig
    from oscar_causal.discovery.knowledge import Knowledge, read_knowledge
    from oscar_causal.discovery.oneshot import DiscoveryConfig
    from oscar_causal.errors import UsageError

    if tested_only and population is not None:
        raise UsageError("--tested-only: an option of intervention, got it with --population (estimator fused)")
    data = _one_sequence(sequence, dataset)
    labels: Any = tuple(label) if label else ("observed" if len(data.labels.ids) else "predicted")
    config = DiscoveryConfig(
        estimator="intervention" if population is None else "fused",
        fused=FusedConfig(population=None if population is None else str(population)),
        intervention=InterventionConfig(contexts=contexts, alpha=alpha, delta=delta, tested_only=tested_only),
        labels=labels,
        knowledge=Knowledge() if knowledge is None else read_knowledge(knowledge),
        seed=seed,
    )
    found, vocabulary = _explain(data, config, model, also or [])
    remarks = _remarks(data, found, vocabulary)
    if json:
        print_json([_as_json(item) for item in found])
        for remark in remarks:
            print_note(remark)
        return
    print_lines(remarks)
    for item in found:
        _show(item, data)


def _remarks(data: Any, found: list[Any], vocabulary: Any) -> list[str]:
    """What cannot be said beside a boundary: labels without one, and what the model cannot read where there is none."""
    from oscar_causal.discovery.survey import first_names

    recorded, events = data.labels_of(0), data.events_of(0)
    labels = [repr(name) for name in recorded if name not in vocabulary.label_ids]
    remarks = [f"not explained: the model does not know {first_names(labels)}"] if labels else []
    if found:
        return remarks
    if not recorded:
        remarks.append("no label to explain: none is recorded and none has P > 0.5")
    unknown = [name for name in events if name not in vocabulary.event_ids]
    if unknown:
        told = first_names(list(dict.fromkeys(unknown)))
        remarks.append(f"{len(unknown)} of {len(events)} events are unknown to the model: {told}")
    return remarks


def _explain(data: Any, config: Any, model: Path, also: list[Path]) -> tuple[list[Any], Any]:
    """Boundaries of the one sequence, judged by the model (the fold) that may, with its marks; and its vocabulary."""
    from dataclasses import replace

    from oscar_causal.density.folds import MEAN, load_models
    from oscar_causal.discovery.local import one_thread
    from oscar_causal.discovery.oneshot import discover

    models = load_models(model)
    subject = data.subject_ids[0].as_py()
    others = [load_models(path).for_sequence(subject) for path in also]
    if models.routes(data.subject_ids)[0] == MEAN:
        others += models.models
    with one_thread("cpu"):  # as `discover` does: the same figures, to the last bit
        (found,) = discover(models.for_sequence(subject), data, config, also=others)
    seen = bool(models.seen_in_training(data.subject_ids)[0])
    marked = [replace(item, trusted=models.trusted(item.label), seen_in_training=seen) for item in found]
    return marked, models.vocabulary


def _one_sequence(text: str, dataset: Path | None) -> Any:
    import json as json_module

    from oscar_causal.data.sequences import from_records, read_dataset
    from oscar_causal.errors import DataError

    if dataset is not None:
        data = read_dataset(dataset)
        return data.take(data.index_of([text]))
    try:
        content = sys.stdin.read() if text == "-" else Path(text).read_text(encoding="utf-8")
        record = json_module.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{text}: expected a JSON object with events and times: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("events"), list):
        raise DataError(f"{text}: expected a JSON object with a list of events")
    for name in ("events", "labels"):
        _check_names(record.get(name), f"{text}: {name}")
    record.setdefault("sequence_id", "sequence")
    record.setdefault("times", list(range(len(record["events"]))))
    return from_records([record])


def _check_names(value: Any, where: str) -> None:
    from oscar_causal.errors import DataError

    odd = [k for k, name in enumerate(value) if not isinstance(name, str)] if isinstance(value, list) else []
    if odd:
        raise DataError(f"{where}, position {odd[0]}: expected a name as text, got {value[odd[0]]!r}")


def _as_json(item: Any) -> dict[str, Any]:
    from oscar_causal.data.folders import finite_or_none

    return {
        "sequence_id": item.sequence_id,
        "label": item.label,
        "observed": item.observed,
        "probability": item.probability,
        "trusted": item.trusted,
        "seen_in_training": item.seen_in_training,
        "contexts": item.contexts,
        "flags": list(item.flags),
        "observed_logp": item.observed_logp,
        "contexts_logp": item.contexts_logp,
        "ranked_by": item.ranked_by,
        "causes": [
            {**vars(cause), "effect": finite_or_none(cause.effect), "positions": list(cause.positions)}
            for cause in item.causes
        ],
    }


def _show(item: Any, data: Any) -> None:
    title = f"{item.sequence_id}: {item.label}, P = {item.probability:.3f} after {item.contexts} contexts"
    rows = [_row(cause) for cause in item.causes]
    told = [name for name in (rows[0] if rows else ()) if name not in OPTIONAL or any(row[name] for row in rows)]
    if rows:
        print_table(told, [[row[name] for name in told] for row in rows], title=title)
    else:
        print_lines([title])
    accepted = {cause.event: ("+" if cause.verdict == "cause" else "-") for cause in item.causes}
    marks = "".join(accepted.get(name, ".") for name in data.events_of(0))
    print_lines([f"timeline  {marks}  (+ cause, - inhibitor)"])
    if item.causes:
        print_lines(
            [
                "effect: P(label) with the event minus without it, averaged over contexts that replace others too",
                "alone: how far P(label) falls when this event alone is replaced; near 0 where others can stand in",
                *(f"{name}: {text}" for name, text in OPTIONAL.items() if name in told),
            ]
        )
    print_lines(_by_score(item))
    print_lines(f"note: {flag}" for flag in (*_marks(item), *item.flags))
    if not item.causes:
        print_lines(["no event has an effect that could be told from none with this many contexts"])


def _row(cause: Any) -> dict[str, Any]:
    return {
        "event": cause.event,
        "by": cause.accepted_by,
        "positions": _list(cause.positions),
        "effect": cause.indicator,
        "from": cause.ci_low,
        "to": cause.ci_high,
        "alone": cause.alone,
        "q": cause.q_value,
        "CMI": cause.cmi_nats,
        "mattered": None if cause.mattered is None else _list(cause.mattered) or "several",
        "stand-in": cause.partner,
        "jointly": cause.jointly,
        "posterior": cause.posterior,
        "prior": cause.prior,
        "agree": cause.agreement,
        "source": None if cause.source == "evidence" else cause.source,
    }


def _by_score(item: Any) -> list[str]:
    """One line about what no test has shown."""
    told = [f"{cause.event} ({cause.share:.2f})" for cause in item.by_score]
    about = "share of the strongest event's pull by the model's slopes; --tested-only leaves them out"
    return [f"accepted by score: {', '.join(told)} ({about})"] if told else []


def _list(positions: tuple[int, ...]) -> str:
    return ", ".join(map(str, positions))


def _marks(item: Any) -> list[str]:
    marks = []
    if not item.trusted:
        marks.append("the model cannot judge this label well enough to be trusted (oscar check)")
    if item.seen_in_training:
        marks.append("the model was trained on this sequence")
    if item.contexts_logp is not None:
        marks.append(
            f"plausibility: mean log P of an event is {item.contexts_logp:.2f} in the contexts, "
            f"{item.observed_logp:.2f} in the sequence as observed (nats, by Tf_x)"
        )
    return marks
