"""What a report is made from: results, and as far as they are there the dataset and the model of the run.

Nothing is guessed: a dataset the user names must be the one of the run; one that is not at its place any more is left
out, and the page says what is missing for it; a model that has changed since (by `oscar check --update`) is used, and
the page says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oscar_causal.data.folders import read_json
from oscar_causal.data.rules import format_rule, read_rules
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.stream import EVENT_BYTES, memory_bytes, open_parquet, read_info
from oscar_causal.discovery.results import part_files, read_run
from oscar_causal.errors import FolderError, UsageError

if TYPE_CHECKING:
    from oscar_causal.density.estimates import Plan

TABLES = ("verdicts", "causes", "evidence")
NO_DATASET = "Events, times, timelines and curves: the dataset of the run {why}. Name it with --dataset."
NO_MODEL = (
    "Label probabilities as events arrive, and how well labels can be judged: the model of the run is not where it "
    "was. Name it with --model."
)
OTHER_MODEL = (
    "The model folder is not as it was at the run: probabilities along the sequences and figures about labels are of "
    "the model as it is now."
)
NO_MODEL_EVER = "Label probabilities and trust marks: this method uses no model."


@dataclass(frozen=True)
class Sources:
    """Opened folders; None and empty = not there."""

    results: Path
    run: dict[str, Any]
    dataset: Dataset | None = None
    model: Path | None = None
    qualities: tuple[dict[str, Any], ...] = ()
    """`quality.json` of the model, or of each of its folds."""
    names: dict[str, str] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    """What the page cannot show or shows differently, for people."""


def open_sources(results: Path | str, *, dataset: Path | str | None = None, model: Path | str | None = None) -> Sources:
    """Open a results folder with its dataset and model; `dataset` and `model` say where they are now."""
    results = Path(results)
    run = read_run(results)
    missing: list[str] = []
    data = _dataset_of(run, dataset, missing)
    place = _model_of(run, model, missing)
    folder = None if data is None else data.path
    return Sources(
        results,
        run,
        data,
        place,
        () if place is None else read_qualities(place),
        {} if folder is None else _names(folder),
        {} if folder is None else _rules(folder),
        tuple(missing),
    )


def plan_report(
    results: Path, limit: int, *, dataset: Path | None = None, model: Path | None = None, memory: float | None = None
) -> Plan:
    """What the page of these results will take, from the ends of their files; more than there is, is refused."""
    from oscar_causal.density.estimates import ReportWork
    from oscar_causal.density.memory import cap_bytes

    run = read_run(results)
    footers = {name: [open_parquet(path).metadata for path in part_files(results, name)] for name in TABLES}
    rows = {name: sum(footer.num_rows for footer in found) for name, found in footers.items()}
    data, weights = (_told_place(run, name, named) for name, named in (("dataset", dataset), ("model", model)))
    sequences = read_info(data)["sequences"] if data is not None else max(rows["verdicts"], 1)
    shown = min(1.0, limit / max(1, min(sequences, rows["verdicts"])))
    size = memory_bytes(data) if data is not None else 0
    work = ReportWork(
        **rows,
        evidence_bytes=sum(
            part.row_group(k).total_byte_size for part in footers["evidence"] for k in range(part.num_row_groups)
        ),
        shown=shown,
        events=int(min(1.0, limit / max(1, sequences)) * size) // EVENT_BYTES,
        weights=sum(file.stat().st_size for file in weights.rglob("model.safetensors")) if weights else 0,
        dataset=size,
    )
    return work.plan(cap_bytes(memory, "cpu"))


def _told_place(run: dict[str, Any], name: str, named: Path | None) -> Path | None:
    """Where the dataset or model of a run is, if it is there: `open_sources` says what is wrong with it."""
    told = run.get(name)
    place = named or (told.get("path") if isinstance(told, dict) else None)
    usable = place is not None and (Path(place) / {"dataset": "dataset.json", "model": "."}[name]).exists()
    return Path(place) if usable and place is not None else None


def read_qualities(model: Path) -> tuple[dict[str, Any], ...]:
    """`quality.json` of a model folder, or of each fold of a folder of folds."""
    if not (model / "folds.json").exists():
        return (read_json(model / "quality.json"),)
    count = int(read_json(model / "folds.json")["folds"])
    return tuple(read_json(model / f"fold-{k}" / "quality.json") for k in range(count))


def _dataset_of(run: dict[str, Any], named: Path | str | None, missing: list[str]) -> Dataset | None:
    told = run.get("dataset") or {}
    wanted = told.get("digest")
    if named is not None:
        data = read_dataset(named)
        if wanted is not None and data.info.get("digest") != wanted:
            raise UsageError(f"--dataset {named}: expected the dataset of the run (digest {wanted[:12]}…), got another")
        return data
    why = "is not known"
    if told.get("path") and not (Path(told["path"]) / "dataset.json").exists():
        why = "is not where it was"
    elif told.get("path"):
        data = read_dataset(told["path"])
        if wanted is None or data.info.get("digest") == wanted:
            return data
        why = "has changed since the run"
    missing.append(NO_DATASET.format(why=why))
    return None


def _model_of(run: dict[str, Any], named: Path | str | None, missing: list[str]) -> Path | None:
    from oscar_causal.density.checkpoint import model_digest

    told = run.get("model") or {}
    place = named or told.get("path")
    if place is None:
        missing.append(NO_MODEL_EVER)
        return None
    if not Path(place).is_dir():
        if named is not None:
            raise FolderError(
                f"--model {named}: expected a model folder, found {'a file' if Path(named).exists() else 'nothing'}"
            )
        missing.append(NO_MODEL)
        return None
    if told.get("digest") not in (None, model_digest(Path(place))):
        missing.append(OTHER_MODEL)
    return Path(place)


def _names(folder: Path) -> dict[str, str]:
    path = folder / "names.json"
    return {name: str(told) for name, told in read_json(path).items()} if path.exists() else {}


def _rules(folder: Path) -> dict[str, str]:
    path = folder / "rules.json"
    if not path.exists():
        return {}
    return {label: format_rule(published.rule) for label, published in read_rules(path).items()}
