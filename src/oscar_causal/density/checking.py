"""`check`: a model or its folds against a dataset, on subjects that were not seen in training where there are any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oscar_causal.data.batches import Encoded
from oscar_causal.data.checksums import NAME as CHECKSUMS
from oscar_causal.data.checksums import checksums
from oscar_causal.data.folders import read_json, write_json
from oscar_causal.data.sequences import Dataset, Int64
from oscar_causal.data.subjects import subject_hashes
from oscar_causal.density.assumptions import Evidence, survey
from oscar_causal.density.estimates import CheckWork, Plan
from oscar_causal.density.folds import MEAN, ModelSet, load_models
from oscar_causal.density.memory import cap_bytes
from oscar_causal.density.quality import (
    Float64,
    Judged,
    assess,
    calibrated,
    hide_short,
    logits_at,
    prefix_positions,
    quality_content,
)
from oscar_causal.density.reference import Reference, base_rates, logistic, subject_codes, too_large
from oscar_causal.density.times import judge_times
from oscar_causal.errors import FolderError, UsageError


@dataclass(frozen=True)
class _Chosen:
    """Which sequences the model is judged on, and by which of its folds."""

    rows: Int64
    routes: Int64
    unseen: bool
    told: str


def check(
    model: Path | str,
    dataset: Dataset,
    *,
    update: bool = False,
    device: str = "cpu",
    with_assumptions: bool = True,
    memory: float | None = None,
    on_plan: Callable[[Plan], None] | None = None,
) -> dict[str, Any]:
    """Judge a model folder on a dataset: the figures of `quality.json`, labels not to trust, assumptions.

    Sequences of subjects seen in training are left out; when nothing is left all are used and `unseen` is false. Folds
    are judged together, each sequence by a fold that never saw its subject. The stored calibration is used as it is.
    `update` rewrites `quality.json` (of each fold, on the sequences that fold never saw). `memory` is the most that it
    may take in GiB (default: a share of what is free); `on_plan` hears the plan.
    """
    models = load_models(model, device=device)
    chosen = _choose(models, dataset)
    encoded = models.models[0].encode(dataset.take(chosen.rows))
    if update and not chosen.unseen:
        raise UsageError("--update: every subject was seen in training; figures on seen subjects must not be stored")
    plan = _plan_memory(models, encoded, _training_events(models, dataset, chosen.routes)[0], device, memory)
    if on_plan is not None:
        on_plan(plan)
    judged = _judge(models, encoded, chosen.routes)
    reference = _reference(models, dataset, chosen.rows, chosen.routes)
    found = quality_content(judged, reference, models.vocabulary.labels, None, evaluated_on=chosen.told)
    for name in ("kind", "format_version", "calibration"):
        del found[name]
    doubts = {name: row["reason"] for name, row in found["per_label"].items() if not row["trusted"]}
    if not chosen.unseen:
        for row in found["per_label"].values():
            row |= {"trusted": False, "reason": "no sequence of a subject that was not seen in training"}
    found |= {
        "unseen": chosen.unseen,
        "stored_judged_by": _stored_judgement(models),
        "folds": None if models.seed is None else len(models.models),
        "unknown_labels": sorted(set(dataset.label_names) - set(models.vocabulary.labels)),
        "not_trusted": {name: row["reason"] for name, row in found["per_label"].items() if not row["trusted"]},
        "times": _times(models, encoded, chosen.routes),
        "updated": [],
        "memory": plan.to_json(),
    }
    if with_assumptions:
        evidence = Evidence(models, dataset, encoded, np.arange(len(encoded)), chosen.routes, judged, doubts)
        found["assumptions"] = [finding.to_json() for finding in survey(evidence)]
    if update:
        found["updated"] = _update(Path(model), models, dataset)
    return found


def _plan_memory(models: ModelSet, encoded: Encoded, trained: int, device: str, memory: float | None) -> Plan:
    """What the check will take; models answer in smaller pieces where memory is short."""
    network = models.models[0].network
    weights = sum(tensor.nbytes for model in models.models for tensor in model.network.state_dict().values())
    kind = device.split(":")[0]
    plan = CheckWork(network.config, weights, encoded.events.lengths, kind, trained).plan(cap_bytes(memory, device))
    for model in models.models:
        model.pieces.tokens = plan.pieces.get("tokens_per_pass")
    return plan


def _choose(models: ModelSet, dataset: Dataset) -> _Chosen:
    labelled = np.flatnonzero(dataset.labelled)
    if not len(labelled):
        raise UsageError("check: expected at least one sequence with labels (or with none observed), found none")
    routes = models.routes(dataset.subject_ids)
    new = labelled[~models.seen_in_training(dataset.subject_ids)[labelled]]
    if not len(new):
        told = f"all {len(labelled):,} labelled sequences: every subject was seen in training, the figures flatter"
        return _Chosen(labelled, routes[labelled], False, told)
    told = f"{len(new):,} sequences of subjects not seen in training"
    if models.seed is not None:
        mean = int((routes[new] == MEAN).sum())
        told = f"{len(new):,} sequences, each judged by a fold that never saw its subject ({mean:,} by all folds)"
    return _Chosen(new, routes[new], True, told)


def _judge(models: ModelSet, encoded: Encoded, routes: Int64) -> Judged:
    rows = np.arange(len(encoded))
    prefixes, positions = prefix_positions(encoded, rows, models.min_context)
    few = len(positions)
    whole = _probs(models, encoded, rows, routes, encoded.events.lengths[rows][:, None])[:, 0]
    early = _probs(models, encoded, rows[:few], routes[:few], positions)
    truth = encoded.labels.take(rows).indicator(len(models.vocabulary.labels))
    return Judged(whole, truth, prefixes, hide_short(early, encoded, rows, prefixes))


def _reference(models: ModelSet, dataset: Dataset, rows: Int64, routes: Int64) -> Reference:
    """What the judged sequences are compared with; training sequences are looked for in the dataset itself."""
    subjects = subject_codes(dataset.subject_ids)[rows]
    trained = {int(route): _trained_on(models, dataset, int(route)) for route in np.unique(routes)}
    rates, source = _base_rates(models, dataset, trained, rows)
    left_out = _training_events(models, dataset, routes)[1]
    if left_out is not None:
        return Reference(subjects, rates, source, logistic_left_out=left_out)
    probs = np.empty((len(rows), len(models.vocabulary.labels)))
    for route, part in trained.items():
        mine = np.flatnonzero(routes == route)
        train, test = (models.models[0].encode(dataset.take(chosen)) for chosen in (part, rows[mine]))
        probs[mine] = logistic(train, test, np.arange(len(mine)), models.vocabulary)
    return Reference(subjects, rates, source, probs)


def _training_events(models: ModelSet, dataset: Dataset, routes: Int64) -> tuple[int, str | None]:
    """Events that the largest logistic regression on presence is fitted on, or 0 and why it is left out."""
    lengths = np.minimum(dataset.lengths, models.max_length)
    parts = [int(lengths[_trained_on(models, dataset, int(route))].sum()) for route in np.unique(routes)]
    if not all(parts):
        return 0, "the dataset holds no labelled sequence of the subjects that the model was trained on"
    left_out = too_large(sum(parts), models.vocabulary.size, len(models.vocabulary.labels))
    return (max(parts), None) if left_out is None else (0, left_out)


def _trained_on(models: ModelSet, dataset: Dataset, route: int) -> Int64:
    """Labelled sequences whose subjects a model (or any fold) was trained on."""
    hashes = subject_hashes(dataset.subject_ids)
    known = models.subjects if route == MEAN else (models.subjects[route],)
    return np.flatnonzero(dataset.labelled & np.isin(hashes, np.concatenate(known)))


def _base_rates(models: ModelSet, dataset: Dataset, trained: dict[int, Int64], rows: Int64) -> tuple[Float64, str]:
    """Of the training as the model's folders tell them; of an older folder from the dataset. Also where from."""
    names = models.vocabulary.labels
    group = models.models if MEAN in trained else tuple(models.models[route] for route in trained)
    stored = [model.info["quality"]["per_label"].get(name, {}).get("base_rate") for model in group for name in names]
    if all(isinstance(entry, dict) and 0 < entry.get("rate", 0) < 1 for entry in stored):
        rates = np.array([entry["rate"] for entry in stored], float).reshape(len(group), len(names))
        return rates.mean(0), "training"
    known = np.unique(np.concatenate(list(trained.values())))
    source = "training sequences in this dataset" if len(known) else "the judged sequences themselves"
    used = models.models[0].encode(dataset.take(known if len(known) else rows))
    return base_rates(used.labels.indicator(len(names))), source


