"""What both stories on real data need: type a command, count verdicts against the known truth, draw the counts.

Commands go through the public command line in this process, with `--json`, from inside the story's own folder, so that
the lines kept in the figures are the lines a user types.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from oscar_causal.cli import build_app
from oscar_causal.data.sequences import read_dataset
from oscar_causal.discovery.results import read_table
from oscar_causal.errors import DataError, UsageError

Pair = tuple[str, str]
"""(label, event)."""
Counts = dict[Pair, dict[str, int]]
"""Per pair: sequences that were explained for the label and have the event, and in how many it was which verdict."""

Keep = Callable[[Sequence[str], str], bool]


@dataclass
class Story:
    """Types commands and remembers them, with the seconds each took."""

    data: Path
    """Where the tables are; it reads DATA in what is kept."""
    typed: list[dict[str, Any]] = field(default_factory=list)

    def oscar(self, *words: str) -> Any:
        """Run `oscar WORDS --json` and hand back what it says."""
        line = "oscar " + shlex.join(words).replace(str(self.data), "DATA")
        print(f"$ {line}", file=sys.stderr, flush=True)
        begun, said = time.monotonic(), io.StringIO()
        with redirect_stdout(said):
            build_app()([*words, "--json"], prog_name="oscar", standalone_mode=False)
        self.typed.append({"line": line, "seconds": round(time.monotonic() - begun, 1)})
        return json.loads(said.getvalue())


def read_rows(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a CSV file, plain or .gz, which must have these columns."""
    if not path.exists():
        raise UsageError(f"{path}: expected a table of the story's data, found nothing")
    with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
        reader = csv.DictReader(file)
        missing = [name for name in columns if name not in (reader.fieldnames or [])]
        if missing:
            raise DataError(f"{path}: expected column {missing[0]!r}, found {', '.join(reader.fieldnames or [])}")
        return list(reader)


def fresh_folder(out: Path) -> Path:
    """The story's folder; one that exists already is an error."""
    if out.exists():
        raise UsageError(f"{out}: exists already; name a new folder")
    out.mkdir(parents=True)
    return out.resolve()


def count_verdicts(results: Path, dataset: Path, *, observed: bool = True, keep: Keep | None = None) -> Counts:
    """Verdicts per (label, event) over the explained sequences in which the label was (or was not) observed.

    `keep` chooses by the sequence's events and the event asked about.
    """
    data = read_dataset(dataset)
    rows = [row for row in read_table(results, "verdicts").to_pylist() if row["observed"] == observed]
    verdicts = {
        (row["sequence_id"], row["label"], row["event"]): row["verdict"]
        for row in read_table(results, "causes").to_pylist()
    }
    counts: Counts = {}
    for row, index in zip(rows, data.index_of(row["sequence_id"] for row in rows), strict=True):
        events = data.events_of(int(index))
        for event in sorted(set(events)):
            if keep is None or keep(events, event):
                part = counts.setdefault((row["label"], event), {"present": 0, "cause": 0, "inhibitor": 0})
                part["present"] += 1
                verdict = verdicts.get((row["sequence_id"], row["label"], event))
                if verdict is not None:
                    part[verdict] += 1
    return dict(sorted(counts.items()))


def plausibility(results: Path) -> dict[str, float]:
    """Mean log P of an event under Tf_x, in nats: in the explained sequences and in contexts drawn from them."""
    rows = read_table(results, "verdicts").to_pylist()
    return {name: float(np.mean([row[name] for row in rows])) for name in ("observed_logp", "contexts_logp")}


def signed_share(counts: Mapping[str, int]) -> float:
    """Share of sequences that say cause minus share that say inhibitor.

    >>> signed_share({"present": 4, "cause": 3, "inhibitor": 1})
    0.5
    """
    return (counts["cause"] - counts["inhibitor"]) / counts["present"]


def ranking_auc(strength: Mapping[str, float], true: Iterable[str]) -> float | None:
    """How well a strength ranks the true events above the others: 1 = all above, 0.5 = by chance.

    >>> ranking_auc({"A": 0.4, "B": 0.1, "C": 0.2}, ["A", "B"])
    0.5
    """
    wanted = set(true)
    hits = [value for event, value in strength.items() if event in wanted]
    rest = [value for event, value in strength.items() if event not in wanted]
    if not hits or not rest:
        return None
    return float(np.mean([(a > b) + (a == b) / 2 for a in hits for b in rest]))


