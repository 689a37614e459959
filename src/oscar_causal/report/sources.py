"""What a report is made from: results, and as far as they are there the dataset and the model of the run.

Nothing is guessed: a dataset the user names must be the one of the run; one that is not at its place any more is left
out, and the page says what is missing for it; a model that has changed since (by `oscar check --update`) is used, and
the page says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oscar_causal.data.folders import read_json
from oscar_causal.data.rules import format_rule, read_rules
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.discovery.results import read_run
from oscar_causal.errors import FolderError, OscarError, UsageError

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
    if told.get("path"):
        try:
            data = read_dataset(told["path"])
            if wanted is None or data.info.get("digest") == wanted:
                return data
            why = "has changed since the run"
        except OscarError:
            why = "is not where it was"
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
