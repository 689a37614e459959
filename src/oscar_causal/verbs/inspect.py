"""`oscar inspect`: what is in a dataset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from oscar_causal.verbs.output import Json, print_json, print_lines, print_table, progress_bar

SHOWN_LABELS = 15
SHOWN_NAMES = 5
LONGEST_NAME = 60


def run(
    dataset: Annotated[Path, typer.Argument(help="A dataset folder.")],
    as_json: Json = False,
) -> None:
    """Show what is in a dataset: counts, lengths, long tails, ties, problems."""
    from oscar_causal.data.inspect import inspect_dataset

    with progress_bar("inspect", "sequences") as on_progress:
        found = inspect_dataset(dataset, on_progress=on_progress)
    if as_json:
        print_json(found)
        return
    print_table(("what", "value"), _rows(found), title=str(dataset))
    if found["labels"]:
        shown = list(found["labels"].items())[:SHOWN_LABELS]
        title = f"labels (the {SHOWN_LABELS} most frequent)" if len(found["labels"]) > SHOWN_LABELS else "labels"
        print_table(("label", "sequences"), [(_short(name), count) for name, count in shown], title=title)
    print_lines(_problem_lines(found["problems"]))


def _rows(found: dict[str, Any]) -> list[tuple[str, Any]]:
    lengths, tail, ties = found["lengths"], found["tail"], found["ties"]
    quantiles = ", ".join(f"{value:g}" for value in lengths["quantiles"].values())
    rows = [
        ("sequences", found["sequences"]),
        ("subjects", found["subjects"]),
        ("events", found["events"]),
        ("event types", found["event_types"]),
        ("labels", len(found["labels"])),
        ("unlabelled sequences", found["unlabelled"]),
        ("length, mean ± sd", f"{lengths['mean']:.1f} ± {lengths['sd']:.1f}"),
        ("length, " + " / ".join(lengths["quantiles"]), quantiles),
        ("length, longest", lengths["longest"]),
        ("event types seen under 10 times", _percent(tail["types_seen_under_10_share"])),
        ("event types that make half of the events", tail["types_that_make_half_of_the_events"]),
        ("most frequent events", _listed(_frequent(tail["most_frequent"]), found["event_types"])),
        ("events that share their timestamp", _percent(ties["events_share"])),
        ("labels with a time", found["label_times"]["known"]),
    ]
    rows += [
        (f"channel {_short(name)}, missing", _percent(v["missing_share"])) for name, v in found["channels"].items()
    ]
    rows += [(f"static {_short(name)}, known", _percent(v["known_share"])) for name, v in found["static"].items()]
    if found["start"]["known"]:
        rows.append(("start, first to last", f"{found['start']['first']} to {found['start']['last']}"))
    rows.append(
        ("truth", f"rules: {'yes' if found['truth']['rules'] else 'no'}, reasons: {found['truth']['why_rows']:,}")
    )
    return rows


def _frequent(counts: dict[str, int]) -> list[str]:
    return [f"{_short(name)} ({count:,})" for name, count in counts.items()]


def _problem_lines(problems: list[dict[str, Any]]) -> list[str]:
    if not problems:
        return ["no problems found"]
    lines = ["problems:"]
    for problem in problems:
        names = [_name(item) for item in problem["names"]]
        lines.append(f"- {problem['message']}" + (f" ({_listed(names, problem['count'])})" if names else ""))
    return lines


def _name(item: Any) -> str:
    if isinstance(item, dict):
        return f"{' = '.join(_short(name) for name in item['events'][:SHOWN_NAMES])} in {item['sequences']:,}"
    return _short(item)


def _listed(names: list[str], count: int | None = None) -> str:
    left = (count or len(names)) - min(len(names), SHOWN_NAMES)
    return "; ".join(names[:SHOWN_NAMES]) + (f"; and {left:,} more" if left > 0 else "")


def _short(name: str) -> str:
    text = name if name.isprintable() else json.dumps(name, ensure_ascii=False)
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def _percent(share: float) -> str:
    return f"{share:.1%}"