def keyed(counts: Counts) -> dict[str, dict[str, dict[str, int]]]:
    """Counts for JSON: label -> event -> counts."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for (label, event), part in counts.items():
        found.setdefault(label, {})[event] = part
    return found


def checked(told: Mapping[str, Any]) -> dict[str, Any]:
    """What `oscar check` says of each label and of the assumptions."""
    kept = ("positives", "f1", "average_precision", "trusted")
    labels = {label: {name: row[name] for name in kept} for label, row in told["per_label"].items()}
    return {"evaluated_on": told["evaluated_on"], "labels": labels, "assumptions": told["assumptions"]}


def scored(told: Mapping[str, Any]) -> dict[str, Any]:
    """Precision, recall and F1 against the events of the rule that are present, and F1 of a random guess."""
    part = told["truth"]["rule_present"]
    return {"pairs": part["pairs"], **part["sample"], "random": part["controls"]["random"]["sample"]["f1_of_means"]}


def compared(told: Mapping[str, Any]) -> dict[str, Any]:
    """F1 of the second results minus that of the first on the pairs both explain, with an interval over subjects."""
    part = told["differences"][0]["truth"]["rule_present"]
    return {"pairs": part["pairs"], **part["sample"]["f1_of_means"]}


def rules_told(population: Path) -> dict[str, Any]:
    """Label -> the proposed rule, whether it is stood by, and why not."""
    kept = ("status", "rule", "reasons", "confidence", "fidelity")
    proposals = json.loads((population / "proposals.json").read_text())
    return {label: {name: told[name] for name in kept} for label, told in proposals.items()}


def share_text(counts: Mapping[str, int] | None) -> str:
    """Counts in a cell of a table.

    >>> share_text({"present": 4, "cause": 3, "inhibitor": 1})
    '+3 -1 of 4'
    """
    return f"+{counts['cause']} -{counts['inhibitor']} of {counts['present']}" if counts else "-"


def commit() -> str:
    """The state of the program, `-dirty` where the tree differs from the commit."""
    words = ["git", "describe", "--always", "--dirty"]
    found = subprocess.run(words, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    return found.stdout.strip() or "unknown"


def draw_panels(panels: Mapping[str, Counts], marks: Mapping[Pair, str], events: Sequence[str], out: Path) -> None:
    """One grid of labels by events for each panel: colour = signed share of sequences, letters = the known truth."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = [sorted({label for label, _ in counts}) for counts in panels.values()]
    heights = [len(labels) for labels in rows]
    figure = Figure(
        figsize=(0.62 * len(events) + 2.6, 0.42 * sum(heights) + 0.75 * len(panels) + 1.5), dpi=90, layout="constrained"
    )
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axis, labels, (title, counts) in zip(axes, rows, panels.items(), strict=True):
        values = np.full((len(labels), len(events)), np.nan)
        for (label, event), part in counts.items():
            values[labels.index(label), events.index(event)] = signed_share(part)
        image = axis.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
        axis.set_facecolor("0.9")
        axis.set_title(title, loc="left", fontsize=9)
        axis.set_yticks(range(len(labels)), labels, fontsize=8)
        _write_cells(axis, values, labels, events, counts, marks)
    axes[-1].set_xticks(range(len(events)), events, rotation=35, ha="right", fontsize=8)
    bar = figure.colorbar(image, ax=list(axes), fraction=0.03)
    bar.set_label("share saying cause minus share saying inhibitor", fontsize=8)
    figure.savefig(out, metadata={"Software": None})


def _write_cells(
    axis: Any,
    values: np.ndarray,
    labels: Sequence[str],
    events: Sequence[str],
    counts: Counts,
    marks: Mapping[Pair, str],
) -> None:
    for i, label in enumerate(labels):
        for k, event in enumerate(events):
            part, mark = counts.get((label, event)), marks.get((label, event), "")
            number = f"\n{part['present']:,}" if part else "\n"
            dark = bool(abs(np.nan_to_num(values[i, k])) > 0.6)
            axis.text(k, i, mark + number, ha="center", va="center", fontsize=7, color="white" if dark else "black")
