"""`oscar explain`: one sequence, as a table and a timeline in the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from oscar_causal.verbs.output import Json, print_json, print_lines, print_table


def run(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    sequence: Annotated[
        str,
        typer.Argument(help='A sequence id (with --dataset), a JSON file with {"events", "times"}, or - for stdin.'),
    ],
    dataset: Annotated[Path | None, typer.Option(help="Dataset folder to take the sequence from.")] = None,
    contexts: Annotated[int, typer.Option(help="Most contexts (N).")] = 128,
    alpha: Annotated[float, typer.Option(help="False discovery rate within one label.")] = 0.05,
    label: Annotated[list[str] | None, typer.Option(help="Label to explain; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="Decides masks and draws.")] = 0,
    json: Json = False,
) -> None:
    """Explain one sequence: its recorded labels, or those the model predicts when none is recorded."""
    from oscar_causal.density.checkpoint import load_model
    from oscar_causal.discovery.intervention import InterventionConfig
    from oscar_causal.discovery.oneshot import DiscoveryConfig, discover

    data = _one_sequence(sequence, dataset)
    labels: Any = tuple(label) if label else ("observed" if len(data.labels.ids) else "predicted")
    config = DiscoveryConfig(intervention=InterventionConfig(contexts=contexts, alpha=alpha), labels=labels, seed=seed)
    found = [item for part in discover(load_model(model), data, config) for item in part]
    if json:
        print_json([_as_json(item) for item in found])
        return
    if not found:
        print_lines(["no label to explain: none is recorded and none has P > 0.5"])
    for item in found:
        _show(item, data)


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
    record.setdefault("sequence_id", "sequence")
    record.setdefault("times", list(range(len(record["events"]))))
    return from_records([record])


def _as_json(item: Any) -> dict[str, Any]:
    return {
        "sequence_id": item.sequence_id,
        "label": item.label,
        "observed": item.observed,
        "probability": item.probability,
        "contexts": item.contexts,
        "flags": list(item.flags),
        "causes": [{**vars(cause), "positions": list(cause.positions)} for cause in item.causes],
    }


def _show(item: Any, data: Any) -> None:
    title = f"{item.sequence_id}: {item.label}, P = {item.probability:.3f} after {item.contexts} contexts"
    columns = ["event", "positions", "effect", "from", "to", "alone", "q", "CMI (nats)"]
    rows = [
        [c.event, ", ".join(map(str, c.positions)), c.indicator, c.ci_low, c.ci_high, c.alone, c.q_value, c.cmi_nats]
        for c in item.causes
    ]
    print_table(columns, rows, title=title)
    accepted = {cause.event: ("+" if cause.verdict == "cause" else "-") for cause in item.causes}
    marks = "".join(accepted.get(name, ".") for name in data.events_of(0))
    print_lines([f"timeline  {marks}  (+ cause, - inhibitor)"])
    if item.causes:
        print_lines(
            [
                "effect: P(label) with the event minus without it, averaged over contexts that replace others too",
                "alone: how far P(label) falls when this event alone is replaced; near 0 where others can stand in",
            ]
        )
    print_lines(f"note: {flag}" for flag in item.flags)
    if not item.causes:
        print_lines(["no event has an effect that could be told from none with this many contexts"])