def _stored_judgement(models: ModelSet) -> str:
    """What the marks in the model's own `quality.json` rest on."""
    told = {model.info["quality"].get("judged_by", "F1 alone") for model in models.models}
    return " and ".join(sorted(told))


def _times(models: ModelSet, encoded: Encoded, routes: Int64) -> dict[str, Any]:
    """How well the model knows when; of folds the one that judges most of the sequences."""
    every, counts = np.unique(routes, return_counts=True)
    route = every[counts.argmax()]
    return judge_times(models.models[0 if route == MEAN else route], encoded, np.flatnonzero(routes == route))


def _probs(models: ModelSet, encoded: Encoded, rows: Int64, routes: Int64, positions: Int64) -> Float64:
    """Calibrated probabilities (S, P, Y), each sequence by its own model, new subjects by the mean over folds."""
    result = np.empty((*positions.shape, len(models.vocabulary.labels)))
    for route in np.unique(routes):
        mine = np.flatnonzero(routes == route)
        group = models.models if route == MEAN else (models.models[route],)
        parts = [calibrated(logits_at(m, encoded, rows[mine], positions[mine]), m.calibration) for m in group]
        result[mine] = np.mean(parts, axis=0)
    return result


def _write(path: Path, content: dict[str, Any]) -> None:
    try:
        write_json(path, content)
    except OSError as error:
        raise FolderError(f"{path}: cannot be written: {error.strerror or error}") from error


def _update(folder: Path, models: ModelSet, dataset: Dataset) -> list[str]:
    """Rewrite `quality.json` of the model or of each fold; returns the files."""
    routes, seen = models.routes(dataset.subject_ids), models.seen_in_training(dataset.subject_ids)
    written = []
    for index, model in enumerate(models.models):
        place = folder if models.seed is None else folder / f"fold-{index}"
        rows = np.flatnonzero(dataset.labelled & ~seen & np.isin(routes, [index, MEAN]))
        part = dataset.take(rows)
        if len(part):
            told = f"{len(part):,} sequences of subjects not seen in training"
            reference = _reference(models, dataset, rows, np.full(len(rows), index))
            _write(place / "quality.json", assess(model, model.encode(part), reference, evaluated_on=told))
            _renew_checksum(place, "quality.json")
            written.append(str(place / "quality.json"))
    return written


def _renew_checksum(folder: Path, name: str) -> None:
    """Of a file that was rewritten; a folder of an earlier version, without checksums, gets none."""
    if (folder / CHECKSUMS).exists():
        content = read_json(folder / CHECKSUMS)
        content["files"] |= checksums(folder, [name])["files"]
        _write(folder / CHECKSUMS, content)
